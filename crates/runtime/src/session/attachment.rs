//! One attachment of a session to this process, and what its activities keep there.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_core::{SessionKey, session_lost};
use steadfast_store::SessionRef;

/// Gives an activity the session that it runs on, as attached to this process. Clones are the same attachment.
///
/// State that is kept here lives as long as the attachment: the runtime drops it when the session goes elsewhere.
///
/// ```
/// # use steadfast_runtime::ActivityContext;
/// async fn turn(ctx: ActivityContext, input: String) -> Result<String, String> {
///     let Some(session) = ctx.session() else { return Err("runs on a session".to_owned()) };
///     let words = session.state_or_init(async { Ok(std::sync::Mutex::new(Vec::new())) }).await?;
///     let mut words = words.lock().map_err(|error| error.to_string())?;
///     words.push(input);
///     Ok(words.join(" "))
/// }
/// ```
#[derive(Clone)]
pub struct Session {
    attachment: Arc<Attachment>,
}

struct Attachment {
    key: SessionKey,
    epoch: u64,
    has_completed: AtomicBool,
    kept: Mutex<Kept>,
    /// Has `on_attach` been called? Held while a hook runs, so that the two never overlap.
    greeted: tokio::sync::Mutex<bool>,
}

#[derive(Default)]
struct Kept {
    has_ended: bool,
    places: HashMap<TypeId, Place>,
}

/// Where a value of one type is kept.
#[derive(Default)]
struct Place {
    value: Option<Arc<dyn Any + Send + Sync>>,
    /// Held by the one who makes the value.
    making: Arc<tokio::sync::Mutex<()>>,
}

impl Session {
    pub(super) fn new(key: SessionKey, epoch: u64) -> Self {
        let attachment = Attachment {
            key,
            epoch,
            has_completed: AtomicBool::new(false),
            kept: Mutex::default(),
            greeted: tokio::sync::Mutex::default(),
        };
        Self { attachment: Arc::new(attachment) }
    }

    /// Returns the id of the session, as the orchestration wrote it.
    pub fn id(&self) -> &str {
        &self.attachment.key.session_id
    }

    /// Returns the key of the session in the store.
    pub fn key(&self) -> &SessionKey {
        &self.attachment.key
    }

    /// Returns the number of this attachment: it rises each time that the session is attached anew, to whomever. Hand it
    /// to what the activity writes to, and let that refuse a lower one. It is 0 where the store counts none.
    pub fn epoch(&self) -> u64 {
        self.attachment.epoch
    }

    /// Tells whether no activity of this attachment has completed yet: what the process should know of the session must
    /// be loaded first.
    pub fn is_first_turn(&self) -> bool {
        !self.attachment.has_completed.load(Ordering::Acquire)
    }

    /// Returns the state of this type that the process keeps for the attachment, made by `init` if there is none. Of
    /// callers at the same time one makes it and the others wait.
    ///
    /// # Errors
    /// What `init` returns: nothing is kept then, and the next caller tries again. A text for which
    /// [`is_session_lost`](steadfast_core::is_session_lost) holds when the session has been detached from this process
    /// since the activity began: the state would be nobody's.
    ///
    /// # Cancel safety
    /// A call that is dropped while it makes the state keeps nothing, and lets the next caller make it.
    pub async fn state_or_init<T: Send + Sync + 'static>(
        &self,
        init: impl Future<Output = Result<T, String>> + Send,
    ) -> Result<Arc<T>, String> {
        let making = {
            let mut kept = self.lock();
            match kept.live::<T>(self)?.downcast() {
                Ok(state) => return Ok(state),
                Err(making) => making,
            }
        };
        let _alone = making.lock().await;
        if let Ok(state) = self.lock().live::<T>(self)?.downcast() {
            return Ok(state);
        }
        let state = Arc::new(init.await?);
        let mut kept = self.lock();
        kept.live::<T>(self)?;
        kept.places.entry(TypeId::of::<T>()).or_default().value = Some(Arc::clone(&state) as _);
        Ok(state)
    }

    /// Returns the state of this type that the process keeps for the attachment, if it was made and not dropped since.
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let kept = self.lock();
        kept.places.get(&TypeId::of::<T>())?.value.clone()?.downcast().ok()
    }

    pub(super) fn reference(&self) -> SessionRef {
        SessionRef { key: self.key().clone(), epoch: self.epoch() }
    }

    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.attachment, &other.attachment)
    }

    pub(super) fn greeted(&self) -> &tokio::sync::Mutex<bool> {
        &self.attachment.greeted
    }

    /// Notes that an activity of the attachment has completed.
    pub(crate) fn completed(&self) {
        self.attachment.has_completed.store(true, Ordering::Release);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Ends the attachment: no state is made any more.
    pub(super) fn end(&self) {
        self.lock().has_ended = true;
    }

    /// Drops what is kept. The values are the user's: dropping one may panic, and must take nothing along.
    pub(super) fn forget(&self) {
        let places = std::mem::take(&mut self.lock().places);
        for place in places.into_values() {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(move || drop(place))) {
                std::mem::forget(panic);
                tracing::error!(target: "steadfast::runtime", session_id = self.id(), epoch = self.epoch(), "the state of a session panicked as it was dropped");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.attachment.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a live attachment has of a type: the value, or the right to make it.
struct Live {
    value: Option<Arc<dyn Any + Send + Sync>>,
    making: Arc<tokio::sync::Mutex<()>>,
}

impl Live {
    fn downcast<T: Send + Sync + 'static>(self) -> Result<Arc<T>, Arc<tokio::sync::Mutex<()>>> {
        self.value.and_then(|value| value.downcast().ok()).ok_or(self.making)
    }
}

impl Kept {
    fn live<T: 'static>(&mut self, session: &Session) -> Result<Live, String> {
        if self.has_ended {
            let (id, epoch) = (session.id(), session.epoch());
            return Err(session_lost(format_args!(
                "session '{id}' (epoch {epoch}) is no longer attached to this process"
            )));
        }
        let place = self.places.entry(TypeId::of::<T>()).or_default();
        Ok(Live { value: place.value.clone(), making: Arc::clone(&place.making) })
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("key", self.key())
            .field("epoch", &self.epoch())
            .field("is_first_turn", &self.is_first_turn())
            .finish_non_exhaustive()
    }
}
