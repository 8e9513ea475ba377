//! The store of the model does as the memory store does: random calls, and every answer compared.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use steadfast_clock::VirtualClock;
use steadfast_core::{SessionKey, TagFilter, WorkItem};
use steadfast_memory::MemoryStore;
use steadfast_model::Rules;
use steadfast_model::store::{
    FetchScope, Holder, RenewalFate, RenewalRequest, Service, StoreSide, StoredSession, Work,
};
use steadfast_store::{
    Abandon, Appetite, Attempt, LeaseToken, NodeRegistration, NodeStart, Outcome, Owner, ProviderErrorKind,
    RenewSessions, SessionRef, SessionRequest, SessionScope, Store, WorkRequest,
};

const WALKS: u64 = 200;
const STEPS: usize = 300;

const TICK: Duration = Duration::from_secs(10);

/// Passes between two steps, so that what waits has waited. All of a walk is far below a tick.
const MOMENT: Duration = Duration::from_millis(1);

const EVER: Duration = Duration::from_secs(1_000_000);

/// Both stores, and what a walk knows of them.
struct Walk {
    model: StoreSide,
    memory: MemoryStore,
    clock: Arc<VirtualClock>,
    /// The last start of each process, as each store numbers it.
    starts: [Option<(u8, u64)>; 3],
    /// The newest start of each node, as the memory store numbers it.
    numbers: [Option<u64>; 3],
    /// The epochs of the memory store by those of the model.
    epochs: BTreeMap<u8, u64>,
    token: Option<LeaseToken>,
    /// How often calls were refused, claims made, leases extended, and sessions released or removed.
    met: BTreeMap<&'static str, usize>,
    dice: u64,
}

#[test]
fn the_memory_store_answers_as_the_store_of_the_model() {
    let mut met = BTreeMap::new();
    for seed in 1..=WALKS {
        let mut walk = Walk::new(seed);
        for _ in 0..STEPS {
            walk.step();
            walk.compare();
        }
        for (what, count) in walk.met {
            *met.entry(what).or_insert(0) += count;
        }
    }
    println!("{met:?}");
    let all = ["absent", "claimed", "cleaned up", "extended", "held", "idle", "lost", "nothing"];
    for what in all.iter().chain(&["refused", "released", "not released", "untaken"]) {
        assert!(met.contains_key(what), "{what} does not happen");
    }
}

impl Walk {
    fn new(seed: u64) -> Self {
        let clock = Arc::new(VirtualClock::new(1_000_000));
        Self {
            model: StoreSide::default(),
            memory: MemoryStore::with_clock(Arc::clone(&clock) as _),
            clock,
            starts: [None; 3],
            numbers: [None; 3],
            epochs: BTreeMap::new(),
            token: None,
            met: BTreeMap::new(),
            dice: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        }
    }

    fn step(&mut self) {
        self.clock.advance(MOMENT);
        let process = self.roll(3);
        match self.roll(9) {
            0 => self.register(process),
            1 => self.tick(),
            2 => self.schedule(),
            3 => self.end_work(),
            4 | 5 => self.fetch(process),
            6 => self.renew(process),
            7 => self.release(process),
            _ => self.clean_up(),
        }
    }

