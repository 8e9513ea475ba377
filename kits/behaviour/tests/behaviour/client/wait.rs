//! How a client waits and what it reads of an instance (1.11, 2.15).

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;

use steadfast::providers::ProviderError;
use steadfast::runtime::RuntimeOptions;
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{
    AppErrorKind, Client, ClientError, ErrorDetails, InstanceFilter, OrchestrationContext,
    OrchestrationStatus, PruneOptions,
};
use steadfast_behaviour::{
    SOON, Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};

const TIMEOUT: Duration = Duration::from_millis(20);

/// Longer than any claim takes, by a clock that only moves when told.
const LONG: Duration = Duration::from_secs(10 * 3600);

/// `Echo` returns its input, `Fail` fails with it, `Set` sets a key to it; `Wait` waits for an event.
fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Echo", |_: OrchestrationContext, input: String| async move { Ok(input) })
        .register("Fail", |_: OrchestrationContext, input: String| async move { Err(input) })
        .register("Wait", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("go").await) })
        .register("Set", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_wait("go").await;
            ctx.set_kv_value("k", input);
            ctx.schedule_wait("end").await;
            Ok(String::new())
        })
        .register("Twice", |ctx: OrchestrationContext, input: String| async move {
            if input == "1" {
                return ctx.continue_as_new("2").await;
            }
            Ok(ctx.schedule_wait("go").await)
        })
}

fn running() -> OrchestrationStatus {
    OrchestrationStatus::Running { custom_status: None, custom_status_version: 0 }
}

fn completed(output: &str) -> OrchestrationStatus {
    let output = output.to_owned();
    OrchestrationStatus::Completed { output, custom_status: None, custom_status_version: 0 }
}

/// Starts an instance and waits until it waits.
async fn starts_and_waits(stage: &Stage, instance: &str, orchestration: &str, input: &str) {
    stage.start(instance, orchestration, input).await;
    stage.has(instance, "ExternalSubscribed", 1).await;
}

/// Asserts that a wait of [`TIMEOUT`] ends with its time. The wrapped client goes by the real clock.
async fn in_vain<T: Debug>(stage: &Stage, wait: impl Future<Output = Result<T, ClientError>>) {
    let time = async {
        if stage.kind != StoreKind::Wrapped {
            stage.pass_slowly(TIMEOUT, Duration::from_millis(5)).await;
        }
    };
    let (end, ()) = tokio::join!(wait, time);
    let error = end.expect_err("nothing comes");
    assert!(matches!(error, ClientError::Timeout), "{error:?}");
}

/// Lets the next read of an instance fail, whichever way the client reads.
fn fail_reads(stage: &Stage, error: &ProviderError) {
    for operation in ["state", "wait", "read_history", "kv_value", "kv_values", "stats"] {
        stage.faults.refuse(operation, 1, error.clone());
    }
}

/// Starts to wait, on a task of its own.
fn waiting<T: Send + 'static, F>(
    stage: &Stage,
    wait: impl FnOnce(Client) -> F,
) -> tokio::task::JoinHandle<Result<T, ClientError>>
where
    F: Future<Output = Result<T, ClientError>> + Send + 'static,
{
    tokio::spawn(wait(stage.client.clone()))
}

fn of_provider<T: Debug>(result: Result<T, ClientError>) -> ProviderError {
    match result {
        Err(ClientError::Provider(error)) => error,
        other => panic!("{other:?}"),
    }
}

