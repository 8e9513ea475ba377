//! Every public path, signature, derive and field set that the compatible API names, in code that compiles only while
//! they are there. Little of it needs to run.

#![allow(
    dead_code,
    unused_imports,
    deprecated,
    clippy::expect_used,
    clippy::let_underscore_future,
    clippy::let_underscore_must_use,
    clippy::type_complexity,
    clippy::too_many_arguments,
    reason = "names and shapes are the subject; what a test relies on, it panics without"
)]

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use semver::Version;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The root, with every name on its own, so that a missing one is named by the compiler.
mod root {
    pub(crate) use steadfast::{
        Action, ActivityContext, AppErrorKind, BackoffStrategy, Client, ClientError, CompletionResult,
        ConfigErrorKind, DeleteInstanceResult, DispatcherCapabilityFilter, DurableFuture, Either2, Either3,
        ErrorDetails, Event, EventKind, ExecutionInfo, INITIAL_EVENT_ID, INITIAL_EXECUTION_ID,
        InstanceFilter, InstanceInfo, InstanceTree, OrchestrationContext, OrchestrationDescriptor,
        OrchestrationHandler, OrchestrationHandlerRef, OrchestrationRegistry, OrchestrationRegistryBuilder,
        OrchestrationStatus, PoisonMessageType, ProviderAdmin, ProviderRef, PruneOptions, PruneResult,
        QueueDepths, RetryPolicy, RuntimeOptions, SUB_ORCH_AUTO_PREFIX, ScheduleKind,
        ScheduledActivityIdentifier, SemverRange, SessionFetchConfig, SystemMetrics, SystemStats, TagFilter,
        build_child_instance_id, current_build_version, is_auto_generated_sub_orch_id,
    };
}

mod paths {
    pub(crate) use steadfast::client::{Client, ClientError};
    pub(crate) use steadfast::providers::error::ProviderError as ErrorOfModule;
    pub(crate) use steadfast::providers::instrumented::InstrumentedProvider;
    pub(crate) use steadfast::providers::{
        DispatcherCapabilityFilter, ExecutionMetadata, KvEntry, MAX_WORKER_TAGS, OrchestrationItem, Provider,
        ProviderError, ScheduledActivityIdentifier, SemverRange, SessionFetchConfig, TagFilter, WorkItem,
        current_build_version,
    };
    pub(crate) use steadfast::runtime::limits::{
        MAX_CARRY_FORWARD_EVENTS, MAX_CUSTOM_STATUS_BYTES, MAX_KV_KEYS, MAX_KV_VALUE_BYTES,
        MAX_TAG_NAME_BYTES, MAX_WORKER_TAGS as MAX_TAGS,
    };
    pub(crate) use steadfast::runtime::observability::{
        LogFormat, MetricsProvider, MetricsSnapshot, ObservabilityConfig, ObservabilityHandle,
    };
    pub(crate) use steadfast::runtime::registry::{
        ActivityRegistry, ActivityRegistryBuilder, OrchestrationRegistry, OrchestrationRegistryBuilder,
        Registry, RegistryBuilder, VersionPolicy,
    };
    pub(crate) use steadfast::runtime::{
        ActivityHandler, FnActivity, FnOrchestration, OrchestrationDescriptor, OrchestrationHandler,
        OrchestrationStatus, Runtime, RuntimeOptions, UnregisteredBackoffConfig, kind_of,
    };
}

/// Names that are reachable by a second path.
mod again {
    pub(crate) mod providers {
        pub(crate) use steadfast::providers::{
            DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree, ProviderAdmin,
            PruneOptions, PruneResult, QueueDepths, SystemMetrics,
        };
    }
    pub(crate) mod management {
        pub(crate) use steadfast::providers::management::{
            DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree, ProviderAdmin,
            PruneOptions, PruneResult, QueueDepths, SystemMetrics,
        };
    }
    pub(crate) mod runtime {
        pub(crate) use steadfast::runtime::{
            LogFormat, ObservabilityConfig, OrchestrationRegistry, OrchestrationRegistryBuilder,
            VersionPolicy,
        };
    }
}

use paths::{
    ActivityHandler, ActivityRegistry, ActivityRegistryBuilder, ExecutionMetadata, FnActivity,
    FnOrchestration, InstrumentedProvider, KvEntry, LogFormat, MetricsProvider, MetricsSnapshot,
    ObservabilityConfig, ObservabilityHandle, OrchestrationItem, Provider, ProviderError, Registry,
    RegistryBuilder, Runtime, UnregisteredBackoffConfig, VersionPolicy, WorkItem, kind_of,
};
use root::*;

fn send_sync<T: Send + Sync + ?Sized>() {}
fn unpin<T: Unpin>() {}
fn debug_clone<T: std::fmt::Debug + Clone>() {}
fn default<T: Default>() {}
fn eq<T: PartialEq + Eq>() {}
fn partial_eq<T: PartialEq>() {}
fn wire<T: std::fmt::Debug + Clone + Serialize + DeserializeOwned + PartialEq + Eq>() {}
fn error<T: std::error::Error + std::fmt::Debug + Clone + Send + Sync + 'static>() {}
fn future<T>(_: &(impl Future<Output = T> + Send)) {}