    /// Returns a number below `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice % sides as u64) as usize
    }

    fn note(&mut self, what: &'static str) {
        *self.met.entry(what).or_insert(0) += 1;
    }

    fn stored(&mut self) -> &mut StoredSession {
        &mut self.model.sessions[0]
    }

    /// Starts a process anew. Numbers of the model are small, so a walk has few starts.
    fn register(&mut self, process: usize) {
        let node = Holder::of(process, None);
        if self.model.newest[node.node] < 200 {
            self.model.newest[node.node] += 1;
            let number = self.model.newest[node.node];
            let replaces = self.numbers[node.node];
            let id = node.owner().id;
            let start = NodeStart { replaces, ..NodeStart::new(&id, format!("{id} {number}")) };
            let registered = block_on(self.memory.register_node(&start)).expect("registers");
            let NodeRegistration::Registered(given) = registered else { panic!("{registered:?}") };
            self.numbers[node.node] = Some(given);
            self.starts[process] = Some((number, given));
        }
    }

    fn tick(&mut self) {
        self.clock.advance(TICK);
        if let Some(row) = &mut self.stored().row {
            row.lease = row.lease.saturating_sub(1);
        }
    }

    fn schedule(&mut self) {
        if self.stored().work == Work::Nothing && self.stored().given < 200 {
            self.stored().work = Work::Waiting;
            let (instance, name, input) = ("i".to_owned(), "Turn".to_owned(), String::new());
            let session_id = Some(key().session_id);
            let work = WorkItem::ActivityExecute {
                instance,
                execution_id: 1,
                id: 1,
                name,
                input,
                session_id,
                tag: None,
            };
            block_on(self.memory.enqueue_work(work.into())).expect("takes work");
        }
    }

    /// Finishes or abandons the leased work.
    fn end_work(&mut self) {
        let Some(token) = self.token.take() else { return };
        if self.roll(2) == 0 {
            self.stored().work = Work::Nothing;
            block_on(self.memory.finish_work(&token, Outcome { completion: None })).expect("is leased");
        } else {
            self.stored().work = Work::Waiting;
            let how = Abandon { retry_after: None, attempt: Attempt::Uncounted };
            block_on(self.memory.abandon(&token, how)).expect("is leased");
        }
    }

    fn owner(&self, process: usize) -> Owner {
        let number = self.starts[process].map(|(_, number)| number);
        Owner { incarnation: number, ..Holder::of(process, None).owner() }
    }

    fn fetch(&mut self, process: usize) {
        let incarnation = self.starts[process].map(|(start, _)| start);
        let (may_claim, is_only, is_out) = (self.roll(3) > 0, self.roll(2) == 0, self.roll(8) == 0);
        let named = |is_named: bool| if is_named { vec![key()] } else { Vec::new() };
        let scope = if may_claim { SessionScope::Claim } else { SessionScope::Only(named(is_only)) };
        let request = WorkRequest {
            worker_id: "w".to_owned(),
            lock_timeout: EVER,
            poll_timeout: Duration::ZERO,
            tags: TagFilter::Any,
            session: Some(SessionRequest {
                owner: self.owner(process),
                lock_timeout: TICK * u32::from(Rules::ORDINARY.lease),
                scope,
                leave_out: named(is_out),
            }),
            worker: None,
        };
        let answer = block_on(self.memory.fetch_work(request));
        if self.model.refuses(process, incarnation) {
            self.note("refused");
            assert_eq!(answer.expect_err("is refused").kind, ProviderErrorKind::LeaseLost);
            return;
        }
        let lease = answer.expect("is not refused");
        let scope = FetchScope { may_claim, only: [is_only; 2], leave_out: [is_out; 2] };
        let service = self.model.service(process, incarnation, scope, 0, Rules::ORDINARY);
        if service == Service::Refused || self.stored().work != Work::Waiting {
            self.note("nothing");
            return assert!(lease.is_none(), "{lease:?}");
        }
        let lease = lease.expect("has work");
        let claimed = lease.session.expect("has a session");
        let epoch = self.model.claim(process, incarnation, 0, Rules::ORDINARY);
        if service == Service::Claimable {
            self.note("claimed");
            let highest = self.epochs.values().max().copied().unwrap_or_default();
            assert!(claimed.epoch > highest, "epochs rise");
            self.epochs.insert(epoch, claimed.epoch);
        } else {
            self.note("held");
        }
        assert_eq!(Some(&claimed.epoch), self.epochs.get(&epoch));
        self.token = Some(lease.token);
    }

    fn renew(&mut self, process: usize) {
        let incarnation = self.starts[process].map(|(start, _)| start);
        let (is_late, is_full) = (self.roll(3) == 0, self.roll(2) == 0);
        let held = self.some_epoch();
        let patience = if is_late { Duration::ZERO } else { EVER };
        let request = RenewSessions {
            owner: self.owner(process),
            extend_for: TICK * u32::from(Rules::ORDINARY.lease),
            idle_timeout: patience,
            untaken_after: patience,
            tags: TagFilter::Any,
            appetite: if is_full { Appetite::Full } else { Appetite::Hungry },
            worker: None,
            held: self.claims(held),
        };
        let answer = block_on(self.memory.renew_sessions(request));
        if self.model.refuses(process, incarnation) {
            assert_eq!(answer.expect_err("is refused").kind, ProviderErrorKind::LeaseLost);
            return self.note("refused");
        }
        let answer = answer.expect("is not refused");
        let request = RenewalRequest { incarnation, held: [held, 0], is_full };
        let is_untaken = [is_late && is_full; 2];
        let (fates, lost) = self.model.renew(process, request, is_late, is_untaken, Rules::ORDINARY);
        let is = |claims: &[SessionRef], epoch: u8| claims == self.claims(epoch);
        let (renewed, idle, untaken) = match fates[0] {
            RenewalFate::Absent => (0, 0, 0),
            RenewalFate::Renewed(epoch) => (epoch, 0, 0),
            RenewalFate::Idle(epoch) => (0, epoch, 0),
            RenewalFate::Untaken(epoch) => (0, 0, epoch),
        };
        assert!(is(&answer.renewed, renewed) && is(&answer.idle, idle), "{answer:?}, not {fates:?}");
        assert!(is(&answer.untaken, untaken) && is(&answer.lost, lost[0]), "{answer:?}, not {fates:?}");
        self.note(match fates[0] {
            RenewalFate::Absent => "absent",
            RenewalFate::Renewed(_) => "extended",
            RenewalFate::Idle(_) => "idle",
            RenewalFate::Untaken(_) => "untaken",
        });
        if lost[0] > 0 {
            self.note("lost");
        }
    }

    fn release(&mut self, process: usize) {
        let incarnation = self.starts[process].map(|(start, _)| start);
        let epoch = self.some_epoch();
        let answer = block_on(self.memory.release_sessions(&self.owner(process), &self.claims(epoch)));
        if self.model.refuses(process, incarnation) {
            assert_eq!(answer.expect_err("is refused").kind, ProviderErrorKind::LeaseLost);
            return self.note("refused");
        }
        let has_released = epoch > 0 && self.model.release(process, incarnation, 0, epoch, Rules::ORDINARY);
        assert_eq!(!answer.expect("is not refused").is_empty(), has_released);
        self.note(if has_released { "released" } else { "not released" });
    }

    fn clean_up(&mut self) {
        let removed = block_on(self.memory.cleanup_sessions()).expect("cleans up");
        let may_clean_up = self.model.may_clean_up(Rules::ORDINARY);
        assert_eq!(removed, usize::from(may_clean_up));
        if may_clean_up {
            self.note("cleaned up");
            self.model.clean_up();
        }
    }

    /// Returns one of the last epochs, 0 for none.
    fn some_epoch(&mut self) -> u8 {
        let back = self.roll(3) as u8;
        self.stored().given.saturating_sub(back)
    }

    fn claims(&self, epoch: u8) -> Vec<SessionRef> {
        let claim = self.epochs.get(&epoch).map(|epoch| SessionRef { key: key(), epoch: *epoch });
        claim.into_iter().collect()
    }

    /// Compares the rows.
    fn compare(&mut self) {
        let memory = block_on(self.memory.session(&key())).expect("reads");
        let row = self.stored().row;
        assert_eq!(memory.is_some(), row.is_some());
        let (Some(memory), Some(row)) = (memory, row) else { return };
        assert_eq!(memory.locked_until_ms > self.memory.now_ms(), row.lease > 0);
        assert_eq!(Some(&memory.epoch), self.epochs.get(&row.epoch));
        assert_eq!(memory.queued > 0, self.stored().work != Work::Nothing);
    }
}

fn key() -> SessionKey {
    SessionKey::shared("s")
}
