//! What is logged, under which targets, with which fields: a subscriber of the test's own thread sees it all.

#![cfg(feature = "sqlite")]
#![allow(clippy::expect_used, reason = "what a test relies on, it panics without")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

#[derive(Debug, Clone, Default)]
struct Line {
    target: String,
    level: String,
    fields: BTreeMap<String, String>,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut line = Line {
            target: metadata.target().to_owned(),
            level: metadata.level().to_string(),
            fields: BTreeMap::new(),
        };
        event.record(&mut line);
        self.0.lock().expect("is not poisoned").push(line);
    }
}

impl Lines {
    fn of(&self, target: &str) -> Vec<Line> {
        let lines = self.0.lock().expect("is not poisoned");
        lines.iter().filter(|line| line.target == target).cloned().collect()
    }
}

impl Line {
    fn says(&self, text: &str) -> bool {
        self.fields.get("message").is_some_and(|message| message.contains(text))
    }

    fn names(&self) -> Vec<&str> {
        self.fields.keys().map(String::as_str).collect()
    }
}

async fn work(ctx: ActivityContext, _input: String) -> Result<String, String> {
    ctx.trace_warn("from the activity");
    Ok(String::new())
}

async fn flow(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.trace_info("before");
    ctx.schedule_activity("Work", "").await?;
    ctx.trace("error", "after");
    ctx.trace("notice", "of no level");
    Ok(String::new())
}

#[tokio::test]
async fn handlers_log_once_under_their_targets() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(lines.clone()));
    let store = Arc::new(SqliteProvider::new_in_memory().await.expect("opens"));
    let activities = ActivityRegistry::builder().register("Work", work).build();
    let orchestrations = OrchestrationRegistry::builder().register("Flow", flow).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    client.start_orchestration("i", "Flow", "").await.expect("starts");
    client.wait_for_orchestration("i", Duration::from_secs(20)).await.expect("ends");
    runtime.shutdown(None).await;

    let started = lines.of("steadfast::runtime");
    assert!(started.iter().any(|line| line.level == "INFO" && line.says("starting with provider sqlite")));
    assert!(
        started.iter().any(|line| line.says("capability") && line.fields.contains_key("supported_range"))
    );

    let orchestration = lines.of("steadfast::orchestration");
    let said: Vec<(&str, &str)> =
        orchestration.iter().map(|line| (line.level.as_str(), line.fields["message"].as_str())).collect();
    assert_eq!(said, [("INFO", "before"), ("ERROR", "after"), ("TRACE", "of no level")]);
    assert_eq!(
        orchestration[0].names(),
        ["execution_id", "instance_id", "message", "orchestration_name", "orchestration_version"]
    );
    assert!(orchestration[2].fields.contains_key("level"));

    let activity = lines.of("steadfast::activity");
    assert_eq!(activity.len(), 1);
    assert!(activity[0].level == "WARN" && activity[0].fields["message"] == "from the activity");
    assert_eq!(
        activity[0].names(),
        [
            "activity_id",
            "activity_name",
            "execution_id",
            "instance_id",
            "message",
            "orchestration_name",
            "orchestration_version",
            "worker_id"
        ]
    );
}