#[test]
fn derives() {
    wire::<Event>();
    wire::<EventKind>();
    wire::<ErrorDetails>();
    wire::<PoisonMessageType>();
    wire::<ConfigErrorKind>();
    wire::<AppErrorKind>();
    wire::<WorkItem>();
    debug_clone::<ScheduleKind>();
    debug_clone::<Either2<u8, String>>();
    eq::<Either2<u8, String>>();
    debug_clone::<Either3<u8, String, ()>>();
    eq::<Either3<u8, String, ()>>();
    debug_clone::<SystemStats>();
    partial_eq::<SystemStats>();
    debug_clone::<CompletionResult>();
    debug_clone::<Action>();
    debug_clone::<RetryPolicy>();
    default::<RetryPolicy>();
    debug_clone::<BackoffStrategy>();
    default::<BackoffStrategy>();
    error::<ClientError>();
    error::<ProviderError>();
    eq::<ProviderError>();
    debug_clone::<OrchestrationStatus>();
    eq::<OrchestrationStatus>();
    debug_clone::<OrchestrationDescriptor>();
    eq::<OrchestrationDescriptor>();
    debug_clone::<UnregisteredBackoffConfig>();
    default::<UnregisteredBackoffConfig>();
    debug_clone::<RuntimeOptions>();
    default::<RuntimeOptions>();
    debug_clone::<VersionPolicy>();
    debug_clone::<LogFormat>();
    eq::<LogFormat>();
    default::<LogFormat>();
    debug_clone::<ObservabilityConfig>();
    default::<ObservabilityConfig>();
    debug_clone::<MetricsSnapshot>();
    eq::<MetricsSnapshot>();
    default::<MetricsSnapshot>();
    debug_clone::<TagFilter>();
    eq::<TagFilter>();
    default::<TagFilter>();
    debug_clone::<SemverRange>();
    eq::<SemverRange>();
    debug_clone::<DispatcherCapabilityFilter>();
    debug_clone::<ScheduledActivityIdentifier>();
    eq::<ScheduledActivityIdentifier>();
    debug_clone::<SessionFetchConfig>();
    debug_clone::<KvEntry>();
    partial_eq::<KvEntry>();
    debug_clone::<OrchestrationItem>();
    debug_clone::<ExecutionMetadata>();
    default::<ExecutionMetadata>();
    debug_clone::<InstanceInfo>();
    debug_clone::<ExecutionInfo>();
    debug_clone::<SystemMetrics>();
    default::<SystemMetrics>();
    debug_clone::<QueueDepths>();
    default::<QueueDepths>();
    debug_clone::<InstanceFilter>();
    default::<InstanceFilter>();
    debug_clone::<PruneOptions>();
    default::<PruneOptions>();
    debug_clone::<DeleteInstanceResult>();
    default::<DeleteInstanceResult>();
    debug_clone::<PruneResult>();
    default::<PruneResult>();
    debug_clone::<InstanceTree>();
    debug_clone::<ActivityContext>();
    default::<OrchestrationRegistry>();
    default::<ActivityRegistry>();
}

#[test]
fn threads() {
    send_sync::<OrchestrationContext>();
    send_sync::<ActivityContext>();
    send_sync::<Client>();
    send_sync::<Runtime>();
    send_sync::<RuntimeOptions>();
    send_sync::<OrchestrationRegistry>();
    send_sync::<ActivityRegistry>();
    send_sync::<dyn Provider>();
    send_sync::<dyn ProviderAdmin>();
    send_sync::<dyn OrchestrationHandler>();
    send_sync::<dyn ActivityHandler>();
    unpin::<DurableFuture<std::marker::PhantomPinned>>();
}

#[test]
fn constants_and_free_functions() {
    let ids: [u64; 2] = [INITIAL_EXECUTION_ID, INITIAL_EVENT_ID];
    assert_eq!((ids, SUB_ORCH_AUTO_PREFIX), ([1, 1], "sub::"));
    let _: fn(&str) -> bool = is_auto_generated_sub_orch_id;
    let _: fn(&str, &str) -> String = build_child_instance_id;
    let _: fn() -> Version = current_build_version;
    let _: fn(&WorkItem) -> &'static str = kind_of;
    let limits: [usize; 7] = [
        paths::MAX_CARRY_FORWARD_EVENTS,
        paths::MAX_CUSTOM_STATUS_BYTES,
        paths::MAX_WORKER_TAGS,
        paths::MAX_TAGS,
        paths::MAX_TAG_NAME_BYTES,
        paths::MAX_KV_KEYS,
        paths::MAX_KV_VALUE_BYTES,
    ];
    assert_eq!(limits, [100, 262_144, 5, 5, 256, 150, 65_536]);
    #[cfg(feature = "logging")]
    let _: fn(&ObservabilityConfig) -> Result<(), String> = steadfast::runtime::observability::init_logging;
}

#[test]
fn events() {
    let _: fn(&Event) -> u64 = Event::event_id;
    let _: fn(&Event) -> Option<u64> = Event::source_event_id;
    let _: fn(&Event) -> bool = Event::is_terminal;
    let unnumbered = Event::new(String::from("i"), 1, None, EventKind::KeyValuesCleared);
    assert_eq!(unnumbered.event_id(), 0);
    let event = Event::with_event_id(3, "i", 1, Some(2), EventKind::TimerFired { fire_at_ms: 4 });
    let (_, _, _, _, _, _, _): (u64, Option<u64>, String, u64, u64, String, EventKind) = (
        event.event_id,
        event.source_event_id,
        event.instance_id,
        event.execution_id,
        event.timestamp_ms,
        event.duroxide_version,
        event.kind,
    );
}

fn fields_of_event_kind(kind: EventKind) {
    match kind {
        EventKind::OrchestrationStarted {
            name: _,
            version: _,
            input: _,
            parent_instance: _,
            parent_id: _,
            parent_execution_id: _,
            carry_forward_events,
            initial_custom_status: _,
        } => drop::<Option<Vec<(String, String)>>>(carry_forward_events),
        EventKind::OrchestrationCompleted { output: _ } => {}
        EventKind::OrchestrationFailed { details: _ } => {}
        EventKind::ActivityScheduled { name: _, input: _, session_id: _, tag: _ } => {}
        EventKind::ActivityCompleted { result: _ } => {}
        EventKind::ActivityFailed { details: _ } => {}
        EventKind::ActivityCancelRequested { reason: _ } => {}
        EventKind::TimerCreated { fire_at_ms: _ } => {}
        EventKind::TimerFired { fire_at_ms: _ } => {}
        EventKind::ExternalSubscribed { name: _ } => {}
        EventKind::ExternalEvent { name: _, data: _ } => {}
        EventKind::OrchestrationChained { name: _, instance: _, input: _ } => {}
        EventKind::SubOrchestrationScheduled { name: _, instance: _, input: _ } => {}
        EventKind::SubOrchestrationCompleted { result: _ } => {}
        EventKind::SubOrchestrationFailed { details: _ } => {}
        EventKind::SubOrchestrationCancelRequested { reason: _ } => {}
        EventKind::OrchestrationContinuedAsNew { input: _ } => {}
        EventKind::OrchestrationCancelRequested { reason: _ } => {}
        EventKind::ExternalSubscribedCancelled { reason: _ } => {}
        EventKind::QueueSubscribed { name: _ } => {}
        EventKind::QueueEventDelivered { name: _, data: _ } => {}
        EventKind::QueueSubscriptionCancelled { reason: _ } => {}
        EventKind::CustomStatusUpdated { status } => drop::<Option<String>>(status),
        EventKind::KeyValueSet { key: _, value: _, last_updated_at_ms: _ } => {}
        EventKind::KeyValueCleared { key: _ } => {}
        EventKind::KeyValuesCleared => {}
        #[allow(unreachable_patterns, reason = "new kinds are allowed, new fields are not")]
        _ => {}
    }
}

