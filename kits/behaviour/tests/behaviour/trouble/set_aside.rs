//! Rows that cannot be read are set aside while others go on, and a client decides about them (F3).

use steadfast::providers::{ProviderErrorKind, WorkItem};
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{ActivityContext, ClientError, OrchestrationContext, RuntimeOptions};
use steadfast_behaviour::{Stage, StoreKind, activities, on_every_full_store, orchestrations};
use steadfast_clock::Clock;
use steadfast_memory::Damage;
use steadfast_store::{MAX_UNREADABLE_ATTEMPTS, Queue, SetAside, UNREADABLE_RETRY};

const BROKEN: &str = "{this is no row";

fn echo() -> ActivityRegistryBuilder {
    activities().register("Echo", |_: ActivityContext, input: String| async move { Ok(input) })
}

/// `Call` runs an activity; `Wait` waits for an event.
fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Call", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Echo", input).await
        })
        .register("Wait", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("go").await) })
}

/// Overwrites the one row of a kind that an instance has, behind the store's back.
async fn overwrite(stage: &Stage, queue: Queue, instance: &str, text: &str) {
    let what = match queue {
        Queue::Worker => Damage::Work { instance },
        Queue::Orchestrator => Damage::Messages { instance },
    };
    assert_eq!(stage.damage(what, text).await, 1, "there is one row to overwrite");
}

/// Leaves an instance with an activity that cannot be read.
async fn unreadable_work(stage: &Stage, instance: &str) {
    let no_workers = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
    stage.run_with(echo(), flows(), no_workers).await;
    stage.start(instance, "Call", "input").await;
    stage.has(instance, "ActivityScheduled", 1).await;
    stage.stop().await;
    overwrite(stage, Queue::Worker, instance, BROKEN).await;
}

/// Leaves an instance with an event that cannot be read.
async fn unreadable_message(stage: &Stage, instance: &str) {
    stage.run(echo(), flows()).await;
    stage.start(instance, "Wait", "").await;
    stage.has(instance, "ExternalSubscribed", 1).await;
    stage.stop().await;
    stage.client.raise_event(instance, "go", "lost").await.expect("raises");
    overwrite(stage, Queue::Orchestrator, instance, BROKEN).await;
}

/// Lets time pass until `count` rows are set aside. Others are served all the while.
async fn set_aside(stage: &Stage, count: usize) -> Vec<SetAside> {
    let client = stage.observer();
    for _ in 0..3 * MAX_UNREADABLE_ATTEMPTS {
        let other = format!("other-{}", stage.clock.now_ms());
        assert_eq!(stage.ends_after(&other, "Call", "fine").await, Ok("fine".to_owned()));
        let rows = client.list_set_aside(None).await.expect("lists");
        if rows.len() >= count {
            return rows;
        }
        stage.pass(UNREADABLE_RETRY);
    }
    panic!("{count} rows were met often enough to be set aside");
}

fn is_not_found(result: Result<(), ClientError>) -> bool {
    matches!(result, Err(ClientError::Provider(error)) if error.kind == ProviderErrorKind::NotFound)
}

/// The activity of an instance, as it was before.
fn activity(instance: &str) -> String {
    let item = WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id: 2,
        name: "Echo".to_owned(),
        input: "input".to_owned(),
        session_id: None,
        tag: None,
    };
    serde_json::to_string(&item).expect("is JSON")
}

fn event(instance: &str) -> String {
    let (instance, name, data) = (instance.to_owned(), "go".to_owned(), "found".to_owned());
    serde_json::to_string(&WorkItem::ExternalRaised { instance, name, data }).expect("is JSON")
}

