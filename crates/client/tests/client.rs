//! The client over the memory store, with the walking skeleton as the runtime.

#![allow(clippy::expect_used, clippy::panic, reason = "what a test relies on, it panics without")]

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast_client::{Client, ClientError};
use steadfast_clock::{Clock, VirtualClock};
use steadfast_core::{OrchestrationContext, OrchestrationStatus};
use steadfast_memory::MemoryStore;
use steadfast_store::{Envelope, InstanceQuery, Outbox, Provider, ProviderError, Started, store_of};
use steadfast_testing::skeleton::Skeleton;

const SOON: Duration = Duration::from_secs(5);

struct World {
    clock: VirtualClock,
    store: Arc<dyn Provider>,
    client: Client,
    skeleton: Skeleton,
}

fn world() -> World {
    let clock = VirtualClock::new(1_700_000_000_000);
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let store: Arc<dyn Provider> = Arc::new(MemoryStore::with_clock(Arc::clone(&shared)));
    let skeleton = Skeleton::over(Arc::clone(&store), Arc::clone(&shared))
        .orchestration("Greet", |ctx: OrchestrationContext, name: String| async move {
            ctx.set_custom_status("greeting");
            ctx.set_kv_value_typed("names", &vec![name.clone()]);
            ctx.schedule_activity("Hello", name).await
        })
        .orchestration("Wait", |ctx: OrchestrationContext, _| async move {
            let (event, message) = ctx.join2(ctx.schedule_wait("go"), ctx.dequeue_event("mail")).await;
            Ok(format!("{event}+{message}"))
        })
        .orchestration("Parent", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_sub_orchestration_with_id("Wait", "kid", "").await
        })
        .orchestration("Fail", |_, reason: String| async move { Err(reason) })
        .activity("Hello", |name| Ok(format!("Hello, {name}")));
    let client = Client::with_clock(Arc::clone(&store), shared);
    World { clock, store, client, skeleton }
}

impl World {
    async fn run(&self) {
        self.skeleton.run_until_idle(1_000).await.expect("the skeleton runs");
    }
}

#[tokio::test]
async fn a_started_instance_is_waited_for_and_decoded() {
    let world = world();
    world.client.start_orchestration_typed("a", "Greet", "Ada").await.expect("starts");
    let (result, ()) =
        tokio::join!(world.client.wait_for_orchestration_typed::<String>("a", SOON), world.run());
    assert_eq!(result.expect("ends in time"), Ok("Hello, Ada".to_owned()));
    assert_eq!(
        world.client.instance("a").wait::<String>().await.expect("has ended"),
        Ok("Hello, Ada".to_owned())
    );
}

#[tokio::test]
async fn a_failure_is_the_inner_error() {
    let world = world();
    world.client.start_orchestration("a", "Fail", "out of stock").await.expect("starts");
    world.run().await;
    let result = world.client.wait_for_orchestration_typed::<String>("a", SOON).await.expect("has ended");
    assert_eq!(result, Err("out of stock".to_owned()));
}

#[tokio::test]
async fn an_output_that_is_no_such_value_is_an_invalid_input() {
    let world = world();
    world.client.start_orchestration("a", "Greet", "Ada").await.expect("starts");
    world.run().await;
    let error = world.client.wait_for_orchestration_typed::<u64>("a", SOON).await.expect_err("is no number");
    assert!(error.to_string().starts_with("Invalid input: decode failed: "), "{error}");
}

#[tokio::test]
async fn a_wait_ends_with_its_time() {
    let world = world();
    let wait = world.client.wait_for_orchestration("nobody", SOON);
    let time = async {
        while world.clock.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        world.clock.advance(SOON);
    };
    let (end, ()) = tokio::join!(wait, time);
    let error = end.expect_err("nobody ends");
    assert!(matches!(error, ClientError::Timeout) && error.is_retryable());
}

#[tokio::test]
async fn the_status_tells_how_an_instance_stands() {
    let world = world();
    let status = |id| world.client.get_orchestration_status(id);
    assert_eq!(status("a").await.expect("answers"), OrchestrationStatus::NotFound);
    world.client.start_orchestration("a", "Wait", "").await.expect("starts");
    world.run().await;
    let running = OrchestrationStatus::Running { custom_status: None, custom_status_version: 0 };
    assert_eq!(status("a").await.expect("answers"), running);
    world.client.cancel_instance("a", "enough").await.expect("cancels");
    world.run().await;
    let OrchestrationStatus::Failed { details, .. } = status("a").await.expect("answers") else {
        panic!("it was cancelled")
    };
    assert_eq!(details.display_message(), "canceled: enough");
}

#[tokio::test]
async fn events_and_messages_arrive() {
    let world = world();
    world.client.start_orchestration("a", "Wait", "").await.expect("starts");
    world.run().await;
    world.client.raise_event("a", "go", "now").await.expect("raises");
    world.client.instance("a").enqueue("mail", &"hi").await.expect("sends");
    world.run().await;
    let result = world.client.wait_for_orchestration_typed::<String>("a", SOON).await.expect("has ended");
    assert_eq!(result, Ok("now+hi".to_owned()));
}

#[tokio::test]
async fn a_signal_with_start_cannot_come_too_early() {
    let world = world();
    let signal = |data| world.client.signal_with_start("a", "Wait", "", "mail", data);
    assert_eq!(signal("first").await.expect("sends"), Started::New);
    assert_eq!(signal("second").await.expect("sends"), Started::Existing);
    world.run().await;
    world.client.raise_event("a", "go", "now").await.expect("raises");
    world.run().await;
    let result = world.client.wait_for_orchestration_typed::<String>("a", SOON).await.expect("has ended");
    assert_eq!(result, Ok("now+first".to_owned()));
}