on_every_store! {
    async fn r2_15_the_status_says_how_an_instance_stands(stage) {
        let status = |instance| stage.client.get_orchestration_status(instance);
        stage.run(activities(), flows()).await;
        assert_eq!(status("a").await.expect("answers"), OrchestrationStatus::NotFound);
        starts_and_waits(&stage, "a", "Wait", "").await;
        assert_eq!(status("a").await.expect("answers"), running());
        stage.client.raise_event("a", "go", "done").await.expect("raises");
        stage.output("a").await.expect("completes");
        assert_eq!(status("a").await.expect("answers"), completed("done"));
        stage.ends_after("b", "Fail", "broken").await.expect_err("fails");
        let failed = OrchestrationStatus::Failed {
            details: ErrorDetails::Application {
                kind: AppErrorKind::OrchestrationFailed,
                message: "broken".to_owned(),
                retryable: false,
            },
            custom_status: None,
            custom_status_version: 0,
        };
        assert_eq!(status("b").await.expect("answers"), failed);
        stage.stop().await;
    }

    async fn r2_15_the_status_is_that_of_the_latest_execution(stage) {
        stage.run(activities(), flows()).await;
        starts_and_waits(&stage, "a", "Twice", "1").await;
        assert_eq!(stage.client.get_orchestration_status("a").await.expect("answers"), running());
        stage.client.raise_event("a", "go", "done").await.expect("raises");
        stage.output("a").await.expect("completes");
        assert_eq!(stage.client.get_orchestration_status("a").await.expect("answers"), completed("done"));
        stage.stop().await;
    }

    async fn r2_15_a_start_that_has_not_run_yet_is_not_found(stage) {
        stage.start("a", "Wait", "").await;
        let status = stage.client.get_orchestration_status("a").await.expect("answers");
        assert_eq!(status, OrchestrationStatus::NotFound);
    }

    async fn r2_15_a_wait_for_what_has_ended_ends_at_once(stage) {
        stage.run(activities(), flows()).await;
        stage.ends_after("a", "Echo", "x").await.expect("completes");
        let status = stage.client.wait_for_orchestration("a", Duration::ZERO).await;
        assert_eq!(status.expect("has ended"), completed("x"));
        stage.stop().await;
    }

    async fn r2_15_a_wait_goes_over_continue_as_new_to_the_end(stage) {
        stage.run(activities(), flows()).await;
        let wait = stage.client.wait_for_orchestration("a", SOON);
        let send = async {
            starts_and_waits(&stage, "a", "Twice", "1").await;
            stage.client.raise_event("a", "go", "done").await.expect("raises");
        };
        let (status, ()) = tokio::join!(wait, send);
        assert_eq!(status.expect("ends"), completed("done"));
        stage.stop().await;
    }

    async fn r2_15_a_wait_that_is_too_long_ends_with_a_time_out(stage) {
        stage.run(activities(), flows()).await;
        starts_and_waits(&stage, "a", "Wait", "").await;
        for instance in ["a", "nobody"] {
            in_vain(&stage, stage.client.wait_for_orchestration(instance, TIMEOUT)).await;
            in_vain(&stage, stage.client.wait_for_orchestration_typed::<String>(instance, TIMEOUT)).await;
            in_vain(&stage, stage.client.wait_for_kv_value(instance, "k", TIMEOUT)).await;
            in_vain(&stage, stage.client.wait_for_kv_value_typed::<u8>(instance, "k", TIMEOUT)).await;
        }
        in_vain(&stage, stage.client.instance("a").wait_for::<String>(TIMEOUT)).await;
        in_vain(&stage, stage.client.instance("nobody").wait_for_start(TIMEOUT)).await;
        let at_once = stage.client.wait_for_orchestration("a", Duration::ZERO).await;
        assert!(matches!(at_once, Err(ClientError::Timeout)), "{at_once:?}");
        stage.stop().await;
    }

    async fn c1_11_a_typed_wait_decodes_the_output_or_returns_the_failure_as_text(stage) {
        stage.run(activities(), flows()).await;
        for (instance, orchestration, input) in [
            ("list", "Echo", "[1,2]"),
            ("text", "Echo", "bare"),
            ("failed", "Fail", "broken"),
            ("stopped", "Wait", ""),
        ] {
            stage.start(instance, orchestration, input).await;
        }
        stage.client.cancel_instance("stopped", "enough").await.expect("cancels");
        let client = &stage.client;
        let list = client.wait_for_orchestration_typed::<Vec<u8>>("list", SOON).await;
        assert_eq!(list.expect("ends"), Ok(vec![1, 2]));
        let text = client.wait_for_orchestration_typed::<String>("text", SOON).await;
        assert_eq!(text.expect("ends"), Ok("bare".to_owned()));
        let failed = client.wait_for_orchestration_typed::<u8>("failed", SOON).await;
        assert_eq!(failed.expect("ends"), Err("broken".to_owned()));
        let stopped = client.wait_for_orchestration_typed::<u8>("stopped", SOON).await;
        assert_eq!(stopped.expect("ends"), Err("canceled: enough".to_owned()));
        let wrong = client.wait_for_orchestration_typed::<u8>("text", SOON).await.expect_err("is no number");
        let says = "Invalid input: decode failed: output of instance 'text' cannot be read as u8: \
            invalid type: string \"bare\", expected u8; it begins with \"bare\"";
        assert_eq!(wrong.to_string(), says);
        stage.stop().await;
    }

    async fn r2_15_a_wait_for_a_key_ends_when_it_is_set(stage) {
        stage.run(activities(), flows()).await;
        starts_and_waits(&stage, "a", "Set", "[1]").await;
        let client = &stage.client;
        let (text, list, ()) = tokio::join!(
            client.wait_for_kv_value("a", "k", SOON),
            client.wait_for_kv_value_typed::<Vec<u8>>("a", "k", SOON),
            async { client.raise_event("a", "go", "").await.expect("raises") },
        );
        assert_eq!(text.expect("is set"), "[1]");
        assert_eq!(list.expect("is set"), [1]);
        let at_once = client.wait_for_kv_value("a", "k", Duration::ZERO).await;
        assert_eq!(at_once.expect("was set"), "[1]");
        stage.stop().await;
    }

    async fn c1_11_keys_are_read_in_every_form(stage) {
        stage.run(activities(), flows()).await;
        starts_and_waits(&stage, "a", "Set", "[1]").await;
        stage.client.raise_event("a", "go", "").await.expect("raises");
        stage.has("a", "KeyValueSet", 1).await;
        let client = &stage.client;
        assert_eq!(client.get_kv_value("a", "k").await.expect("reads").as_deref(), Some("[1]"));
        assert_eq!(client.get_kv_value("a", "other").await.expect("reads"), None);
        assert_eq!(client.get_kv_value_typed::<Vec<u8>>("a", "k").await.expect("reads"), Some(vec![1]));
        assert_eq!(client.get_kv_value_typed::<Vec<u8>>("a", "other").await.expect("reads"), None);
        let all = HashMap::from([("k".to_owned(), "[1]".to_owned())]);
        assert_eq!(client.get_kv_all_values("a").await.expect("reads"), all);
        let says = "Invalid input: KV deserialization error: \
            invalid type: sequence, expected u8 at line 1 column 0";
        let read = client.get_kv_value_typed::<u8>("a", "k").await.expect_err("is no number");
        assert_eq!(read.to_string(), says);
        let waited = client.wait_for_kv_value_typed::<u8>("a", "k", SOON).await.expect_err("is no number");
        assert_eq!(waited.to_string(), says);
        stage.stop().await;
    }

    async fn g15_a_wait_for_an_instance_that_is_deleted_ends_at_once(stage) {
        stage.run(activities(), flows()).await;
        starts_and_waits(&stage, "a", "Wait", "").await;
        let waits = [
            waiting(&stage, |client| async move { client.wait_for_orchestration("a", LONG).await.map(drop) }),
            waiting(&stage, |client| async move { client.instance("a").wait::<String>().await.map(drop) }),
            waiting(&stage, |client| async move { client.wait_for_kv_value("a", "k", LONG).await.map(drop) }),
            waiting(&stage, |client| async move {
                client.wait_for_status_change("a", 0, TIMEOUT, LONG).await.map(drop)
            }),
        ];
        let reads = if stage.kind == StoreKind::Wrapped { "read_history" } else { "wait" };
        stage.until("they have seen it", async || stage.faults.calls(reads) >= waits.len() as u64).await;
        stage.settle().await;
        stage.observer().delete_instance("a", true).await.expect("is deleted");
        for wait in waits {
            let error = wait.await.expect("runs").expect_err("the instance is gone");
            assert!(
                matches!(&error, ClientError::InstanceNotFound { instance_id } if instance_id == "a"),
                "{error:?}"
            );
        }
        stage.stop().await;
    }

    async fn g15_a_wait_for_an_id_that_is_to_come_ends_with_its_end(stage) {
        stage.run(activities(), flows()).await;
        let wait = waiting(&stage, |client| async move { client.wait_for_orchestration("late", SOON).await });
        stage.settle().await;
        stage.start("late", "Echo", "x").await;
        assert_eq!(wait.await.expect("runs").expect("ends"), completed("x"));
        stage.stop().await;
    }

    async fn r2_15_an_error_of_the_store_ends_reads_and_waits_at_once(stage) {
        let client = &stage.client;
        for error in [ProviderError::permanent("read", "broken"), ProviderError::retryable("read", "busy")] {
            fail_reads(&stage, &error);
            assert_eq!(of_provider(client.get_orchestration_status("a").await), error);
            fail_reads(&stage, &error);
            assert_eq!(of_provider(client.wait_for_orchestration("a", SOON).await), error);
            fail_reads(&stage, &error);
            assert_eq!(of_provider(client.wait_for_status_change("a", 0, TIMEOUT, SOON).await), error);
            fail_reads(&stage, &error);
            assert_eq!(of_provider(client.wait_for_kv_value("a", "k", SOON).await), error);
            fail_reads(&stage, &error);
            assert_eq!(of_provider(client.get_kv_value("a", "k").await), error);
            fail_reads(&stage, &error);
            assert_eq!(of_provider(client.get_kv_all_values("a").await), error);
            fail_reads(&stage, &error);
            assert_eq!(of_provider(client.get_orchestration_stats("a").await), error);
            stage.faults.heal();
            stage.faults.refuse("send", 2, error.clone());
            assert_eq!(of_provider(client.start_orchestration("a", "Echo", "").await), error);
            assert_eq!(of_provider(client.raise_event("a", "go", "").await), error);
            stage.faults.heal();
        }
        stage.nothing_waits().await;
    }

    async fn c1_11_reads_of_an_unknown_instance_find_nothing(stage) {
        let client = &stage.client;
        let status = client.get_orchestration_status("nobody").await;
        assert_eq!(status.expect("answers"), OrchestrationStatus::NotFound);
        assert_eq!(client.get_kv_value("nobody", "k").await.expect("answers"), None);
        assert_eq!(client.get_kv_value_typed::<u8>("nobody", "k").await.expect("answers"), None);
        assert_eq!(client.get_kv_all_values("nobody").await.expect("answers"), HashMap::new());
        assert_eq!(client.get_orchestration_stats("nobody").await.expect("answers"), None);
    }
}

