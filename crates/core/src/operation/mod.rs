//! The kinds of operations that an orchestration can ask for, one file each.
//!
//! A kind's file holds all its rules, as an implementation of [`Operation`]: which calls it refuses, which
//! event records a call, which recorded event a repeated call matches, what stays open, what settles it, what
//! the drop of its future means, what it sends, how the end of an execution closes it, and how it is
//! described.
//!
//! The engine ([`replay`](crate::replay)) knows no kind. It asks this file for the [`Kind`] of a call, the
//! [`Role`] of an event or the [`Addressee`] of a message, and hands over to the [rules](Kind::rules) of the
//! kind. Those three functions are the only exhaustive matches over actions, events and messages that decide
//! something. A new kind is its vocabulary, one file, one line in the list of kinds, and its arms in these
//! functions.
//!
//! How an activity goes through its rules:
//!
//! 1. *record*: the code calls the context. `decide` asks [`refuse`](Operation::refuse), makes the event of
//!    [`record`](Operation::record), keeps it [`open`](Operation::open), and queues the effect of
//!    [`send`](Operation::send).
//! 2. *play*: when history is repeated, `play` compares the event with the repeated call by
//!    [`find_call`](Operation::find_call) and [`matches`](Operation::matches).
//! 3. *settle*: the completion arrives. [`admit`](Operation::admit) makes an event of the message,
//!    [`close`](Operation::close) takes it out of what is open, and [`settle`](Operation::settle) answers the
//!    future.
//! 4. *drop*: the code drops the future instead. `conclude` records the event of its
//!    [`cancellation`](Operation::cancellation) and [`stop`](Operation::stop) withdraws the work. The drop of
//!    a timer is no event: [`note_drop`](Operation::note_drop) tells it beside the history.
//! 5. *explain*: while it is open, [`explain`](Operation::explain) describes it to operators.

pub(crate) mod activity;
pub(crate) mod bounds;
pub(crate) mod call_keys;
pub(crate) mod child;
pub(crate) mod continue_as_new;
pub(crate) mod custom_status;
pub(crate) mod detached;
pub(crate) mod kv;
pub(crate) mod queue;
pub(crate) mod session;
pub(crate) mod signal;
pub(crate) mod timer;

use std::collections::BTreeSet;
use std::task::Waker;

use crate::replay::admit::Judgement;
use crate::replay::decide::Draft;
use crate::replay::ledger::{Answer, Ledger, Place};
use crate::replay::outline::Outline;
use crate::replay::play::Next;
use crate::replay::{Effects, Identity, Notice, Options, QueuedWork, SessionChange};
use crate::vocabulary::version::records_everything;
use crate::{Action, ErrorDetails, Event, EventKind, OpenKind, WorkItem};

/// Generates from one list: the enum [`Kind`], the constant with all kinds, and the function that returns the
/// rules of a kind.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident => $rules:expr,)+) => {
        /// The kinds of operations that the code of an orchestration can ask for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Kind {
            $($(#[$doc])* $kind,)+
        }

        impl Kind {
            /// Every kind. A turn judges limits, records dropped futures and closes open waits in this order,
            /// which is recorded: a new kind goes to the end.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$kind,)+];

            /// Returns the rules by which the engine treats operations of this kind.
            pub(crate) fn rules(self) -> &'static dyn Operation {
                match self {
                    $(Self::$kind => &$rules,)+
                }
            }
        }
    };
}

kinds! {
    CustomStatus => custom_status::CustomStatusRules,
    Activity => activity::ActivityRules,
    Child => child::ChildRules,
    Signal => signal::SignalRules,
    Queue => queue::QueueRules,
    Timer => timer::TimerRules,
    Detached => detached::DetachedRules,
    Kv => kv::KvRules,
    /// Opening or closing a session; both are answered by their own event.
    Session => session::SessionRules,
    /// Waiting until a session is attached anew. No event records the wait.
    Migration => session::migration::MigrationRules,
    ContinueAsNew => continue_as_new::ContinueAsNewRules,
}

impl Action {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::CallActivity { .. } => Kind::Activity,
            Self::CreateTimer { .. } => Kind::Timer,
            Self::WaitExternal { .. } => Kind::Signal,
            Self::DequeueEvent { .. } => Kind::Queue,
            Self::StartSubOrchestration { .. } => Kind::Child,
            Self::StartOrchestrationDetached { .. } => Kind::Detached,
            Self::UpdateCustomStatus { .. } => Kind::CustomStatus,
            Self::SetKeyValue { .. } | Self::ClearKeyValue { .. } | Self::ClearKeyValues => Kind::Kv,
            Self::OpenSession { .. } | Self::CloseSession { .. } => Kind::Session,
            Self::ContinueAsNew { .. } => Kind::ContinueAsNew,
        }
    }
}

