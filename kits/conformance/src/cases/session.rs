//! Sessions (S13): who is given their work, for how long, and what everybody learns of it.
//!
//! Shared sessions are asked of every store; cases that need epochs, lists, nodes or owned sessions ask for
//! [`Store`].

pub(super) mod activity;
pub(super) mod compat;
pub(super) mod crowd;
pub(super) mod inspect;
pub(super) mod lease;
pub(super) mod list;
pub(super) mod node;
pub(super) mod owned;
pub(super) mod poll;
pub(super) mod reopened;
pub(super) mod route;
pub(super) mod scope;
pub(super) mod serial;
pub(super) mod trail;
pub(super) mod watch;

use std::time::Duration;

use steadfast_core::{
    CarriedSession, ErrorDetails, EventKind, SessionConcurrency, SessionKey, TagFilter, WorkItem,
};
use steadfast_store::{
    Appetite, Cold, NewWork, Owner, RenewSessions, SessionInfo, SessionRef, SessionRequest, SessionScope,
    SessionsRenewed, Store, TurnCommit, TurnLease, TurnRequest, WorkLease, WorkRequest,
};

use crate::bench::{Bench, LEASE, activity_with, completion, event, ok, raise, started};

/// After how long without work a session is idle, in cases that do not say it.
const IDLE: Duration = Duration::from_secs(300);

/// After how long an item is untaken, in cases that do not say it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Gives session cases their words.
struct Desk<'a> {
    bench: &'a Bench,
    store: &'a dyn Store,
}

/// The words, on a store that has its full form.
fn desk(bench: &Bench) -> Option<Desk<'_>> {
    bench.store().map(|store| Desk { bench, store })
}

/// The words, on a store whose sessions can belong to an instance.
fn owning(bench: &Bench) -> Option<Desk<'_>> {
    desk(bench).filter(|desk| desk.store.supports_owned_sessions())
}