fn fields_of_work_item(item: WorkItem) {
    match item {
        WorkItem::StartOrchestration {
            instance: _,
            orchestration: _,
            input: _,
            version: _,
            parent_instance: _,
            parent_id: _,
            parent_execution_id: _,
            execution_id: _,
        } => {}
        WorkItem::ActivityExecute {
            instance: _,
            execution_id: _,
            id: _,
            name: _,
            input: _,
            session_id: _,
            tag: _,
        } => {}
        WorkItem::ActivityCompleted { instance: _, execution_id: _, id: _, result: _ } => {}
        WorkItem::ActivityFailed { instance: _, execution_id: _, id: _, details: _ } => {}
        WorkItem::TimerFired { instance: _, execution_id: _, id: _, fire_at_ms: _ } => {}
        WorkItem::ExternalRaised { instance: _, name: _, data: _ } => {}
        WorkItem::QueueMessage { instance: _, name: _, data: _ } => {}
        WorkItem::CancelInstance { instance: _, reason: _ } => {}
        WorkItem::SubOrchCompleted {
            parent_instance: _,
            parent_execution_id: _,
            parent_id: _,
            result: _,
        } => {}
        WorkItem::SubOrchFailed { parent_instance: _, parent_execution_id: _, parent_id: _, details: _ } => {}
        WorkItem::ContinueAsNew {
            instance: _,
            orchestration: _,
            input: _,
            version: _,
            parent_instance: _,
            parent_id: _,
            parent_execution_id: _,
            carry_forward_events: _,
            initial_custom_status: _,
        } => {}
        #[allow(unreachable_patterns, reason = "new kinds are allowed, new fields are not")]
        _ => {}
    }
}

fn fields_of_errors(details: ErrorDetails) {
    match details {
        ErrorDetails::Infrastructure { operation: _, message: _, retryable: _ } => {}
        ErrorDetails::Configuration { kind: ConfigErrorKind::Nondeterminism, resource: _, message } => {
            drop::<Option<String>>(message);
        }
        ErrorDetails::Application { kind, message: _, retryable: _ } => match kind {
            AppErrorKind::ActivityFailed | AppErrorKind::OrchestrationFailed | AppErrorKind::Panicked => {}
            AppErrorKind::Cancelled { reason: _ } => {}
            #[allow(unreachable_patterns, reason = "new kinds are allowed, new fields are not")]
            _ => {}
        },
        ErrorDetails::Poison { attempt_count: _, max_attempts: _, message_type, message: _ } => {
            match message_type {
                PoisonMessageType::Orchestration { instance: _, execution_id: _ } => {}
                PoisonMessageType::Activity {
                    instance: _,
                    execution_id: _,
                    activity_name: _,
                    activity_id: _,
                } => {}
                PoisonMessageType::FailedDeserialization { instance: _, execution_id: _, error: _ } => {}
            }
        }
        #[allow(unreachable_patterns, reason = "new kinds are allowed, new fields are not")]
        _ => {}
    }
}

fn fields_of_actions(action: Action) {
    match action {
        Action::CallActivity { scheduling_event_id: _, name: _, input: _, session_id: _, tag: _ } => {}
        Action::CreateTimer { scheduling_event_id: _, fire_at_ms: _ } => {}
        Action::WaitExternal { scheduling_event_id: _, name: _ } => {}
        Action::StartOrchestrationDetached {
            scheduling_event_id: _,
            name: _,
            version: _,
            instance: _,
            input: _,
        } => {}
        Action::StartSubOrchestration {
            scheduling_event_id: _,
            name: _,
            version: _,
            instance: _,
            input: _,
        } => {}
        Action::ContinueAsNew { input: _, version: _ } => {}
        Action::UpdateCustomStatus { status: _ } => {}
        Action::DequeueEvent { scheduling_event_id: _, name: _ } => {}
        Action::SetKeyValue { key: _, value: _, last_updated_at_ms: _ } => {}
        Action::ClearKeyValue { key: _ } => {}
        Action::ClearKeyValues => {}
        #[allow(unreachable_patterns, reason = "new kinds are allowed, new fields are not")]
        _ => {}
    }
}

/// No `..` and no `_`: these have exactly the variants and fields that are written here.
fn closed_enums(status: OrchestrationStatus, backoff: BackoffStrategy, kind: ScheduleKind) {
    match status {
        OrchestrationStatus::NotFound => {}
        OrchestrationStatus::Running { custom_status: _, custom_status_version: _ } => {}
        OrchestrationStatus::Completed { output: _, custom_status: _, custom_status_version: _ } => {}
        OrchestrationStatus::Failed { details: _, custom_status: _, custom_status_version: _ } => {}
    }
    match backoff {
        BackoffStrategy::None => {}
        BackoffStrategy::Fixed { delay: _ } => {}
        BackoffStrategy::Linear { base: _, max: _ } => {}
        BackoffStrategy::Exponential { base: _, multiplier: _, max: _ } => {}
    }
    match kind {
        ScheduleKind::Activity { name: _ } => {}
        ScheduleKind::Timer => {}
        ScheduleKind::ExternalWait { event_name: _ } => {}
        ScheduleKind::QueueDequeue { event_name: _ } => {}
        ScheduleKind::SubOrchestration { token: _ } => {}
    }
}