/// The part that an event plays in the history of its execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The event is the first of the execution.
    Begins,
    /// The event records a call of the code.
    Records(Kind),
    /// The event brings an answer to a call of the code.
    Answers(Kind),
    /// The event asks for an operation to stop, or records that a wait ended without an answer.
    Cancels(Kind),
    /// The event changes the state of the execution and belongs to no operation: carried sessions, a request
    /// to cancel.
    Carries,
    /// The event ends the execution.
    Ends,
}

impl EventKind {
    pub(crate) fn role(&self) -> Role {
        match self {
            Self::OrchestrationStarted { .. } => Role::Begins,
            Self::ActivityScheduled { .. } => Role::Records(Kind::Activity),
            Self::ActivityCompleted { .. } | Self::ActivityFailed { .. } => Role::Answers(Kind::Activity),
            Self::ActivityCancelRequested { .. } => Role::Cancels(Kind::Activity),
            Self::TimerCreated { .. } => Role::Records(Kind::Timer),
            Self::TimerFired { .. } => Role::Answers(Kind::Timer),
            Self::ExternalSubscribed { .. } => Role::Records(Kind::Signal),
            Self::ExternalEvent { .. } => Role::Answers(Kind::Signal),
            Self::ExternalSubscribedCancelled { .. } => Role::Cancels(Kind::Signal),
            Self::QueueSubscribed { .. } => Role::Records(Kind::Queue),
            Self::QueueEventDelivered { .. } => Role::Answers(Kind::Queue),
            Self::QueueSubscriptionCancelled { .. } => Role::Cancels(Kind::Queue),
            Self::SubOrchestrationScheduled { .. } => Role::Records(Kind::Child),
            Self::SubOrchestrationCompleted { .. } | Self::SubOrchestrationFailed { .. } => {
                Role::Answers(Kind::Child)
            }
            Self::SubOrchestrationCancelRequested { .. } => Role::Cancels(Kind::Child),
            Self::OrchestrationChained { .. } => Role::Records(Kind::Detached),
            Self::CustomStatusUpdated { .. } => Role::Records(Kind::CustomStatus),
            Self::KeyValueSet { .. } | Self::KeyValueCleared { .. } | Self::KeyValuesCleared => {
                Role::Records(Kind::Kv)
            }
            Self::SessionOpened { .. } | Self::SessionClosed { .. } => Role::Records(Kind::Session),
            Self::SessionMigrated { .. } => Role::Answers(Kind::Migration),
            Self::SessionsCarried { .. } | Self::OrchestrationCancelRequested { .. } => Role::Carries,
            Self::OrchestrationCompleted { .. }
            | Self::OrchestrationFailed { .. }
            | Self::OrchestrationContinuedAsNew { .. } => Role::Ends,
        }
    }
}

/// The part of a running execution that a message is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addressee {
    /// An operation of this kind.
    Operation(Kind),
    /// The execution as a whole, which is to be cancelled.
    Execution,
    /// The message changes nothing in a running execution; the text says why.
    Nothing(&'static str),
}

impl WorkItem {
    pub(crate) fn addressee(&self) -> Addressee {
        match self {
            Self::ActivityCompleted { .. } | Self::ActivityFailed { .. } => {
                Addressee::Operation(Kind::Activity)
            }
            Self::TimerFired { .. } => Addressee::Operation(Kind::Timer),
            Self::SubOrchCompleted { .. } | Self::SubOrchFailed { .. } => Addressee::Operation(Kind::Child),
            Self::ExternalRaised { .. } => Addressee::Operation(Kind::Signal),
            Self::QueueMessage { .. } => Addressee::Operation(Kind::Queue),
            Self::SessionMigrated { .. } => Addressee::Operation(Kind::Migration),
            Self::CancelInstance { .. } => Addressee::Execution,
            Self::StartOrchestration { .. }
            | Self::ContinueAsNew { .. }
            | Self::ContinueAsNewWithSessions { .. } => Addressee::Nothing("the execution has started"),
            Self::ActivityExecute { .. } => Addressee::Nothing("it is work, not a message"),
            Self::TerminateInstance { .. } => {
                Addressee::Nothing("an execution that runs is not terminated by its code")
            }
            Self::Nudge { .. } => Addressee::Nothing("it only asks for a turn"),
        }
    }
}

/// The rules of one kind of operation. The default of a method is that the kind has no such rule.
///
/// A method is called only with actions, events and messages of its own kind: [`Action::kind`], [`Role`] and
/// [`Addressee`] decide which kind that is.
pub(crate) trait Operation: Sync {
    /// Returns the name of the kind in errors about its futures.
    fn label(&self) -> &'static str;

