//! A story: one orchestration, told turn by turn.
//!
//! Every turn is run three times over, as far as it can be: by the execution that was kept, by one that is
//! replayed from the accumulated history, and, once the story has ended, by [`verify`]. All must agree, so
//! every test of this binary is also a test of that equality.

use std::sync::Arc;

use futures::future::BoxFuture;
use steadfast_core::replay::{
    Effort, Execution, Identity, Notice, Options, ParentLink, Setup, Start, Turn, Verdict, verify,
};
use steadfast_core::{
    AppErrorKind, ErrorDetails, Event, EventKind, KvEntry, Mismatch, OrchestrationContext, SessionKey,
    WorkItem,
};

pub(crate) type Outcome = Result<String, String>;
pub(crate) type Handler =
    Arc<dyn Fn(OrchestrationContext, String) -> BoxFuture<'static, Outcome> + Send + Sync>;

pub(crate) const INSTANCE: &str = "i";

/// Runs one orchestration turn by turn, warm and cold.
pub(crate) struct Story {
    handler: Handler,
    setup: Setup,
    start: Start,
    warm: Option<Execution>,
    cold: bool,
    pub(crate) history: Vec<Event>,
    pub(crate) now_ms: u64,
}

/// Begins a story of this handler; nothing runs before the first turn.
pub(crate) fn story<H, F>(handler: H) -> Story
where
    H: Fn(OrchestrationContext, String) -> F + Send + Sync + 'static,
    F: Future<Output = Outcome> + Send + 'static,
{
    Story {
        handler: boxed(handler),
        setup: setup(),
        start: Start::default(),
        warm: None,
        cold: true,
        history: Vec::new(),
        now_ms: 0,
    }
}

pub(crate) fn boxed<H, F>(handler: H) -> Handler
where
    H: Fn(OrchestrationContext, String) -> F + Send + Sync + 'static,
    F: Future<Output = Outcome> + Send + 'static,
{
    Arc::new(move |ctx, input| Box::pin(handler(ctx, input)))
}

pub(crate) fn setup() -> Setup {
    Setup::new(identity(1))
}

pub(crate) fn identity(execution_id: u64) -> Identity {
    Identity { instance: INSTANCE.into(), execution_id, name: "Test".into(), version: "1.0.0".into() }
}

pub(crate) fn parent() -> ParentLink {
    ParentLink { instance: "mother".into(), id: 7, execution_id: Some(3) }
}

impl Story {
    pub(crate) fn input(mut self, input: &str) -> Self {
        self.start.input = input.into();
        self
    }

    pub(crate) fn parent(mut self, parent: ParentLink) -> Self {
        self.start.parent = Some(parent);
        self
    }

    pub(crate) fn started(mut self, change: impl FnOnce(&mut Start)) -> Self {
        change(&mut self.start);
        self
    }

    pub(crate) fn execution(mut self, execution_id: u64) -> Self {
        self.setup.identity = identity(execution_id);
        self
    }