impl Desk<'_> {
    /// Queues an activity of a shared session.
    async fn queue(&self, session: &str, id: u64) {
        queue(self.bench, session, id).await;
    }

    /// Leases an activity for an owner, if there is one now.
    async fn fetch(&self, owner: &str) -> Option<WorkLease> {
        self.ask(request(owner)).await
    }

    /// Leases an activity for an owner; there must be one.
    async fn fetched(&self, owner: &str) -> WorkLease {
        self.fetch(owner).await.unwrap_or_else(|| panic!("{owner} should be given an activity"))
    }

    async fn ask(&self, request: WorkRequest) -> Option<WorkLease> {
        ok(self.store.fetch_work(request).await)
    }

    async fn asked(&self, request: WorkRequest) -> WorkLease {
        self.ask(request).await.expect("there should be an activity")
    }

    async fn finish(&self, lease: &WorkLease) {
        let outcome = completion(lease.item.instance(), id_of(&lease.item)).into();
        ok(self.store.finish_work(&lease.token, outcome).await);
    }

    /// Makes an owner hold a shared session without running anything of it.
    async fn attach(&self, owner: &str, session: &str) -> SessionRef {
        self.queue(session, 1).await;
        let lease = self.fetched(owner).await;
        self.finish(&lease).await;
        attachment(&lease)
    }

    async fn renew(&self, request: RenewSessions) -> SessionsRenewed {
        ok(self.store.renew_sessions(request).await)
    }

    async fn release(&self, owner: &str, sessions: &[SessionRef]) -> Vec<SessionRef> {
        ok(self.store.release_sessions(&Owner::unnamed(owner), sessions).await)
    }

    async fn find(&self, key: &SessionKey) -> Option<SessionInfo> {
        ok(self.store.session(key).await)
    }

    async fn show(&self, key: &SessionKey) -> SessionInfo {
        self.find(key).await.unwrap_or_else(|| panic!("{key:?} should be there"))
    }

    async fn shared(&self, session: &str) -> SessionInfo {
        self.show(&SessionKey::shared(session)).await
    }

    /// Leases the turn of an instance.
    async fn lease_turn(&self, instance: &str) -> TurnLease {
        let request = TurnRequest {
            lock_timeout: LEASE,
            poll_timeout: Duration::ZERO,
            filter: None,
            warm: &Cold,
            worker: None,
        };
        let lease = ok(self.store.fetch_turn(request).await).expect("an instance should be ready");
        assert_eq!(lease.instance, instance, "that instance should be next");
        lease
    }

    /// Starts an instance and commits its first turn.
    async fn begin(&self, instance: &str, build: impl FnOnce(Turn) -> Turn) {
        self.bench.start(instance).await;
        let lease = self.lease_turn(instance).await;
        self.commit(&lease, build(Turn::first(instance, 1))).await;
    }

    /// Commits a further turn of an instance.
    async fn turn(&self, instance: &str, build: impl FnOnce(Turn) -> Turn) {
        self.bench.send(raise(instance, "go on")).await;
        let lease = self.lease_turn(instance).await;
        self.commit(&lease, build(Turn::next(&lease))).await;
    }

    /// Commits the first turn of an execution that another one asked for.
    async fn succeed(&self, instance: &str, build: impl FnOnce(Turn) -> Turn) {
        let lease = self.lease_turn(instance).await;
        self.commit(&lease, build(Turn::first(instance, lease.execution_id + 1))).await;
    }

    async fn commit(&self, lease: &TurnLease, turn: Turn) {
        ok(self.store.commit_turn(&lease.token, turn.commit).await);
    }

    /// Reads what arrived for an instance, and takes it.
    async fn inbox(&self, instance: &str) -> Vec<WorkItem> {
        let lease = self.lease_turn(instance).await;
        self.commit(&lease, Turn::next(&lease)).await;
        lease.messages.into_iter().map(|message| message.item).collect()
    }

    /// Is there no turn for anybody?
    async fn is_quiet(&self) -> bool {
        let request = TurnRequest {
            lock_timeout: LEASE,
            poll_timeout: Duration::ZERO,
            filter: None,
            warm: &Cold,
            worker: None,
        };
        ok(self.store.fetch_turn(request).await).is_none()
    }
}

/// Builds the commit of a turn.
struct Turn {
    instance: String,
    last_event_id: u64,
    commit: TurnCommit,
}

impl Turn {
    fn first(instance: &str, execution_id: u64) -> Self {
        let mut commit = TurnCommit::empty(execution_id);
        commit.metadata.orchestration_name = Some("Orchestration".to_owned());
        commit.metadata.orchestration_version = Some("1.0.0".to_owned());
        Self { instance: instance.to_owned(), last_event_id: 0, commit }.event(started())
    }

    fn next(lease: &TurnLease) -> Self {
        let commit = TurnCommit::empty(lease.execution_id);
        Self { instance: lease.instance.clone(), last_event_id: lease.last_event_id, commit }
    }

    fn event(mut self, kind: EventKind) -> Self {
        self.last_event_id += 1;
        self.commit.events.push(event(&self.instance, self.last_event_id, kind));
        self
    }

    fn open(self, session: &str) -> Self {
        self.open_with(session, None, None)
    }

    fn open_with(
        self,
        session: &str,
        idle_timeout: Option<Duration>,
        concurrency: Option<SessionConcurrency>,
    ) -> Self {
        let idle_timeout_ms = idle_timeout.map(|time| time.as_millis() as u64);
        self.event(EventKind::SessionOpened { session_id: session.to_owned(), idle_timeout_ms, concurrency })
    }

    fn close(self, session: &str) -> Self {
        self.event(EventKind::SessionClosed { session_id: session.to_owned() })
    }

    /// Schedules an activity on a session that the instance owns.
    fn work(self, session: &str) -> Self {
        let key = SessionKey::owned(&self.instance, session);
        self.work_on(key)
    }