    /// Refuses a call that breaks a rule or a limit; nothing of it is recorded. Judged when the call is made,
    /// never on replay. `event_id` is the one that its event would have.
    fn refuse(&self, _action: &Action, _event_id: u64, _site: &Site<'_>) -> Result<(), ErrorDetails> {
        Ok(())
    }

    /// Makes the event that records a call; `None` for continue-as-new, which the end of the execution
    /// records.
    fn record(&self, _action: &Action, _event_id: u64, _identity: &Identity) -> Option<Record> {
        None
    }

    /// Makes the work, the message or the session change that a recorded call causes; `None` if it causes
    /// none.
    fn send(&self, _action: Action, _event: &Event, _site: &Site<'_>) -> Option<Effect> {
        None
    }

    /// Tells whether the effect of a call is sent although the execution ends in the same turn.
    fn is_sent_at_end(&self) -> bool {
        false
    }

    /// Checks the new events of a whole turn against the limits of this kind, such as the size of a value.
    /// Called at the end of the turn.
    fn check_events(&self, _events: &[Event]) -> Result<(), ErrorDetails> {
        Ok(())
    }

    /// Tells whether a call that is made again on replay has the arguments that the event records.
    fn matches(&self, _action: &Action, _event: &Event) -> bool {
        false
    }

    /// Returns the index of the call that the event records: the oldest one, if it matches.
    fn find_call(&self, event: &Event, ledger: &Ledger) -> Option<usize> {
        ledger.peek_call().filter(|call| self.matches(&call.action, event)).map(|_| 0)
    }

    /// Returns the words that begin the text of a mismatch at an event of this kind.
    fn mismatch_label(&self, _event: &EventKind) -> &'static str {
        SCHEDULE_MISMATCH
    }

    /// Returns the text of a mismatch where history has this event and the code made no call.
    fn missing_call(&self, _event: &EventKind) -> String {
        "history schedule but no emitted action".to_owned()
    }

    /// Tells whether engines before 0.2.0 accepted a history with an event of this kind for which the code
    /// makes no call.
    fn may_lack_call(&self) -> bool {
        false
    }

    /// Returns the open operations that end because of the event, by the id of the event that scheduled each:
    /// closing a session ends the activities on it.
    fn orphans(&self, _event: &Event, _outline: &Outline) -> BTreeSet<u64> {
        BTreeSet::new()
    }

    /// Plays the event of a recorded call to the code.
    fn recorded(&self, _recorded: &Recorded<'_>, _ledger: &mut Ledger) -> Next {
        Next::Go
    }

    /// Adds the operation that the event records to the open ones in the outline.
    fn open(&self, _event: &Event, _identity: &Identity, _outline: &mut Outline) {}

    /// Makes the event of a message, or says why it changes nothing.
    fn admit(&self, _message: WorkItem, _site: &Site<'_>) -> Judgement {
        Judgement::Ignore("nothing waits for it")
    }

    /// Returns the words for answers of this kind in error texts; `None` if an answer of this kind does not
    /// name the schedule that it answers.
    fn answer_labels(&self) -> Option<AnswerLabels> {
        None
    }

    /// Returns the failure in an answer; `None` if the answer is a success.
    fn failure<'a>(&self, _event: &'a EventKind) -> Option<&'a ErrorDetails> {
        None
    }

    /// Makes the notice for operators about an answer, before the code sees the answer; `None` if there is
    /// nothing to tell.
    fn notice(&self, _event: &Event, _ledger: &Ledger) -> Option<Notice> {
        None
    }

    /// Gives an answer to the future that waits for it.
    fn settle(&self, _event: Event, _ledger: &mut Ledger) -> Next {
        Next::Go
    }

    /// Removes the operation that the answer settles from the open ones in the outline.
    fn close(&self, _event: &Event, _outline: &mut Outline) {}

    /// Removes the data that this kind keeps in the outline for schedule `id`, which was just closed.
    fn closed(&self, _id: u64, _outline: &mut Outline) {}

    /// Reads an answer that is not tied to one future: a future that is polled takes it from the queue or the
    /// list of attachments.
    fn pull(&self, _place: Place, _ledger: &mut Ledger) -> Option<Answer> {
        None
    }

    /// Called when the code drops a future before it answered. Returns the waker of the future that now may
    /// read the answer instead.
    fn dropped(&self, _place: Place, _ledger: &mut Ledger) -> Option<Waker> {
        None
    }

    /// Returns how history records that an operation was cancelled; `None` if the kind cannot be cancelled.
    fn cancellation(&self) -> Option<Cancellation> {
        None
    }

    /// Plays an event that cancels an operation: marks the operation as asked to stop, or removes an ended
    /// wait.
    fn cancel(&self, _event: &Event, _outline: &mut Outline) {}

    /// Stops the operation of schedule `id`, whose cancellation this turn recorded.
    fn stop(&self, _id: u64, _site: &Site<'_>, _draft: &mut Draft) {}

    /// Notes that the code dropped the open operation of schedule `id` in this turn. Called for kinds without
    /// a [`cancellation`](Self::cancellation), whose drop no event records.
    fn note_drop(&self, _id: u64, _site: &Site<'_>, _draft: &mut Draft) {}

    /// Notes that the instance goes on in a new execution and leaves the open operations of this kind behind.
    fn leave_behind(&self, _site: &Site<'_>, _draft: &mut Draft) {}

    /// Returns when the end of an execution records the cancellation of the [unanswered](Self::unanswered)
    /// operations.
    fn cancelled_at(&self) -> CancelledAt {
        CancelledAt::Never
    }

    /// Returns the open operations of this kind that have no answer and were not asked to stop, by rising id.
    fn unanswered(&self, _outline: &Outline) -> Vec<u64> {
        Vec::new()
    }

    /// Adds the effects that stop open children or close open sessions when the instance ends. Not called for
    /// continue-as-new: children and sessions live on.
    fn end_instance(&self, _end: &InstanceEnd<'_>, _outline: &Outline, _effects: &mut Effects) {}

    /// Describes the operation that the event records to an operator; `None` if it is not open.
    fn explain(&self, _event: &Event, _instance: &str, _outline: &Outline) -> Option<OpenKind> {
        None
    }
}

/// The words that begin the text of a mismatch between a call and a recorded schedule.
pub(crate) const SCHEDULE_MISMATCH: &str = "schedule mismatch";

/// The execution that a rule is applied to, and the state of its history at that point.
pub(crate) struct Site<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) options: &'a Options,
    pub(crate) outline: &'a Outline,
}

/// The part of an event that a kind decides.
pub(crate) struct Record {
    pub(crate) kind: EventKind,
    /// The version that the call asks for, which its event holds beside the compatible fields (F16).
    pub(crate) child_version: Option<String>,
}

impl From<EventKind> for Record {
    fn from(kind: EventKind) -> Self {
        Self { kind, child_version: None }
    }
}

/// A call and the event that now records it.
pub(crate) struct Recorded<'a> {
    pub(crate) event: &'a Event,
    /// Whether the future that waits for the answer is still alive.
    pub(crate) is_alive: bool,
    /// The open operations that end because of the event; see [`Operation::orphans`].
    pub(crate) orphans: &'a BTreeSet<u64>,
}

