//! Turns of a walk: plausible decisions for whatever was leased.

use std::time::Duration;

use steadfast_core::{
    CallTerms, CarriedSession, ErrorDetails, Event, EventKind, ScheduledActivityIdentifier,
    SessionConcurrency, SessionKey, WorkItem, current_build_version,
};
use steadfast_store::{NewWork, Store, TurnCommit, TurnLease, TurnRequest, WorkerId};

use super::answer::said;
use super::side::{Model, Side, WarmRuns};
use super::step::{Deed, Held, Place, Warmth};
use crate::bench::{activity_with, continue_as_new_of, raise, start_of, started};

impl Side {
    pub(super) async fn fetch_turn(
        &mut self,
        store: &dyn Store,
        holder: usize,
        lock_timeout: Duration,
        warmth: Warmth,
        worker: Option<&str>,
    ) -> String {
        let worker = worker.map(|id| WorkerId(id.to_owned()));
        let warm = WarmRuns { runs: &self.model.runs, warmth };
        let request = TurnRequest {
            lock_timeout,
            poll_timeout: Duration::ZERO,
            filter: None,
            warm: &warm,
            worker: worker.as_ref(),
        };
        let answer = store.fetch_turn(request).await;
        said(answer, |lease| {
            let Some(lease) = lease else { return "nothing".to_owned() };
            let told = self.labels.turn(&lease);
            if let Some(slot) = self.turns.get_mut(holder) {
                slot.put(lease);
            }
            told
        })
    }

    pub(super) async fn commit_turn(&mut self, store: &dyn Store, held: Held, deeds: &[Deed]) -> String {
        let Some(lease) = self.turns.get(held.holder).and_then(|slot| slot.get(held)).cloned() else {
            return "has none".to_owned();
        };
        let draft = Draft::of(self, &lease, deeds);
        let Draft { commit, last_event_id, open, ended, scheduled, .. } = draft;
        let execution_id = commit.execution_id;
        let answer = store.commit_turn(&lease.token, commit).await;
        said(answer, |committed| {
            let instance = lease.instance.clone();
            self.model.open.retain(|(of, _)| *of != instance);
            self.model.open.extend(open.into_iter().map(|id| (instance.clone(), id)));
            self.model.scheduled.extend(scheduled.into_iter().map(|id| (instance.clone(), execution_id, id)));
            if ended {
                self.model.ended.insert((instance.clone(), execution_id));
            }
            if let Some(run) = committed.run {
                self.model.ran(instance, run, last_event_id);
            }
            format!("done, {}", self.labels.run(committed.run))
        })
    }
}

/// A turn being decided.
struct Draft {
    instance: String,
    now_ms: u64,
    commit: TurnCommit,
    last_event_id: u64,
    /// The instance's sessions that are open after the turn.
    open: Vec<&'static str>,
    ended: bool,
    scheduled: Vec<u64>,
}

impl Draft {
    fn of(side: &Side, lease: &TurnLease, deeds: &[Deed]) -> Self {
        let is_over = side.model.ended.contains(&(lease.instance.clone(), lease.execution_id));
        let continues = lease.messages.iter().any(|message| {
            matches!(
                message.item,
                WorkItem::ContinueAsNew { .. } | WorkItem::ContinueAsNewWithSessions { .. }
            )
        });
        let execution_id = lease.execution_id + u64::from(is_over && continues);
        let mut draft = Self {
            instance: lease.instance.clone(),
            now_ms: lease.now_ms,
            commit: TurnCommit::empty(execution_id),
            last_event_id: if execution_id == lease.execution_id { lease.last_event_id } else { 0 },
            open: open_sessions(&side.model, &lease.instance),
            ended: false,
            scheduled: Vec::new(),
        };
        if is_over && !continues {
            // What arrives for an instance that has ended is taken, and nothing is decided.
            return draft;
        }
        if draft.last_event_id == 0 {
            draft.begin(lease);
        }
        for deed in deeds {
            draft.decide(side, deed);
            if draft.ended {
                break;
            }
        }
        draft
    }

