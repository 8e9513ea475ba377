//! One of the two stores: what its holders have in hand, and the steps it takes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steadfast_clock::{Clock, VirtualClock};
use steadfast_core::{SessionKey, WorkItem};
use steadfast_store::{
    EndedTry, Envelope, Held as Warm, LeaseToken, NewWork, Owner, Provider, RunId, SessionRef, Store,
    TurnLease, WorkLease,
};

use super::answer::{Labels, done, plain, said};
use super::generate::HOLDERS;
use super::step::{Held, Note, Place, Step, Warmth, Who};
use crate::bench::{activity_with, raise, start_node, start_of};

/// A store, and what was learnt from its answers. While both stores answer alike, both sides know the same.
pub(super) struct Side {
    provider: Arc<dyn Provider>,
    store: Arc<dyn Store>,
    clock: VirtualClock,
    pub(super) labels: Labels,
    pub(super) turns: [Slot<TurnLease>; HOLDERS],
    pub(super) works: [Slot<WorkLease>; HOLDERS],
    pub(super) nodes: BTreeMap<&'static str, Vec<u64>>,
    /// The attachments that each owner had, in order.
    pub(super) attached: BTreeMap<String, Vec<SessionRef>>,
    pub(super) model: Model,
}

/// What one holder has, and had before.
pub(super) struct Slot<T> {
    now: Option<T>,
    former: Option<T>,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { now: None, former: None }
    }
}

impl<T> Slot<T> {
    pub(super) fn put(&mut self, lease: T) {
        self.former = self.now.replace(lease);
    }

    pub(super) fn get(&self, held: Held) -> Option<&T> {
        if held.former { self.former.as_ref() } else { self.now.as_ref() }
    }
}

/// What the turns so far decided, so that the next ones make sense.
#[derive(Default)]
pub(super) struct Model {
    /// Owned sessions that are open.
    pub(super) open: BTreeSet<(String, &'static str)>,
    /// Executions that are over.
    pub(super) ended: BTreeSet<(String, u64)>,
    /// Activities that were scheduled: instance, execution, event.
    pub(super) scheduled: Vec<(String, u64, u64)>,
    /// The runs that were committed to, each with its last event then: what a runtime would hold warm.
    pub(super) runs: BTreeMap<String, Vec<Warm>>,
}

impl Side {
    pub(super) fn new(provider: Arc<dyn Provider>, clock: &VirtualClock) -> Option<Self> {
        let store = Arc::clone(&provider).into_store()?;
        Some(Self {
            provider,
            store,
            clock: clock.clone(),
            labels: Labels::default(),
            turns: Default::default(),
            works: Default::default(),
            nodes: BTreeMap::new(),
            attached: BTreeMap::new(),
            model: Model::default(),
        })
    }

    pub(super) fn provider(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.provider)
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Takes a step and tells the answer.
    pub(super) async fn take(&mut self, step: &Step) -> String {
        let store = self.store();
        let store = &*store;
        match step {
            Step::Advance(_) => String::new(),
            Step::Start { instance, also } => {
                let also = also.then(|| raise(instance, "first").into());
                plain(store.start(start_of(instance).into(), also.into_iter().collect()).await)
            }
            Step::Send { instance, note, delay } => {
                let message = note_to(instance, *note).into();
                done(store.send(vec![Envelope { message, delay: *delay }]).await)
            }
            Step::FetchTurn { holder, lease, warm, worker } => {
                self.fetch_turn(store, *holder, *lease, *warm, *worker).await
            }
            Step::CommitTurn { lease, deeds } => self.commit_turn(store, *lease, deeds).await,
            Step::RenewTurn { lease, time } => {
                let token = token_of(&self.turns, *lease, |lease| &lease.token);
                done(store.renew(&token.unwrap_or_else(no_turn), *time).await)
            }
            Step::AbandonTurn { lease, delay, uncounted } => {
                let token = token_of(&self.turns, *lease, |lease| &lease.token);
                done(store.abandon(&token.unwrap_or_else(no_turn), abandon(*delay, *uncounted)).await)
            }
            Step::Enqueue { instance, session, tag } => {
                let work: NewWork = activity_with(instance, 1_000, *session, *tag).into();
                done(store.enqueue_work(work).await)
            }
            Step::FetchWork { .. } => self.fetch_work(store, step).await,
            Step::FinishWork { lease, outcome } => self.finish_work(store, *lease, *outcome).await,
            Step::RenewWork { lease, time } => {
                let token = token_of(&self.works, *lease, |lease| &lease.token);
                done(store.renew(&token.unwrap_or_else(no_work), *time).await)
            }
            Step::AbandonWork { lease, delay, uncounted } => {
                let token = token_of(&self.works, *lease, |lease| &lease.token);
                done(store.abandon(&token.unwrap_or_else(no_work), abandon(*delay, *uncounted)).await)
            }
            Step::EndTry { lease, delay } => {
                let token = token_of(&self.works, *lease, |lease| &lease.token);
                let ended = EndedTry { error: "failed".to_owned(), retry_after: *delay };
                done(store.end_try(&token.unwrap_or_else(no_work), ended).await)
            }
            Step::Register { node } => self.register(store, node).await,
            Step::RenewSessions { .. } | Step::RenewCompatible { .. } | Step::Release { .. } => {
                self.keep_sessions(store, step).await
            }
            Step::Worker(duty) => self.perform(store, duty).await,
            // How many were removed is not compared: a store may have removed them before.
            Step::CleanUp => said(store.cleanup_sessions().await, |_| "done".to_owned()),
            Step::Delete { .. }
            | Step::DeleteBulk { .. }
            | Step::DeleteEnded { .. }
            | Step::Prune { .. }
            | Step::PruneBulk { .. } => self.remove(store, step).await,
            Step::Look { instance } => self.look_at(instance).await.join("; "),
            Step::LookAtSessions => self.look_at_sessions().await.join("; "),
        }
    }