#[tokio::test]
async fn a_start_says_whether_the_instance_is_new() {
    let world = world();
    for expected in [Started::New, Started::Existing] {
        assert_eq!(world.client.start_if_new("a", "Greet", "Ada").await.expect("starts"), expected);
    }
}

#[tokio::test]
async fn status_and_keys_are_waited_for_by_wake_up() {
    let world = world();
    world.client.start_orchestration("a", "Greet", "Ada").await.expect("starts");
    let (status, names, ()) = tokio::join!(
        world.client.wait_for_status_change("a", 0, Duration::from_millis(1), SOON),
        world.client.wait_for_kv_value_typed::<Vec<String>>("a", "names", SOON),
        world.run(),
    );
    let (OrchestrationStatus::Running { custom_status, .. }
    | OrchestrationStatus::Completed { custom_status, .. }) = status.expect("changes in time")
    else {
        panic!("it did not fail");
    };
    assert_eq!(custom_status.as_deref(), Some("greeting"));
    assert_eq!(names.expect("is set in time"), ["Ada"]);
    let wrong = world.client.get_kv_value_typed::<u64>("a", "names").await.expect_err("is no number");
    assert!(wrong.to_string().contains("KV deserialization error"), "{wrong}");
}

#[tokio::test]
async fn ids_that_cannot_be_are_refused() {
    let world = world();
    for (id, says) in [
        ("", "is empty"),
        ("sub::1", "reserved sub-orchestration marker"),
        ("a::sub::1", "reserved sub-orchestration marker"),
        ("a\0b", "NUL"),
        (&"x".repeat(1025), "exceeds limit (1024 bytes)"),
    ] {
        let error = world.client.start_orchestration(id, "Greet", "").await.expect_err("is refused");
        assert!(
            matches!(error, ClientError::InvalidInput { .. }) && error.to_string().contains(says),
            "{error}"
        );
    }
}

#[tokio::test]
async fn deletions_say_why_they_are_refused() {
    let world = world();
    world.client.start_orchestration("root", "Parent", "").await.expect("starts");
    world.run().await;
    let delete = |id: &'static str, force| world.client.delete_instance(id, force);
    assert!(matches!(delete("nobody", false).await, Err(ClientError::InstanceNotFound { .. })));
    assert!(matches!(delete("kid", true).await, Err(ClientError::CannotDeleteSubOrchestration { .. })));
    assert!(matches!(delete("root", false).await, Err(ClientError::InstanceStillRunning { .. })));
    assert_eq!(delete("root", true).await.expect("by force").instances_deleted, 2);
}

#[tokio::test]
async fn lists_come_in_pages() {
    let world = world();
    for n in 0..5 {
        world.client.start_orchestration(format!("i{n}"), "Greet", "Ada").await.expect("starts");
        world.run().await;
    }
    let mut query = InstanceQuery { limit: 2, ..InstanceQuery::default() };
    let mut seen = Vec::new();
    loop {
        let page = world.client.list_instances(&query).await.expect("lists");
        seen.extend(page.instances.into_iter().map(|state| state.instance));
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, ["i4", "i3", "i2", "i1", "i0"]);
    assert_eq!(world.client.list_all_instances().await.expect("lists").len(), 5);
}

/// Keeps the messages that are sent through it.
#[derive(Default)]
struct Recorder {
    sent: Mutex<Vec<Envelope>>,
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ProviderError>> + Send + 'a>>;

impl Outbox for Recorder {
    fn start<'life0, 'async_trait>(
        &'life0 self,
        start: Envelope,
        also: Vec<Envelope>,
    ) -> Answer<'async_trait, Started>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        self.sent.lock().expect("no test panicked").extend([start].into_iter().chain(also));
        Box::pin(async { Ok(Started::New) })
    }

    fn send<'life0, 'async_trait>(&'life0 self, messages: Vec<Envelope>) -> Answer<'async_trait, ()>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        self.sent.lock().expect("no test panicked").extend(messages);
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn an_outbox_gets_what_the_store_would_get_and_the_same_refusals() {
    let world = world();
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let client = world.client.with_traceparent(traceparent).expect("is one");
    let outbox = Recorder::default();
    let through = client.through(&outbox);
    through.start_orchestration("a", "Wait", "").await.expect("starts");
    through.raise_event("a", "go", "now").await.expect("raises");
    through.enqueue_event("a", "mail", "hi").await.expect("sends");
    let refused = through.start_orchestration("a::sub::1", "Wait", "").await.expect_err("is refused");
    assert!(refused.to_string().contains("reserved sub-orchestration marker"), "{refused}");
    assert!(
        through.raise_event("a", "", "now").await.is_err() && through.cancel_instance("", "").await.is_err()
    );
    let sent = std::mem::take(&mut *outbox.sent.lock().expect("no test panicked"));
    assert_eq!(sent.len(), 3, "a refused message is not sent");
    assert!(sent.iter().all(|envelope| envelope.message.traceparent.as_deref() == Some(traceparent)));
    assert_eq!(
        world.client.get_orchestration_status("a").await.expect("answers"),
        OrchestrationStatus::NotFound
    );
    // The store takes the recorded messages as it takes the client's own.
    let store = store_of(Arc::clone(&world.store), Arc::new(world.clock.clone()));
    let (start, others) = sent.split_first().expect("three messages");
    store.send(vec![start.clone()]).await.expect("starts");
    world.run().await;
    store.send(others.to_vec()).await.expect("sends");
    world.run().await;
    let result = world.client.wait_for_orchestration_typed::<String>("a", SOON).await.expect("has ended");
    assert_eq!(result, Ok("now+hi".to_owned()));
}
