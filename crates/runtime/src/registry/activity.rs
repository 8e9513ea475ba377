//! Registering activities. They have no versions: every activity is registered as 1.0.0.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use steadfast_core::{SYSCALL_PREFIX, decode_named, encode_named};
use steadfast_store::ListedHandler;

use super::{ActivityRegistry, ActivityRegistryBuilder, FIRST_VERSION};
use crate::handler::{ActivityHandler, FnActivity, FnActivityWithErrors};
use crate::{ActivityContext, ActivityError};

impl ActivityRegistry {
    /// Lists the registered names as the row of a worker has them: activities have no versions.
    pub(crate) fn listed_names(&self) -> Vec<ListedHandler> {
        self.list_names().into_iter().map(|name| ListedHandler { name, versions: Vec::new() }).collect()
    }
}

impl ActivityRegistryBuilder {
    /// Registers an activity. A name that is registered already, or that begins with the prefix of the
    /// engine's own activities, is an error of [`build_result`](super::RegistryBuilder::build_result).
    #[must_use]
    pub fn register<F, Fut>(self, name: impl Into<String>, f: F) -> Self
    where
        F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.add(name.into(), Arc::new(FnActivity(f)))
    }

    /// Registers an activity that says of its errors whether they are worth another try: see
    /// [`ActivityError`].
    ///
    /// ```
    /// # use steadfast_runtime::registry::ActivityRegistry;
    /// # use steadfast_runtime::{ActivityContext, ActivityError};
    /// let charge = |_ctx: ActivityContext, order: String| async move {
    ///     if order.is_empty() {
    ///         return Err(ActivityError::terminal("there is no order"));
    ///     }
    ///     Ok(format!("receipt of {order}"))
    /// };
    /// let activities = ActivityRegistry::builder().register_with_errors("Charge", charge).build();
    /// # drop(activities);
    /// ```
    #[must_use]
    pub fn register_with_errors<F, Fut, E>(self, name: impl Into<String>, f: F) -> Self
    where
        F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<ActivityError> + 'static,
    {
        self.add(name.into(), Arc::new(FnActivityWithErrors(f)))
    }

    /// Registers an activity whose input and output are encoded as JSON. An input that cannot be decoded
    /// fails the activity.
    #[must_use]
    pub fn register_typed<In, Out, F, Fut>(self, name: impl Into<String>, f: F) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        F: Fn(ActivityContext, In) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        let name = name.into();
        let named: Arc<str> = format!("activity '{name}'").into();
        let handler = move |ctx: ActivityContext, input: String| {
            let named = Arc::clone(&named);
            let input = decode_named::<In>(format_args!("input of {named}"), &input);
            let started = input.map(|input| f(ctx, input));
            async move {
                let output = started?.await?;
                encode_named(format_args!("output of {named}"), &output)
            }
        };
        self.add(name, Arc::new(FnActivity(handler)))
    }

    /// Returns a builder with the activities of another registry.
    pub fn from_registry(registry: &ActivityRegistry) -> Self {
        ActivityRegistry::builder_from(registry)
    }

    /// Adds the activities of another registry. A name that is registered already is an error of
    /// [`build_result`](super::RegistryBuilder::build_result).
    #[must_use]
    pub fn merge(self, other: ActivityRegistry) -> Self {
        self.merge_registry(other, "duplicate activity in merge")
    }

    /// Registers several activities of the same function type.
    #[must_use]
    pub fn register_all<F, Fut>(self, items: Vec<(&str, F)>) -> Self
    where
        F: Fn(ActivityContext, String) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.register_all_handlers(items, |builder, name, f| builder.register(name, f))
    }

    fn add(mut self, name: String, handler: Arc<dyn ActivityHandler>) -> Self {
        if name.starts_with(SYSCALL_PREFIX) {
            self.errors.push(format!("activity name '{name}' uses reserved prefix '{SYSCALL_PREFIX}'"));
        } else if self.has(&name, &FIRST_VERSION) {
            self.errors.push(format!("duplicate activity registration: {name}@{FIRST_VERSION}"));
        } else {
            self.insert(name, FIRST_VERSION, handler);
        }
        self
    }
}
