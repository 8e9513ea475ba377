//! What a random program can say.
//!
//! Every statement means something in every place: resuming an empty slot does nothing, a branch may be
//! empty, a statement after `return` is never reached. So every shortening of a program is a program, and
//! shrinking is free to cut anywhere.
//!
//! A program can be kept as JSON. Its names live as long as the process, so the text that it is read from
//! does too.

use serde::{Deserialize, Serialize};

/// One orchestration: runs its body from the top in every execution.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Program {
    /// The statements, in order.
    pub body: Block,
}

/// Statements that run one after another. A branch of a join or a race has slots of its own.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Block(pub Vec<Step>);

/// Names, keys and ids. They come from the short lists in [`names`], so that they meet.
pub type Name = &'static str;

/// A place in which a block keeps a future that it has created and not yet awaited.
pub type Slot = u8;

/// One statement. "The answer" is the text of the last result in this block; an error is `!` and its text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub enum Step {
    /// Starts an operation and awaits it.
    Await(Operation),
    /// Awaits an activity through the retry helper.
    Retry(Retry),
    /// Awaits a new guid.
    Guid,
    /// Creates a future and keeps it unpolled; what the slot held before is dropped.
    Hold {
        /// Where it is kept.
        slot: Slot,
        /// What is started.
        operation: Operation,
    },
    /// Awaits the future in the slot, if there is one.
    Resume(Slot),
    /// Drops the future in the slot, if there is one.
    Drop(Slot),
    /// Awaits all held futures together.
    ResumeAll,
    /// Races the futures in two slots, by reference, in this order; the slot of the loser keeps it.
    RaceSlots(Slot, Slot),
    /// Races the future in the slot, by reference, against a block. If the block wins the slot keeps it.
    RaceHeld {
        /// The slot whose future takes part, polled first.
        slot: Slot,
        /// What it races against.
        against: Block,
    },
    /// Starts an orchestration that nobody waits for.
    Detach {
        /// The orchestration.
        name: Name,
        /// Its instance id.
        instance: Name,
        /// Its input.
        input: Text,
    },
    /// Sets a value.
    SetValue {
        /// Under this key.
        key: Name,
        /// To this text.
        value: Text,
    },
    /// Clears one value.
    ClearValue(Name),
    /// Clears all values.
    ClearValues,
    /// Sets the custom status, or resets it.
    Status(Option<Text>),
    /// Runs `then` if the key has a value, which becomes the answer, else `otherwise`.
    IfValue {
        /// The key that is read.
        key: Name,
        /// With a value.
        then: Block,
        /// Without one.
        otherwise: Block,
    },
    /// Runs `then` if the answer has an odd number of bytes, else `otherwise`.
    IfOdd {
        /// For an odd length.
        then: Block,
        /// For an even length.
        otherwise: Block,
    },
    /// Runs a block several times.
    Repeat {
        /// How often.
        times: u8,
        /// What is repeated.
        body: Block,
    },
    /// Runs all branches; the answer is all of theirs.
    Join(Vec<Block>),
    /// Runs all branches until the first one ends and drops the others; the answer names the winner.
    Race(Vec<Block>),
    /// Joins two branches: when one has run, its answer goes through a oneshot channel to the other, which
    /// runs from then on.
    Channel {
        /// Runs first, then sends.
        sender: Block,
        /// Receives, then runs.
        receiver: Block,
        /// Whether the receiving branch stands first in the join.
        receiver_first: bool,
    },
    /// Continues as new with this input; an execution late enough (see [`LAST_EXECUTION`]) returns instead.
    ContinueAsNew(Text),
    /// Ends the branch, or the program, with the answer.
    Return,
    /// Ends the branch, or the program, with an error.
    Fail,
    /// Panics.
    Panic,
    /// What only our library has.
    Own(Own),
}

