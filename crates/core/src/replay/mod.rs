//! The turn: history, arrivals and now in; events, effects and a verdict out.
//!
//! [`Execution`] runs the code of one orchestration against its history; [`Execution::turn`] has the turn on
//! one page. The steps of a turn are the modules `admit`, `decide`, `conclude` and `close`.

pub(crate) mod admit;
mod close;
mod conclude;
pub(crate) mod decide;
mod drive;
mod execution;
mod input;
pub(crate) mod ledger;
pub(crate) mod mismatch;
pub(crate) mod open_operations;
pub(crate) mod outline;
pub(crate) mod play;
mod turn;
mod verify;

pub use close::fail_without_code;
pub use execution::{Effort, Execution, Setup};
pub use input::{Arrival, CarryForwardOverflow, Identity, Options, ParentLink, Start};
pub use turn::{
    AnsweredChild, CloseCause, Effects, Notice, ParentNotice, QueuedWork, SessionChange, Turn, Verdict,
};
pub use verify::verify;

pub use crate::operation::continue_as_new::StartMessage;
