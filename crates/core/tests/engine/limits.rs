//! Limits: judged when something is first decided, at the limit and above it, and never on replay.

use steadfast_core::{
    ErrorDetails, EventKind, MAX_CUSTOM_STATUS_BYTES, MAX_KV_KEYS, MAX_KV_VALUE_BYTES, MAX_NAME_BYTES,
    MAX_TAG_NAME_BYTES, OrchestrationContext,
};

use crate::support::*;

fn text_of(size: usize) -> String {
    "x".repeat(size)
}

type Act = fn(&OrchestrationContext, usize);

/// Runs `act` with a number; gives the failure, if it is one.
fn refusal(number: usize, act: Act) -> Option<String> {
    refusal_with(number, act, |_| {})
}

fn refusal_with(
    number: usize,
    act: Act,
    options: impl FnOnce(&mut steadfast_core::replay::Options),
) -> Option<String> {
    let mut story = story(move |ctx, _| async move {
        act(&ctx, number);
        ctx.schedule_wait("never").await;
        Ok(String::new())
    })
    .parent(parent())
    .options(options);
    let turn = story.turn([]);
    if !turn.verdict.is_terminal() {
        return None;
    }
    assert!(turn.effects.parent.is_some(), "the parent is told (F6)");
    assert_eq!(turn.effects.work, []);
    let details = failure_of(&turn);
    assert!(matches!(details, ErrorDetails::Application { retryable: false, .. }), "{details:?}");
    Some(details.display_message())
}

#[track_caller]
fn assert_limit(max: usize, act: Act, text: &str) {
    assert_eq!(refusal(max, act), None, "exactly at the limit is fine");
    assert_eq!(refusal(max + 1, act).as_deref(), Some(text));
}

#[test]
fn a_custom_status_has_a_limit() {
    assert_limit(
        MAX_CUSTOM_STATUS_BYTES,
        |ctx, size| ctx.set_custom_status(text_of(size)),
        "Custom status size (262145 bytes) exceeds limit (262144 bytes)",
    );
}

#[test]
fn only_the_last_status_of_a_turn_is_judged() {
    let act = |ctx: &OrchestrationContext, size| {
        ctx.set_custom_status(text_of(size));
        ctx.set_custom_status("short");
        ctx.reset_custom_status();
    };
    assert_eq!(refusal(MAX_CUSTOM_STATUS_BYTES + 1, act), None);
}

#[test]
fn a_tag_has_a_limit() {
    assert_limit(
        MAX_TAG_NAME_BYTES,
        |ctx, size| drop(ctx.schedule_activity("a", "").with_tag(text_of(size))),
        "Activity 'a' tag size (257 bytes) exceeds limit (256 bytes)",
    );
}

#[test]
fn the_value_of_a_key_has_a_limit() {
    assert_limit(
        MAX_KV_VALUE_BYTES,
        |ctx, size| ctx.set_kv_value("k", text_of(size)),
        "KV value for key 'k' (65537 bytes) exceeds limit (65536 bytes)",
    );
}

#[test]
fn the_keys_of_an_instance_have_a_limit() {
    assert_limit(
        MAX_KV_KEYS,
        |ctx, keys| (0..keys).for_each(|key| ctx.set_kv_value(key.to_string(), "")),
        "KV key count (151) exceeds limit (150)",
    );
}

#[test]
fn limits_of_a_turn_are_judged_in_the_order_status_tag_value_keys() {
    let all = |ctx: &OrchestrationContext, from: usize| {
        if from == 0 {
            ctx.set_custom_status(text_of(MAX_CUSTOM_STATUS_BYTES + 1));
        }
        if from <= 1 {
            drop(ctx.schedule_activity("a", "").with_tag(text_of(MAX_TAG_NAME_BYTES + 1)));
        }
        (0..=MAX_KV_KEYS).for_each(|key| ctx.set_kv_value(key.to_string(), ""));
        if from <= 2 {
            ctx.set_kv_value("0", text_of(MAX_KV_VALUE_BYTES + 1));
        }
    };
    for (from, text) in ["Custom status size", "tag size", "KV value", "KV key count"].iter().enumerate() {
        assert_has(&refusal(from, all).unwrap(), text);
    }
}