on_every_full_store! {
    async fn g35_a_wait_on_the_handle_of_an_id_that_does_not_exist_answers_at_once(stage) {
        stage.run(activities(), flows()).await;
        let typo = stage.client.instance("typo");
        for answer in [typo.wait::<String>().await, typo.wait_for::<String>(LONG).await] {
            let error = answer.expect_err("there is none");
            assert!(
                matches!(&error, ClientError::InstanceNotFound { instance_id } if instance_id == "typo"),
                "{error:?}"
            );
        }
        stage.stop().await;
    }

    async fn g35_a_start_that_waits_for_its_first_turn_exists(stage) {
        let idle = RuntimeOptions { orchestration_concurrency: 0, ..stage.options() };
        stage.run_with(activities(), flows(), idle).await;
        stage.start("a", "Echo", "x").await;
        let wait = waiting(&stage, |client| async move { client.instance("a").wait::<String>().await });
        stage.until("it waits", async || stage.faults.calls("wait") > 0).await;
        stage.run(activities(), flows()).await;
        assert_eq!(wait.await.expect("runs").expect("ends"), Ok("x".to_owned()));
        stage.stop().await;
    }

    async fn g35_an_id_that_is_to_come_is_waited_for_if_asked(stage) {
        stage.run(activities(), flows()).await;
        let wait = waiting(&stage, |client| async move {
            let late = client.instance("late");
            late.wait_for_start(LONG).await?;
            late.wait::<String>().await
        });
        stage.until("it waits", async || stage.faults.calls("wait") > 0).await;
        stage.start("late", "Echo", "x").await;
        assert_eq!(wait.await.expect("runs").expect("ends"), Ok("x".to_owned()));
        stage.stop().await;
    }

    async fn c1_11_management_of_an_unknown_instance_finds_nothing_or_says_so(stage) {
        let client = &stage.client;
        assert_eq!(client.list_executions("nobody").await.expect("answers"), [0_u64; 0]);
        assert_eq!(client.read_execution_history("nobody", 1).await.expect("answers"), []);
        assert_eq!(client.list_instances_by_status("Nonsense").await.expect("answers"), [""; 0]);
        let tree = client.get_instance_tree("nobody").await.expect("answers");
        assert_eq!((tree.root_id.as_str(), tree.all_ids.as_slice()), ("nobody", &["nobody".to_owned()][..]));
        let info = of_provider(client.get_instance_info("nobody").await);
        let execution = of_provider(client.get_execution_info("nobody", 1).await);
        let prune = of_provider(client.prune_executions("nobody", PruneOptions::default()).await);
        for error in [info, execution, prune] {
            assert!(error.message.contains("not found") && !error.is_retryable(), "{error:?}");
        }
        let deletion = client.delete_instance("nobody", true).await.expect_err("there is none");
        assert!(
            matches!(&deletion, ClientError::InstanceNotFound { instance_id } if instance_id == "nobody")
        );
    }

    async fn r2_15_a_wait_is_woken_and_reads_no_history(stage) {
        stage.run(activities(), flows()).await;
        starts_and_waits(&stage, "a", "Wait", "").await;
        let before = Asked::of(&stage);
        let client: Client = stage.client.clone();
        let wait = tokio::spawn(async move { client.wait_for_orchestration("a", LONG).await });
        stage.until("the client waits", async || Asked::of(&stage).waits > before.waits).await;
        stage.pass_slowly(Duration::from_secs(3600), Duration::from_secs(600)).await;
        stage.client.raise_event("a", "go", "done").await.expect("raises");
        assert_eq!(wait.await.expect("runs").expect("ends"), completed("done"));
        assert_eq!(Asked::of(&stage), Asked { waits: before.waits + 1, ..before }, "a wait says what it saw");
        stage.stop().await;
    }

    async fn r2_15_a_wait_for_the_end_is_one_wait_however_many_turns_there_are(stage) {
        stage.run(activities(), flows()).await;
        starts_and_waits(&stage, "a", "Set", "v").await;
        let before = Asked::of(&stage);
        let client: Client = stage.client.clone();
        let wait = tokio::spawn(async move { client.wait_for_orchestration("a", LONG).await });
        stage.until("the client waits", async || Asked::of(&stage).waits > before.waits).await;
        stage.client.raise_event("a", "go", "").await.expect("raises");
        stage.has("a", "KeyValueSet", 1).await;
        stage.settle().await;
        stage.client.raise_event("a", "end", "").await.expect("raises");
        assert_eq!(wait.await.expect("runs").expect("ends"), completed(""));
        assert_eq!(Asked::of(&stage), Asked { waits: before.waits + 1, ..before }, "turns end no wait");
        stage.stop().await;
    }
}

