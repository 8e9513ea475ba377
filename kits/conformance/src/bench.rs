//! What a case works with: a fresh store, a clock that it tells, and short words for common steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast_clock::{Clock, VirtualClock};
use steadfast_core::{
    DispatcherCapabilityFilter, Event, EventKind, ExecutionMetadata, ScheduledActivityIdentifier, TagFilter,
    WorkItem, current_build_version,
};
use steadfast_store::{
    NodeRegistration, NodeStart, OrchestrationItem, Provider, ProviderAdmin, ProviderError,
    ProviderErrorKind, SessionFetchConfig, Store,
};
use tokio::task::JoinHandle;

use crate::clause::Clause;
use crate::subject::OpenStore;
use crate::{BoxError, Damage, Subject};

/// How long leases last in cases that do not say it.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// A little time: enough to be later, too little to matter.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// When the clock of every case begins, in milliseconds since the Unix epoch.
pub(crate) const DAWN_MS: u64 = 1_700_000_000_000;

/// A fresh store and its clock, for one case.
pub struct Bench {
    open: OpenStore,
    store: Option<Arc<dyn Store>>,
    clock: VirtualClock,
}

/// A leased instance.
#[derive(Debug, Clone)]
pub struct Turning {
    /// The messages and the history that the lease brought.
    pub item: OrchestrationItem,
    /// The token that proves the lease.
    pub token: String,
    /// Which delivery of the oldest message this is, counted from 1.
    pub attempt: u32,
}

impl Bench {
    pub(crate) async fn open(subject: Arc<dyn Subject>, clause: Clause) -> Result<Self, BoxError> {
        let clock = VirtualClock::new(DAWN_MS);
        let told = Arc::new(clock.clone());
        let open = match clause {
            Clause::S20 => OpenStore::to_count(&subject, told).await?,
            _ => OpenStore::new(&subject, told).await?,
        };
        let store = Arc::clone(open.provider()).into_store();
        Ok(Self { open, store, clock })
    }

    /// Returns the store in its compatible form.
    pub fn provider(&self) -> &Arc<dyn Provider> {
        self.open.provider()
    }

    /// Returns the store in its full form, if it has one.
    pub fn store(&self) -> Option<&dyn Store> {
        self.store.as_deref()
    }

    /// Returns the management interface, if the store has one.
    pub fn admin(&self) -> Option<&dyn ProviderAdmin> {
        self.provider().as_management_capability()
    }

    /// Returns the clock that the store follows.
    pub fn clock(&self) -> &VirtualClock {
        &self.clock
    }

    /// Returns the clock of the machine that the kit runs on, if the store goes by it.
    pub fn machine(&self) -> Option<&VirtualClock> {
        self.open.subject().goes_by_this_machine().then_some(&self.clock)
    }

