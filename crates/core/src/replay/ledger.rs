//! The calls that an orchestration's code has made, and the answers to them.
//!
//! The ledger is the code's side of an execution: calls that are not yet recorded, operations that wait for
//! an answer, answers that wait to be read, and the state that the code can look at. The engine's side, made
//! of recorded events, is [`Outline`](super::outline::Outline). Neither runs user code.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::Location;
use std::sync::Arc;
use std::task::Waker;

use super::Identity;
use crate::context::activity::ActivityCall;
use crate::context::misuse::Misuse;
use crate::limits::MAX_ACTIONS_PER_TURN;
use crate::operation::Kind;
use crate::operation::call_keys::CallKeys;
use crate::operation::kv::Kv;
use crate::operation::queue::Queues;
use crate::operation::session::migration::Migrations;
use crate::operation::signal::Signals;
use crate::{Action, CallFailure, CallTerms, SessionMigration};

/// The position of a call among all calls of an execution, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Token(pub(crate) u64);

/// A call of the code that no event records yet.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) token: Token,
    pub(crate) action: Action,
    /// The key and the policy, of a call of an activity.
    pub(crate) terms: Option<Box<CallTerms>>,
    pub(crate) at: &'static Location<'static>,
}

/// What a future resolves to, before the caller's own type is made of it.
#[derive(Debug)]
pub(crate) enum Answer {
    Result(Result<String, String>),
    /// The failure of an activity.
    Failed(Box<CallFailure>),
    Data(String),
    Fired,
    Migration(SessionMigration),
    /// The error of an activity whose session was closed.
    Closed(String),
}

/// The progress of an operation between its call and its answer.
#[derive(Debug)]
enum Progress {
    /// The code made the call; the event that records it is still to come.
    Asked,
    /// The code waits for something that no event records.
    Watching,
    Recorded(u64),
    Settled(u64, Answer),
    /// The code dropped the future before the event was recorded; the event is still to come.
    Dropped,
}

/// An operation that a future of the code waits for.
#[derive(Debug)]
pub(crate) struct Entry {
    kind: Kind,
    progress: Progress,
    waker: Option<Waker>,
}

/// Identifies the operation of a future for the rules of its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) token: Token,
    /// The id of the event that recorded the call; `None` if no event records it (yet). During a poll also
    /// `None` once the answer has arrived.
    pub(crate) recorded: Option<u64>,
}

/// What a poll of a durable future finds. Old wakers are handed out and dropped outside the lock, because
/// dropping one may run user code.
pub(crate) enum Polled {
    Ready(Answer, Option<Entry>),
    Pending(Option<Waker>),
}

/// What a dropped future leaves behind, to be dropped or woken outside the lock.
#[derive(Default)]
pub(crate) struct Released {
    pub(crate) entry: Option<Entry>,
    pub(crate) stale: Option<Waker>,
    /// The waker of the future that may now read the message that the dropped one had in reserve.
    pub(crate) heir: Option<Waker>,
}

/// The futures of one kind that were dropped before they answered, by the event that recorded their call.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    pub(crate) all: BTreeSet<u64>,
    /// The futures whose cancellation this turn has to record.
    pub(crate) unreported: BTreeSet<u64>,
    /// The futures whose drop the replayed history records.
    pub(crate) recorded: BTreeSet<u64>,
    /// The operations whose cancellation history records already: the future was dropped, or the session was
    /// closed.
    pub(crate) marked: BTreeSet<u64>,
}

/// The code's side of an execution: its calls, the answers, and the state that it can read.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) identity: Identity,
    /// The time that the code sees, in milliseconds since the Unix epoch: that of the event that asked for
    /// the current poll.
    pub(crate) now_ms: u64,
    pub(crate) replaying: bool,
    pub(crate) keys: CallKeys,
    pub(crate) kv: Kv,
    pub(crate) custom_status: Option<String>,
    pub(crate) traceparent: Option<String>,
    pub(crate) signals: Signals,
    pub(crate) queues: Queues,
    pub(crate) migrations: Migrations,
    pub(crate) future_polls: u64,
    calls: VecDeque<Call>,
    /// How many of `calls` were made in an earlier poll, so that their options cannot be changed.
    sealed: usize,
    calls_this_turn: usize,
    next_token: u64,
    entries: BTreeMap<Token, Entry>,
    /// The calls that wait for an answer and whose future is alive, by the id of the event that recorded
    /// them.
    waiting: BTreeMap<u64, Token>,
    dropped: BTreeMap<Kind, Dropped>,
    /// The operations that the code dropped in this turn, of kinds whose drop no event records.
    unrecorded: BTreeSet<(Kind, u64)>,
    /// The event ids of the dequeues whose messages the code has read since the last
    /// [`take_read`](Self::take_read).
    read: Vec<u64>,
    misuse: Option<Misuse>,
}

/// Estimates the bytes that an entry of a map costs, with its share of the map.
pub(crate) const BYTES_PER_ENTRY: usize = 96;

