//! Registering orchestrations, with versions.

use std::sync::Arc;

use semver::Version;
use serde::Serialize;
use serde::de::DeserializeOwned;
use steadfast_core::{OrchestrationContext, decode_named, encode_named};

use super::{FIRST_VERSION, OrchestrationRegistry, OrchestrationRegistryBuilder};
use crate::handler::FnOrchestration;

impl OrchestrationRegistryBuilder {
    /// Registers an orchestration as version 1.0.0. A name that has this version already is an error of
    /// [`build_result`](super::RegistryBuilder::build_result).
    #[must_use]
    pub fn register<F, Fut>(self, name: impl Into<String>, f: F) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.add(name.into(), FIRST_VERSION, f)
    }

    /// Registers version 1.0.0 of an orchestration whose input and output are encoded as JSON. It replaces a
    /// version 1.0.0 that is registered already, without an error.
    #[must_use]
    pub fn register_typed<In, Out, F, Fut>(mut self, name: impl Into<String>, f: F) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        F: Fn(OrchestrationContext, In) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        let name = name.into();
        let handler = typed(&name, f);
        self.insert(name, FIRST_VERSION, Arc::new(FnOrchestration(handler)));
        self
    }

    /// Registers a version of an orchestration, such as `"1.2.0"`. Versions of a name are registered in
    /// ascending order.
    ///
    /// # Panics
    /// If `version` is not a semantic version, or lower than the latest version of that name.
    /// [`try_register_versioned`](Self::try_register_versioned) collects an error instead.
    #[must_use]
    #[allow(clippy::panic, reason = "the compatible API panics here")]
    pub fn register_versioned<F, Fut>(self, name: impl Into<String>, version: impl AsRef<str>, f: F) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        let name = name.into();
        match self.check_version(&name, version.as_ref()) {
            Ok(version) => self.add(name, version, f),
            Err(error) => panic!("{error}"),
        }
    }

    /// Registers a version of an orchestration. A version that is not semantic, is registered already, or is
    /// lower than the latest version of that name is an error of
    /// [`build_result`](super::RegistryBuilder::build_result).
    #[must_use]
    pub fn try_register_versioned<F, Fut>(
        mut self,
        name: impl Into<String>,
        version: impl AsRef<str>,
        f: F,
    ) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        let name = name.into();
        match self.check_version(&name, version.as_ref()) {
            Ok(version) => self.add(name, version, f),
            Err(error) => {
                self.errors.push(error);
                self
            }
        }
    }

    /// Registers a version of an orchestration whose input and output are encoded as JSON.
    ///
    /// # Panics
    /// As [`register_versioned`](Self::register_versioned).
    #[must_use]
    pub fn register_versioned_typed<In, Out, F, Fut>(
        self,
        name: impl Into<String>,
        version: impl AsRef<str>,
        f: F,
    ) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        F: Fn(OrchestrationContext, In) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        let name = name.into();
        let handler = typed(&name, f);
        self.register_versioned(name, version, handler)
    }

    /// Adds the orchestrations of another registry, without its policies. A name and version that are
    /// registered already are an error of [`build_result`](super::RegistryBuilder::build_result).
    #[must_use]
    pub fn merge(self, other: OrchestrationRegistry) -> Self {
        self.merge_registry(other, "duplicate orchestration in merge")
    }

    /// Registers several orchestrations of the same function type, as version 1.0.0.
    #[must_use]
    pub fn register_all<F, Fut>(self, items: Vec<(&str, F)>) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.register_all_handlers(items, |builder, name, f| builder.register(name, f))
    }

    fn add<F, Fut>(mut self, name: String, version: Version, f: F) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        if self.has(&name, &version) {
            self.errors.push(format!("duplicate orchestration registration: {name}@{version}"));
        } else {
            self.insert(name, version, Arc::new(FnOrchestration(f)));
        }
        self
    }

    fn check_version(&self, name: &str, version: &str) -> Result<Version, String> {
        let version = Version::parse(version)
            .map_err(|error| format!("'{version}' is no version for orchestration {name}: {error}"))?;
        let latest = self.handlers.get(name).and_then(|versions| versions.last_key_value());
        match latest {
            Some((latest, _)) if version < *latest && !self.has(name, &version) => Err(format!(
                "non-monotonic orchestration version for {name}: {version} is not later than \
                 existing latest {latest}"
            )),
            _ => Ok(version),
        }
    }
}

/// The future of a typed handler.
type HandlerFuture = std::pin::Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

fn typed<In, Out, F, Fut>(
    name: &str,
    f: F,
) -> impl Fn(OrchestrationContext, String) -> HandlerFuture + Send + Sync + use<In, Out, F, Fut>
where
    In: DeserializeOwned + Send + 'static,
    Out: Serialize + Send + 'static,
    F: Fn(OrchestrationContext, In) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, String>> + Send + 'static,
{
    let named: Arc<str> = format!("orchestration '{name}'").into();
    move |ctx, input| {
        let named = Arc::clone(&named);
        let input = decode_named::<In>(format_args!("input of {named}"), &input);
        let started = input.map(|input| f(ctx, input));
        Box::pin(async move {
            let output = started?.await?;
            encode_named(format_args!("output of {named}"), &output)
        })
    }
}
