//! The typed codec (1.2): what it writes and reads at registrations, activities, children, events and
//! outputs.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{ActivityContext, AppErrorKind, ErrorDetails, EventKind, OrchestrationContext};
use steadfast_behaviour::{SOON, Stage, activities, on_every_store, orchestrations};

use crate::workbench::Unwritable;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Order {
    total: u32,
    id: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Small,
    Wide(u8),
}

fn order() -> Order {
    Order { total: 5, id: "a".to_owned() }
}

/// The order as the codec writes it: its keys in alphabetical order.
const ORDER: &str = r#"{"id":"a","total":5}"#;

/// `Same` returns its input untouched, so that its result is what was written.
fn same() -> ActivityRegistryBuilder {
    activities().register("Same", |_: ActivityContext, input: String| async move { Ok(input) })
}

/// `Child` returns its input untouched.
fn child() -> OrchestrationRegistryBuilder {
    orchestrations().register("Child", |_: OrchestrationContext, input: String| async move { Ok(input) })
}

fn failed(message: &str) -> ErrorDetails {
    let kind = AppErrorKind::OrchestrationFailed;
    ErrorDetails::Application { kind, message: message.to_owned(), retryable: false }
}

fn panicked(message: &str) -> ErrorDetails {
    let kind = AppErrorKind::Panicked;
    ErrorDetails::Application { kind, message: message.to_owned(), retryable: false }
}

/// Writes a value as the input of an activity; returns the text that history has, and the value that comes
/// back.
async fn written<In, Out>(stage: &Stage, instance: &str, value: In) -> (String, Result<Out, String>)
where
    In: Serialize + Clone + Send + Sync + 'static,
    Out: Serialize + DeserializeOwned + Send + 'static,
{
    let (sender, receiver) = std::sync::mpsc::channel();
    let flow = orchestrations().register("Write", move |ctx: OrchestrationContext, _| {
        let (value, sender) = (value.clone(), sender.clone());
        async move {
            let result = ctx.schedule_activity_typed::<In, Out>("Same", &value).await;
            sender.send(result).map_err(|error| error.to_string())?;
            Ok(String::new())
        }
    });
    stage.run(same(), flow).await;
    stage.ends_after(instance, "Write", "").await.expect("completes");
    stage.stop().await;
    let history = stage.history(instance).await;
    let Some(EventKind::ActivityScheduled { input, .. }) = history.get(1).map(|event| event.kind.clone())
    else {
        panic!("{history:?}");
    };
    (input, receiver.try_recv().expect("a result"))
}

/// The error of an output of `Same` that is no value of the type.
fn of_output(of_type: &str, error: &str, value: &str) -> String {
    format!("output of activity 'Same' cannot be read as {of_type}: {error}; it begins with {value:?}")
}

