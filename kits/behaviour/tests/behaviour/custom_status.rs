//! The custom status: its calls (1.8), how it is kept and counted (2.12), and the wait for its change (2.15).

use std::time::Duration;

use steadfast::providers::ProviderError;
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{
    AppErrorKind, ClientError, ErrorDetails, Event, EventKind, OrchestrationContext, OrchestrationStatus,
};
use steadfast_behaviour::{SOON, Stage, StoreKind, activities, on_every_store, orchestrations};

const POLL: Duration = Duration::from_millis(1);

fn running(status: Option<&str>, version: u64) -> OrchestrationStatus {
    OrchestrationStatus::Running { custom_status: status.map(str::to_owned), custom_status_version: version }
}

fn completed(output: &str, status: Option<&str>, version: u64) -> OrchestrationStatus {
    OrchestrationStatus::Completed {
        output: output.to_owned(),
        custom_status: status.map(str::to_owned),
        custom_status_version: version,
    }
}

async fn status(stage: &Stage, instance: &str) -> OrchestrationStatus {
    stage.client.get_orchestration_status(instance).await.expect("answers")
}

/// Says the words of each message of its queue, those of one message in one turn. `-` clears the status.
fn parrot() -> OrchestrationRegistryBuilder {
    orchestrations().register("Parrot", |ctx: OrchestrationContext, _| async move {
        loop {
            let words = ctx.dequeue_event("say").await;
            for word in words.split_whitespace() {
                match word {
                    "-" => ctx.reset_custom_status(),
                    "end" => return Ok(format!("{:?}", ctx.get_custom_status())),
                    "fail" => return Err("failed".to_owned()),
                    word => ctx.set_custom_status(word),
                }
            }
        }
    })
}

/// Starts the parrot and waits until it listens.
async fn listening(stage: &Stage) {
    stage.run(activities(), parrot()).await;
    stage.start("a", "Parrot", "").await;
    stage.has("a", "QueueSubscribed", 1).await;
}

async fn say(stage: &Stage, words: &str) {
    stage.client.enqueue_event("a", "say", words).await.expect("sends");
}

/// Lets the parrot say something, and waits until it listens for the `n`-th time.
async fn said(stage: &Stage, words: &str, n: usize) {
    say(stage, words).await;
    stage.has("a", "QueueSubscribed", n).await;
}

/// Returns what the custom status was set to, in order; None where it was cleared.
fn updates(history: Vec<Event>) -> Vec<Option<String>> {
    let updates = history.into_iter().filter_map(|event| match event.kind {
        EventKind::CustomStatusUpdated { status } => Some(status),
        _ => None,
    });
    updates.collect()
}

