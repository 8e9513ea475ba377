//! The registered code: which handler a name and a version stand for.

mod activity;
mod orchestration;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use semver::Version;
use steadfast_store::{ListedHandler, NeededHandler};

use crate::handler::{ActivityHandler, OrchestrationHandler};

/// Decides which version of an orchestration runs if its start names no version.
#[derive(Clone, Debug)]
pub enum VersionPolicy {
    /// The highest registered version.
    Latest,
    /// This version. If it is not registered, such starts wait for a runtime that has it.
    Exact(Version),
}

/// The handlers of an application, by name and version. Clones share the handlers and the version policies.
pub struct Registry<H: ?Sized> {
    handlers: Arc<BTreeMap<String, BTreeMap<Version, Arc<H>>>>,
    policies: Arc<RwLock<HashMap<String, VersionPolicy>>>,
}

/// The orchestrations of an application, by name and version.
pub type OrchestrationRegistry = Registry<dyn OrchestrationHandler>;

/// The activities of an application, by the names that orchestrations call them by.
pub type ActivityRegistry = Registry<dyn ActivityHandler>;

/// Builds an [`OrchestrationRegistry`].
pub type OrchestrationRegistryBuilder = RegistryBuilder<dyn OrchestrationHandler>;

/// Builds an [`ActivityRegistry`].
pub type ActivityRegistryBuilder = RegistryBuilder<dyn ActivityHandler>;

/// The version of a handler that is registered without one.
pub(crate) const FIRST_VERSION: Version = Version::new(1, 0, 0);

impl<H: ?Sized> Registry<H> {
    /// Returns an empty builder.
    pub fn builder() -> RegistryBuilder<H> {
        RegistryBuilder::default()
    }

    /// Returns a builder with the handlers and the version policies of another registry.
    pub fn builder_from(registry: &Self) -> RegistryBuilder<H> {
        let handlers = (*registry.handlers).clone();
        let policies = registry.policies.read().unwrap_or_else(PoisonError::into_inner).clone();
        RegistryBuilder { handlers, policies, errors: Vec::new() }
    }

    /// Finds the version and the handler for a start without a version. `None` if the name is not registered,
    /// or not in the version that its policy demands.
    pub fn resolve_handler(&self, name: &str) -> Option<(Version, Arc<H>)> {
        let version = self.resolve_version(name)?;
        let handler = self.resolve_handler_exact(name, &version)?;
        Some((version, handler))
    }

    /// Finds the version for a start without a version. `None` in the cases of
    /// [`resolve_handler`](Self::resolve_handler).
    pub fn resolve_version(&self, name: &str) -> Option<Version> {
        let versions = self.handlers.get(name)?;
        let policies = self.policies.read().unwrap_or_else(PoisonError::into_inner);
        match policies.get(name) {
            Some(VersionPolicy::Exact(version)) => versions.contains_key(version).then(|| version.clone()),
            Some(VersionPolicy::Latest) | None => {
                versions.last_key_value().map(|(version, _)| version.clone())
            }
        }
    }

    /// Finds the handler of exactly this version.
    pub fn resolve_handler_exact(&self, name: &str, version: &Version) -> Option<Arc<H>> {
        self.handlers.get(name)?.get(version).cloned()
    }

