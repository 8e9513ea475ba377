//! The state that activities keep in a session: one value of each type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use steadfast_core::session_lost;

use super::Session;

/// The values that activities keep in one attachment, by type.
#[derive(Default)]
pub(super) struct ManagedState {
    /// The attachment has ended: no value is made any more.
    pub(super) has_ended: bool,
    pub(super) values: HashMap<TypeId, ManagedValue>,
}

/// The value of one type, if an activity has made it, and the lock for making it.
#[derive(Default)]
pub(super) struct ManagedValue {
    pub(super) value: Option<Arc<dyn Any + Send + Sync>>,
    /// Held by the activity that makes the value.
    making: Arc<tokio::sync::Mutex<()>>,
}

/// The value of type `T` of an attachment, or the lock for making it.
pub(super) enum Managed<T> {
    Made(Arc<T>),
    /// No value yet. The activity that holds the lock may make it.
    Missing(Arc<tokio::sync::Mutex<()>>),
}

impl ManagedState {
    /// Looks for the value of a type.
    ///
    /// # Errors
    /// The text of a lost session, if the attachment has ended.
    pub(super) fn get<T: Send + Sync + 'static>(&mut self, session: &Session) -> Result<Managed<T>, String> {
        self.check_not_ended(session)?;
        let ManagedValue { value, making } = self.values.entry(TypeId::of::<T>()).or_default();
        let made = value.clone().and_then(|value| value.downcast().ok());
        Ok(made.map_or_else(|| Managed::Missing(Arc::clone(making)), Managed::Made))
    }

    /// Keeps the value of a type.
    ///
    /// # Errors
    /// As [`get`](Self::get); then the value is not kept.
    pub(super) fn put<T: Send + Sync + 'static>(
        &mut self,
        session: &Session,
        value: Arc<T>,
    ) -> Result<(), String> {
        self.check_not_ended(session)?;
        self.values.entry(TypeId::of::<T>()).or_default().value = Some(value);
        Ok(())
    }

    fn check_not_ended(&self, session: &Session) -> Result<(), String> {
        if !self.has_ended {
            return Ok(());
        }
        let (id, epoch) = (session.id(), session.epoch());
        Err(session_lost(format_args!(
            "session '{id}' (epoch {epoch}) is no longer attached to this process"
        )))
    }
}