fn more_enums(tags: TagFilter, policy: VersionPolicy, format: LogFormat, completion: CompletionResult) {
    match tags {
        TagFilter::DefaultOnly | TagFilter::Any | TagFilter::None => {}
        TagFilter::Tags(tags) | TagFilter::DefaultAnd(tags) => drop::<HashSet<String>>(tags),
    }
    match policy {
        VersionPolicy::Latest => {}
        VersionPolicy::Exact(version) => drop::<Version>(version),
    }
    match format {
        LogFormat::Json | LogFormat::Pretty | LogFormat::Compact => {}
    }
    match completion {
        CompletionResult::ActivityOk(text)
        | CompletionResult::ActivityErr(text)
        | CompletionResult::SubOrchOk(text)
        | CompletionResult::SubOrchErr(text)
        | CompletionResult::ExternalData(text) => drop::<String>(text),
        CompletionResult::TimerFired => {}
    }
}

fn client_errors(error: ClientError) {
    match error {
        ClientError::Provider(error) => drop::<ProviderError>(error),
        ClientError::ManagementNotAvailable | ClientError::Timeout => {}
        ClientError::InvalidInput { message: _ } => {}
        ClientError::InstanceStillRunning { instance_id: _ } => {}
        ClientError::CannotDeleteSubOrchestration { instance_id: _ } => {}
        ClientError::InstanceNotFound { instance_id: _ } => {}
    }
}

#[test]
fn literals() {
    let _ = OrchestrationDescriptor {
        name: String::new(),
        version: String::new(),
        parent_instance: None,
        parent_id: None::<u64>,
    };
    let policy = RetryPolicy { max_attempts: 3, backoff: BackoffStrategy::default(), timeout: None };
    let _: Duration = policy.delay_for_attempt(1);
    let _ = SystemStats {
        history_event_count: 0,
        history_size_bytes: 0,
        queue_pending_count: 0,
        kv_user_key_count: 0,
        kv_total_value_bytes: 0,
    };
    let _ = SemverRange { min: Version::new(0, 1, 0), max: Version::new(0, 2, 0) };
    let range = SemverRange::new(Version::new(0, 1, 0), Version::new(0, 2, 0));
    let _: bool = range.contains(&Version::new(0, 1, 5));
    let _: SemverRange = SemverRange::default_for_current_build();
    let filter = DispatcherCapabilityFilter { supported_duroxide_versions: vec![range] };
    let _: bool = filter.is_compatible(&Version::new(0, 1, 5));
    let _: DispatcherCapabilityFilter = DispatcherCapabilityFilter::default_for_current_build();
    let _ = ScheduledActivityIdentifier { instance: String::new(), execution_id: 1_u64, activity_id: 2_u64 };
    let _ = SessionFetchConfig { owner_id: String::new(), lock_timeout: Duration::ZERO };
    let _ = KvEntry { value: String::new(), last_updated_at_ms: 0_u64 };
    let _ = OrchestrationItem {
        instance: String::new(),
        orchestration_name: String::new(),
        execution_id: 1,
        version: String::new(),
        history: Vec::<Event>::new(),
        messages: Vec::<WorkItem>::new(),
        history_error: None,
        kv_snapshot: HashMap::<String, KvEntry>::new(),
    };
    let _ = ExecutionMetadata {
        status: None::<String>,
        output: None::<String>,
        orchestration_name: None::<String>,
        orchestration_version: None::<String>,
        parent_instance_id: None::<String>,
        pinned_duroxide_version: None::<Version>,
    };
}

#[test]
fn literals_of_management() {
    let _ = InstanceFilter {
        instance_ids: None::<Vec<String>>,
        completed_before: None::<u64>,
        limit: None::<u32>,
    };
    let _ = PruneOptions { keep_last: None::<u32>, completed_before: None::<u64> };
    let _ = SystemMetrics {
        total_instances: 0,
        total_executions: 0,
        running_instances: 0,
        completed_instances: 0,
        failed_instances: 0,
        total_events: 0_u64,
    };
    let _ = QueueDepths { orchestrator_queue: 0, worker_queue: 0, timer_queue: 0_usize };
    let _ = DeleteInstanceResult {
        instances_deleted: 0,
        executions_deleted: 0,
        events_deleted: 0,
        queue_messages_deleted: 0_u64,
    };
    let _ = PruneResult { instances_processed: 0, executions_deleted: 0, events_deleted: 0_u64 };
    let tree = InstanceTree { root_id: "r".to_owned(), all_ids: vec!["r".to_owned()] };
    let _: (bool, usize) = (tree.is_root_only(), tree.size());
    let _ = InstanceInfo {
        instance_id: String::new(),
        orchestration_name: String::new(),
        orchestration_version: String::new(),
        current_execution_id: 1,
        status: String::new(),
        output: None,
        created_at: 0,
        updated_at: 0,
        parent_instance_id: None,
    };
    let _ = ExecutionInfo {
        execution_id: 1,
        status: String::new(),
        output: None,
        started_at: 0,
        completed_at: None,
        event_count: 0_usize,
    };
}

#[test]
fn literals_of_the_runtime() {
    let backoff = UnregisteredBackoffConfig { base_delay: Duration::ZERO, max_delay: Duration::ZERO };
    let _: Duration = backoff.delay(1_u32);
    let _ = MetricsSnapshot {
        orch_starts: 0,
        orch_completions: 0,
        orch_failures: 0,
        orch_application_errors: 0,
        orch_infrastructure_errors: 0,
        orch_configuration_errors: 0,
        orch_poison: 0,
        activity_success: 0,
        activity_app_errors: 0,
        activity_infra_errors: 0,
        activity_config_errors: 0,
        activity_poison: 0,
        orch_dispatcher_items_fetched: 0,
        worker_dispatcher_items_fetched: 0,
        orch_continue_as_new: 0,
        suborchestration_calls: 0,
        provider_errors: 0_u64,
    };
}

