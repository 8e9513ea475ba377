//! Many orchestrations of every kind at once, through one process, on SQLite: all end as they should, and
//! nothing is left behind in any table (I5, I6, I7, I9).
//!
//! `STEADFAST_LOAD` says how many; 10,000 in a release build is the size that counts.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use rusqlite::Connection;
use steadfast::providers::Provider;
use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::Runtime;
use steadfast::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use steadfast::{
    ActivityContext, AppErrorKind, BackoffStrategy, Client, ErrorDetails, OrchestrationContext,
    OrchestrationStatus, RetryPolicy, RuntimeOptions,
};
use steadfast_clock::{Clock, SystemClock};

/// One of each, and so on in turn.
const KINDS: [&str; 12] = [
    "Chain",
    "Fan",
    "Timer",
    "Event",
    "Queue",
    "Parent",
    "Again",
    "Cancelled",
    "Fails",
    "Retry",
    "Kv",
    "Session",
];

/// Messages that a turn should have taken. A timer of an ended execution stays until its time
/// comes.
const MESSAGES: &str = r#"messages WHERE item NOT LIKE '{"TimerFired":%'"#;

/// How many calls of the client are on their way at a time.
const WIDTH: usize = 64;

/// Bounds everything that is waited for.
const LONG: Duration = Duration::from_secs(600);

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Step", |_, input: String| async move { Ok(input) })
        .register("Flaky", |ctx: ActivityContext, _| async move {
            // The third activity of its orchestration succeeds: schedules are 2, 5 and 8, with a timer
            // between.
            if ctx.activity_id() < 8 { Err("not yet".to_owned()) } else { Ok("at last".to_owned()) }
        })
        .build()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Chain", |ctx: OrchestrationContext, input: String| async move {
            for _ in 0..3 {
                ctx.schedule_activity("Step", input.clone()).await?;
            }
            Ok(input)
        })
        .register("Fan", |ctx: OrchestrationContext, input: String| async move {
            let all = (0..5).map(|_| ctx.schedule_activity("Step", input.clone())).collect();
            ctx.join(all).await.into_iter().collect::<Result<Vec<_>, _>>()?;
            Ok(input)
        })
        .register("Timer", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_timer(Duration::from_millis(50)).await;
            Ok(input)
        })
        .register("Event", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("go").await) })
        .register("Queue", |ctx: OrchestrationContext, _| async move {
            let (first, second) = (ctx.dequeue_event("q").await, ctx.dequeue_event("q").await);
            assert_eq!(second, "second");
            Ok(first)
        })
        .register("Parent", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_sub_orchestration("Chain", input).await
        })
        .register("Again", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Step", "").await?;
            if ctx.execution_id() < 3 { ctx.continue_as_new(input).await } else { Ok(input) }
        })
        .register("Cancelled", |ctx: OrchestrationContext, input: String| async move {
            // Something of every kind is open when it is cancelled.
            let (timer, message) =
                (ctx.schedule_timer(Duration::from_secs(3_600)), ctx.dequeue_event("never"));
            let child = ctx.schedule_sub_orchestration("Event", input);
            ctx.select3(timer, message, child).await;
            Err("nobody answers".to_owned())
        })
        .register("Fails", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Step", "").await?;
            Err(input)
        })
        .register("Retry", |ctx: OrchestrationContext, input: String| async move {
            let delay = Duration::from_millis(10);
            let policy = RetryPolicy::new(3).with_backoff(BackoffStrategy::Fixed { delay });
            ctx.schedule_activity_with_retry("Flaky", "", policy).await?;
            Ok(input)
        })
        .register("Kv", |ctx: OrchestrationContext, input: String| async move {
            ctx.set_kv_value("kept", input.clone());
            ctx.set_kv_value("cleared", "");
            ctx.schedule_activity("Step", "").await?;
            ctx.clear_kv_value("cleared");
            ctx.set_custom_status("done");
            Ok(ctx.get_kv_value("kept").unwrap_or_default())
        })
        .register("Session", |ctx: OrchestrationContext, input: String| async move {
            let own = ctx.open_session().await?;
            ctx.schedule_activity_on_session("Step", "", own).await?;
            ctx.schedule_activity_on_session("Step", input, "shared").await
        })
        .build()
}

fn kind_of(number: usize) -> &'static str {
    KINDS[number % KINDS.len()]
}