    pub(crate) fn options(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.setup.options);
        self
    }

    pub(crate) fn owned_sessions(self) -> Self {
        self.options(|options| options.owned_sessions = true)
    }

    pub(crate) fn kv(mut self, key: &str, value: &str, last_updated_at_ms: u64) -> Self {
        self.setup.kv.insert(key.into(), KvEntry { value: value.into(), last_updated_at_ms });
        self
    }

    /// Runs the kept execution only, for handlers with effects of their own.
    pub(crate) fn warm_only(mut self) -> Self {
        self.cold = false;
        self
    }

    /// Runs one turn and returns it.
    pub(crate) fn turn(&mut self, arrivals: impl IntoIterator<Item = WorkItem>) -> Turn {
        self.now_ms += 1_000;
        let arrivals: Vec<_> = arrivals.into_iter().collect();
        let cold = self.cold.then(|| self.replayed().turn(self.now_ms, arrivals.clone()));
        if self.warm.is_none() {
            self.warm = Some(self.fresh());
        }
        let now_ms = self.now_ms;
        let turn = self.kept().turn(now_ms, arrivals);
        if let Some(cold) = cold {
            assert_eq!(turn, cold, "a kept execution and a replayed one decide alike");
        }
        self.history.extend(turn.events.clone());
        self.check_shape();
        if self.cold && turn.verdict.is_terminal() && turn.verdict != Verdict::Ended {
            self.check_end(&turn.verdict);
        }
        turn
    }

    /// Runs a turn for the lines of its events.
    pub(crate) fn events(&mut self, arrivals: impl IntoIterator<Item = WorkItem>) -> Vec<String> {
        lines(&self.turn(arrivals).events)
    }

    /// Runs a turn that must complete, and returns the output.
    pub(crate) fn output(&mut self, arrivals: impl IntoIterator<Item = WorkItem>) -> String {
        match self.turn(arrivals).verdict {
            Verdict::Completed { output } => output,
            other => panic!("not completed: {other:?}"),
        }
    }

    /// Runs a turn that must fail, and returns the text that users see.
    pub(crate) fn failure(&mut self, arrivals: impl IntoIterator<Item = WorkItem>) -> String {
        failure_of(&self.turn(arrivals)).display_message()
    }

    /// Runs a turn that must go on waiting.
    pub(crate) fn waits(&mut self, arrivals: impl IntoIterator<Item = WorkItem>) -> Turn {
        let turn = self.turn(arrivals);
        assert_eq!(turn.verdict, Verdict::Waiting { stuck: false });
        turn
    }

    /// Forgets the kept execution, as a restart does.
    pub(crate) fn restart(&mut self) {
        self.warm = Some(self.replayed());
    }

    /// The kept execution.
    pub(crate) fn kept(&mut self) -> &mut Execution {
        self.warm.as_mut().expect("a turn has run")
    }

    pub(crate) fn effort(&mut self) -> Effort {
        self.kept().effort()
    }

    /// An execution that knows nothing but the history.
    pub(crate) fn replayed(&self) -> Execution {
        match self.history.is_empty() {
            true => self.fresh(),
            false => self.replayed_by(&self.handler),
        }
    }

    /// The next turn of changed code on this history.
    pub(crate) fn changed<H, F>(&self, handler: H) -> (Turn, Mismatch)
    where
        H: Fn(OrchestrationContext, String) -> F + Send + Sync + 'static,
        F: Future<Output = Outcome> + Send + 'static,
    {
        let mut execution = self.replayed_by(&boxed(handler));
        let turn = execution.turn(self.now_ms + 1_000, vec![]);
        let mismatch = execution.mismatch().cloned();
        (turn, mismatch.expect("the code and its history part"))
    }

    pub(crate) fn verify_changed<H, F>(&self, handler: H) -> Result<(), Mismatch>
    where
        H: Fn(OrchestrationContext, String) -> F + Send + Sync + 'static,
        F: Future<Output = Outcome> + Send + 'static,
    {
        let handler = boxed(handler);
        verify(self.setup.clone(), self.history.clone(), move |ctx, input| handler(ctx, input))
    }

    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    fn replayed_by(&self, handler: &Handler) -> Execution {
        let handler = Arc::clone(handler);
        Execution::replay(self.setup.clone(), self.history.clone(), move |ctx, input| handler(ctx, input))
    }

    fn fresh(&self) -> Execution {
        let handler = Arc::clone(&self.handler);
        Execution::start(self.setup.clone(), self.start.clone(), move |ctx, input| handler(ctx, input))
    }

    /// Ids rise, and there is at most one terminal event.
    fn check_shape(&self) {
        assert!(self.history.is_sorted_by(|a, b| a.event_id < b.event_id), "{:#?}", lines(&self.history));
        assert!(self.history.iter().filter(|event| event.is_terminal()).count() <= 1);
    }

    /// The code repeats its own end, unless the end is that it does not.
    fn check_end(&self, verdict: &Verdict) {
        if matches!(verdict, Verdict::Failed { details: ErrorDetails::Configuration { .. } }) {
            return;
        }
        let handler = Arc::clone(&self.handler);
        let verified =
            verify(self.setup.clone(), self.history.clone(), move |ctx, input| handler(ctx, input));
        assert_eq!(verified, Ok(()), "{:#?}", lines(&self.history));
        let again = self.replayed().turn(self.now_ms, vec![raise("late", "")]);
        assert_eq!((again.verdict, again.events), (Verdict::Ended, vec![]), "what has ended stays as it is");
    }
}

pub(crate) fn failure_of(turn: &Turn) -> ErrorDetails {
    match &turn.verdict {
        Verdict::Failed { details } => details.clone(),
        other => panic!("not failed: {other:?}"),
    }
}

/// Asserts that a text has a part, and shows both.
#[track_caller]
pub(crate) fn assert_has(text: &str, part: &str) {
    assert!(text.contains(part), "no {part:?} in {text:?}");
}

// --- arrivals

pub(crate) fn done(id: u64, result: &str) -> WorkItem {
    WorkItem::ActivityCompleted { instance: INSTANCE.into(), execution_id: 1, id, result: result.into() }
}

pub(crate) fn failed(id: u64, message: &str) -> WorkItem {
    failed_with(id, app_error(AppErrorKind::ActivityFailed, message))
}

pub(crate) fn failed_with(id: u64, details: ErrorDetails) -> WorkItem {
    WorkItem::ActivityFailed { instance: INSTANCE.into(), execution_id: 1, id, details }
}