    /// Reads the time that the store sees.
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Lets time pass.
    pub fn advance(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// Overwrites rows behind the store's back.
    pub async fn damage(&self, what: Damage<'_>) -> Option<usize> {
        self.open.subject().damage(self.provider(), what, "{ this is no row").await
    }

    /// Writes rows anew behind the store's back, so that they can be read again.
    pub async fn repair(&self, what: Damage<'_>, item: &WorkItem) -> Option<usize> {
        let text = serde_json::to_string(item).ok()?;
        self.overwrite(what, &text).await
    }

    /// Writes a text into rows behind the store's back.
    pub async fn overwrite(&self, what: Damage<'_>, text: &str) -> Option<usize> {
        self.open.subject().damage(self.provider(), what, text).await
    }

    /// Opens the store again, as after a restart of the process.
    pub async fn reopen(self) -> Option<Self> {
        let Self { open, clock, .. } = self;
        let reopened = open.reopen(Arc::new(clock.clone())).await?;
        let open = reopened.unwrap_or_else(|error| panic!("the store could not be opened again: {error}"));
        let store = Arc::clone(open.provider()).into_store();
        Some(Self { open, store, clock })
    }

    /// Counts the store's work so far, if it can.
    pub async fn cost(&self) -> Option<u64> {
        self.open.subject().cost(self.provider()).await
    }

    /// Waits until `count` calls are parked on the clock, so that a case knows that they wait.
    #[allow(
        clippy::disallowed_methods,
        reason = "a store may have threads of its own, which need real time to get to where they wait"
    )]
    pub async fn parked(&self, count: usize) {
        let parking = async {
            while self.clock.sleepers() < count {
                tokio::task::yield_now().await;
                if self.clock.sleepers() < count {
                    // A store with threads of its own needs real time to get there.
                    tokio::time::sleep(Duration::from_micros(200)).await;
                }
            }
        };
        if tokio::time::timeout(self.open.subject().patience(), parking).await.is_err() {
            panic!("{count} calls should be waiting, {} are", self.clock.sleepers());
        }
    }

    // --- messages

    /// Sends a message.
    pub async fn send(&self, item: WorkItem) {
        ok(self.provider().enqueue_for_orchestrator(item, None).await);
    }

    /// Sends a message that is held back.
    pub async fn send_later(&self, item: WorkItem, delay: Duration) {
        ok(self.provider().enqueue_for_orchestrator(item, Some(delay)).await);
    }

    /// Sends the start of an instance.
    pub async fn start(&self, instance: &str) {
        self.send(start_of(instance)).await;
    }

    // --- turns

    /// Leases an instance, if one can be leased now.
    pub async fn fetch(&self) -> Option<Turning> {
        ok(self.try_fetch(LEASE).await)
    }

    /// Leases an instance for as long as given.
    pub async fn try_fetch(&self, lease: Duration) -> Result<Option<Turning>, ProviderError> {
        let fetched = self.provider().fetch_orchestration_item(lease, Duration::ZERO, None).await?;
        Ok(fetched.map(|(item, token, attempt)| Turning { item, token, attempt }))
    }

    /// Leases an instance; there must be one.
    pub async fn fetched(&self) -> Turning {
        self.fetch().await.expect("an instance should be ready")
    }

    /// Commits a turn.
    pub async fn try_commit(&self, turn: &Turning, commit: Commit) -> Result<(), ProviderError> {
        let Commit { execution_id, events, work, messages, metadata, cancelled } = commit;
        self.provider()
            .ack_orchestration_item(&turn.token, execution_id, events, work, messages, metadata, cancelled)
            .await
    }

    /// Commits a turn; it must succeed.
    pub async fn commit(&self, turn: &Turning, commit: Commit) {
        ok(self.try_commit(turn, commit).await);
    }

    /// Starts an instance and commits its first turn with what is given beside the start.
    pub async fn begin(&self, instance: &str, commit: Commit) {
        self.start(instance).await;
        let turn = self.fetched().await;
        assert_eq!(turn.item.instance, instance, "the instance that was just started should be next");
        let started = Commit::started(instance);
        self.commit(&turn, started.and(commit)).await;
    }

    /// Starts an instance that waits.
    pub async fn begun(&self, instance: &str) {
        self.begin(instance, Commit::default()).await;
    }

    /// Starts an instance with one queued activity of event 2.
    pub async fn begun_with_work(&self, instance: &str) {
        self.begin(instance, Commit::default().schedule(instance, 2)).await;
    }

    // --- work

    /// Leases an activity without a session, if one can be leased now.
    pub async fn fetch_work(&self) -> Option<(WorkItem, String, u32)> {
        self.fetch_work_as(None, &TagFilter::DefaultOnly).await
    }

    /// Leases an activity, also of a session, for an owner.
    pub async fn fetch_work_for(&self, owner: &str) -> Option<(WorkItem, String, u32)> {
        let session = SessionFetchConfig { owner_id: owner.to_owned(), lock_timeout: LEASE };
        self.fetch_work_as(Some(&session), &TagFilter::DefaultOnly).await
    }

    /// Leases an activity with everything said.
    pub async fn fetch_work_as(
        &self,
        session: Option<&SessionFetchConfig>,
        tags: &TagFilter,
    ) -> Option<(WorkItem, String, u32)> {
        ok(self.provider().fetch_work_item(LEASE, Duration::ZERO, session, tags).await)
    }
}