on_every_store! {
    async fn c1_8_the_code_reads_the_status_that_it_set(stage) {
        let flow = orchestrations().register("Set", |ctx: OrchestrationContext, _| async move {
            let first = ctx.get_custom_status();
            ctx.set_custom_status("half");
            let second = ctx.get_custom_status();
            ctx.reset_custom_status();
            Ok(format!("{first:?} {second:?} {:?}", ctx.get_custom_status()))
        });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Set", "").await, Ok(r#"None Some("half") None"#.to_owned()));
        let kinds =
            ["OrchestrationStarted", "CustomStatusUpdated", "CustomStatusUpdated", "OrchestrationCompleted"];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(updates(stage.history("a").await), [Some("half".to_owned()), None]);
        stage.stop().await;
    }

    async fn r2_12_the_version_rises_by_one_with_each_commit_that_touches_the_status(stage) {
        listening(&stage).await;
        assert_eq!(status(&stage, "a").await, running(None, 0));
        said(&stage, "one", 2).await;
        assert_eq!(status(&stage, "a").await, running(Some("one"), 1));
        said(&stage, "two three four", 3).await;
        assert_eq!(status(&stage, "a").await, running(Some("four"), 2));
        said(&stage, "", 4).await;
        assert_eq!(status(&stage, "a").await, running(Some("four"), 2));
        said(&stage, "four", 5).await;
        assert_eq!(status(&stage, "a").await, running(Some("four"), 3), "also when it says the same");
        said(&stage, "-", 6).await;
        assert_eq!(status(&stage, "a").await, running(None, 4), "also when it is cleared");
        stage.stop().await;
    }

    async fn r2_12_a_replay_changes_neither_status_nor_version(stage) {
        listening(&stage).await;
        said(&stage, "one", 2).await;
        stage.stop().await;
        stage.run(activities(), parrot()).await;
        said(&stage, "", 3).await;
        assert_eq!(status(&stage, "a").await, running(Some("one"), 1));
        say(&stage, "end").await;
        assert_eq!(stage.output("a").await, Ok(r#"Some("one")"#.to_owned()));
        assert_eq!(status(&stage, "a").await, completed(r#"Some("one")"#, Some("one"), 1));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_12_a_failed_instance_keeps_its_status(stage) {
        listening(&stage).await;
        say(&stage, "bad fail").await;
        stage.ends("a").await.expect_err("it fails");
        let expected = OrchestrationStatus::Failed {
            details: ErrorDetails::Application {
                kind: AppErrorKind::OrchestrationFailed,
                message: "failed".to_owned(),
                retryable: false,
            },
            custom_status: Some("bad".to_owned()),
            custom_status_version: 1,
        };
        assert_eq!(status(&stage, "a").await, expected);
        stage.stop().await;
    }

    async fn r2_12_the_status_survives_continue_as_new_in_the_store_and_in_the_code(stage) {
        let flow =
            orchestrations().register("Eternal", |ctx: OrchestrationContext, input: String| async move {
                match input.as_str() {
                    "1" => {
                        ctx.set_custom_status("early");
                        ctx.set_custom_status("late");
                        ctx.continue_as_new("2").await
                    }
                    "2" => {
                        ctx.dequeue_event("go").await;
                        ctx.continue_as_new(format!("{:?}", ctx.get_custom_status())).await
                    }
                    seen => {
                        ctx.reset_custom_status();
                        Ok(format!("{seen} {:?}", ctx.get_custom_status()))
                    }
                }
            });
        stage.run(activities(), flow).await;
        stage.start("a", "Eternal", "1").await;
        stage.has("a", "QueueSubscribed", 1).await;
        assert_eq!(status(&stage, "a").await, running(Some("late"), 1));
        stage.client.enqueue_event("a", "go", "").await.expect("sends");
        assert_eq!(stage.output("a").await, Ok(r#"Some("late") None"#.to_owned()));
        assert_eq!(status(&stage, "a").await, completed(r#"Some("late") None"#, None, 2));
        for execution in [2, 3] {
            let history = stage.history_of("a", execution).await;
            let EventKind::OrchestrationStarted { initial_custom_status, .. } = &history[0].kind else {
                panic!("{:?}", history[0]);
            };
            assert_eq!(initial_custom_status.as_deref(), Some("late"), "execution {execution}");
        }
        stage.stop().await;
    }

    async fn r2_12_a_status_that_was_cleared_is_not_carried_along(stage) {
        let flow =
            orchestrations().register("Clear", |ctx: OrchestrationContext, input: String| async move {
                if input == "1" {
                    ctx.set_custom_status("x");
                    ctx.reset_custom_status();
                    return ctx.continue_as_new("2").await;
                }
                Ok(format!("{:?}", ctx.get_custom_status()))
            });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Clear", "1").await, Ok("None".to_owned()));
        assert_eq!(status(&stage, "a").await, completed("None", None, 1));
        stage.stop().await;
    }

    async fn r2_15_a_change_that_is_newer_than_the_version_seen_is_returned_at_once(stage) {
        listening(&stage).await;
        said(&stage, "one", 2).await;
        said(&stage, "two", 3).await;
        for seen in [0, 1] {
            let change = stage.client.wait_for_status_change("a", seen, POLL, Duration::ZERO).await;
            assert_eq!(change.expect("there is news"), running(Some("two"), 2));
        }
        stage.stop().await;
    }

    async fn r2_15_a_wait_for_a_change_ends_with_the_change(stage) {
        listening(&stage).await;
        said(&stage, "one", 2).await;
        let wait = stage.client.wait_for_status_change("a", 1, POLL, SOON);
        // The second message is another turn, without a change.
        let speak = async {
            say(&stage, "").await;
            stage.has("a", "QueueSubscribed", 3).await;
            say(&stage, "-").await;
        };
        let (change, ()) = tokio::join!(wait, speak);
        assert_eq!(change.expect("changes in time"), running(None, 2));
        stage.stop().await;
    }

    async fn r2_15_a_wait_for_a_change_ends_with_the_instance(stage) {
        listening(&stage).await;
        said(&stage, "one", 2).await;
        let wait = stage.client.wait_for_status_change("a", 1, POLL, SOON);
        let (end, ()) = tokio::join!(wait, say(&stage, "end"));
        let expected = completed(r#"Some("one")"#, Some("one"), 1);
        assert_eq!(end.expect("ends in time"), expected);
        // One that has ended is returned whatever version the caller knows.
        let again = stage.client.wait_for_status_change("a", 99, POLL, Duration::ZERO).await;
        assert_eq!(again.expect("has ended"), expected);
        stage.stop().await;
    }

    async fn r2_15_a_wait_for_a_change_that_does_not_come_times_out(stage) {
        listening(&stage).await;
        said(&stage, "one", 2).await;
        let timeout = Duration::from_millis(20);
        for (instance, seen) in [("a", 1), ("nobody", 0)] {
            let wait = stage.client.wait_for_status_change(instance, seen, POLL, timeout);
            let time = async {
                // The wrapped client goes by the real clock, which needs no push.
                if stage.kind != StoreKind::Wrapped {
                    stage.pass_slowly(timeout, POLL).await;
                }
            };
            let (end, ()) = tokio::join!(wait, time);
            assert!(matches!(end, Err(ClientError::Timeout)), "{instance}: {end:?}");
        }
        stage.stop().await;
    }
}

#[tokio::test]
async fn r2_15_a_custom_status_that_cannot_be_read_does_not_hide_the_status() {
    let stage = Stage::new(StoreKind::Wrapped).await;
    listening(&stage).await;
    said(&stage, "one", 2).await;
    // Behind the wrapper the history is one call, and the custom status another.
    stage.faults.refuse("state", 1, ProviderError::permanent("state", "broken"));
    assert_eq!(status(&stage, "a").await, running(None, 0));
    assert_eq!(status(&stage, "a").await, running(Some("one"), 1));
    stage.stop().await;
}