pub(crate) fn fired(id: u64) -> WorkItem {
    fired_at(id, 0)
}

pub(crate) fn fired_at(id: u64, fire_at_ms: u64) -> WorkItem {
    WorkItem::TimerFired { instance: INSTANCE.into(), execution_id: 1, id, fire_at_ms }
}

pub(crate) fn child_done(parent_id: u64, result: &str) -> WorkItem {
    WorkItem::SubOrchCompleted {
        parent_instance: INSTANCE.into(),
        parent_execution_id: 1,
        parent_id,
        result: result.into(),
    }
}

pub(crate) fn child_failed(parent_id: u64, details: ErrorDetails) -> WorkItem {
    WorkItem::SubOrchFailed { parent_instance: INSTANCE.into(), parent_execution_id: 1, parent_id, details }
}

pub(crate) fn raise(name: &str, data: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: INSTANCE.into(), name: name.into(), data: data.into() }
}

pub(crate) fn enqueue(name: &str, data: &str) -> WorkItem {
    WorkItem::QueueMessage { instance: INSTANCE.into(), name: name.into(), data: data.into() }
}

pub(crate) fn cancel(reason: &str) -> WorkItem {
    WorkItem::CancelInstance { instance: INSTANCE.into(), reason: reason.into() }
}

pub(crate) fn migrated(session_id: &str, epoch: u64) -> WorkItem {
    WorkItem::SessionMigrated {
        instance: INSTANCE.into(),
        execution_id: 1,
        session_id: session_id.into(),
        epoch,
        from: Some("a".into()),
        to: "b".into(),
    }
}

// --- recorded errors

pub(crate) fn app_error(kind: AppErrorKind, message: &str) -> ErrorDetails {
    ErrorDetails::Application { kind, message: message.into(), retryable: false }
}

pub(crate) fn own_error(message: &str) -> ErrorDetails {
    app_error(AppErrorKind::OrchestrationFailed, message)
}

pub(crate) fn infrastructure(message: &str) -> ErrorDetails {
    ErrorDetails::Infrastructure { operation: "store".into(), message: message.into(), retryable: false }
}

// --- histories made by hand

/// Makes a history of these kinds, numbered from 1, stamped by this build.
pub(crate) fn history(kinds: impl IntoIterator<Item = (Option<u64>, EventKind)>) -> Vec<Event> {
    let event = |(index, (source, kind))| Event::at(1_000, index, INSTANCE, 1, source, kind);
    (1u64..).zip(kinds).map(event).collect()
}