#[test]
fn options_and_their_defaults() {
    let options = RuntimeOptions {
        dispatcher_min_poll_interval: Duration::from_millis(100),
        dispatcher_long_poll_timeout: Duration::from_secs(30),
        orchestration_concurrency: 2,
        worker_concurrency: 2,
        orchestrator_lock_timeout: Duration::from_secs(5),
        orchestrator_lock_renewal_buffer: Duration::from_secs(2),
        worker_lock_timeout: Duration::from_secs(30),
        worker_lock_renewal_buffer: Duration::from_secs(5),
        observability: ObservabilityConfig {
            log_format: LogFormat::Pretty,
            log_level: "info".to_owned(),
            service_name: "duroxide".to_owned(),
            service_version: None,
            gauge_poll_interval: Duration::from_secs(60),
        },
        unregistered_backoff: UnregisteredBackoffConfig::default(),
        max_attempts: 10,
        activity_cancellation_grace_period: Duration::from_secs(10),
        supported_replay_versions: None,
        session_lock_timeout: Duration::from_secs(30),
        session_lock_renewal_buffer: Duration::from_secs(5),
        session_idle_timeout: Duration::from_secs(300),
        session_cleanup_interval: Duration::from_secs(300),
        max_sessions_per_runtime: 10,
        worker_node_id: None,
        worker_tag_filter: TagFilter::DefaultOnly,
        ..RuntimeOptions::default()
    };
    assert_eq!(format!("{options:?}"), format!("{:?}", RuntimeOptions::default()));
    assert_eq!(UnregisteredBackoffConfig::default().base_delay, Duration::from_secs(1));
    assert_eq!(UnregisteredBackoffConfig::default().max_delay, Duration::from_secs(60));
}

#[test]
fn small_methods() {
    let either: Either2<u8, u8> = Either2::First(1);
    let _: (bool, bool, usize) = (either.is_first(), either.is_second(), either.index());
    let _: (usize, u8) = either.into_tuple();
    let either: Either3<u8, u8, u8> = Either3::Third(1);
    let _: usize = either.index();
    let _: (usize, u8) = either.into_tuple();
    let _: fn(u32) -> RetryPolicy = RetryPolicy::new;
    let _: fn(RetryPolicy, Duration) -> RetryPolicy = RetryPolicy::with_timeout;
    let _: fn(RetryPolicy, Duration) -> RetryPolicy = RetryPolicy::with_total_timeout;
    let _: fn(RetryPolicy, BackoffStrategy) -> RetryPolicy = RetryPolicy::with_backoff;
    let _: fn(&BackoffStrategy, u32) -> Duration = BackoffStrategy::delay_for_attempt;
    let _: fn(&ErrorDetails) -> &'static str = ErrorDetails::category;
    let _: fn(&ErrorDetails) -> bool = ErrorDetails::is_retryable;
    let _: fn(&ErrorDetails) -> String = ErrorDetails::display_message;
    let _: fn(&ClientError) -> bool = ClientError::is_retryable;
    let _: ClientError = ClientError::from(ProviderError::from("text"));
    let _: paths::ErrorOfModule = ProviderError::from(String::new());
    let _: ProviderError = ProviderError::retryable("op", "msg");
    let failure: ProviderError = ProviderError::permanent("op".to_owned(), "msg".to_owned());
    let (_, _, _): (&String, &String, bool) = (&failure.operation, &failure.message, failure.retryable);
    let _: (bool, ErrorDetails) = (failure.is_retryable(), failure.to_infrastructure_error());
    let _: TagFilter = TagFilter::tags(["a"]);
    let _: TagFilter = TagFilter::default_and(vec!["a".to_owned()]);
    let _: [TagFilter; 3] = [TagFilter::default_only(), TagFilter::none(), TagFilter::any()];
    let _: fn(&TagFilter, Option<&str>) -> bool = TagFilter::matches;
}

/// Every method of a context with its result. It is never called.
fn orchestration_context(ctx: OrchestrationContext) {
    type Text = DurableFuture<Result<String, String>>;
    type Number = DurableFuture<Result<u32, String>>;
    let text = String::new();
    let _: String = ctx.instance_id();
    let _: u64 = ctx.execution_id();
    let _: String = ctx.orchestration_name();
    let _: String = ctx.orchestration_version();
    let _: (bool, bool) = (ctx.is_replaying(), ctx.is_logging_enabled());
    let _: Option<String> = ctx.traceparent();
    ctx.trace_info("");
    ctx.trace_warn(&text);
    ctx.trace_error(text.clone());
    ctx.trace_debug("");
    ctx.trace("INFO", text.clone());
    future::<Result<String, String>>(&ctx.new_guid());
    future::<Result<SystemTime, String>>(&ctx.utc_now());
    future::<Result<String, String>>(&ctx.continue_as_new(&text));
    future::<Result<String, String>>(&ctx.continue_as_new_typed(&1));
    future::<Result<String, String>>(&ctx.continue_as_new_versioned("2.0.0", &text));
    let _: Text = ctx.schedule_activity("A", &text);
    let _: Number = ctx.schedule_activity_typed::<u8, u32>("A", &1);
    let _: Text = ctx.schedule_activity_on_session("A", "", "s");
    let _: Number = ctx.schedule_activity_on_session_typed::<u8, u32>("A", &1, &text);
    let policy = RetryPolicy::default;
    future::<Result<String, String>>(&ctx.schedule_activity_with_retry("A", "", policy()));
    future::<Result<u32, String>>(&ctx.schedule_activity_with_retry_typed::<u8, u32>("A", &1, policy()));
    future::<Result<String, String>>(&ctx.schedule_activity_with_retry_on_session("A", "", policy(), "s"));
    future::<Result<u32, String>>(&ctx.schedule_activity_with_retry_on_session_typed::<u8, u32>(
        "A",
        &1,
        policy(),
        "s",
    ));
    let _: DurableFuture<()> = ctx.schedule_timer(Duration::ZERO);
    let _: DurableFuture<String> = ctx.schedule_wait("e");
    let _: DurableFuture<u32> = ctx.schedule_wait_typed::<u32>("e");
    let _: DurableFuture<String> = ctx.dequeue_event("q");
    future::<u32>(&ctx.dequeue_event_typed::<u32>("q"));
    let _: DurableFuture<String> = ctx.schedule_wait_persistent("q");
    future::<u32>(&ctx.schedule_wait_persistent_typed::<u32>("q"));
    let _: Text = ctx.schedule_sub_orchestration("O", &text);
    let _: Text = ctx.schedule_sub_orchestration_with_id("O", "id", "");
    let _: Text = ctx.schedule_sub_orchestration_versioned("O", Some("1.0.0".to_owned()), "");
    let _: Text = ctx.schedule_sub_orchestration_versioned_with_id("O", None, "id", "");
    let _: Number = ctx.schedule_sub_orchestration_typed::<u8, u32>("O", &1);
    let _: Number = ctx.schedule_sub_orchestration_with_id_typed::<u8, u32>("O", "id", &1);
    let () = ctx.schedule_orchestration("O", "id", "");
    let () = ctx.schedule_orchestration_typed::<u8>("O", "id", &1);
    let () = ctx.schedule_orchestration_versioned("O", None, "id", "");
    let () = ctx.schedule_orchestration_versioned_typed::<u8>("O", None, "id", &1);
    ctx.set_custom_status("");
    ctx.reset_custom_status();
    let _: Option<String> = ctx.get_custom_status();
    ctx.set_kv_value("k", &text);
    ctx.set_kv_value_typed("k", &1);
    let _: Option<String> = ctx.get_kv_value("k");
    let _: Result<Option<u32>, String> = ctx.get_kv_value_typed::<u32>("k");
    let _: HashMap<String, String> = ctx.get_kv_all_values();
    let _: Vec<String> = ctx.get_kv_all_keys();
    let _: usize = ctx.get_kv_length();
    let _: Option<SystemStats> = ctx.get_system_stats();
    ctx.clear_kv_value(&text);
    ctx.clear_all_kv_values();
    let _: usize = ctx.prune_kv_values_updated_before(0_u64);
    let _: DurableFuture<Result<Option<String>, String>> = ctx.get_kv_value_from_instance(&text, &text);
    let _: DurableFuture<Result<Option<u32>, String>> = ctx.get_kv_value_from_instance_typed::<u32>("i", "k");
    let timer = || ctx.schedule_timer(Duration::ZERO);
    future::<Vec<()>>(&ctx.join(vec![timer(), timer()]));
    future::<((), ())>(&ctx.join2(timer(), timer()));
    future::<((), (), ())>(&ctx.join3(timer(), timer(), timer()));
    future::<Either2<(), ()>>(&ctx.select2(timer(), timer()));
    future::<Either3<(), (), ()>>(&ctx.select3(timer(), timer(), timer()));
    let _: DurableFuture<usize> = ctx.schedule_activity("A", "").with_tag("t").map(|_| 1_usize).with_tag("u");
}