/// Holds what a turn commits, in the compatible form.
#[derive(Debug, Clone)]
pub struct Commit {
    pub(crate) execution_id: u64,
    pub(crate) events: Vec<Event>,
    pub(crate) work: Vec<WorkItem>,
    pub(crate) messages: Vec<WorkItem>,
    pub(crate) metadata: ExecutionMetadata,
    pub(crate) cancelled: Vec<ScheduledActivityIdentifier>,
}

impl Default for Commit {
    fn default() -> Self {
        Self {
            execution_id: 1,
            events: Vec::new(),
            work: Vec::new(),
            messages: Vec::new(),
            metadata: ExecutionMetadata::default(),
            cancelled: Vec::new(),
        }
    }
}

impl Commit {
    /// The first turn of an instance: its start, its name, its version.
    pub(crate) fn started(instance: &str) -> Self {
        let metadata = ExecutionMetadata {
            orchestration_name: Some("Orchestration".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            pinned_duroxide_version: Some(current_build_version()),
            ..ExecutionMetadata::default()
        };
        Self { events: vec![event(instance, 1, started())], metadata, ..Self::default() }
    }

    /// The first turn of a later execution.
    pub(crate) fn continued(instance: &str, execution_id: u64) -> Self {
        let mut commit = Self::started(instance);
        commit.execution_id = execution_id;
        commit
    }

    pub(crate) fn event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    pub(crate) fn message(mut self, item: WorkItem) -> Self {
        self.messages.push(item);
        self
    }

    pub(crate) fn work(mut self, item: WorkItem) -> Self {
        self.work.push(item);
        self
    }

    /// Schedules an activity: event and work together.
    pub(crate) fn schedule(self, instance: &str, id: u64) -> Self {
        self.event(event(instance, id, scheduled())).work(activity(instance, id))
    }

    pub(crate) fn cancel(mut self, instance: &str, execution_id: u64, activity_id: u64) -> Self {
        self.cancelled.push(ScheduledActivityIdentifier {
            instance: instance.to_owned(),
            execution_id,
            activity_id,
        });
        self
    }

    pub(crate) fn status(mut self, status: &str, output: &str) -> Self {
        self.metadata.status = Some(status.to_owned());
        self.metadata.output = Some(output.to_owned());
        self
    }

    pub(crate) fn parent(mut self, parent: &str) -> Self {
        self.metadata.parent_instance_id = Some(parent.to_owned());
        self
    }

    /// The execution completes: terminal event and status together.
    pub(crate) fn complete(self, instance: &str, id: u64, output: &str) -> Self {
        let kind = EventKind::OrchestrationCompleted { output: output.to_owned() };
        self.event(event(instance, id, kind)).status("Completed", output)
    }

    /// The execution continues as new: terminal event, status and the successor's start together.
    pub(crate) fn continue_as_new(self, instance: &str, id: u64) -> Self {
        let kind = EventKind::OrchestrationContinuedAsNew { input: "again".to_owned() };
        let successor = continue_as_new_of(instance);
        self.event(event(instance, id, kind)).status("ContinuedAsNew", "again").message(successor)
    }

    /// Adds another commit to this one; where both say something of the execution, the other counts.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.events.extend(other.events);
        self.work.extend(other.work);
        self.messages.extend(other.messages);
        self.cancelled.extend(other.cancelled);
        let (mine, theirs) = (self.metadata, other.metadata);
        self.metadata = ExecutionMetadata {
            status: theirs.status.or(mine.status),
            output: theirs.output.or(mine.output),
            orchestration_name: theirs.orchestration_name.or(mine.orchestration_name),
            orchestration_version: theirs.orchestration_version.or(mine.orchestration_version),
            parent_instance_id: theirs.parent_instance_id.or(mine.parent_instance_id),
            pinned_duroxide_version: theirs.pinned_duroxide_version.or(mine.pinned_duroxide_version),
        };
        self
    }
}

/// Unwraps what a case relies on.
pub(crate) fn ok<T>(result: Result<T, ProviderError>) -> T {
    result.unwrap_or_else(|error| panic!("the call should succeed: {error} (kind {:?})", error.kind))
}

/// Requires that a lease was lost: permanent, of that kind, with the text that users match on.
pub(crate) fn lost<T: std::fmt::Debug>(result: Result<T, ProviderError>) {
    let error = result.expect_err("a call with a stale token should fail");
    assert!(error.is_lease_lost(), "the lease should be reported as lost: {error} (kind {:?})", error.kind);
    assert!(!error.is_retryable(), "a lost lease is not worth another try: {error}");
}