    fn begin(&mut self, lease: &TurnLease) {
        self.event(None, started());
        let parent = lease.messages.iter().find_map(|message| match &message.item {
            WorkItem::StartOrchestration { parent_instance, .. } => parent_instance.clone(),
            _ => None,
        });
        let metadata = &mut self.commit.metadata;
        metadata.orchestration_name = Some("Orchestration".to_owned());
        metadata.orchestration_version = Some("1.0.0".to_owned());
        metadata.pinned_duroxide_version = Some(current_build_version());
        metadata.parent_instance_id = parent.filter(|parent| *parent != self.instance);
    }

    fn event(&mut self, source: Option<u64>, kind: EventKind) {
        self.last_event_id += 1;
        self.commit.events.push(Event::at(
            self.now_ms,
            self.last_event_id,
            &self.instance,
            self.commit.execution_id,
            source,
            kind,
        ));
    }

    fn decide(&mut self, side: &Side, deed: &Deed) {
        match deed {
            Deed::Schedule { session, tag, times } => (0..*times).for_each(|_| self.schedule(*session, *tag)),
            Deed::Timer(time) => self.timer(*time),
            Deed::Set { key, value } => {
                let (key, value) = ((*key).to_owned(), value.to_string());
                self.event(None, EventKind::KeyValueSet { key, value, last_updated_at_ms: self.now_ms });
            }
            Deed::Clear { key } => self.event(None, EventKind::KeyValueCleared { key: (*key).to_owned() }),
            Deed::ClearAll => self.event(None, EventKind::KeyValuesCleared),
            Deed::Status(status) => {
                let status = status.map(|status| status.to_string());
                self.event(None, EventKind::CustomStatusUpdated { status });
            }
            Deed::Open { session, idle, serial } => self.open(session, *idle, *serial),
            Deed::Close { session } => self.close(session),
            Deed::Watch(place) => {
                let key = self.key_of(*place);
                self.commit.watched.push(key);
            }
            Deed::Cancel { nth } => {
                let mut mine = side.model.scheduled.iter().filter(|(of, ..)| *of == self.instance);
                let chosen = mine.nth(*nth).cloned();
                self.commit.cancelled.extend(chosen.map(identify));
            }
            Deed::Tell { instance } => self.commit.messages.push(raise(instance, &self.instance).into()),
            Deed::Child { instance } => self.child(instance),
            Deed::Repeat => {
                self.last_event_id = self.last_event_id.saturating_sub(1);
                self.event(None, EventKind::KeyValuesCleared);
            }
            Deed::Complete => {
                self.end(
                    "Completed",
                    "done",
                    EventKind::OrchestrationCompleted { output: "done".to_owned() },
                );
            }
            Deed::Fail => self.end("Failed", "broken", EventKind::OrchestrationFailed { details: broken() }),
            Deed::ContinueAsNew => self.continue_as_new(),
        }
    }

    fn key_of(&self, place: Place) -> SessionKey {
        match place {
            Place::Owned(id) if self.open.contains(&id) => SessionKey::owned(&self.instance, id),
            Place::Owned(id) | Place::Shared(id) => SessionKey::shared(id),
        }
    }

    fn schedule(&mut self, session: Option<Place>, tag: Option<&'static str>) {
        let key = session.map(|place| self.key_of(place));
        let session_id = key.as_ref().map(|key| key.session_id.clone());
        let (name, input) = ("Activity".to_owned(), "input".to_owned());
        let tagged = tag.map(str::to_owned);
        self.event(
            None,
            EventKind::ActivityScheduled { name, input, session_id: session_id.clone(), tag: tagged },
        );
        let mut item = activity_with(&self.instance, self.last_event_id, session_id.as_deref(), tag);
        if let WorkItem::ActivityExecute { execution_id, .. } = &mut item {
            *execution_id = self.commit.execution_id;
        }
        let traceparent = Some(format!("trace {}", self.last_event_id));
        // Of some calls the terms are known, of others not, as of those that an older build has queued.
        let is_known = self.last_event_id.is_multiple_of(2);
        let call = is_known.then(|| Box::new(CallTerms::of_key(format!("key {}", self.last_event_id))));
        self.commit.work.push(NewWork { item, session: key, traceparent, call });
        self.scheduled.push(self.last_event_id);
    }