#[test]
fn orchestration_contexts_can_be_built_and_cloned() {
    let _: fn(Vec<Event>, u64, String, String, String, Option<String>) -> OrchestrationContext =
        OrchestrationContext::new;
    let _: fn(&OrchestrationContext) -> OrchestrationContext = Clone::clone;
    let _: fn(OrchestrationContext) = orchestration_context;
}

fn activity_context(ctx: ActivityContext) {
    let _: (&str, u64) = (ctx.instance_id(), ctx.execution_id());
    let _: [&str; 4] =
        [ctx.orchestration_name(), ctx.orchestration_version(), ctx.activity_name(), ctx.worker_id()];
    let _: [Option<&str>; 3] = [ctx.session_id(), ctx.tag(), ctx.traceparent()];
    ctx.trace_info("");
    ctx.trace_warn(String::new());
    ctx.trace_error("");
    ctx.trace_debug("");
    let _: bool = ctx.is_cancelled();
    future::<()>(&ctx.cancelled());
    let _: tokio_util::sync::CancellationToken = ctx.cancellation_token();
    let _: Client = ctx.get_client();
}

fn client(client: &Client) {
    type Answer<T> = Result<T, ClientError>;
    const WAIT: Duration = Duration::ZERO;
    let text = String::new();
    future::<Answer<()>>(&client.start_orchestration("i", "O", &text));
    future::<Answer<()>>(&client.start_orchestration_versioned("i", "O", "1.0.0", ""));
    future::<Answer<()>>(&client.start_orchestration_typed::<u8>("i", "O", 1));
    future::<Answer<()>>(&client.start_orchestration_versioned_typed::<u8>("i", "O", "1.0.0", 1));
    future::<Answer<()>>(&client.raise_event("i", "e", &text));
    future::<Answer<()>>(&client.raise_event_typed::<u8>("i", "e", &1));
    future::<Answer<()>>(&client.enqueue_event("i", "q", text.clone()));
    future::<Answer<()>>(&client.enqueue_event_typed::<u8>("i", "q", &1));
    future::<Answer<()>>(&client.raise_event_persistent("i", "q", ""));
    future::<Answer<()>>(&client.cancel_instance(&text, "why"));
    future::<Answer<OrchestrationStatus>>(&client.get_orchestration_status(&text));
    future::<Answer<OrchestrationStatus>>(&client.wait_for_orchestration("i", WAIT));
    future::<Answer<Result<u32, String>>>(&client.wait_for_orchestration_typed::<u32>("i", WAIT));
    future::<Answer<OrchestrationStatus>>(&client.wait_for_status_change("i", 0_u64, WAIT, WAIT));
    future::<Answer<Option<String>>>(&client.get_kv_value("i", "k"));
    future::<Answer<Option<u32>>>(&client.get_kv_value_typed::<u32>("i", "k"));
    future::<Answer<HashMap<String, String>>>(&client.get_kv_all_values("i"));
    future::<Answer<String>>(&client.wait_for_kv_value("i", "k", WAIT));
    future::<Answer<u32>>(&client.wait_for_kv_value_typed::<u32>("i", "k", WAIT));
    let _: bool = client.has_management_capability();
    let _: Answer<Client> = client.with_traceparent("00-");
    let _: Answer<Client> = client.with_traceparent(&text);
    future::<Answer<Option<SystemStats>>>(&client.get_orchestration_stats("i"));
    future::<Answer<Vec<String>>>(&client.list_all_instances());
    future::<Answer<Vec<String>>>(&client.list_instances_by_status("Running"));
    future::<Answer<InstanceInfo>>(&client.get_instance_info("i"));
    future::<Answer<ExecutionInfo>>(&client.get_execution_info("i", 1_u64));
    future::<Answer<Vec<u64>>>(&client.list_executions("i"));
    future::<Answer<Vec<Event>>>(&client.read_execution_history("i", 1_u64));
    future::<Answer<SystemMetrics>>(&client.get_system_metrics());
    future::<Answer<QueueDepths>>(&client.get_queue_depths());
    future::<Answer<InstanceTree>>(&client.get_instance_tree("i"));
    future::<Answer<DeleteInstanceResult>>(&client.delete_instance("i", true));
    future::<Answer<DeleteInstanceResult>>(&client.delete_instance_bulk(InstanceFilter::default()));
    future::<Answer<PruneResult>>(&client.prune_executions("i", PruneOptions::default()));
    future::<Answer<PruneResult>>(
        &client.prune_executions_bulk(InstanceFilter::default(), PruneOptions::default()),
    );
}

