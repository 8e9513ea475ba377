//! The session as an activity holds it: its id, its epoch, and the state that activities keep in it.

use std::any::TypeId;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use steadfast_core::{SessionConcurrency, SessionKey};
use steadfast_store::SessionRef;
use tokio_util::sync::CancellationToken;

use super::line::Line;
use super::managed::{Managed, ManagedState};
use super::recover::Rebuilding;

/// Gives an activity the session that it runs on, as attached to this process. Clones are the same
/// attachment.
///
/// State that activities keep here lives as long as the attachment: the runtime drops it when the session is
/// detached.
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
    inner: Arc<SessionInner>,
}

struct SessionInner {
    key: SessionKey,
    epoch: u64,
    has_completed: AtomicBool,
    managed: Mutex<ManagedState>,
    /// Held while a hook runs, so that `on_attach` and `on_detach` never overlap.
    hook_lock: tokio::sync::Mutex<()>,
    /// Cancelled when the former attachment of the session to this process is detached. `None` if there was
    /// none, or if it was detached before this one was claimed.
    former: Option<CancellationToken>,
    /// Cancelled when this attachment is detached: `on_detach` has returned, and the state is dropped.
    detached: CancellationToken,
    /// The rebuilds of the state, by activities that did not find it.
    rebuilding: Rebuilding,
    line: Arc<Line>,
    /// How many activities of the session may run at a time, once the store was asked.
    concurrency: OnceLock<SessionConcurrency>,
}

impl Session {
    pub(super) fn new(
        key: SessionKey,
        epoch: u64,
        former: Option<CancellationToken>,
        line: Arc<Line>,
    ) -> Self {
        let inner = SessionInner {
            key,
            epoch,
            has_completed: AtomicBool::new(false),
            managed: Mutex::default(),
            hook_lock: tokio::sync::Mutex::default(),
            former,
            detached: CancellationToken::new(),
            rebuilding: Rebuilding::default(),
            line,
            concurrency: OnceLock::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the id of the session, as the orchestration wrote it.
    pub fn id(&self) -> &str {
        &self.inner.key.session_id
    }

    /// Returns the key of the session in the store: its id and, for a session that an orchestration opened,
    /// the instance of that orchestration.
    pub fn key(&self) -> &SessionKey {
        &self.inner.key
    }

    /// Returns the number of this attachment. It rises each time the session is attached, to this process or
    /// another, and never repeats in a store. Pass it to the service that the activity writes to, and let
    /// that service refuse a lower number. A store behind the compatible `Provider` trait counts no epochs:
    /// there it is always 0.
    pub fn epoch(&self) -> u64 {
        self.inner.epoch
    }

    /// Tells whether no activity of this attachment has completed yet. The activity must then load the state
    /// that the process should have of the session.
    pub fn is_first_turn(&self) -> bool {
        !self.inner.has_completed.load(Ordering::Acquire)
    }

    /// Returns the state of type `T` that this process keeps for the attachment, and makes it with `init` if
    /// there is none. If several activities call this at the same time, one makes the state and the others
    /// wait for it.
    ///
    /// # Errors
    /// The error of `init`: then no state is kept, and the next caller tries again. A text for which
    /// [`is_session_lost`](steadfast_core::is_session_lost) holds if the session was detached from this
    /// process after the activity began: state that is made now would be dropped unseen.
    ///
    /// # Cancel safety
    /// A call that is dropped while it makes the state leaves no state; the next caller makes it.
    pub async fn state_or_init<T: Send + Sync + 'static>(
        &self,
        init: impl Future<Output = Result<T, String>> + Send,
    ) -> Result<Arc<T>, String> {
        let making = match self.managed().get::<T>(self)? {
            Managed::Made(state) => return Ok(state),
            Managed::Missing(making) => making,
        };
        let _one_maker = making.lock().await;
        if let Managed::Made(state) = self.managed().get::<T>(self)? {
            return Ok(state);
        }
        let state = Arc::new(init.await?);
        self.managed().put(self, Arc::clone(&state))?;
        Ok(state)
    }

    /// Returns the state of type `T` that this process keeps for the attachment. `None` if no activity has
    /// made it, or if the session was detached and the state was dropped.
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.managed().values.get(&TypeId::of::<T>())?.value.clone()?.downcast().ok()
    }

    /// Returns the key and the epoch by which the store knows this attachment.
    pub(crate) fn reference(&self) -> SessionRef {
        SessionRef { key: self.key().clone(), epoch: self.epoch() }
    }

    pub(super) fn line(&self) -> &Arc<Line> {
        &self.inner.line
    }

    pub(super) fn concurrency(&self) -> &OnceLock<SessionConcurrency> {
        &self.inner.concurrency
    }

    /// Returns what is cancelled when this attachment is detached.
    pub(super) fn detached(&self) -> CancellationToken {
        self.inner.detached.clone()
    }

    /// Waits until the former attachment of the session to this process is detached (G41).
    pub(super) async fn until_former_is_detached(&self) {
        if let Some(former) = &self.inner.former {
            former.cancelled().await;
        }
    }

    pub(super) fn rebuilding(&self) -> &Rebuilding {
        &self.inner.rebuilding
    }

    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    pub(super) fn hook_lock(&self) -> &tokio::sync::Mutex<()> {
        &self.inner.hook_lock
    }

    /// Notes that an activity of the attachment has completed.
    pub(crate) fn completed(&self) {
        self.inner.has_completed.store(true, Ordering::Release);
    }

    /// Ends the attachment: activities can make no more state.
    pub(super) fn end(&self) {
        self.managed().has_ended = true;
    }

    /// Drops the state that activities kept. The values are the application's: the drop of one may panic, and
    /// must not keep the others from being dropped.
    ///
    /// Then the attachment is detached, and the next one may begin.
    pub(super) fn drop_state(&self) {
        let values = std::mem::take(&mut self.managed().values);
        for value in values.into_values() {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(move || drop(value))) {
                std::mem::forget(panic);
                tracing::error!(
                    target: "steadfast::runtime",
                    session_id = self.id(),
                    epoch = self.epoch(),
                    "the state of a session panicked as it was dropped"
                );
            }
        }
        self.inner.detached.cancel();
    }

    fn managed(&self) -> MutexGuard<'_, ManagedState> {
        self.inner.managed.lock().unwrap_or_else(PoisonError::into_inner)
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
