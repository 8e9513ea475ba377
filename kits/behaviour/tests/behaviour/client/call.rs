//! What a client sends and reads (1.11, 2.15): starts, signals, cancellations, lists, handles, errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use steadfast::client::{Cursor, InstanceQuery, Started};
use steadfast::providers::ProviderError;
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{
    AppErrorKind, Client, ClientError, ErrorDetails, OrchestrationContext, OrchestrationStatus, SystemStats,
};
use steadfast_behaviour::{SOON, Stage, activities, on_every_full_store, on_every_store, orchestrations};

use crate::workbench::Unwritable;

/// `Echo` returns its input and its version; `Wait` waits for an event and a message, `Parent` for such a
/// child.
fn flows() -> OrchestrationRegistryBuilder {
    let echo = |ctx: OrchestrationContext, input: String| async move {
        Ok(format!("{input}@{}", ctx.orchestration_version()))
    };
    orchestrations()
        .register("Echo", echo)
        .register_versioned("Echo", "2.0.0", echo)
        .register("Wait", |ctx: OrchestrationContext, _| async move {
            let (event, message) = ctx.join2(ctx.schedule_wait("go"), ctx.dequeue_event("mail")).await;
            Ok(format!("{event}+{message}"))
        })
        .register("Parent", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_sub_orchestration_with_id("Wait", input, "").await
        })
}

async fn waiting(stage: &Stage, instance: &str) {
    stage.start(instance, "Wait", "").await;
    stage.has(instance, "QueueSubscribed", 1).await;
}

/// Waits until every message was taken.
async fn settled(stage: &Stage) {
    let observer = stage.observer();
    stage
        .until("all messages are taken", async || {
            observer.get_queue_depths().await.expect("counts").orchestrator_queue == 0
        })
        .await;
}

fn cancelled(reason: &str) -> ErrorDetails {
    let kind = AppErrorKind::Cancelled { reason: reason.to_owned() };
    ErrorDetails::Application { kind, message: String::new(), retryable: false }
}

/// Pages through a list; returns the ids of each page.
async fn pages(client: &Client, mut query: InstanceQuery) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    loop {
        let page = client.list_instances(&query).await.expect("lists");
        pages.push(page.instances.into_iter().map(|state| state.instance).collect());
        match page.next {
            Some(next) => query.after = Some(next),
            None => return pages,
        }
    }
}