    fn timer(&mut self, time: Duration) {
        let fire_at_ms = self.now_ms + u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.event(None, EventKind::TimerCreated { fire_at_ms });
        let item = WorkItem::TimerFired {
            instance: self.instance.clone(),
            execution_id: self.commit.execution_id,
            id: self.last_event_id,
            fire_at_ms,
        };
        if self.last_event_id.is_multiple_of(2) {
            self.commit.dropped_timers.push(item.clone());
        }
        self.commit.messages.push(item.into());
    }

    fn open(&mut self, session: &'static str, idle: Option<Duration>, serial: bool) {
        let idle_timeout_ms = idle.map(|idle| u64::try_from(idle.as_millis()).unwrap_or(u64::MAX));
        let concurrency = serial.then_some(SessionConcurrency::Serial);
        let session_id = session.to_owned();
        self.event(None, EventKind::SessionOpened { session_id, idle_timeout_ms, concurrency });
        if !self.open.contains(&session) {
            self.open.push(session);
        }
    }

    /// Closes a session, and names its activities of this turn as a runtime would.
    fn close(&mut self, session: &'static str) {
        let key = SessionKey::owned(&self.instance, session);
        self.event(None, EventKind::SessionClosed { session_id: session.to_owned() });
        self.open.retain(|open| *open != session);
        let closing = self.commit.work.iter().filter(|work| work.session.as_ref() == Some(&key));
        let ids = closing.filter_map(|work| match &work.item {
            WorkItem::ActivityExecute { instance, execution_id, id, .. } => {
                Some(identify((instance.clone(), *execution_id, *id)))
            }
            _ => None,
        });
        let ids: Vec<_> = ids.collect();
        self.commit.cancelled.extend(ids);
    }

    fn child(&mut self, instance: &'static str) {
        let mut start = start_of(instance);
        if let WorkItem::StartOrchestration { parent_instance, parent_id, parent_execution_id, .. } =
            &mut start
        {
            *parent_instance = Some(self.instance.clone());
            *parent_id = Some(self.last_event_id + 1);
            *parent_execution_id = Some(self.commit.execution_id);
        }
        let (name, input) = ("Orchestration".to_owned(), "input".to_owned());
        let instance = instance.to_owned();
        self.event(None, EventKind::SubOrchestrationScheduled { name, instance, input });
        self.commit.messages.push(start.into());
    }

    fn end(&mut self, status: &str, output: &str, kind: EventKind) {
        self.event(None, kind);
        self.commit.metadata.status = Some(status.to_owned());
        self.commit.metadata.output = Some(output.to_owned());
        self.ended = true;
        if status != "ContinuedAsNew" {
            self.open.clear();
        }
        // A runtime withdraws what its execution leaves open.
        let scheduled = self.scheduled.iter();
        let left = scheduled.map(|id| identify((self.instance.clone(), self.commit.execution_id, *id)));
        self.commit.cancelled.extend(left.collect::<Vec<_>>());
    }

    fn continue_as_new(&mut self) {
        let input = "again".to_owned();
        self.end("ContinuedAsNew", "again", EventKind::OrchestrationContinuedAsNew { input: input.clone() });
        let carried = |id: &&'static str| CarriedSession {
            session_id: (*id).to_owned(),
            idle_timeout_ms: None,
            concurrency: None,
            pool: None,
        };
        let successor = if self.open.is_empty() {
            continue_as_new_of(&self.instance)
        } else {
            WorkItem::ContinueAsNewWithSessions {
                instance: self.instance.clone(),
                orchestration: "Orchestration".to_owned(),
                input,
                version: None,
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                carry_forward_events: Vec::new(),
                initial_custom_status: None,
                sessions: self.open.iter().map(carried).collect(),
            }
        };
        self.commit.messages.push(successor.into());
    }
}

fn open_sessions(model: &Model, instance: &str) -> Vec<&'static str> {
    model.open.iter().filter(|(of, _)| of == instance).map(|(_, id)| *id).collect()
}

fn identify((instance, execution_id, activity_id): (String, u64, u64)) -> ScheduledActivityIdentifier {
    ScheduledActivityIdentifier { instance, execution_id, activity_id }
}

pub(super) fn broken() -> ErrorDetails {
    ErrorDetails::Infrastructure {
        operation: "walk".to_owned(),
        message: "broken".to_owned(),
        retryable: false,
    }
}