#[test]
fn names_ids_and_keys_have_a_limit() {
    let cases: [(&str, Act); 9] = [
        ("activity name", |ctx, size| drop(ctx.schedule_activity(text_of(size), ""))),
        ("event name", |ctx, size| drop(ctx.schedule_wait(text_of(size)))),
        ("queue name", |ctx, size| drop(ctx.dequeue_event(text_of(size)))),
        ("orchestration name", |ctx, size| drop(ctx.schedule_sub_orchestration(text_of(size), ""))),
        ("instance id", |ctx, size| {
            drop(ctx.schedule_sub_orchestration_with_id("c", text_of(size), ""));
        }),
        ("orchestration name", |ctx, size| ctx.schedule_orchestration(text_of(size), "d", "")),
        ("instance id", |ctx, size| ctx.schedule_orchestration("d", text_of(size), "")),
        ("KV key", |ctx, size| ctx.set_kv_value(text_of(size), "")),
        ("session id", |ctx, size| drop(ctx.schedule_activity_on_session("a", "", text_of(size)))),
    ];
    for (what, act) in cases {
        let text = format!("{what} size (1025 bytes) exceeds limit (1024 bytes)");
        assert_limit(MAX_NAME_BYTES, act, &text);
    }
}

#[test]
fn a_nul_is_refused_in_names_and_ids_and_allowed_in_payloads() {
    let cases: [Act; 10] = [
        |ctx, _| drop(ctx.schedule_activity("a\0", "")),
        |ctx, _| drop(ctx.schedule_activity("a", "").with_tag("t\0")),
        |ctx, _| drop(ctx.schedule_activity_on_session("a", "", "s\0")),
        |ctx, _| drop(ctx.schedule_wait("w\0")),
        |ctx, _| drop(ctx.dequeue_event("q\0")),
        |ctx, _| drop(ctx.schedule_sub_orchestration("c\0", "")),
        |ctx, _| drop(ctx.schedule_sub_orchestration_with_id("c", "id\0", "")),
        |ctx, _| ctx.schedule_orchestration("d", "id\0", ""),
        |ctx, _| ctx.set_kv_value("k\0", ""),
        |ctx, _| drop(ctx.wait_for_session_migration("s\0")),
    ];
    for act in cases {
        assert_has(&refusal(0, act).unwrap(), "contains a NUL character");
    }
    let payloads = |ctx: &OrchestrationContext, _| {
        drop(ctx.schedule_activity("a", "\0"));
        ctx.schedule_orchestration("d", "id", "\0");
        ctx.set_custom_status("\0");
        ctx.set_kv_value("k", "\0");
    };
    assert_eq!(refusal(0, payloads), None);
}

#[test]
fn a_made_child_id_counts_with_its_parent() {
    let mut story = story(|ctx, _| async move { ctx.schedule_sub_orchestration("c", "").await });
    let mut setup = story.setup().clone();
    setup.identity.instance = "p".repeat(MAX_NAME_BYTES);
    let mut long = steadfast_core::replay::Execution::start(setup, Default::default(), |ctx, _| async move {
        ctx.schedule_sub_orchestration("c", "").await
    });
    assert_has(&failure_of(&long.turn(1, vec![])).display_message(), "instance id size (1032 bytes)");
    story.waits([]);
}

#[test]
fn payloads_have_a_limit_that_is_an_option() {
    let cases: [(&str, Act); 4] = [
        ("activity input", |ctx, size| drop(ctx.schedule_activity("a", text_of(size)))),
        ("orchestration input", |ctx, size| drop(ctx.schedule_sub_orchestration("c", text_of(size)))),
        ("orchestration input", |ctx, size| ctx.schedule_orchestration("d", "d", text_of(size))),
        ("continue-as-new input", |ctx, size| drop(ctx.continue_as_new(text_of(size)))),
    ];
    for (what, act) in cases {
        let text = format!("{what} size (11 bytes) exceeds limit (10 bytes)");
        assert_eq!(refusal_with(11, act, |options| options.max_payload_bytes = 10).as_deref(), Some(&*text));
    }
    for (result, what) in
        [(Ok(text_of(11)), "orchestration output"), (Err(text_of(11)), "orchestration error")]
    {
        let mut story = story(move |_, _| {
            let result = result.clone();
            async move { result }
        })
        .options(|options| options.max_payload_bytes = 10);
        assert_eq!(story.failure([]), format!("{what} size (11 bytes) exceeds limit (10 bytes)"));
    }
}