on_every_store! {
    async fn c1_11_an_instance_is_started_in_four_forms(stage) {
        stage.run(activities(), flows()).await;
        let client = stage.client.clone();
        client.start_orchestration("a", &"Echo".to_owned(), "text".to_owned()).await.expect("starts");
        client.start_orchestration_versioned("b", "Echo", "1.0.0", "text").await.expect("starts");
        client.start_orchestration_typed("c", "Echo", vec![1, 2]).await.expect("starts");
        client.start_orchestration_versioned_typed("d", "Echo", "1.0.0", "text").await.expect("starts");
        let outputs = [("a", "text@2.0.0"), ("b", "text@1.0.0"), ("c", "[1,2]@2.0.0"), ("d", "text@1.0.0")];
        for (instance, output) in outputs {
            assert_eq!(stage.output(instance).await, Ok(output.to_owned()), "{instance}");
        }
        stage.stop().await;
    }

    async fn c1_11_events_and_messages_are_sent_in_every_form(stage) {
        stage.run(activities(), flows()).await;
        for instance in ["a", "b", "c"] {
            waiting(&stage, instance).await;
        }
        let client = &stage.client;
        client.raise_event("a", "go", "event").await.expect("raises");
        client.enqueue_event("a", "mail", "message").await.expect("sends");
        client.raise_event_typed("b", "go", &[1]).await.expect("raises");
        client.enqueue_event_typed("b", "mail", &"message").await.expect("sends");
        client.try_raise_event_typed("c", "go", &None::<u8>).await.expect("raises");
        #[allow(deprecated, reason = "the old spelling is part of the API")]
        client.raise_event_persistent("c", "mail", "message").await.expect("sends");
        for (instance, output) in [("a", "event+message"), ("b", "[1]+message"), ("c", "null+message")] {
            assert_eq!(stage.output(instance).await, Ok(output.to_owned()), "{instance}");
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_11_what_cannot_be_encoded_is_an_invalid_input_and_nothing_is_sent(stage) {
        let client = &stage.client;
        let results = [
            client.start_orchestration_typed("a", "Echo", Unwritable).await,
            client.start_orchestration_versioned_typed("a", "Echo", "1.0.0", Unwritable).await,
            client.try_raise_event_typed("a", "go", &Unwritable).await,
            client.try_enqueue_event_typed("a", "mail", &Unwritable).await,
        ];
        for result in results {
            let error = result.expect_err("cannot be encoded");
            assert!(matches!(error, ClientError::InvalidInput { .. }), "{error:?}");
            assert_eq!(error.to_string(), "Invalid input: encode: cannot be written");
        }
        stage.nothing_waits().await;
    }

    async fn c1_11_the_compatible_typed_signals_panic_on_what_cannot_be_encoded(stage) {
        let client = stage.client.clone();
        let raise = tokio::spawn(async move { client.raise_event_typed("a", "go", &Unwritable).await });
        assert!(raise.await.expect_err("panics").is_panic());
        let client = stage.client.clone();
        let enqueue = tokio::spawn(async move { client.enqueue_event_typed("a", "mail", &Unwritable).await });
        assert!(enqueue.await.expect_err("panics").is_panic());
        stage.nothing_waits().await;
    }

    async fn c1_11_reserved_root_ids_are_refused_by_every_start(stage) {
        let client = &stage.client;
        for id in ["sub::1", "a::sub::1"] {
            let results = [
                client.start_orchestration(id, "Echo", "").await,
                client.start_orchestration_versioned(id, "Echo", "1.0.0", "").await,
                client.start_orchestration_typed(id, "Echo", 1).await,
                client.start_orchestration_versioned_typed(id, "Echo", "1.0.0", 1).await,
                client.start_if_new(id, "Echo", "").await.map(drop),
                client.signal_with_start(id, "Echo", "", "mail", "").await.map(drop),
            ];
            let message = format!("instance id '{id}' uses the reserved sub-orchestration marker 'sub::'");
            for result in results {
                let Err(ClientError::InvalidInput { message: said }) = result else { panic!("{result:?}") };
                assert_eq!(said, message);
            }
        }
        stage.nothing_waits().await;
    }

    async fn c1_11_a_child_can_be_signalled_by_its_reserved_id(stage) {
        let flow = flows().register("Auto", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_sub_orchestration("Wait", "").await
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Auto", "").await;
        stage.has("a::sub::2", "QueueSubscribed", 1).await;
        stage.client.raise_event("a::sub::2", "go", "1").await.expect("raises");
        stage.client.enqueue_event("a::sub::2", "mail", "2").await.expect("sends");
        assert_eq!(stage.output("a").await, Ok("1+2".to_owned()));
        stage.stop().await;
    }

    async fn c1_11_ids_and_names_that_no_store_can_keep_are_refused(stage) {
        let client = &stage.client;
        let long = "x".repeat(1025);
        for (id, says) in [
            ("", "Invalid input: instance id is empty"),
            ("a\0b", "Invalid input: instance id \"a\\0b\" contains a NUL character, which no id may"),
            (&long, "Invalid input: instance id size (1025 bytes) exceeds limit (1024 bytes)"),
        ] {
            let results = [
                client.start_orchestration(id, "Echo", "").await,
                client.raise_event(id, "go", "").await,
                client.enqueue_event(id, "mail", "").await,
                client.cancel_instance(id, "why").await,
            ];
            for result in results {
                assert_eq!(result.expect_err("is refused").to_string(), says);
            }
        }
        let names = [
            ("orchestration name", client.start_orchestration("a", "", "").await),
            ("event name", client.raise_event("a", "", "").await),
            ("queue name", client.enqueue_event("a", "", "").await),
            ("queue name", client.signal_with_start("a", "Wait", "", "", "").await.map(drop)),
        ];
        for (what, result) in names {
            assert_eq!(
                result.expect_err("is refused").to_string(),
                format!("Invalid input: {what} is empty")
            );
        }
        client.start_orchestration("x".repeat(1024), "Echo", "").await.expect("is not too long");
    }

    async fn r2_15_a_start_of_a_running_instance_changes_nothing(stage) {
        stage.run(activities(), flows()).await;
        waiting(&stage, "a").await;
        let before = stage.history("a").await;
        stage.start("a", "Echo", "other").await;
        settled(&stage).await;
        assert_eq!(stage.history("a").await, before);
        stage.client.raise_event("a", "go", "1").await.expect("raises");
        stage.client.enqueue_event("a", "mail", "2").await.expect("sends");
        assert_eq!(stage.output("a").await, Ok("1+2".to_owned()));
        stage.stop().await;
    }

    async fn r2_15_a_start_of_an_ended_instance_is_taken_and_changes_nothing(stage) {
        stage.run(activities(), flows()).await;
        stage.ends_after("a", "Echo", "first").await.expect("completes");
        let before = stage.history("a").await;
        stage.start("a", "Echo", "second").await;
        settled(&stage).await;
        assert_eq!(stage.history("a").await, before);
        assert_eq!(stage.output("a").await, Ok("first@2.0.0".to_owned()));
        stage.stop().await;
    }

    async fn r2_15_two_starts_in_one_batch_are_one_and_the_first_wins(stage) {
        stage.start("a", "Echo", "first").await;
        stage.start("a", "Wait", "second").await;
        stage.run(activities(), flows()).await;
        assert_eq!(stage.output("a").await, Ok("first@2.0.0".to_owned()));
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationCompleted"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_15_signals_to_unknown_and_ended_instances_are_no_error_and_are_settled(stage) {
        stage.run(activities(), flows()).await;
        stage.ends_after("done", "Echo", "").await.expect("completes");
        let before = stage.history("done").await;
        for instance in ["nobody", "done"] {
            stage.client.raise_event(instance, "go", "").await.expect("raises");
            stage.client.enqueue_event(instance, "mail", "").await.expect("sends");
            stage.client.cancel_instance(instance, "why").await.expect("cancels");
        }
        settled(&stage).await;
        assert_eq!(stage.history("done").await, before);
        let status = stage.client.get_orchestration_status("nobody").await.expect("answers");
        assert_eq!(status, OrchestrationStatus::NotFound);
        stage.stop().await;
    }

    async fn r2_15_of_two_cancellations_the_first_reason_wins(stage) {
        stage.run(activities(), flows()).await;
        waiting(&stage, "a").await;
        stage.stop().await;
        stage.client.cancel_instance("a", "first").await.expect("cancels");
        stage.client.cancel_instance("a", "second").await.expect("cancels");
        stage.run(activities(), flows()).await;
        assert_eq!(stage.ends("a").await, Err(cancelled("first")));
        let kinds = [
            "OrchestrationStarted",
            "ExternalSubscribed",
            "QueueSubscribed",
            "OrchestrationCancelRequested",
            "ExternalSubscribedCancelled",
            "QueueSubscriptionCancelled",
            "OrchestrationFailed",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_15_a_cancellation_with_the_start_runs_the_code_once_and_discards_its_result(stage) {
        let runs = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&runs);
        let flow = orchestrations().register("Quick", move |_: OrchestrationContext, _| {
            seen.fetch_add(1, Ordering::SeqCst);
            async { Ok("done".to_owned()) }
        });
        stage.start("a", "Quick", "").await;
        stage.client.cancel_instance("a", "too late").await.expect("cancels");
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends("a").await, Err(cancelled("too late")));
        let kinds = ["OrchestrationStarted", "OrchestrationCancelRequested", "OrchestrationFailed"];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        stage.stop().await;
    }

    async fn c1_11_a_start_says_whether_the_instance_is_new(stage) {
        stage.run(activities(), flows()).await;
        let start = |input| stage.client.start_if_new("a", "Echo", input);
        assert_eq!(start("first").await.expect("starts"), Started::New);
        assert_eq!(stage.output("a").await, Ok("first@2.0.0".to_owned()));
        let before = stage.history("a").await;
        assert_eq!(start("second").await.expect("answers"), Started::Existing);
        stage.nothing_waits().await;
        assert_eq!(stage.history("a").await, before);
        stage.stop().await;
    }

    async fn c1_11_a_signal_with_start_reaches_new_and_running_instances(stage) {
        stage.run(activities(), flows()).await;
        let signal = |data| stage.client.signal_with_start("a", "Wait", "", "mail", data);
        assert_eq!(signal("first").await.expect("sends"), Started::New);
        stage.has("a", "QueueEventDelivered", 1).await;
        assert_eq!(signal("second").await.expect("sends"), Started::Existing);
        stage.has("a", "QueueEventDelivered", 2).await;
        stage.client.raise_event("a", "go", "now").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("now+first".to_owned()));
        let starts = stage.kinds("a").await.into_iter().filter(|kind| kind == "OrchestrationStarted").count();
        assert_eq!(starts, 1);
        stage.stop().await;
    }

    async fn c1_11_a_handle_does_for_its_instance_what_the_client_does(stage) {
        stage.run(activities(), flows()).await;
        let handle = stage.client.instance("a");
        assert_eq!(handle.id(), "a");
        assert_eq!(handle.status().await.expect("answers"), OrchestrationStatus::NotFound);
        waiting(&stage, "a").await;
        handle.raise("go", &1).await.expect("raises");
        handle.enqueue("mail", &"two").await.expect("sends");
        assert_eq!(handle.wait::<String>().await.expect("ends"), Ok("1+two".to_owned()));
        assert_eq!(handle.clone().wait_for::<String>(SOON).await.expect("ends"), Ok("1+two".to_owned()));
        let error = handle.wait::<u8>().await.expect_err("is no number");
        let text = "Invalid input: decode failed: output of instance 'a' cannot be read as u8: \
            invalid type: string \"1+two\", expected u8; it begins with \"1+two\"";
        assert_eq!(error.to_string(), text);
        let error = handle.raise("go", &Unwritable).await.expect_err("cannot be encoded");
        assert_eq!(error.to_string(), "Invalid input: encode: cannot be written");
        waiting(&stage, "b").await;
        stage.client.instance("b").cancel("enough").await.expect("cancels");
        let end = stage.client.instance("b").wait::<String>().await.expect("ends");
        assert_eq!(end, Err("canceled: enough".to_owned()));
        stage.stop().await;
    }

    async fn c1_11_stats_measure_the_current_execution(stage) {
        let flow =
            orchestrations().register("Measure", |ctx: OrchestrationContext, input: String| async move {
                if input == "1" {
                    ctx.set_kv_value("key", "12345");
                    ctx.schedule_wait("go").await;
                    return ctx.continue_as_new("2").await;
                }
                ctx.set_kv_value("other", "67");
                Ok(String::new())
            });
        stage.run(activities(), flow).await;
        assert_eq!(stage.client.get_orchestration_stats("a").await.expect("answers"), None);
        stage.start("a", "Measure", "1").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        for data in ["x", "y"] {
            stage.client.enqueue_event("a", "unread", data).await.expect("sends");
        }
        stage.has("a", "QueueEventDelivered", 2).await;
        stage.client.raise_event("a", "go", "").await.expect("raises");
        stage.output("a").await.expect("completes");
        let history = stage.history("a").await;
        assert_eq!(history.first().map(|event| event.execution_id), Some(2));
        let bytes: usize =
            history.iter().map(|event| serde_json::to_string(event).expect("is JSON").len()).sum();
        let expected = SystemStats {
            history_event_count: history.len() as u64,
            history_size_bytes: bytes as u64,
            queue_pending_count: 2,
            kv_user_key_count: 2,
            kv_total_value_bytes: 7,
        };
        assert_eq!(stage.client.get_orchestration_stats("a").await.expect("answers"), Some(expected));
        stage.stop().await;
    }
}

on_every_full_store! {
    async fn c1_11_a_start_that_has_not_run_yet_exists_already(stage) {
        let start = || stage.client.start_if_new("a", "Echo", "");
        assert_eq!(start().await.expect("starts"), Started::New);
        assert_eq!(start().await.expect("answers"), Started::Existing);
        let signal = stage.client.signal_with_start("a", "Echo", "", "mail", "").await;
        assert_eq!(signal.expect("sends"), Started::Existing);
        stage.run(activities(), flows()).await;
        assert_eq!(stage.output("a").await, Ok("@2.0.0".to_owned()));
        assert_eq!(stage.client.start_orchestration("a", "Echo", "").await.ok(), Some(()));
        stage.stop().await;
    }

    async fn c1_11_a_deleted_id_is_new_again(stage) {
        stage.run(activities(), flows()).await;
        stage.ends_after("a", "Echo", "old").await.expect("completes");
        stage.client.delete_instance("a", false).await.expect("deletes");
        assert_eq!(stage.client.start_if_new("a", "Echo", "new").await.expect("starts"), Started::New);
        assert_eq!(stage.output("a").await, Ok("new@2.0.0".to_owned()));
        stage.stop().await;
    }

    async fn c1_11_lists_come_in_pages_newest_first(stage) {
        stage.run(activities(), flows()).await;
        for id in ["i0", "i1", "i2", "i3", "i4"] {
            stage.ends_after(id, "Echo", "").await.expect("completes");
        }
        let by = |limit| InstanceQuery { limit, ..InstanceQuery::default() };
        assert_eq!(pages(&stage.client, by(2)).await, [vec!["i4", "i3"], vec!["i2", "i1"], vec!["i0"]]);
        assert_eq!(
            pages(&stage.client, by(5)).await,
            [["i4", "i3", "i2", "i1", "i0"]],
            "no empty page follows"
        );
        assert_eq!(pages(&stage.client, by(0)).await.len(), 1);
        let foreign = InstanceQuery { after: Some(Cursor("no cursor".to_owned())), ..by(2) };
        let error = stage.client.list_instances(&foreign).await.expect_err("is no cursor of this store");
        assert!(matches!(error, ClientError::Provider(_)), "{error:?}");
        stage.stop().await;
    }

    async fn c1_11_lists_are_filtered_by_every_field(stage) {
        stage.run(activities(), flows()).await;
        stage.ends_after("echo-1", "Echo", "").await.expect("completes");
        stage.start("root", "Parent", "echo-kid").await;
        stage.has("echo-kid", "QueueSubscribed", 1).await;
        waiting(&stage, "alone").await;
        let all = InstanceQuery::default;
        for (query, expected) in [
            (all(), vec!["alone", "echo-kid", "root", "echo-1"]),
            (InstanceQuery { status: Some("Running".into()), ..all() }, vec!["alone", "echo-kid", "root"]),
            (InstanceQuery { status: Some("Completed".into()), ..all() }, vec!["echo-1"]),
            (InstanceQuery { status: Some("Nonsense".into()), ..all() }, vec![]),
            (InstanceQuery { orchestration: Some("Wait".into()), ..all() }, vec!["alone", "echo-kid"]),
            (InstanceQuery { id_prefix: Some("echo-".into()), ..all() }, vec!["echo-kid", "echo-1"]),
            (InstanceQuery { id_prefix: Some("echo%".into()), ..all() }, vec![]),
            (InstanceQuery { parent: Some("root".into()), ..all() }, vec!["echo-kid"]),
            (InstanceQuery { roots_only: true, ..all() }, vec!["alone", "root", "echo-1"]),
            (InstanceQuery { roots_only: true, orchestration: Some("Wait".into()), ..all() }, vec!["alone"]),
        ] {
            assert_eq!(pages(&stage.client, query.clone()).await, [expected], "{query:?}");
        }
        stage.stop().await;
    }
}

#[test]
fn c1_11_every_client_error_says_what_is_wrong_and_whether_another_try_helps() {
    let instance_id = || "a".to_owned();
    let retryable = ProviderError::retryable("read", "the store is down");
    for (error, text, again) in [
        (ClientError::from(retryable), "read: the store is down", true),
        (ProviderError::permanent("read", "no").into(), "read: no", false),
        (
            ClientError::ManagementNotAvailable,
            "Management features not available - provider doesn't implement ProviderAdmin",
            false,
        ),
        (ClientError::InvalidInput { message: "odd".to_owned() }, "Invalid input: odd", false),
        (ClientError::Timeout, "Operation timed out", true),
        (
            ClientError::InstanceStillRunning { instance_id: instance_id() },
            "Instance a is still running. Use force=true or cancel first.",
            false,
        ),
        (
            ClientError::CannotDeleteSubOrchestration { instance_id: instance_id() },
            "Cannot delete sub-orchestration a directly. Delete the root orchestration instead.",
            false,
        ),
        (ClientError::InstanceNotFound { instance_id: instance_id() }, "Instance a not found", false),
    ] {
        assert_eq!((error.clone().to_string().as_str(), error.is_retryable()), (text, again), "{error:?}");
    }
}

#[test]
fn c1_11_a_client_can_be_shared_between_threads() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<Client>();
}