#[test]
fn clients_are_made_of_a_store_and_cloned() {
    let _: fn(ProviderRef) -> Client = Client::new;
    let _: fn(&Client) -> Client = Clone::clone;
    let _: fn(&Client) = client;
    let _: fn(ActivityContext) = activity_context;
}

fn runtime(store: ProviderRef, activities: ActivityRegistry, orchestrations: OrchestrationRegistry) {
    #[cfg(feature = "sqlite")]
    future::<Arc<Runtime>>(&Runtime::start(activities.clone(), orchestrations.clone()));
    future::<Arc<Runtime>>(&Runtime::start_with_store(
        store.clone(),
        activities.clone(),
        orchestrations.clone(),
    ));
    future::<Arc<Runtime>>(&Runtime::start_with_options(
        store,
        activities,
        orchestrations,
        RuntimeOptions::default(),
    ));
}

fn started(runtime: Arc<Runtime>) {
    let _: Option<MetricsSnapshot> = runtime.metrics_snapshot();
    let _: Option<&ObservabilityHandle> = runtime.observability_handle();
    future::<Option<OrchestrationDescriptor>>(&runtime.get_orchestration_descriptor("i"));
    future::<()>(&runtime.shutdown(Some(0_u64)));
}

#[test]
fn runtimes() {
    let _: fn(ProviderRef, ActivityRegistry, OrchestrationRegistry) = runtime;
    let _: fn(Arc<Runtime>) = started;
}

fn registry<H: ?Sized>(registry: &Registry<H>) {
    let _: Registry<H> = registry.clone();
    let _: RegistryBuilder<H> = Registry::<H>::builder_from(registry);
    let _: Option<(Version, Arc<H>)> = registry.resolve_handler("O");
    let _: Option<Version> = registry.resolve_version("O");
    let _: Option<Arc<H>> = registry.resolve_handler_exact("O", &Version::new(1, 0, 0));
    let () = registry.set_version_policy("O", VersionPolicy::Exact(Version::new(1, 0, 0)));
    let _: Vec<String> = registry.list_names();
    let _: Vec<Version> = registry.list_versions("O");
    let _: (bool, usize) = (registry.has("O"), registry.count());
    let builder: RegistryBuilder<H> = Registry::<H>::builder();
    let built: Result<Registry<H>, String> =
        builder.merge_registry(registry.clone(), "prefix").build_result();
    drop(built);
    let _: Registry<H> = Registry::<H>::builder().build();
}

#[test]
fn registries() {
    let one = |_: OrchestrationContext, input: String| async move { Ok(input) };
    let orchestrations: OrchestrationRegistryBuilder = OrchestrationRegistry::builder()
        .register("O", |_, input| async move { Ok(input) })
        .register_typed::<u8, u16, _, _>("T", |_, n| async move { Ok(u16::from(n)) })
        .register_versioned("O", "2.0.0", |_ctx, _| async { Err("no".to_owned()) })
        .register_versioned_typed::<u8, u16, _, _>("T", String::from("2.0.0"), |_, n| async move {
            Ok(u16::from(n))
        })
        .register_all(vec![("P", one), ("Q", one)])
        .register_all_handlers(vec![("R", one)], |builder, name, f| builder.register(name, f))
        .set_policy("O", VersionPolicy::Latest)
        .merge(OrchestrationRegistry::default());
    registry(&orchestrations.build());
    let one = |_: ActivityContext, input: String| async move { Ok(input) };
    let activities: ActivityRegistryBuilder = ActivityRegistry::builder()
        .register("A", |_, input| async move { Ok(input) })
        .register_typed::<u8, u16, _, _>("T", |_, n| async move { Ok(u16::from(n)) })
        .register_all(vec![("P", one)])
        .merge(ActivityRegistry::default());
    let activities = activities.build();
    let _: ActivityRegistry = ActivityRegistryBuilder::from_registry(&activities).build();
    registry(&activities);
}

struct Own;

#[async_trait::async_trait]
impl OrchestrationHandler for Own {
    async fn invoke(&self, _ctx: OrchestrationContext, input: String) -> Result<String, String> {
        Ok(input)
    }
}

#[async_trait::async_trait]
impl ActivityHandler for Own {
    async fn invoke(&self, _ctx: ActivityContext, input: String) -> Result<String, String> {
        Ok(input)
    }
}

#[test]
fn handlers() {
    let _: OrchestrationHandlerRef = Arc::new(Own);
    let _: Arc<dyn ActivityHandler> = Arc::new(Own);
    let _: OrchestrationHandlerRef =
        Arc::new(FnOrchestration(|_: OrchestrationContext, input: String| async move { Ok(input) }));
    let _: Arc<dyn ActivityHandler> =
        Arc::new(FnActivity(|_: ActivityContext, input: String| async move { Ok(input) }));
}