/// One durable future.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub enum Operation {
    /// An activity.
    Activity {
        /// Which one.
        name: Name,
        /// Its input.
        input: Text,
        /// The pool that runs it.
        tag: Option<Name>,
        /// The shared session it runs on.
        session: Option<Name>,
    },
    /// A timer.
    Timer {
        /// Its delay in milliseconds.
        millis: u64,
    },
    /// A positional wait for an event.
    Wait(Name),
    /// The next message of a queue.
    Dequeue(Name),
    /// A child orchestration.
    Child {
        /// Which one.
        name: Name,
        /// Its input.
        input: Text,
        /// Its instance id, or one made by the engine.
        id: Option<Name>,
    },
    /// A value of another instance.
    ValueOf {
        /// The instance.
        instance: Name,
        /// The key.
        key: Name,
    },
}

/// An activity through the retry helper.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Retry {
    /// Which activity.
    pub name: Name,
    /// Its input.
    pub input: Text,
    /// How often it is tried; at least once.
    pub attempts: u8,
    /// The pause between attempts in milliseconds; zero means none.
    pub pause_millis: u64,
    /// Milliseconds after which an attempt is given up.
    pub timeout_millis: Option<u64>,
    /// The shared session it runs on.
    pub session: Option<Name>,
}

/// An activity with a policy.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Try {
    /// Which activity.
    pub name: Name,
    /// Its input.
    pub input: Text,
    /// How often it is tried; at least once.
    pub tries: u8,
    /// The wait between two tries in milliseconds.
    pub pause_millis: u64,
    /// Milliseconds after which a try is cancelled.
    pub timeout_millis: Option<u64>,
    /// Milliseconds after which no further try begins.
    pub total_millis: Option<u64>,
    /// Where it runs.
    pub session: Option<SessionName>,
}

/// A text that is fixed, or flows from an earlier result.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub enum Text {
    /// This text.
    Fixed(Name),
    /// The beginning of the answer so far.
    Answer,
}

/// Statements that the published crate does not have.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub enum Own {
    /// Opens a session whose id the engine makes. The answer is the id.
    OpenSession,
    /// Opens a session under an id of the program's choice.
    OpenSessionWithId(Name),
    /// Opens a session under an id of the program's choice, with options.
    OpenSessionWith {
        /// Its id.
        id: Name,
        /// Whether it runs one activity at a time.
        serial: bool,
        /// Milliseconds without an activity after which it is idle; `None` is never.
        idle_millis: Option<u64>,
    },
    /// Closes a session.
    CloseSession(SessionName),
    /// Waits until a session is attached anew, and no longer than a timer. The answer tells which it was.
    AwaitMigration {
        /// The session.
        session: SessionName,
        /// The time of the timer in milliseconds.
        millis: u64,
    },
    /// Awaits an activity on a session, opened or not.
    OnSession {
        /// Which activity.
        name: Name,
        /// Its input.
        input: Text,
        /// Where it runs.
        session: SessionName,
    },
    /// Awaits an activity with a policy, whose tries the workers make.
    Try(Try),
    /// Runs all branches in one `FuturesUnordered`; the answer lists them in order of arrival.
    Gather(Vec<Block>),
}

/// Which session a statement means.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub enum SessionName {
    /// The one under this id.
    Id(Name),
    /// The latest that this block opened without an id; a branch inherits it.
    Opened,
}

/// The execution in which `continue as new` returns instead, so that every program ends.
pub const LAST_EXECUTION: u64 = 3;

/// The words that programs and scripts use.
pub mod names {
    use super::Name;

    /// Activities.
    pub const ACTIVITIES: &[Name] = &["a", "b", "c"];
    /// Events that are raised and waited for.
    pub const EVENTS: &[Name] = &["e", "f"];
    /// Queues.
    pub const QUEUES: &[Name] = &["q", "r"];
    /// Children.
    pub const CHILDREN: &[Name] = &["Kid", "Lad"];
    /// Child ids that a program chooses. The last one is reserved and refused.
    pub const CHILD_IDS: &[Name] = &["kid-1", "kid-2", "sub::x"];
    /// Orchestrations that are started and left alone, and other instances.
    pub const STRANGERS: &[Name] = &["out-1", "out-2"];
    /// Keys.
    pub const KEYS: &[Name] = &["k", "l"];
    /// Sessions.
    pub const SESSIONS: &[Name] = &["s", "t"];
    /// Worker pools.
    pub const TAGS: &[Name] = &["gpu"];
    /// Fixed texts, of odd and even length.
    pub const TEXTS: &[Name] = &["", "x", "yy"];
}