on_every_full_store! {
    async fn f3_an_activity_that_cannot_be_read_is_set_aside_and_listed(stage) {
        let begin = stage.clock.now_ms();
        unreadable_work(&stage, "a").await;
        stage.run(echo(), flows()).await;
        let [row] = &set_aside(&stage, 1).await[..] else { panic!("one row is set aside") };
        assert_eq!((row.queue, row.instance.as_deref()), (Queue::Worker, Some("a")));
        assert_eq!((row.payload.as_str(), row.attempts), (BROKEN, MAX_UNREADABLE_ATTEMPTS));
        assert!(row.reason.contains("no JSON"), "{}", row.reason);
        let earliest = begin + 9 * UNREADABLE_RETRY.as_millis() as u64;
        assert!(row.at_ms >= earliest, "{} is before its tenth attempt", row.at_ms);
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "ActivityScheduled"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f3_a_message_that_cannot_be_read_is_set_aside_and_its_instance_goes_on(stage) {
        unreadable_message(&stage, "a").await;
        stage.run(echo(), flows()).await;
        stage.client.raise_event("a", "go", "second").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("second".to_owned()));
        let [row] = &set_aside(&stage, 1).await[..] else { panic!("one row is set aside") };
        assert_eq!((row.queue, row.instance.as_deref()), (Queue::Orchestrator, Some("a")));
        assert_eq!((row.payload.as_str(), row.attempts), (BROKEN, MAX_UNREADABLE_ATTEMPTS));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f3_an_activity_that_is_put_back_and_can_be_read_runs(stage) {
        unreadable_work(&stage, "a").await;
        stage.run(echo(), flows()).await;
        let [row] = &set_aside(&stage, 1).await[..] else { panic!("one row is set aside") };
        stage.stop().await;
        stage.client.retry_set_aside(row.id).await.expect("is put back");
        assert_eq!(stage.client.list_set_aside(None).await.expect("lists"), []);
        overwrite(&stage, Queue::Worker, "a", &activity("a")).await;
        stage.run(echo(), flows()).await;
        assert_eq!(stage.output("a").await, Ok("input".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f3_a_message_that_is_put_back_and_can_be_read_is_delivered(stage) {
        unreadable_message(&stage, "a").await;
        stage.run(echo(), flows()).await;
        let [row] = &set_aside(&stage, 1).await[..] else { panic!("one row is set aside") };
        stage.stop().await;
        stage.client.retry_set_aside(row.id).await.expect("is put back");
        overwrite(&stage, Queue::Orchestrator, "a", &event("a")).await;
        stage.run(echo(), flows()).await;
        assert_eq!(stage.output("a").await, Ok("found".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f3_a_row_that_is_put_back_as_it_was_is_set_aside_again(stage) {
        unreadable_work(&stage, "a").await;
        stage.run(echo(), flows()).await;
        let first = set_aside(&stage, 1).await;
        stage.client.retry_set_aside(first[0].id).await.expect("is put back");
        let second = set_aside(&stage, 1).await;
        assert_eq!((second.len(), &second[0].payload), (1, &first[0].payload));
        assert_eq!(second[0].attempts, MAX_UNREADABLE_ATTEMPTS, "its attempts are counted anew");
        stage.stop().await;
    }

    async fn f3_a_row_that_is_dropped_is_gone_and_its_instance_can_be_cancelled(stage) {
        unreadable_work(&stage, "a").await;
        stage.run(echo(), flows()).await;
        let [row] = &set_aside(&stage, 1).await[..] else { panic!("one row is set aside") };
        stage.client.drop_set_aside(row.id).await.expect("is dropped");
        assert_eq!(stage.client.list_set_aside(None).await.expect("lists"), []);
        assert!(is_not_found(stage.client.drop_set_aside(row.id).await));
        assert!(is_not_found(stage.client.retry_set_aside(row.id).await));
        stage.client.cancel_instance("a", "lost").await.expect("cancels");
        assert_eq!(stage.output("a").await, Err("canceled: lost".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f3_rows_are_listed_after_the_one_that_was_seen_and_go_with_their_instance(stage) {
        unreadable_work(&stage, "a").await;
        unreadable_message(&stage, "b").await;
        stage.run(echo(), flows()).await;
        let rows = set_aside(&stage, 2).await;
        assert_eq!(rows.len(), 2);
        let rest = stage.client.list_set_aside(Some(rows[0].id)).await.expect("lists");
        let shown = stage.client.get_set_aside(rows[1].id).await.expect("shows");
        assert_eq!(shown.as_ref(), Some(&rows[1]));
        for absent in [0, rows[1].id + 1, u64::MAX] {
            assert_eq!(stage.client.get_set_aside(absent).await.expect("answers"), None, "{absent}");
        }
        assert_eq!(rest, rows[1..]);
        assert_eq!(stage.client.list_set_aside(Some(rows[1].id)).await.expect("lists"), []);
        stage.client.delete_instance("a", true).await.expect("by force");
        let left = stage.client.list_set_aside(None).await.expect("lists");
        assert_eq!(left.iter().map(|row| row.instance.as_deref()).collect::<Vec<_>>(), [Some("b")]);
        stage.stop().await;
    }
}

#[tokio::test]
async fn f3_a_provider_of_the_required_methods_lists_nothing_and_says_that_it_cannot_decide() {
    let stage = Stage::new(StoreKind::Wrapped).await;
    assert_eq!(stage.client.list_set_aside(None).await.expect("lists"), []);
    for result in [stage.client.retry_set_aside(1).await, stage.client.drop_set_aside(1).await] {
        let Err(ClientError::Provider(error)) = result else { panic!("{result:?}") };
        assert_eq!(error.kind, ProviderErrorKind::Unsupported);
    }
}