pub(crate) fn started(input: &str) -> (Option<u64>, EventKind) {
    let kind = EventKind::OrchestrationStarted {
        name: "Test".into(),
        version: "1.0.0".into(),
        input: input.into(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    (None, kind)
}

pub(crate) fn scheduled(name: &str, input: &str) -> (Option<u64>, EventKind) {
    let (name, input) = (name.into(), input.into());
    (None, EventKind::ActivityScheduled { name, input, session_id: None, tag: None })
}

pub(crate) fn completed(source: u64, result: &str) -> (Option<u64>, EventKind) {
    (Some(source), EventKind::ActivityCompleted { result: result.into() })
}

/// Stamps every event as the engine we are compatible with would.
pub(crate) fn stamped(mut events: Vec<Event>, version: &str) -> Vec<Event> {
    for event in &mut events {
        event.duroxide_version = version.into();
    }
    events
}

/// Replays a history and runs an empty turn.
pub(crate) fn replay_once<H, F>(history: Vec<Event>, handler: H) -> Turn
where
    H: Fn(OrchestrationContext, String) -> F + Send + Sync + 'static,
    F: Future<Output = Outcome> + Send + 'static,
{
    Execution::replay(setup(), history, handler).turn(9_000, vec![])
}

// --- texts for comparison

/// One short line for each event: id, kind, what matters of it, and its source.
pub(crate) fn lines(events: &[Event]) -> Vec<String> {
    events.iter().map(line).collect()
}

fn line(event: &Event) -> String {
    let source = event.source_event_id.map(|id| format!(" of {id}")).unwrap_or_default();
    format!("{} {}{source}", event.event_id, what(&event.kind))
}

fn what(kind: &EventKind) -> String {
    match kind {
        EventKind::OrchestrationStarted { input, .. } => format!("Started({input})"),
        EventKind::OrchestrationCompleted { output } => format!("Completed({output})"),
        EventKind::OrchestrationFailed { details } => format!("Failed({})", details.display_message()),
        EventKind::OrchestrationContinuedAsNew { input } => format!("ContinuedAsNew({input})"),
        EventKind::OrchestrationCancelRequested { reason } => format!("CancelRequested({reason})"),
        EventKind::ActivityScheduled { name, input, .. } => format!("ActivityScheduled({name}, {input})"),
        EventKind::ActivityCompleted { result } => format!("ActivityCompleted({result})"),
        EventKind::ActivityFailed { details } => format!("ActivityFailed({})", details.display_message()),
        EventKind::ActivityCancelRequested { reason } => format!("ActivityCancelRequested({reason})"),
        EventKind::TimerCreated { fire_at_ms } => format!("TimerCreated({fire_at_ms})"),
        EventKind::TimerFired { .. } => "TimerFired".into(),
        EventKind::ExternalSubscribed { name } => format!("ExternalSubscribed({name})"),
        EventKind::ExternalEvent { name, data } => format!("ExternalEvent({name}, {data})"),
        EventKind::ExternalSubscribedCancelled { reason } => format!("ExternalSubscribedCancelled({reason})"),
        EventKind::QueueSubscribed { name } => format!("QueueSubscribed({name})"),
        EventKind::QueueEventDelivered { name, data } => format!("QueueEventDelivered({name}, {data})"),
        EventKind::QueueSubscriptionCancelled { reason } => format!("QueueSubscriptionCancelled({reason})"),
        EventKind::OrchestrationChained { name, instance, input } => {
            format!("OrchestrationChained({name}, {instance}, {input})")
        }
        EventKind::SubOrchestrationScheduled { name, instance, input } => {
            format!("SubOrchestrationScheduled({name}, {instance}, {input})")
        }
        EventKind::SubOrchestrationCompleted { result } => format!("SubOrchestrationCompleted({result})"),
        EventKind::SubOrchestrationFailed { details } => {
            format!("SubOrchestrationFailed({})", details.display_message())
        }
        EventKind::SubOrchestrationCancelRequested { reason } => {
            format!("SubOrchestrationCancelRequested({reason})")
        }
        EventKind::CustomStatusUpdated { status } => format!("CustomStatusUpdated({status:?})"),
        EventKind::KeyValueSet { key, value, .. } => format!("KeyValueSet({key}, {value})"),
        EventKind::KeyValueCleared { key } => format!("KeyValueCleared({key})"),
        EventKind::KeyValuesCleared => "KeyValuesCleared".into(),
        EventKind::SessionOpened { session_id, .. } => format!("SessionOpened({session_id})"),
        EventKind::SessionClosed { session_id } => format!("SessionClosed({session_id})"),
        EventKind::SessionMigrated { session_id, epoch, .. } => {
            format!("SessionMigrated({session_id}, {epoch})")
        }
        EventKind::SessionsCarried { sessions } => {
            let ids: Vec<_> = sessions.iter().map(|session| session.session_id.as_str()).collect();
            format!("SessionsCarried({})", ids.join(", "))
        }
    }
}

/// One short line for each thing that a turn sends, queued work first.
pub(crate) fn sent(turn: &Turn) -> Vec<String> {
    let work = turn.effects.work.iter().map(|work| match &work.item {
        WorkItem::ActivityExecute { id, name, input, .. } => {
            let session = work.session.as_ref().map(|key| format!(" on {}", scope(key))).unwrap_or_default();
            format!("work {id} {name}({input}){session}")
        }
        other => panic!("queued for a worker: {other:?}"),
    });
    work.chain(turn.effects.messages.iter().map(message)).collect()
}

fn scope(key: &SessionKey) -> String {
    match &key.instance {
        Some(instance) => format!("{instance}/{}", key.session_id),
        None => key.session_id.clone(),
    }
}

fn message(item: &WorkItem) -> String {
    match item {
        WorkItem::TimerFired { id, fire_at_ms, .. } => format!("timer {id} at {fire_at_ms}"),
        WorkItem::StartOrchestration { instance, orchestration, input, parent_id, .. } => match parent_id {
            Some(id) => format!("start {instance} {orchestration}({input}) for {id}"),
            None => format!("start {instance} {orchestration}({input})"),
        },
        WorkItem::CancelInstance { instance, reason } => format!("cancel {instance}: {reason}"),
        WorkItem::ContinueAsNew { input, .. } => format!("continue({input})"),
        WorkItem::ContinueAsNewWithSessions { input, .. } => format!("continue with sessions({input})"),
        WorkItem::QueueMessage { name, data, .. } => format!("enqueue {name}: {data}"),
        other => panic!("nothing that a turn sends: {other:?}"),
    }
}

/// The ids of the activities that a turn withdraws.
pub(crate) fn withdrawn(turn: &Turn) -> Vec<u64> {
    turn.effects.cancelled_activities.iter().map(|activity| activity.activity_id).collect()
}

pub(crate) fn early_events(turn: &Turn) -> Vec<&str> {
    turn.notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::EarlyEvent { name } => Some(name.as_str()),
            _ => None,
        })
        .collect()
}