    fn work_on(self, key: SessionKey) -> Self {
        let (session_id, tag) = (Some(key.session_id.clone()), None);
        let (name, input) = ("Activity".to_owned(), "input".to_owned());
        let mut turn = self.event(EventKind::ActivityScheduled { name, input, session_id, tag });
        let item = activity_with(&turn.instance, turn.last_event_id, Some(&key.session_id), None);
        turn.commit.work.push(NewWork { session: Some(key), ..item.into() });
        turn
    }

    fn watch(mut self, key: SessionKey) -> Self {
        self.commit.watched.push(key);
        self
    }

    fn ended(mut self, status: &str, kind: EventKind) -> Self {
        self.commit.metadata.status = Some(status.to_owned());
        self.event(kind)
    }

    fn complete(self) -> Self {
        self.ended("Completed", EventKind::OrchestrationCompleted { output: "done".to_owned() })
    }

    fn fail(self) -> Self {
        let details = ErrorDetails::Infrastructure {
            operation: "turn".to_owned(),
            message: "broken".to_owned(),
            retryable: false,
        };
        self.ended("Failed", EventKind::OrchestrationFailed { details })
    }

    /// Continues as new with open sessions.
    fn continue_as_new(self, sessions: &[&str]) -> Self {
        let carried = |id: &&str| CarriedSession {
            session_id: (*id).to_owned(),
            idle_timeout_ms: None,
            concurrency: None,
            pool: None,
        };
        let successor = WorkItem::ContinueAsNewWithSessions {
            instance: self.instance.clone(),
            orchestration: "Orchestration".to_owned(),
            input: "again".to_owned(),
            version: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: Vec::new(),
            initial_custom_status: None,
            sessions: sessions.iter().map(carried).collect(),
        };
        let kind = EventKind::OrchestrationContinuedAsNew { input: "again".to_owned() };
        let mut turn = self.ended("ContinuedAsNew", kind);
        turn.commit.messages.push(successor.into());
        turn
    }
}

/// Queues an activity of a shared session.
async fn queue(bench: &Bench, session: &str, id: u64) {
    ok(bench.provider().enqueue_for_worker(activity_with("i", id, Some(session), None)).await);
}

/// Asks for anything that an owner may take, with the usual leases.
fn request(owner: &str) -> WorkRequest {
    request_as(Owner::unnamed(owner))
}

fn request_as(owner: Owner) -> WorkRequest {
    WorkRequest {
        worker_id: owner.id.clone(),
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        tags: TagFilter::DefaultOnly,
        session: Some(SessionRequest {
            owner,
            lock_timeout: LEASE,
            scope: SessionScope::Claim,
            leave_out: Vec::new(),
        }),
        worker: None,
    }
}

/// Asks with other leases: of the activity, of the session.
fn leasing(owner: &str, activity: Duration, session: Duration) -> WorkRequest {
    let mut request = request(owner);
    request.lock_timeout = activity;
    if let Some(asked) = &mut request.session {
        asked.lock_timeout = session;
    }
    request
}

/// Renews what an owner holds, with the usual times.
fn renewal(owner: &str) -> RenewSessions {
    RenewSessions {
        owner: Owner::unnamed(owner),
        extend_for: LEASE,
        idle_timeout: IDLE,
        untaken_after: PATIENCE,
        tags: TagFilter::Any,
        appetite: Appetite::Hungry,
        held: Vec::new(),
        worker: None,
    }
}

fn id_of(item: &WorkItem) -> u64 {
    match item {
        WorkItem::ActivityExecute { id, .. } => *id,
        other => panic!("{other:?} is no activity"),
    }
}

/// The attachment that a lease of session work tells of.
fn attachment(lease: &WorkLease) -> SessionRef {
    let session = lease.session.as_ref().expect("an activity of a session should tell how it is attached");
    SessionRef { key: session.key.clone(), epoch: session.epoch }
}