    /// Sets which version runs from now on if a start names no version, also in a running runtime that holds
    /// a clone. Running executions keep their version.
    pub fn set_version_policy(&self, name: &str, policy: VersionPolicy) {
        self.policies.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), policy);
    }

    /// Lists the registered names, in alphabetical order.
    pub fn list_names(&self) -> Vec<String> {
        self.handlers.keys().cloned().collect()
    }

    /// Lists the registered versions of a name, ascending.
    pub fn list_versions(&self, name: &str) -> Vec<Version> {
        self.handlers.get(name).into_iter().flat_map(|versions| versions.keys().cloned()).collect()
    }

    /// Tells whether a name is registered, in any version.
    pub fn has(&self, name: &str) -> bool {
        self.handlers.contains_key(name)
    }

    /// Counts the registered names.
    pub fn count(&self) -> usize {
        self.handlers.len()
    }

    /// Lists the registered names with their versions, as the row of a worker has them.
    pub(crate) fn listed(&self) -> Vec<ListedHandler> {
        let texts = |versions: &BTreeMap<Version, Arc<H>>| versions.keys().map(Version::to_string).collect();
        self.handlers
            .iter()
            .map(|(name, versions)| ListedHandler { name: name.clone(), versions: texts(versions) })
            .collect()
    }

    /// Returns the handler that a start or an execution needs, of which [`listed`](Self::listed) has none. A
    /// start that names no version needs the version that the policy here demands.
    pub(crate) fn needed(&self, name: &str, version: Option<&str>) -> NeededHandler {
        let policies = self.policies.read().unwrap_or_else(PoisonError::into_inner);
        let version = match (version, policies.get(name)) {
            (Some(version), _) => Some(version.to_owned()),
            (None, Some(VersionPolicy::Exact(version))) => Some(version.to_string()),
            (None, Some(VersionPolicy::Latest) | None) => None,
        };
        NeededHandler { name: name.to_owned(), version }
    }

    /// Returns a hint for a handler that is not registered: the registered versions of its name, the newest
    /// first, or else the registered names, the nearest spelling first. A name that differs by more than a
    /// typing error is not offered as what was meant.
    pub(crate) fn instead_of(&self, name: &str) -> String {
        let mut names: Vec<&str> = self.own_names().collect();
        if names.is_empty() {
            return "nothing is registered".to_owned();
        }
        if names.contains(&name) {
            let versions = self.list_versions(name);
            let newest: Vec<String> =
                versions.iter().rev().take(NAMES_SHOWN).map(Version::to_string).collect();
            return format!("registered versions of '{name}': {}", newest.join(", "));
        }
        names.sort_by_key(|known| distance(name, known));
        let nearest = names.first().filter(|nearest| is_near(name, nearest));
        let guess = nearest.map(|nearest| format!("did you mean '{nearest}'? ")).unwrap_or_default();
        names.truncate(NAMES_SHOWN);
        format!("{guess}registered: {}", names.join(", "))
    }

    /// Lists the names that the application registered, without those of the engine.
    fn own_names(&self) -> impl Iterator<Item = &str> {
        self.handlers.keys().map(String::as_str).filter(|known| !known.starts_with("__"))
    }
}

/// Bounds the registered names, or versions of a name, in a log line.
const NAMES_SHOWN: usize = 20;

/// Tells whether one name may be a typing error of the other: at most a third of the letters of the longer
/// one differ, and one letter always may.
fn is_near(one: &str, other: &str) -> bool {
    let letters = one.chars().count().max(other.chars().count());
    distance(one, other) <= (letters / 3).max(1)
}

/// The Levenshtein distance of two names: how many letters must change to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let replaced = above[j] + usize::from(a != *b);
            row.push(replaced.min(above[j + 1] + 1).min(row[j] + 1));
        }
        above = row;
    }
    above.last().copied().unwrap_or(usize::MAX)
}

impl<H: ?Sized> Clone for Registry<H> {
    fn clone(&self) -> Self {
        Self { handlers: Arc::clone(&self.handlers), policies: Arc::clone(&self.policies) }
    }
}

impl<H: ?Sized> Default for Registry<H> {
    fn default() -> Self {
        Self { handlers: Arc::default(), policies: Arc::default() }
    }
}

/// Collects handlers for a [`Registry`], and the errors of registering them.
pub struct RegistryBuilder<H: ?Sized> {
    pub(crate) handlers: BTreeMap<String, BTreeMap<Version, Arc<H>>>,
    policies: HashMap<String, VersionPolicy>,
    pub(crate) errors: Vec<String>,
}

impl<H: ?Sized> Default for RegistryBuilder<H> {
    fn default() -> Self {
        Self { handlers: BTreeMap::new(), policies: HashMap::new(), errors: Vec::new() }
    }
}