/// How often the store was asked.
#[derive(Debug, PartialEq)]
struct Asked {
    waits: u64,
    states: u64,
    histories: u64,
}

impl Asked {
    fn of(stage: &Stage) -> Self {
        let [waits, states, histories] =
            ["wait", "state", "read_history"].map(|operation| stage.faults.calls(operation));
        Self { waits, states, histories }
    }
}

#[tokio::test]
async fn c1_11_without_management_every_call_of_it_says_so() {
    let stage = Stage::new(StoreKind::Wrapped).await;
    let client = &stage.client;
    assert!(!client.has_management_capability());
    assert!(stage.observer().has_management_capability());
    let results = [
        client.list_all_instances().await.map(drop),
        client.list_instances_by_status("Running").await.map(drop),
        client.get_instance_info("a").await.map(drop),
        client.get_execution_info("a", 1).await.map(drop),
        client.list_executions("a").await.map(drop),
        client.read_execution_history("a", 1).await.map(drop),
        client.get_system_metrics().await.map(drop),
        client.get_queue_depths().await.map(drop),
        client.get_instance_tree("a").await.map(drop),
        client.delete_instance("a", true).await.map(drop),
        client.delete_instance_bulk(InstanceFilter::default()).await.map(drop),
        client.prune_executions("a", PruneOptions::default()).await.map(drop),
        client.prune_executions_bulk(InstanceFilter::default(), PruneOptions::default()).await.map(drop),
    ];
    for (call, result) in results.into_iter().enumerate() {
        assert!(matches!(result, Err(ClientError::ManagementNotAvailable)), "{call}: {result:?}");
    }
}