/// Requires an error of a kind. Foreign providers that know no kinds answer `Other`.
pub(crate) fn refused<T: std::fmt::Debug>(
    result: Result<T, ProviderError>,
    kind: ProviderErrorKind,
) -> ProviderError {
    let error = result.expect_err("the call should be refused");
    assert!(
        error.kind == kind || error.kind == ProviderErrorKind::Other,
        "the error should be {kind:?}: {error} (kind {:?})",
        error.kind
    );
    error
}

pub(crate) fn event(instance: &str, id: u64, kind: EventKind) -> Event {
    Event::at(DAWN_MS, id, instance, 1, None, kind)
}

pub(crate) fn answered(instance: &str, id: u64, source: u64, kind: EventKind) -> Event {
    Event::at(DAWN_MS, id, instance, 1, Some(source), kind)
}

pub(crate) fn started() -> EventKind {
    EventKind::OrchestrationStarted {
        name: "Orchestration".to_owned(),
        version: "1.0.0".to_owned(),
        input: "input".to_owned(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

pub(crate) fn scheduled() -> EventKind {
    EventKind::ActivityScheduled {
        name: "Activity".to_owned(),
        input: "input".to_owned(),
        session_id: None,
        tag: None,
    }
}

pub(crate) fn start_of(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Orchestration".to_owned(),
        input: "input".to_owned(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

pub(crate) fn continue_as_new_of(instance: &str) -> WorkItem {
    WorkItem::ContinueAsNew {
        instance: instance.to_owned(),
        orchestration: "Orchestration".to_owned(),
        input: "again".to_owned(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: Vec::new(),
        initial_custom_status: None,
    }
}

pub(crate) fn raise(instance: &str, data: &str) -> WorkItem {
    WorkItem::ExternalRaised {
        instance: instance.to_owned(),
        name: "event".to_owned(),
        data: data.to_owned(),
    }
}

pub(crate) fn activity(instance: &str, id: u64) -> WorkItem {
    activity_with(instance, id, None, None)
}

pub(crate) fn activity_with(instance: &str, id: u64, session: Option<&str>, tag: Option<&str>) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id,
        name: "Activity".to_owned(),
        input: "input".to_owned(),
        session_id: session.map(str::to_owned),
        tag: tag.map(str::to_owned),
    }
}

pub(crate) fn completion(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityCompleted {
        instance: instance.to_owned(),
        execution_id: 1,
        id,
        result: "done".to_owned(),
    }
}

impl Bench {
    /// Queues an activity that no turn asked for.
    pub async fn enqueue(&self, item: WorkItem) {
        ok(self.provider().enqueue_for_worker(item).await);
    }

    /// Leases an activity without a session; there must be one.
    pub async fn working(&self) -> (WorkItem, String, u32) {
        self.fetch_work().await.expect("an activity should be ready")
    }

    /// Ends the lease of an activity, with or without a completion.
    pub async fn finish(&self, token: &str, completion: Option<WorkItem>) {
        ok(self.provider().ack_work_item(token, completion).await);
    }

    /// Begins to lease an activity, waiting for one if there is none. The call waits when this returns.
    pub(crate) async fn waiting_work(
        &self,
        poll: Duration,
        tags: TagFilter,
    ) -> JoinHandle<Option<(WorkItem, String, u32)>> {
        let (provider, waiting) = (Arc::clone(self.provider()), self.clock.sleepers());
        let call = tokio::spawn(async move { ok(provider.fetch_work_item(LEASE, poll, None, &tags).await) });
        self.parked(waiting + 1).await;
        call
    }

    /// Starts an instance and completes it in its first turn.
    pub async fn ended(&self, instance: &str) {
        self.begin(instance, Commit::default().complete(instance, 2, "output")).await;
    }

    /// Starts an instance that continues as new until it runs in the given execution.
    pub async fn begun_at(&self, instance: &str, execution_id: u64) {
        self.start(instance).await;
        for execution in 1..=execution_id {
            let turn = self.fetched().await;
            let commit = Commit::continued(instance, execution);
            let goes_on = execution < execution_id;
            let commit = if goes_on { commit.continue_as_new(instance, 2) } else { commit };
            self.commit(&turn, commit).await;
        }
    }
}

impl Bench {
    /// Begins an instance with work for event 2, and leases it with one message.
    pub(crate) async fn leased(&self, instance: &str) -> Turning {
        self.begun_with_work(instance).await;
        self.send(raise(instance, "data")).await;
        self.fetched().await
    }

    /// Begins to lease an instance, waiting for one if there is none. The call waits when this returns.
    pub(crate) async fn waiting_fetch(&self, poll: Duration) -> JoinHandle<Option<Turning>> {
        let (provider, waiting) = (Arc::clone(self.provider()), self.clock.sleepers());
        let call = tokio::spawn(async move {
            let fetched = ok(provider.fetch_orchestration_item(LEASE, poll, None).await);
            fetched.map(|(item, token, attempt)| Turning { item, token, attempt })
        });
        self.parked(waiting + 1).await;
        call
    }

    /// Leases an instance that a filter accepts, if one can be leased now.
    pub(crate) async fn fetch_with(&self, filter: &DispatcherCapabilityFilter) -> Option<Turning> {
        let fetched = ok(self.provider().fetch_orchestration_item(LEASE, Duration::ZERO, Some(filter)).await);
        fetched.map(|(item, token, attempt)| Turning { item, token, attempt })
    }

    /// Extends the lease of an instance.
    pub(crate) async fn try_renew(&self, turn: &Turning, extend_for: Duration) -> Result<(), ProviderError> {
        self.provider().renew_orchestration_item_lock(&turn.token, extend_for).await
    }

    /// Gives a leased instance back; the attempt counts.
    pub(crate) async fn try_abandon(
        &self,
        turn: &Turning,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.provider().abandon_orchestration_item(&turn.token, delay, false).await
    }

    /// Gives a leased instance back as if it had not been fetched.
    pub(crate) async fn abandon(&self, turn: &Turning, delay: Option<Duration>) {
        ok(self.provider().abandon_orchestration_item(&turn.token, delay, true).await);
    }

    /// Numbers the events of the latest execution.
    pub(crate) async fn event_ids(&self, instance: &str) -> Vec<u64> {
        ok(self.provider().read(instance).await).iter().map(Event::event_id).collect()
    }

    /// Waits for a call that should return without any time passing.
    pub(crate) async fn soon<T>(&self, call: JoinHandle<T>) -> T {
        let returned = tokio::time::timeout(self.open.subject().patience(), call).await;
        let returned = returned.expect("a call that waits should return now");
        returned.unwrap_or_else(|panic| panic!("a call should not panic: {panic}"))
    }

    /// Lets the tasks of a case go on for a while, without letting time pass.
    pub(crate) async fn settle(&self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
}

pub(crate) fn timer(instance: &str, id: u64, fire_at_ms: u64) -> WorkItem {
    WorkItem::TimerFired { instance: instance.to_owned(), execution_id: 1, id, fire_at_ms }
}

pub(crate) fn status_set(status: Option<&str>) -> EventKind {
    EventKind::CustomStatusUpdated { status: status.map(str::to_owned) }
}

pub(crate) fn kv_set(key: &str, value: &str) -> EventKind {
    EventKind::KeyValueSet { key: key.to_owned(), value: value.to_owned(), last_updated_at_ms: DAWN_MS }
}

/// Registers a new start of a node, which replaces the newest one, and returns its number.
pub(crate) async fn start_node(store: &dyn Store, node_id: &str) -> Result<u64, ProviderError> {
    static STARTS: AtomicU64 = AtomicU64::new(0);
    let number = STARTS.fetch_add(1, Ordering::Relaxed);
    let mut start = NodeStart::new(node_id, format!("start {number}"));
    loop {
        match store.register_node(&start).await? {
            NodeRegistration::Registered(incarnation) => return Ok(incarnation),
            NodeRegistration::Taken { incarnation, .. } => {
                assert_ne!(start.replaces, Some(incarnation), "a start replaces the newest one");
                start.replaces = Some(incarnation);
            }
        }
    }
}