fn record_everything(metrics: &MetricsProvider) {
    metrics.record_orchestration_start("O", "1.0.0", "client");
    metrics.record_orchestration_completion("O", "1.0.0", "success", 0.5_f64, 1_u64, 2_u64);
    metrics.record_orchestration_failure("O", "1.0.0", "app_error", "application");
    metrics.record_orchestration_application_error();
    metrics.record_orchestration_infrastructure_error();
    metrics.record_orchestration_configuration_error();
    metrics.record_continue_as_new("O", 1_u64);
    metrics.record_activity_execution("A", "success", 0.5_f64, 0_u32, None::<&str>);
    metrics.record_activity_success();
    metrics.record_activity_app_error();
    metrics.record_activity_infra_error();
    metrics.record_activity_config_error();
    metrics.record_orchestration_poison();
    metrics.record_activity_poison();
    metrics.record_suborchestration_call("O", "C", "success");
    metrics.record_suborchestration_duration("O", "C", 0.5_f64, "success");
    metrics.record_provider_operation("read", 0.5_f64, "success");
    metrics.record_provider_error("read", "other");
    metrics.record_orch_dispatcher_items_fetched(1_u64);
    metrics.record_orch_dispatcher_processing_duration(1);
    metrics.record_worker_dispatcher_items_fetched(1_u64);
    metrics.record_worker_dispatcher_execution_duration(1);
    metrics.update_queue_depths(1, 2);
    assert_eq!(metrics.get_queue_depths(), (1_u64, 2_u64));
    metrics.set_active_orchestrations(5_i64);
    metrics.increment_active_orchestrations();
    metrics.decrement_active_orchestrations();
    assert_eq!(metrics.get_active_orchestrations(), 5_i64);
}

#[test]
fn every_recorder_counts_what_it_names() {
    let config = ObservabilityConfig::default();
    let handle: Result<ObservabilityHandle, String> = ObservabilityHandle::init(&config);
    let handle = handle.expect("begins");
    let metrics: &Arc<MetricsProvider> = handle.metrics_provider();
    record_everything(metrics);
    let expected = MetricsSnapshot {
        orch_starts: 1,
        orch_completions: 1,
        orch_failures: 4,
        orch_application_errors: 2,
        orch_infrastructure_errors: 1,
        orch_configuration_errors: 1,
        orch_poison: 1,
        activity_success: 2,
        activity_app_errors: 1,
        activity_infra_errors: 1,
        activity_config_errors: 1,
        activity_poison: 1,
        orch_dispatcher_items_fetched: 1,
        worker_dispatcher_items_fetched: 1,
        orch_continue_as_new: 1,
        suborchestration_calls: 1,
        provider_errors: 1,
    };
    assert_eq!((handle.metrics_snapshot(), metrics.snapshot()), (expected.clone(), expected));
    let own: Result<MetricsProvider, String> = MetricsProvider::new(&config);
    future::<Result<(), String>>(&own.expect("begins").shutdown());
    let ended = handle.shutdown();
    drop(ended);
    let _: fn(ProviderRef, Option<Arc<MetricsProvider>>) -> InstrumentedProvider = InstrumentedProvider::new;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn sqlite() {
    use steadfast::providers::sqlite::{SqliteOptions, SqliteProvider};
    fn fails<T, E: std::error::Error + Send + Sync + 'static>(_: &Result<T, E>) {}
    debug_clone::<SqliteOptions>();
    default::<SqliteOptions>();
    let opened = SqliteProvider::new("sqlite::memory:", Some(SqliteOptions::default())).await;
    fails(&opened);
    opened.expect("opens");
    let store = SqliteProvider::new_in_memory_with_options(None).await.expect("opens");
    fails(&store.checkpoint().await);
    let _: String = store.debug_dump().await;
    let provider: ProviderRef = Arc::new(SqliteProvider::new_in_memory().await.expect("opens"));
    assert_eq!((provider.name(), provider.version()), ("sqlite", env!("CARGO_PKG_VERSION")));
    let wrapped: ProviderRef = Arc::new(InstrumentedProvider::new(provider.clone(), None));
    assert_eq!((wrapped.name(), wrapped.version()), (provider.name(), provider.version()));
    admin(wrapped.as_management_capability().expect("is there")).await.expect("answers");
}

async fn admin(admin: &dyn ProviderAdmin) -> Result<(), ProviderError> {
    let _: Vec<String> = admin.list_instances().await?;
    let _: Vec<String> = admin.list_instances_by_status("Running").await?;
    let _: Vec<u64> = admin.list_executions("i").await?;
    let _: Vec<Event> = admin.read_history_with_execution_id("i", 1).await?;
    let _: Vec<Event> = admin.read_history("i").await?;
    let _: u64 = admin.latest_execution_id("i").await?;
    let unknown: Result<InstanceInfo, ProviderError> = admin.get_instance_info("i").await;
    assert!(unknown.expect_err("is not there").to_string().contains("not found"));
    let unknown: Result<ExecutionInfo, ProviderError> = admin.get_execution_info("i", 1).await;
    assert!(unknown.expect_err("is not there").to_string().contains("not found"));
    let _: SystemMetrics = admin.get_system_metrics().await?;
    let _: QueueDepths = admin.get_queue_depths().await?;
    let _: Vec<String> = admin.list_children("i").await?;
    let unknown: Result<Option<String>, ProviderError> = admin.get_parent_id("i").await;
    assert!(unknown.is_err());
    let _: DeleteInstanceResult = admin.delete_instances_atomic(&[], false).await?;
    let _: InstanceTree = admin.get_instance_tree("i").await?;
    let unknown: Result<DeleteInstanceResult, ProviderError> = admin.delete_instance("i", false).await;
    assert!(unknown.is_err());
    let _: DeleteInstanceResult = admin.delete_instance_bulk(InstanceFilter::default()).await?;
    let unknown: Result<PruneResult, ProviderError> =
        admin.prune_executions("i", PruneOptions::default()).await;
    assert!(unknown.is_err());
    let _: PruneResult =
        admin.prune_executions_bulk(InstanceFilter::default(), PruneOptions::default()).await?;
    Ok(())
}

/// A glob import of the root hides nothing of the prelude, and brings the methods of the management trait.
mod glob {
    use steadfast::*;

    fn prelude(text: Option<String>) -> Result<String, String> {
        let _: Option<DurableFuture<()>> = None;
        text.ok_or_else(String::new)
    }

    async fn methods(admin: &dyn providers::ProviderAdmin) -> usize {
        admin.list_instances().await.map_or(0, |all| all.len())
    }
}