/// The change outside the history that one call causes.
#[derive(Debug)]
pub(crate) enum Effect {
    Work(QueuedWork),
    Message(WorkItem),
    Session(SessionChange),
}

/// The words for the answers of a kind in error texts.
#[derive(Clone, Copy)]
pub(crate) struct AnswerLabels {
    /// The word for a schedule of this kind, used when an answer is of another kind than its schedule.
    pub(crate) schedule: &'static str,
    /// The word for an answer of this kind, used when history has no schedule with the id that the answer
    /// names.
    pub(crate) unmatched: &'static str,
}

/// How history records that an operation of a kind was cancelled.
#[derive(Clone, Copy)]
pub(crate) struct Cancellation {
    /// The word for operations of this kind in the text of a mismatch, in the plural.
    pub(crate) label: &'static str,
    /// Makes the event that records the cancellation; the argument is the reason.
    pub(crate) event: fn(String) -> EventKind,
}

/// The place of the cancellation events of a kind when an execution ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelledAt {
    Never,
    /// Before the event that ends the execution.
    BeforeEnd,
    /// After the event that ends the execution.
    AfterEnd,
}

/// The facts about the end of an instance that [`Operation::end_instance`] gets.
pub(crate) struct InstanceEnd<'a> {
    /// The first event id of the turn that ends the instance. A child with this id or a higher one was
    /// scheduled in that turn and never started, so it is not cancelled.
    pub(crate) first_event_id: u64,
    /// The reason that children are cancelled with.
    pub(crate) reason: &'a str,
}

/// Compares the version that a call asks for with the recorded one. Histories written before 0.2.0 do not
/// record the version of a child, so there is nothing to compare.
fn version_matches(asked: Option<&str>, event: &Event) -> bool {
    match event.child_version.as_deref() {
        Some(recorded) => asked == Some(recorded),
        None => asked.is_none() || !records_everything(&event.duroxide_version),
    }
}
