//! Sessions: which sessions this process owns, how each is attached and detached, and what activities
//! keep in them.
//!
//! A session is an affinity key: while a process owns it, all activities of the session run there. The store
//! decides which process owns a session; a process *claims* one with a fetch and *releases* it. In the
//! process the session is *attached* (the application is told, activities may keep state in it) and
//! *detached* (the application is told, the state is dropped).
//!
//! Read the files in this order:
//!
//! 1. `local_session.rs`: the state machine of one session, pure. All rules are there, and its test is their
//!    table.
//! 2. `table.rs`: all sessions of the process behind one lock; each method is one event of the machine, or a
//!    question.
//! 3. `released.rs`: claims that were given up, whose leases may live on.
//! 4. `ask.rs`: what a fetch may ask for, so that the process claims no more than it can serve.
//! 5. `attach.rs`: from the fetch that claimed a session to the activity that may begin.
//! 6. `line.rs`: the activities of a serial session, one at a time.
//! 7. `renew.rs`: the task that renews the leases and follows the store's answer.
//! 8. `detach.rs`: the one procedure that ends every attachment.
//! 9. `close.rs`: what a turn changes about the sessions of its instance.
//! 10. `register.rs`: the number of this start of the node, without which no session work is taken.
//! 11. `hooks.rs`, `handle.rs`, `managed.rs`, `recover.rs`: what the application sees.

mod ask;
mod attach;
mod close;
mod detach;
mod handle;
mod hooks;
mod line;
mod local_session;
mod managed;
mod recover;
mod register;
mod released;
mod renew;
mod rises;
mod table;

use ask::ActivityInFlight;
pub(crate) use ask::SessionAsk;
pub(crate) use attach::{WorkSession, attach, claim, may_serve};
pub(crate) use close::{SessionsOfTurn, detach_if_closed};
pub(crate) use detach::{drain, node_replaced, release_unregistered};
pub use handle::Session;
pub use hooks::{DetachReason, SessionHooks};
pub(crate) use line::{HeadOfLine, stand_in_line, successors};
pub use recover::SessionRecoveryPolicy;
pub(crate) use register::{ThisStart, is_replaced, keep_node, name_process};
pub(crate) use rises::{Rises, SeenRises};
pub(crate) use table::LocalSessions;