fn instance(number: usize) -> String {
    format!("{}-{number}", kind_of(number))
}

/// Does something for many instances, several at a time.
async fn for_all<F: Future<Output = ()>>(numbers: impl Iterator<Item = usize>, what: impl Fn(usize) -> F) {
    futures::stream::iter(numbers.map(what)).buffer_unordered(WIDTH).collect::<()>().await;
}

fn count(file: &Connection, of: &str) -> usize {
    let number: i64 =
        file.query_row(&format!("SELECT count(*) FROM {of}"), [], |row| row.get(0)).expect("counts");
    usize::try_from(number).expect("a count")
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = SystemClock.monotonic() + LONG;
    while !holds() {
        assert!(SystemClock.monotonic() < deadline, "'{what}' did not happen within {LONG:?}");
        SystemClock.sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i7_orchestrations_of_every_kind_at_once_all_end_and_leave_nothing_behind() {
    let size = std::env::var("STEADFAST_LOAD").ok().and_then(|size| size.parse().ok()).unwrap_or(600);
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("store.db");
    let store = SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.expect("opens");
    let store: Arc<dyn Provider> = Arc::new(store);
    let client = Client::new(Arc::clone(&store));
    let options = RuntimeOptions {
        orchestration_concurrency: 16,
        worker_concurrency: 16,
        max_sessions_per_runtime: 16,
        ..RuntimeOptions::default()
    };
    let begun = SystemClock.monotonic();
    let runtime =
        Runtime::start_with_options(Arc::clone(&store), activities(), orchestrations(), options).await;
    let of_kind = |kind: &'static str| (0..size).filter(move |number| kind_of(*number) == kind);

    for_all(0..size, async |number| {
        let started = client.start_orchestration(instance(number), kind_of(number), instance(number)).await;
        started.expect("starts");
    })
    .await;
    for_all(of_kind("Queue"), async |number| {
        client.enqueue_event(instance(number), "q", instance(number)).await.expect("sends");
        client.enqueue_event(instance(number), "q", "second").await.expect("sends");
    })
    .await;
    // Events are for orchestrations that wait: the children of the cancelled ones wait too.
    let file = Connection::open(&path).expect("opens");
    let waiting = of_kind("Event").count() + of_kind("Cancelled").count();
    until("all wait", || count(&file, "history WHERE kind = 'ExternalSubscribed'") == waiting).await;
    for_all(of_kind("Event"), async |number| {
        client.raise_event(instance(number), "go", instance(number)).await.expect("raises");
    })
    .await;
    for_all(of_kind("Cancelled"), async |number| {
        client.cancel_instance(instance(number), "enough").await.expect("sends");
    })
    .await;
    for_all(0..size, async |number| {
        let status = client.wait_for_orchestration(&instance(number), LONG).await.expect("ends");
        assert_ended(number, &status);
    })
    .await;
    until("the children end", || count(&file, "executions WHERE status = 'Running'") == 0).await;
    until("the last news is settled", || count(&file, MESSAGES) == 0).await;
    let took = SystemClock.monotonic() - begun;
    eprintln!("{size} orchestrations of {} kinds in {took:.1?}", KINDS.len());

    let children = of_kind("Parent").count() + of_kind("Cancelled").count();
    let failed = of_kind("Fails").count() + 2 * of_kind("Cancelled").count();
    runtime.clone().shutdown(None).await;
    assert_counts(&runtime, size + children - failed, failed);
    // Owned sessions end with their instance; clean-up, which a runtime does every five minutes, forgets
    // their names.
    assert_eq!(count(&file, "sessions WHERE instance <> '' AND is_row = 1"), 0);
    store.cleanup_orphaned_sessions(Duration::ZERO).await.expect("cleans up");
    let left = Remains {
        instances: size + children,
        executions: size + children + 2 * of_kind("Again").count(),
        values: of_kind("Kv").count(),
        timers: of_kind("Cancelled").count(),
    };
    assert_nothing_left(&path, &left);
}

/// Asserts that the runtime counted this many ends, and no failure of the engine.
fn assert_counts(runtime: &Runtime, completed: usize, failed: usize) {
    let counts = runtime.metrics_snapshot().expect("counts");
    let engine = (counts.orch_infrastructure_errors, counts.orch_configuration_errors, counts.orch_poison);
    assert_eq!(engine, (0, 0, 0), "none is failed by the engine");
    assert_eq!(
        (counts.activity_infra_errors, counts.activity_config_errors, counts.activity_poison),
        (0, 0, 0)
    );
    assert_eq!((counts.orch_failures, counts.orch_completions), (failed as u64, completed as u64));
}

/// What should be in the file at the end.
struct Remains {
    instances: usize,
    executions: usize,
    values: usize,
    timers: usize,
}

fn assert_ended(number: usize, status: &OrchestrationStatus) {
    let named = instance(number);
    match (kind_of(number), status) {
        ("Cancelled", OrchestrationStatus::Failed { details, .. }) => {
            let kind = AppErrorKind::Cancelled { reason: "enough".to_owned() };
            let (message, retryable) = (String::new(), false);
            assert_eq!(*details, ErrorDetails::Application { kind, message, retryable }, "{named}");
        }
        ("Fails", OrchestrationStatus::Failed { details, .. }) => {
            assert_eq!(details.display_message(), named);
        }
        (_, OrchestrationStatus::Completed { output, .. }) => assert_eq!(*output, named),
        other => panic!("{named}: {other:?}"),
    }
}

/// Every table holds what it should and no row more.
fn assert_nothing_left(path: &Path, left: &Remains) {
    let Remains { instances, executions, values, timers } = *left;
    let file = Connection::open(path).expect("opens");
    for (of, expected) in [
        (MESSAGES, 0),
        ("messages", timers),
        ("work", 0),
        ("heads", 0),
        ("watchers", 0),
        ("set_aside", 0),
        ("torn_messages", 0),
        ("torn_work", 0),
        ("nodes", 0),
        ("routes", 0),
        // The workers have stopped; a row is kept for a day, and a lease is remembered with what it held.
        ("workers WHERE is_stopped = 0", 0),
        ("worker_handlers", 0),
        ("ended_leases WHERE kind <> 2", 0),
        ("instances", instances),
        ("instances WHERE turn <> 0 OR token IS NOT NULL OR name IS NULL", 0),
        ("executions", executions),
        ("executions WHERE status = 'Running' OR completed_at IS NULL", 0),
        ("kv", values),
        ("kv WHERE layer <> 0 OR name <> 'kept'", 0),
        // The shared one stays for as long as its lease lasts, if it was not released.
        ("sessions WHERE instance <> '' OR session_id <> 'shared'", 0),
        // Each claim of a session that an instance owned has its end in the trail.
        (
            "(SELECT 1 FROM session_trail AS claim WHERE is_end = 0 AND instance <> '' AND NOT EXISTS \
             (SELECT 1 FROM session_trail AS ends WHERE ends.instance = claim.instance \
             AND ends.session_id = claim.session_id AND ends.epoch = claim.epoch AND ends.is_end = 1))",
            0,
        ),
        // Each execution has events 1, 2, 3, … and one end.
        (
            "(SELECT 1 FROM history GROUP BY key, execution HAVING count(*) <> max(event_id) OR \
             min(event_id) <> 1)",
            0,
        ),
        (
            "(SELECT 1 FROM history GROUP BY key, execution HAVING sum(kind IN \
             ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationContinuedAsNew')) <> 1)",
            0,
        ),
        ("(SELECT DISTINCT key, execution FROM history)", executions),
        // Each schedule is answered at most once.
        (
            "(SELECT 1 FROM history WHERE kind IN ('ActivityCompleted', 'ActivityFailed', 'TimerFired', \
             'SubOrchestrationCompleted', 'SubOrchestrationFailed') \
             GROUP BY key, execution, event ->> 'source_event_id' HAVING count(*) > 1)",
            0,
        ),
    ] {
        assert_eq!(count(&file, of), expected, "{of}");
    }
    let check: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checks");
    assert_eq!(check, "ok");
    let tables = "SELECT group_concat(name, ' ') FROM (SELECT name FROM sqlite_master WHERE type = 'table' \
                  AND name NOT LIKE 'sqlite_%' ORDER BY name)";
    let tables: String = file.query_row(tables, [], |row| row.get(0)).expect("lists");
    let known = "clock counter ended_leases executions heads history instances kv messages nodes pins routes \
                 session_trail sessions set_aside steadfast_migrations torn_messages torn_work watchers work \
                 worker_handlers workers";
    assert_eq!(tables, known, "a table that nobody looks at here");
}