impl Ledger {
    pub(crate) fn new(identity: Identity) -> Self {
        Self {
            identity,
            now_ms: 0,
            replaying: false,
            keys: CallKeys::default(),
            kv: Kv::default(),
            custom_status: None,
            traceparent: None,
            signals: Signals::default(),
            queues: Queues::default(),
            migrations: Migrations::default(),
            future_polls: 0,
            calls: VecDeque::new(),
            sealed: 0,
            calls_this_turn: 0,
            next_token: 1,
            entries: BTreeMap::new(),
            waiting: BTreeMap::new(),
            dropped: BTreeMap::new(),
            unrecorded: BTreeSet::new(),
            read: Vec::new(),
            misuse: None,
        }
    }

    /// Estimates the memory that the ledger holds.
    pub(crate) fn estimated_bytes(&self) -> usize {
        let dropped = self.dropped.values().map(|group| group.all.len() + group.marked.len()).sum::<usize>();
        let entries = self.entries.len() + self.waiting.len() + self.calls.len() + dropped;
        let status = self.custom_status.as_ref().map_or(0, String::len);
        size_of::<Self>()
            + entries * BYTES_PER_ENTRY
            + status
            + self.kv.estimated_bytes()
            + self.queues.estimated_bytes()
    }

    pub(crate) fn take_token(&mut self) -> Token {
        let token = Token(self.next_token);
        self.next_token += 1;
        token
    }

    pub(crate) fn peek_token(&self) -> Token {
        Token(self.next_token)
    }

    /// Adds a call that gets no answer, such as setting a key.
    pub(crate) fn call(&mut self, at: &'static Location<'static>, action: Action) -> Token {
        let token = self.take_token();
        self.calls_this_turn += usize::from(!self.replaying);
        if self.calls_this_turn > MAX_ACTIONS_PER_TURN {
            self.report(Misuse::TooManyCalls { limit: MAX_ACTIONS_PER_TURN, at });
        } else {
            self.calls.push_back(Call { token, action, terms: None, at });
        }
        token
    }

    /// Adds a call and the entry of the future that waits for its answer.
    pub(crate) fn ask(&mut self, at: &'static Location<'static>, action: Action) -> Token {
        let kind = action.kind();
        let token = self.call(at, action);
        self.entries.insert(token, Entry { kind, progress: Progress::Asked, waker: None });
        token
    }

    /// Adds a call of an activity, and returns its key.
    pub(crate) fn ask_activity(
        &mut self,
        at: &'static Location<'static>,
        call: ActivityCall,
    ) -> (Token, Arc<str>) {
        let ActivityCall { name, input, session_id, first_try } = call;
        let own = self.keys.next(&self.identity, &name, &input);
        let (key, tried_before) = first_try.unwrap_or_else(|| (own.into(), 0));
        let action = Action::CallActivity { scheduling_event_id: 0, name, input, session_id, tag: None };
        let token = self.ask(at, action);
        if let Some(call) = self.calls.back_mut().filter(|call| call.token == token) {
            let key = key.to_string();
            call.terms = Some(Box::new(CallTerms { key, policy: None, tried_before }));
        }
        (token, key)
    }

    /// Adds the entry of a future whose wait no event records, such as a wait for a session migration.
    pub(crate) fn watch(&mut self, token: Token, kind: Kind) {
        self.entries.insert(token, Entry { kind, progress: Progress::Watching, waker: None });
    }

    /// The call of `token`, so that its options can be changed; `None` once the poll that made the call has
    /// ended.
    pub(crate) fn fresh_call(&mut self, token: Token) -> Option<&mut Call> {
        let index = self.calls.binary_search_by_key(&token, |call| call.token).ok()?;
        if index < self.sealed {
            return None;
        }
        self.calls.get_mut(index)
    }

    pub(crate) fn poll(&mut self, token: Token, waker: &Waker) -> Polled {
        self.future_polls += 1;
        let Some(entry) = self.entries.get(&token) else { return Polled::Pending(None) };
        let place = Place { token, recorded: entry.recorded() };
        if let Some(answer) = entry.kind.rules().pull(place, self) {
            return Polled::Ready(answer, self.remove(token));
        }
        let Some(entry) = self.entries.get_mut(&token) else { return Polled::Pending(None) };
        if !matches!(entry.progress, Progress::Settled(..)) {
            let stale = match &entry.waker {
                Some(kept) if kept.will_wake(waker) => None,
                _ => entry.waker.replace(waker.clone()),
            };
            return Polled::Pending(stale);
        }
        match self.entries.remove(&token) {
            Some(Entry { progress: Progress::Settled(_, answer), kind, waker }) => {
                Polled::Ready(answer, Some(Entry { kind, progress: Progress::Dropped, waker }))
            }
            other => Polled::Pending(other.and_then(|entry| entry.waker)),
        }
    }