#[test]
fn exactly_at_the_payload_limit_is_fine() {
    let mut story =
        story(|_, _| async move { Ok(text_of(10)) }).options(|options| options.max_payload_bytes = 10);
    assert_eq!(story.output([]).len(), 10);
}

#[test]
fn a_refused_call_is_not_recorded_and_those_before_it_are() {
    let mut story = story(|ctx, _| async move {
        ctx.set_custom_status("before");
        ctx.set_kv_value("k\0", "");
        ctx.set_custom_status("after");
        Ok(String::new())
    });
    assert_eq!(story.events([])[1], "2 CustomStatusUpdated(Some(\"before\"))");
    assert_eq!(story.history.len(), 3);
}

#[test]
fn a_history_written_under_larger_limits_replays() {
    let mut kinds = vec![
        started(""),
        (None, EventKind::CustomStatusUpdated { status: Some(text_of(MAX_CUSTOM_STATUS_BYTES + 1)) }),
        scheduled(&text_of(MAX_NAME_BYTES + 1), &text_of(11)),
    ];
    for key in 0..=MAX_KV_KEYS {
        let value = text_of(if key == 0 { MAX_KV_VALUE_BYTES + 1 } else { 1 });
        let kind = EventKind::KeyValueSet { key: format!("{key}\0"), value, last_updated_at_ms: 1 };
        kinds.push((None, kind));
    }
    let mut setup = setup();
    setup.options.max_payload_bytes = 10;
    let mut execution =
        steadfast_core::replay::Execution::replay(setup, history(kinds), |ctx, _| async move {
            ctx.set_custom_status(text_of(MAX_CUSTOM_STATUS_BYTES + 1));
            let answer = ctx.schedule_activity(text_of(MAX_NAME_BYTES + 1), text_of(11));
            for key in 0..=MAX_KV_KEYS {
                let value = text_of(if key == 0 { MAX_KV_VALUE_BYTES + 1 } else { 1 });
                ctx.set_kv_value(format!("{key}\0"), value);
            }
            answer.await?;
            ctx.clear_kv_value("1");
            ctx.schedule_activity("b", "").await
        });
    let turn = execution.turn(2_000, vec![done(3, "answer that is long")]);
    assert_eq!(lines(&turn.events).last().unwrap(), "157 ActivityScheduled(b, )");
}

#[test]
fn a_long_history_is_told_of_once() {
    let mut story = story(|ctx, _| async move {
        loop {
            ctx.dequeue_event("q").await;
        }
    })
    .warm_only();
    let mut told = 0;
    for _ in 0..27 {
        let turn = story.turn((0..1_000).map(|_| enqueue("q", "")));
        told += turn.notices.len();
    }
    assert!(story.history.len() > steadfast_core::WARN_HISTORY_EVENTS);
    assert_eq!(told, 1);
}

#[test]
fn calls_of_one_turn_have_a_limit() {
    let mut story = story(|ctx, _| async move {
        for _ in 0..=steadfast_core::MAX_ACTIONS_PER_TURN {
            ctx.reset_custom_status();
        }
        Ok(String::new())
    })
    .warm_only();
    assert_has(&story.failure([]), "the number of calls in one turn exceeds limit (1000000)");
}

#[test]
fn calls_of_many_turns_have_no_limit_on_replay() {
    let half = steadfast_core::MAX_ACTIONS_PER_TURN / 2 + 1;
    let mut story = story(move |ctx, _| async move {
        for _ in 0..2 {
            for _ in 0..half {
                ctx.reset_custom_status();
            }
            ctx.schedule_wait("go").await;
        }
        Ok("both".into())
    })
    .warm_only();
    story.waits([]);
    story.waits([raise("go", "")]);
    let turn = story.replayed().turn(5_000, vec![raise("go", "")]);
    assert_eq!(lines(&turn.events).last().unwrap().split_once(' ').unwrap().1, "Completed(both)");
}