    async fn register(&mut self, store: &dyn Store, node: &'static str) -> String {
        let answer = start_node(store, node).await;
        said(answer, |incarnation| {
            let starts = self.nodes.entry(node).or_default();
            let rises = starts.last().is_none_or(|last| *last < incarnation);
            starts.push(incarnation);
            if rises { "done".to_owned() } else { "a number that did not rise".to_owned() }
        })
    }

    pub(super) fn owner(&self, who: Who) -> Owner {
        let incarnation = match who {
            Who::Process(_) => None,
            Who::Node { name, former } => {
                let mut starts = self.nodes.get(name).into_iter().flatten().rev();
                if former { starts.nth(1) } else { starts.next() }.copied()
            }
        };
        Owner { id: who.id().to_owned(), incarnation }
    }

    /// The session that a place names in a turn of an instance: an open one of its own, else the shared one.
    pub(super) fn key_of(&self, instance: &str, place: Place) -> SessionKey {
        match place {
            Place::Owned(id) if self.model.open.contains(&(instance.to_owned(), id)) => {
                SessionKey::owned(instance, id)
            }
            Place::Owned(id) | Place::Shared(id) => SessionKey::shared(id),
        }
    }
}

pub(super) fn abandon(delay: Option<std::time::Duration>, uncounted: bool) -> steadfast_store::Abandon {
    use steadfast_store::{Abandon, Attempt};
    Abandon { retry_after: delay, attempt: if uncounted { Attempt::Uncounted } else { Attempt::Counts } }
}

pub(super) fn token_of<T>(
    slots: &[Slot<T>],
    held: Held,
    token: impl Fn(&T) -> &LeaseToken,
) -> Option<LeaseToken> {
    slots.get(held.holder).and_then(|slot| slot.get(held)).map(|lease| token(lease).clone())
}

/// A holder without a lease shows a token that the store never gave.
pub(super) fn no_turn() -> LeaseToken {
    LeaseToken::Turn("never given".to_owned())
}

pub(super) fn no_work() -> LeaseToken {
    LeaseToken::Work("never given".to_owned())
}

fn note_to(instance: &str, note: Note) -> WorkItem {
    match note {
        Note::Event(number) => raise(instance, &number.to_string()),
        Note::Queue(number) => WorkItem::QueueMessage {
            instance: instance.to_owned(),
            name: "queue".to_owned(),
            data: number.to_string(),
        },
        Note::Cancel => {
            WorkItem::CancelInstance { instance: instance.to_owned(), reason: "no more".to_owned() }
        }
        Note::Terminate => {
            WorkItem::TerminateInstance { instance: instance.to_owned(), reason: "enough".to_owned() }
        }
        Note::Start => start_of(instance),
    }
}

/// Tells a store what the walk would hold warm.
pub(super) struct WarmRuns<'a> {
    pub(super) runs: &'a BTreeMap<String, Vec<Warm>>,
    pub(super) warmth: Warmth,
}

impl steadfast_store::Warm for WarmRuns<'_> {
    fn held(&self, instance: &str) -> Option<Warm> {
        let mut runs = self.runs.get(instance)?.iter().rev();
        match self.warmth {
            Warmth::Cold => None,
            Warmth::Newest => runs.next().copied(),
            Warmth::Former => runs.nth(1).copied(),
        }
    }
}

impl Model {
    pub(super) fn ran(&mut self, instance: String, run: RunId, last_event_id: u64) {
        let runs = self.runs.entry(instance).or_default();
        runs.retain(|held| held.run != run);
        runs.push(Warm { run, last_event_id });
    }
}