    /// Called when the code drops a future before it answered.
    pub(crate) fn drop_future(&mut self, token: Token) -> Released {
        let Some(entry) = self.entries.get_mut(&token) else { return Released::default() };
        let kind = entry.kind;
        match entry.progress {
            Progress::Asked => {
                entry.progress = Progress::Dropped;
                Released { stale: entry.waker.take(), ..Released::default() }
            }
            Progress::Recorded(id) | Progress::Settled(id, _) => {
                self.waiting.remove(&id);
                self.note_dropped(kind, id);
                let heir = kind.rules().dropped(Place { token, recorded: Some(id) }, self);
                Released { entry: self.remove(token), heir, stale: None }
            }
            Progress::Watching => {
                let heir = kind.rules().dropped(Place { token, recorded: None }, self);
                Released { entry: self.remove(token), heir, stale: None }
            }
            Progress::Dropped => Released { entry: self.remove(token), ..Released::default() },
        }
    }

    pub(crate) fn report(&mut self, misuse: Misuse) {
        self.misuse.get_or_insert(misuse);
    }

    pub(crate) fn begin_turn(&mut self) {
        self.calls_this_turn = self.calls.len();
        // What a replay drops, an earlier turn has dropped and told.
        self.unrecorded.clear();
    }

    /// Ends a poll: the options of its calls cannot be changed after it.
    pub(crate) fn seal(&mut self) {
        self.sealed = self.calls.len();
    }

    pub(crate) fn misuse(&self) -> Option<&Misuse> {
        self.misuse.as_ref()
    }

    pub(crate) fn next_call(&mut self) -> Option<Call> {
        let call = self.calls.pop_front()?;
        self.sealed = self.sealed.saturating_sub(1);
        Some(call)
    }

    pub(crate) fn peek_call(&self) -> Option<&Call> {
        self.calls.front()
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter()
    }

    pub(crate) fn remove_call(&mut self, index: usize) -> Option<Call> {
        let call = self.calls.remove(index)?;
        self.sealed = self.sealed.saturating_sub(1);
        Some(call)
    }

    /// Ties the call of `token` to the event that records it. Returns whether its future is still alive.
    pub(crate) fn record(&mut self, token: Token, event_id: u64) -> bool {
        let Some(entry) = self.entries.get_mut(&token) else { return false };
        if matches!(entry.progress, Progress::Dropped) {
            let kind = entry.kind;
            self.entries.remove(&token);
            self.note_dropped(kind, event_id);
            return false;
        }
        entry.progress = Progress::Recorded(event_id);
        self.waiting.insert(event_id, token);
        true
    }

    /// Answers the operation that event `event_id` recorded; a dropped one takes no answer.
    pub(crate) fn settle(&mut self, event_id: u64, answer: Answer) -> Option<Waker> {
        let token = self.waiting.remove(&event_id)?;
        let entry = self.entries.get_mut(&token)?;
        entry.progress = Progress::Settled(event_id, answer);
        entry.waker.take()
    }

    /// Takes the waker of the future of `token`, so that the caller can wake it.
    pub(crate) fn waker_of(&mut self, token: Token) -> Option<Waker> {
        self.entries.get_mut(&token)?.waker.take()
    }

    pub(crate) fn waker_of_recorded(&mut self, event_id: u64) -> Option<Waker> {
        let token = *self.waiting.get(&event_id)?;
        self.waker_of(token)
    }

    /// Does the code wait for anything that a message can answer? If not, an orchestration that has not
    /// returned waits for ever.
    pub(crate) fn can_be_answered(&self) -> bool {
        !self.waiting.is_empty() || self.migrations.is_awaited()
    }

    /// The dropped futures of a kind.
    pub(crate) fn dropped(&mut self, kind: Kind) -> &mut Dropped {
        self.dropped.entry(kind).or_default()
    }

    /// Takes the operations that the code dropped in this turn, of kinds whose drop no event records.
    pub(crate) fn take_unrecorded(&mut self) -> BTreeSet<(Kind, u64)> {
        std::mem::take(&mut self.unrecorded)
    }

    /// Notes that the code has read the message of the dequeue `taker`.
    pub(crate) fn note_read(&mut self, taker: u64) {
        self.read.push(taker);
    }

    pub(crate) fn take_read(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.read)
    }

    /// Takes out everything that may hold user code; the caller drops it outside the lock.
    pub(crate) fn forget(&mut self) -> (BTreeMap<Token, Entry>, VecDeque<Call>) {
        self.waiting.clear();
        (std::mem::take(&mut self.entries), std::mem::take(&mut self.calls))
    }

    fn note_dropped(&mut self, kind: Kind, event_id: u64) {
        if kind.rules().cancellation().is_none() {
            self.unrecorded.insert((kind, event_id));
            return;
        }
        let dropped = self.dropped.entry(kind).or_default();
        dropped.all.insert(event_id);
        if !dropped.marked.contains(&event_id) {
            dropped.unreported.insert(event_id);
        }
    }

    fn remove(&mut self, token: Token) -> Option<Entry> {
        let entry = self.entries.remove(&token)?;
        if let Some(id) = entry.recorded() {
            self.waiting.remove(&id);
        }
        Some(entry)
    }
}

impl Entry {
    fn recorded(&self) -> Option<u64> {
        match self.progress {
            Progress::Recorded(id) => Some(id),
            Progress::Asked | Progress::Watching | Progress::Settled(..) | Progress::Dropped => None,
        }
    }
}