impl<H: ?Sized> RegistryBuilder<H> {
    /// Builds the registry and ignores errors: a handler that could not be registered is missing. Use
    /// [`build_result`](Self::build_result) to see them.
    pub fn build(self) -> Registry<H> {
        Registry { handlers: Arc::new(self.handlers), policies: Arc::new(RwLock::new(self.policies)) }
    }

    /// Builds the registry.
    ///
    /// # Errors
    /// The texts of all errors of registering, joined by "; ".
    pub fn build_result(self) -> Result<Registry<H>, String> {
        if self.errors.is_empty() { Ok(self.build()) } else { Err(self.errors.join("; ")) }
    }

    /// Adds the handlers of another registry, without its policies. If a name and version are registered
    /// already, the existing handler stays, and an error is collected that begins with `error_prefix`.
    #[must_use]
    pub fn merge_registry(mut self, other: Registry<H>, error_prefix: &str) -> Self {
        for (name, versions) in other.handlers.iter() {
            for (version, handler) in versions {
                if self.has(name, version) {
                    self.errors.push(format!("{error_prefix}: {name}@{version}"));
                } else {
                    self.insert(name.clone(), version.clone(), Arc::clone(handler));
                }
            }
        }
        self
    }

    /// Calls `register` for each name and handler, one after the other, and returns the builder with all of
    /// them.
    #[must_use]
    pub fn register_all_handlers<F>(
        self,
        items: Vec<(&str, F)>,
        register: fn(Self, &str, F) -> Self,
    ) -> Self {
        items.into_iter().fold(self, |builder, (name, handler)| register(builder, name, handler))
    }

    /// Sets which version of an orchestration runs if its start names no version. Default: the latest.
    #[must_use]
    pub fn set_policy(mut self, name: impl Into<String>, policy: VersionPolicy) -> Self {
        self.policies.insert(name.into(), policy);
        self
    }

    pub(crate) fn has(&self, name: &str, version: &Version) -> bool {
        self.handlers.get(name).is_some_and(|versions| versions.contains_key(version))
    }

    pub(crate) fn insert(&mut self, name: String, version: Version, handler: Arc<H>) {
        self.handlers.entry(name).or_default().insert(version, handler);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(registered: &[&str], missing: &str) -> String {
        let handler = |_: crate::ActivityContext, text: String| async move { Ok(text) };
        let builder = ActivityRegistry::builder();
        let add = |builder: ActivityRegistryBuilder, name: &&str| builder.register(*name, handler);
        registered.iter().fold(builder, add).build().instead_of(missing)
    }

    #[test]
    fn a_name_that_looks_like_a_typing_error_is_offered() {
        for typed in ["charge", "Chrage", "Charge2", "Chargee", "Carge"] {
            let text = hint(&["Charge", "Pack"], typed);
            assert_eq!(text, "did you mean 'Charge'? registered: Charge, Pack", "{typed}");
        }
        assert_eq!(hint(&["Pay"], "Say"), "did you mean 'Pay'? registered: Pay");
    }

    #[test]
    fn a_name_that_is_far_from_all_others_is_answered_without_a_guess() {
        assert_eq!(hint(&["Pack", "Ship"], "Charge"), "registered: Pack, Ship");
        assert_eq!(hint(&["Ok"], "Go"), "registered: Ok");
        assert_eq!(hint(&[], "Charge"), "nothing is registered");
    }

    #[test]
    fn a_version_that_is_missing_is_answered_with_the_versions_that_are_there() {
        let handler = |_: steadfast_core::OrchestrationContext, text: String| async move { Ok(text) };
        let flows = OrchestrationRegistry::builder()
            .register_versioned("Flow", "1.0.0", handler)
            .register_versioned("Flow", "2.0.0", handler)
            .build();
        assert_eq!(flows.instead_of("Flow"), "registered versions of 'Flow': 2.0.0, 1.0.0");
    }
}