on_every_store! {
    async fn c1_2_a_string_is_written_without_quotes_and_read_back(stage) {
        let text = "it's \"quoted\"\n".to_owned();
        assert_eq!(written(&stage, "a", text.clone()).await, (text.clone(), Ok(text)));
    }

    async fn c1_2_a_string_that_is_another_kind_of_json_stays_a_string(stage) {
        for (instance, text) in [("a", "5"), ("b", "null"), ("c", "[1]"), ("d", r#"{"id":"a"}"#), ("e", "")] {
            let back = written::<String, String>(&stage, instance, text.to_owned()).await;
            assert_eq!(back, (text.to_owned(), Ok(text.to_owned())));
        }
    }

    async fn c1_2_a_string_that_is_a_json_string_loses_its_quotes_when_it_is_read(stage) {
        let back = written::<String, String>(&stage, "a", "\"x\"".to_owned()).await;
        assert_eq!(back, ("\"x\"".to_owned(), Ok("x".to_owned())));
        // A text that is JSON is read as that JSON where the type allows it.
        let back = written::<String, Vec<u8>>(&stage, "b", "[1]".to_owned()).await;
        assert_eq!(back, ("[1]".to_owned(), Ok(vec![1])));
        let back = written::<Option<String>, Option<String>>(&stage, "c", Some("null".to_owned())).await;
        assert_eq!(back, ("null".to_owned(), Ok(None)));
    }

    async fn c1_2_other_values_are_compact_json_with_sorted_keys(stage) {
        assert_eq!(written(&stage, "a", order()).await, (ORDER.to_owned(), Ok(order())));
        assert_eq!(written(&stage, "b", ()).await, ("null".to_owned(), Ok(())));
        assert_eq!(written(&stage, "c", (1, "x")).await, (r#"[1,"x"]"#.to_owned(), Ok((1, "x".to_owned()))));
        assert_eq!(written(&stage, "d", None::<u8>).await, ("null".to_owned(), Ok(None::<u8>)));
        assert_eq!(written(&stage, "e", true).await, ("true".to_owned(), Ok(true)));
        assert_eq!(written(&stage, "f", 1.5).await, ("1.5".to_owned(), Ok(1.5)));
    }

    async fn c1_2_a_unit_variant_is_its_bare_name(stage) {
        let flow = orchestrations().register("Enum", |ctx: OrchestrationContext, _| async move {
            let small: Shape = ctx.schedule_activity_typed("Same", &Shape::Small).await?;
            let wide: Shape = ctx.schedule_activity_typed("Same", &Shape::Wide(2)).await?;
            Ok(format!("{small:?} {wide:?}"))
        });
        stage.run(same(), flow).await;
        assert_eq!(stage.ends_after("a", "Enum", "").await, Ok("Small Wide(2)".to_owned()));
        let inputs = stage.history("a").await.into_iter().filter_map(|event| match event.kind {
            EventKind::ActivityScheduled { input, .. } => Some(input),
            _ => None,
        });
        assert_eq!(inputs.collect::<Vec<_>>(), ["Small", r#"{"Wide":2}"#]);
        stage.stop().await;
    }

    async fn c1_2_an_output_that_is_no_such_value_is_an_error_with_its_text(stage) {
        let (_, back) = written::<String, u8>(&stage, "a", "five".to_owned()).await;
        assert_eq!(back, Err(of_output("u8", "invalid type: string \"five\", expected u8", "five")));
        let (_, back) = written::<u32, u8>(&stage, "b", 300).await;
        let text = "invalid value: integer `300`, expected u8 at line 1 column 3";
        assert_eq!(back, Err(of_output("u8", text, "300")));
        let (_, back) = written::<String, Order>(&stage, "c", "{}".to_owned()).await;
        let text = "missing field `total` at line 1 column 2";
        assert_eq!(back, Err(of_output("Order", text, "{}")));
    }

    async fn g32_a_type_error_names_the_place_the_type_and_the_beginning_of_the_value(stage) {
        let typed = activities().register_typed("Pack", |_: ActivityContext, parts: Vec<u8>| async move {
            Ok(parts.len())
        });
        let flow = orchestrations()
            .register_typed("Ship", |ctx: OrchestrationContext, parts: Vec<u8>| async move {
                ctx.schedule_activity_typed::<_, String>("Pack", &parts[0]).await
            })
            .register_typed("Sum", |ctx: OrchestrationContext, parts: Vec<u8>| async move {
                ctx.schedule_activity_typed::<_, Vec<u8>>("Pack", &parts).await
            });
        stage.run(typed, flow).await;
        for (instance, orchestration, input, place) in [
            ("a", "Ship", "5", "input of orchestration 'Ship' cannot be read as Vec<u8>"),
            ("b", "Ship", "[5]", "input of activity 'Pack' cannot be read as Vec<u8>"),
            ("c", "Sum", "[1,2,3,4,5]", "output of activity 'Pack' cannot be read as Vec<u8>"),
        ] {
            let error = stage.ends_after(instance, orchestration, input).await.expect_err("another type");
            let text = "invalid type: integer `5`, expected a sequence at line 1 column 1; \
                        it begins with \"5\"";
            assert_eq!(error, failed(&format!("{place}: {text}")));
        }
        stage.stop().await;
    }

    async fn c1_2_an_input_that_cannot_be_encoded_is_an_error_and_nothing_is_scheduled(stage) {
        let flow = orchestrations().register("Bad", |ctx: OrchestrationContext, _| async move {
            let results = [
                ctx.schedule_activity_typed::<_, u8>("Same", &Unwritable).await,
                ctx.schedule_activity_on_session_typed::<_, u8>("Same", &Unwritable, "s").await,
                ctx.schedule_sub_orchestration_typed::<_, u8>("Child", &Unwritable).await,
                ctx.schedule_sub_orchestration_with_id_typed::<_, u8>("Child", "kid", &Unwritable).await,
            ];
            let again = ctx.continue_as_new_typed(&Unwritable).await;
            let all = results.into_iter().all(|result| result == Err("cannot be written".to_owned()));
            Ok(format!("{all} {again:?}"))
        });
        stage.run(same(), flow).await;
        assert_eq!(stage.ends_after("a", "Bad", "").await, Ok(r#"true Err("cannot be written")"#.to_owned()));
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationCompleted"]);
        stage.stop().await;
    }

    async fn c1_2_what_cannot_be_encoded_where_there_is_no_result_fails_the_orchestration(stage) {
        let flow = orchestrations()
            .register("Key", |ctx: OrchestrationContext, _| async move {
                ctx.set_kv_value_typed("k", &Unwritable);
                Ok("went on".to_owned())
            })
            .register("Detached", |ctx: OrchestrationContext, _| async move {
                ctx.schedule_orchestration_typed("Child", "kid", &Unwritable);
                Ok("went on".to_owned())
            });
        stage.run(same(), flow).await;
        for (instance, orchestration, what) in [
            ("a", "Key", "the value of set_kv_value_typed"),
            ("b", "Detached", "the input of schedule_orchestration"),
        ] {
            let details = stage.ends_after(instance, orchestration, "").await.expect_err("fails");
            let text = details.display_message();
            assert!(text.contains(what) && text.contains("cannot be written"), "{text}");
            assert_eq!(stage.kinds(instance).await, ["OrchestrationStarted", "OrchestrationFailed"]);
        }
        stage.stop().await;
    }

    async fn c1_2_typed_registrations_decode_their_input_and_encode_their_output(stage) {
        let typed =
            activities().register_typed("Double", |_: ActivityContext, mut order: Order| async move {
                order.total *= 2;
                Ok(order)
            });
        let flow = orchestrations()
            .register_typed("Typed", |ctx: OrchestrationContext, order: Order| async move {
                ctx.schedule_activity_typed::<Order, Order>("Double", &order).await
            })
            .register_versioned_typed(
                "Unit",
                "1.0.0",
                |_: OrchestrationContext, (): ()| async move { Ok(()) },
            )
            .register_typed("Text", |_: OrchestrationContext, text: String| async move { Ok(text) });
        stage.run(typed, flow).await;
        assert_eq!(stage.ends_after("a", "Typed", ORDER).await, Ok(r#"{"id":"a","total":10}"#.to_owned()));
        assert_eq!(stage.ends_after("b", "Unit", "null").await, Ok("null".to_owned()));
        assert_eq!(stage.ends_after("c", "Text", "bare").await, Ok("bare".to_owned()));
        stage.client.start_orchestration_typed("d", "Typed", order()).await.expect("starts");
        let doubled = stage.client.wait_for_orchestration_typed::<Order>("d", SOON).await.expect("ends");
        assert_eq!(doubled, Ok(Order { total: 10, ..order() }));
        let EventKind::OrchestrationStarted { input, .. } = &stage.history("d").await[0].kind else {
            panic!("it started")
        };
        assert_eq!(input, ORDER);
        stage.stop().await;
    }

    async fn c1_2_an_input_that_is_no_such_value_is_the_error_of_a_typed_orchestration(stage) {
        let flow = orchestrations()
            .register_typed("One", |_: OrchestrationContext, order: Order| async move { Ok(order) })
            .register_versioned_typed("Two", "1.2.0", |_: OrchestrationContext, n: u8| async move { Ok(n) });
        stage.run(same(), flow).await;
        let text = "input of orchestration 'One' cannot be read as Order: \
                    missing field `total` at line 1 column 2; it begins with \"{}\"";
        assert_eq!(stage.ends_after("a", "One", "{}").await, Err(failed(text)));
        let text = "input of orchestration 'Two' cannot be read as u8: \
                    invalid type: string \"x\", expected u8; it begins with \"x\"";
        assert_eq!(stage.ends_after("b", "Two", "x").await, Err(failed(text)));
        assert_eq!(stage.kinds("b").await, ["OrchestrationStarted", "OrchestrationFailed"]);
        stage.stop().await;
    }

    async fn c1_2_an_input_that_is_no_such_value_is_the_error_of_a_typed_activity(stage) {
        let typed = activities()
            .register_typed("Typed", |_: ActivityContext, n: u8| async move { Ok(n) })
            .register_typed("Bad", |_: ActivityContext, (): ()| async move { Ok(Unwritable) });
        let flow = orchestrations().register("Call", |ctx: OrchestrationContext, _| async move {
            let decode = ctx.schedule_activity("Typed", "x").await;
            let encode = ctx.schedule_activity("Bad", "null").await;
            Ok(format!("{decode:?} {encode:?}"))
        });
        stage.run(typed, flow).await;
        let message = "input of activity 'Typed' cannot be read as u8: \
                       invalid type: string \"x\", expected u8; it begins with \"x\""
            .to_owned();
        let unwritten = "output of activity 'Bad' cannot be written, a Unwritable: cannot be written";
        let expected = format!("Err({message:?}) Err({unwritten:?})");
        assert_eq!(stage.ends_after("a", "Call", "").await, Ok(expected));
        let EventKind::ActivityFailed { details } = &stage.history("a").await[2].kind else {
            panic!("it failed")
        };
        let kind = AppErrorKind::ActivityFailed;
        assert_eq!(*details, ErrorDetails::Application { kind, message, retryable: false });
        stage.stop().await;
    }

    async fn c1_2_an_output_that_cannot_be_encoded_is_the_error_of_a_typed_orchestration(stage) {
        let flow = orchestrations()
            .register_typed("Bad", |_: OrchestrationContext, (): ()| async move { Ok(Unwritable) });
        stage.run(same(), flow).await;
        let text = "output of orchestration 'Bad' cannot be written, a Unwritable: cannot be written";
        assert_eq!(stage.ends_after("a", "Bad", "null").await, Err(failed(text)));
        stage.stop().await;
    }

    async fn c1_2_typed_children_and_successors_get_what_the_codec_writes(stage) {
        let flow = child().register("Parent", |ctx: OrchestrationContext, input: String| async move {
            if input == ORDER {
                return Ok("second".to_owned());
            }
            let auto: Order = ctx.schedule_sub_orchestration_typed("Child", &order()).await?;
            let named: String = ctx.schedule_sub_orchestration_with_id_typed("Child", "kid", &"text").await?;
            let wrong = ctx.schedule_sub_orchestration_typed::<_, u8>("Child", &"text").await;
            ctx.schedule_orchestration_typed("Child", "free", &order());
            ctx.schedule_orchestration_versioned_typed("Child", None, "bare", &"text");
            assert_eq!((auto, named.as_str()), (order(), "text"));
            let wrong = wrong.expect_err("is no number");
            assert!(wrong.starts_with("output of orchestration 'Child' cannot be read as u8: "), "{wrong}");
            ctx.continue_as_new_typed(&order()).await
        });
        stage.run(same(), flow).await;
        assert_eq!(stage.ends_after("a", "Parent", "first").await, Ok("second".to_owned()));
        for (instance, input) in [("kid", "text"), ("free", ORDER), ("bare", "text"), ("a::sub::2", ORDER)] {
            assert_eq!(stage.output(instance).await, Ok(input.to_owned()), "{instance}");
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_2_typed_events_and_messages_are_decoded_and_errors_are_texts(stage) {
        let flow = orchestrations().register("Hear", |ctx: OrchestrationContext, _| async move {
            let first: Order = ctx.dequeue_event_typed("mail").await;
            let second = ctx.try_dequeue_event_typed::<u8>("mail").await;
            let third: Order = ctx.schedule_wait_typed("go").await;
            let fourth = ctx.try_schedule_wait_typed::<u8>("go").await;
            Ok(format!("{} {second:?} {} {fourth:?}", first.id, third.total))
        });
        stage.run(same(), flow).await;
        stage.start("a", "Hear", "").await;
        stage.client.enqueue_event_typed("a", "mail", &order()).await.expect("sends");
        stage.has("a", "QueueSubscribed", 2).await;
        stage.client.enqueue_event_typed("a", "mail", &"x").await.expect("sends");
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.raise_event_typed("a", "go", &order()).await.expect("raises");
        stage.has("a", "ExternalSubscribed", 2).await;
        stage.client.raise_event_typed("a", "go", &"y").await.expect("raises");
        let error = |text| format!(r#"Err("invalid type: string \"{text}\", expected u8")"#);
        assert_eq!(stage.output("a").await, Ok(format!("a {} 5 {}", error("x"), error("y"))));
        let data = stage.history("a").await.into_iter().filter_map(|event| match event.kind {
            EventKind::ExternalEvent { data, .. } | EventKind::QueueEventDelivered { data, .. } => Some(data),
            _ => None,
        });
        assert_eq!(data.collect::<Vec<_>>(), [ORDER, "x", ORDER, "y"]);
        stage.stop().await;
    }

    async fn c1_8_the_compatible_typed_waits_panic_in_their_orchestration_only(stage) {
        let flow = orchestrations()
            .register("Wait", |ctx: OrchestrationContext, _| async move {
                let n: u8 = ctx.schedule_wait_typed("go").await;
                Ok(n.to_string())
            })
            .register("Take", |ctx: OrchestrationContext, _| async move {
                let n: u8 = ctx.dequeue_event_typed("mail").await;
                Ok(n.to_string())
            });
        stage.run(same(), flow).await;
        stage.start("a", "Wait", "").await;
        stage.start("b", "Take", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.raise_event("a", "go", "x").await.expect("raises");
        stage.has("b", "QueueSubscribed", 1).await;
        stage.client.enqueue_event("b", "mail", "x").await.expect("sends");
        let text = "cannot be decoded: invalid type: string \"x\", expected u8";
        assert_eq!(stage.ends("a").await, Err(panicked(&format!("event data {text}"))));
        assert_eq!(stage.ends("b").await, Err(panicked(&format!("queue message {text}"))));
        stage.stop().await;
    }
}
