//! Sessions of this process: which it holds, what activities keep there, how many it serves, and how each one ends.
//!
//! The store decides who owns a session. What stands here is what the process believes, and it believes no longer than
//! it can prove: an attachment that could not be renewed in time is given up before its lease ends.

mod ask;
mod attachment;
mod detach;
mod hooks;
mod keep;
mod table;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_core::SessionKey;
use steadfast_store::Owner;
use tokio::sync::watch;

pub(crate) use ask::{Asking, Served};
pub use attachment::Session;
pub(crate) use detach::{drain, give_up_node, lost, release_for_want_of_handler, tidy};
pub(crate) use hooks::greet;
pub use hooks::{DetachReason, SessionHooks};
pub(crate) use keep::keep;
pub(crate) use table::{Arrival, tell_arrival};

use table::Entry;

/// What the process knows of its sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) owner: Owner,
    /// Bounds the sessions with an activity in flight.
    limit: usize,
    state: Mutex<State>,
    /// Rises when what a fetch may take changes.
    changes: watch::Sender<u64>,
    /// Rises when an activity of a session ends, a fetch gives its room back, or a session is detached.
    endings: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    in_flight: BTreeMap<SessionKey, usize>,
    /// Fetches that may claim one more session each.
    reserved: usize,
    /// The sessions that are attached here, or are being detached.
    attached: BTreeMap<SessionKey, Entry>,
    /// Sessions that fetches leave to others, until a time of the monotonic clock.
    left_out: BTreeMap<SessionKey, Duration>,
    /// Takes no more session work: the process is being drained, or another has its name.
    is_closed: bool,
    /// Orders the uses of sessions.
    uses: u64,
}

impl Sessions {
    pub(crate) fn new(owner: Owner, limit: usize) -> Self {
        Self {
            owner,
            limit,
            state: Mutex::default(),
            changes: watch::Sender::new(0),
            endings: watch::Sender::new(0),
        }
    }

    /// Takes no more session work. False when that was so already.
    fn close(&self) -> bool {
        let was_closed = std::mem::replace(&mut self.lock().is_closed, true);
        self.changed();
        !was_closed
    }

    /// Waits until no activity of a session runs here and no fetch may bring one.
    async fn are_at_rest(&self) {
        self.until(|state| state.in_flight.is_empty() && state.reserved == 0).await;
    }

    async fn until(&self, holds: impl Fn(&State) -> bool) {
        let mut endings = self.endings.subscribe();
        while !holds(&self.lock()) {
            if endings.changed().await.is_err() {
                return;
            }
        }
    }

    /// Tells parked fetches that they may ask for something else now.
    fn changed(&self) {
        self.changes.send_modify(|change| *change = change.wrapping_add(1));
    }

    fn ended(&self) {
        self.endings.send_modify(|ending| *ending = ending.wrapping_add(1));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
