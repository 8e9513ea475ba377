//! Spans (section 3, Tracing): one per turn and one per activity run, so that log lines of handlers and of
//! their libraries can be found by instance.

use steadfast::runtime::RuntimeOptions;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{ActivityContext, OrchestrationContext, TagFilter};
use steadfast_behaviour::{
    Lines, Span, Spans, activities, on_every_full_store, on_every_store, orchestrations,
};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn works() -> ActivityRegistryBuilder {
    activities().register("Work", |ctx: ActivityContext, _| async move {
        tracing::info!("a library says: working");
        ctx.trace_info("the activity says: working");
        tokio::task::yield_now().await;
        tracing::info!("a library says: worked");
        Ok(String::new())
    })
}

fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Flow", |ctx: OrchestrationContext, _| async move {
            tracing::info!("a library says: begins");
            ctx.trace_info("the orchestration says: begins");
            ctx.schedule_activity("Work", "").await?;
            tracing::info!("a library says: ends");
            Ok(String::new())
        })
        .register("Special", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity_on_session("Work", "", "desk").with_tag("gpu").await
        })
}

fn fields(span: &Span) -> Vec<(&str, &str)> {
    span.line.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// The one span around the one line with a text.
fn around(spans: &Spans, text: &str) -> Span {
    let found = spans.around(text);
    let [of_line] = found.as_slice() else { panic!("{text}: {found:?}") };
    let [span] = of_line.as_slice() else { panic!("{text}: {of_line:?}") };
    span.clone()
}

on_every_store! {
    async fn t3_what_an_orchestration_and_its_libraries_log_stands_in_the_span_of_its_turn(stage) {
        let (spans, _guard) = Spans::collect();
        stage.run(works(), flows()).await;
        stage.ends_after("a", "Flow", "").await.expect("completes");
        stage.stop().await;
        let turn = around(&spans, "the orchestration says: begins");
        assert_eq!(
            (turn.name.as_str(), turn.line.target.as_str(), turn.line.level.as_str()),
            ("turn", "steadfast::runtime", "INFO")
        );
        let expected = [
            ("execution_id", "1"),
            ("instance_id", "a"),
            ("orchestration_name", "Flow"),
            ("orchestration_version", "1.0.0"),
        ];
        assert_eq!(fields(&turn), expected);
        assert_eq!(around(&spans, "a library says: ends"), turn);
        assert_eq!(spans.named("turn").len(), 2, "one for each turn");
    }

    async fn t3_what_an_activity_and_its_libraries_log_stands_in_the_span_of_its_run(stage) {
        let (spans, _guard) = Spans::collect();
        stage.run(works(), flows()).await;
        stage.ends_after("a", "Flow", "").await.expect("completes");
        stage.stop().await;
        let run = around(&spans, "the activity says: working");
        assert_eq!(
            (run.name.as_str(), run.line.target.as_str(), run.line.level.as_str()),
            ("activity", "steadfast::runtime", "INFO")
        );
        let worker = run.line.field("worker_id").to_owned();
        assert!(worker.starts_with("work-"), "{worker}");
        let expected = [
            ("activity_id", "2"),
            ("activity_name", "Work"),
            ("attempt", "1"),
            ("execution_id", "1"),
            ("instance_id", "a"),
            ("orchestration_name", "Flow"),
            ("orchestration_version", "1.0.0"),
            ("worker_id", worker.as_str()),
        ];
        assert_eq!(fields(&run), expected);
        for text in ["a library says: working", "a library says: worked"] {
            assert_eq!(around(&spans, text), run);
        }
        assert_eq!(spans.named("activity").len(), 1);
    }

    async fn t3_the_session_and_the_tag_of_an_activity_are_fields_where_there_are_any(stage) {
        let (spans, _guard) = Spans::collect();
        let options = RuntimeOptions { worker_tag_filter: TagFilter::Any, ..stage.options() };
        stage.run_with(works(), flows(), options).await;
        stage.ends_after("a", "Special", "").await.expect("completes");
        stage.stop().await;
        let run = around(&spans, "the activity says: working");
        assert_eq!((run.line.field("session_id"), run.line.field("tag")), ("desk", "gpu"));
    }

    async fn t3_a_span_of_the_callers_is_no_parent(stage) {
        let (spans, _guard) = Spans::collect();
        let request = tracing::info_span!("request").entered();
        stage.run(works(), flows()).await;
        stage.ends_after("a", "Flow", "").await.expect("completes");
        stage.stop().await;
        drop(request);
        assert_eq!(around(&spans, "a library says: ends").name, "turn");
        assert_eq!(around(&spans, "a library says: worked").name, "activity");
    }

    async fn t3_an_execution_that_ends_without_its_code_has_a_span_too(stage) {
        let (spans, _guard) = Spans::collect();
        stage.start("a", "Flow", "").await;
        stage.observer().terminate_instance("a", "enough").await.expect("asks");
        stage.run(works(), flows()).await;
        stage.ends("a").await.expect_err("is terminated");
        stage.stop().await;
        let turn = around(&spans, "the execution is ended without its code");
        assert_eq!((turn.name.as_str(), turn.line.field("instance_id")), ("turn", "a"));
    }

    async fn t3_lines_have_the_fields_they_always_had(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run(works(), flows()).await;
        stage.ends_after("a", "Flow", "").await.expect("completes");
        stage.stop().await;
        let [line] = lines.of("steadfast::orchestration").try_into().expect("one line");
        let expected =
            ["execution_id", "instance_id", "message", "orchestration_name", "orchestration_version"];
        assert_eq!(line.names(), expected);
    }
}

on_every_full_store! {
    async fn t3_the_trace_context_is_a_field_of_both_spans(stage) {
        let (spans, _guard) = Spans::collect();
        stage.run(works(), flows()).await;
        let client = stage.client.with_traceparent(TRACE).expect("is one");
        client.start_orchestration("a", "Flow", "").await.expect("starts");
        stage.ends("a").await.expect("completes");
        stage.stop().await;
        let of = |name| {
            spans.named(name).iter().map(|span| span.line.field("traceparent").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!((of("turn"), of("activity")), (vec![TRACE.to_owned(); 2], vec![TRACE.to_owned()]));
    }

    async fn t3_a_message_with_a_trace_context_is_told_in_the_turn_that_takes_it(stage) {
        let (spans, _guard) = Spans::collect();
        let flow = orchestrations().register("Listen", |ctx: OrchestrationContext, _| async move {
            Ok(ctx.schedule_wait("news").await)
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Listen", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let client = stage.client.with_traceparent(TRACE).expect("is one");
        client.raise_event("a", "news", "").await.expect("raises");
        stage.ends("a").await.expect("completes");
        stage.stop().await;
        let turn = around(&spans, "a message came with a trace context");
        assert_eq!((turn.name.as_str(), turn.line.field("traceparent")), ("turn", ""));
    }
}
