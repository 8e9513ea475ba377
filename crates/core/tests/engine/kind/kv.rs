//! Key-value state and the custom status.

use steadfast_core::KvEntry;

use crate::support::*;

#[test]
fn code_sees_the_state_that_was_left_and_what_it_wrote() {
    let mut story = story(|ctx, _| async move {
        let before = ctx.get_kv_value("old");
        ctx.set_kv_value("new", "1");
        ctx.set_kv_value_typed("typed", &vec![1, 2]);
        let typed: Option<Vec<u8>> = ctx.get_kv_value_typed("typed")?;
        ctx.clear_kv_value("old");
        Ok(format!(
            "{before:?} {typed:?} {:?} {} {:?}",
            ctx.get_kv_all_keys(),
            ctx.get_kv_length(),
            ctx.get_kv_all_values().get("new"),
        ))
    })
    .kv("old", "o", 5);
    assert_eq!(story.output([]), r#"Some("o") Some([1, 2]) ["new", "typed"] 2 Some("1")"#);
}

#[test]
fn a_value_that_is_no_such_json_names_its_key() {
    let mut story = story(|ctx, _| async move { Ok(ctx.get_kv_value_typed::<u32>("k").unwrap_err()) })
        .kv("k", "seven", 1);
    let text = story.output([]);
    assert!(text.starts_with("KV deserialization error for key 'k': "), "{text}");
}

#[test]
fn clearing_all_leaves_nothing() {
    let mut story = story(|ctx, _| async move {
        ctx.set_kv_value("b", "");
        ctx.clear_all_kv_values();
        Ok(ctx.get_kv_length().to_string())
    })
    .kv("a", "", 1);
    assert_eq!(story.output([]), "0");
}

#[test]
fn a_write_is_stamped_with_the_time_of_the_turn() {
    let mut story = story(|ctx, _| async move {
        ctx.set_kv_value("k", "v");
        Ok(String::new())
    });
    let turn = story.turn([]);
    let steadfast_core::EventKind::KeyValueSet { last_updated_at_ms, .. } = &turn.events[1].kind else {
        panic!("{turn:?}")
    };
    assert_eq!(*last_updated_at_ms, 1_000);
}

#[test]
fn pruning_clears_older_keys_in_key_order_and_those_of_the_same_turn_too() {
    let mut story = story(|ctx, _| async move {
        ctx.set_kv_value("c", "now");
        let kept = ctx.prune_kv_values_updated_before(1_000);
        let all = ctx.prune_kv_values_updated_before(1_001);
        Ok(format!("{kept} {all}"))
    })
    .kv("b", "", 999)
    .kv("a", "", 10);
    assert_eq!(
        story.events([]),
        [
            "1 Started()",
            "2 KeyValueSet(c, now)",
            "3 KeyValueCleared(a)",
            "4 KeyValueCleared(b)",
            "5 KeyValueCleared(c)",
            "6 Completed(2 1)",
        ]
    );
}

#[test]
fn a_key_of_another_instance_is_read_and_decoded() {
    let mut story = story(|ctx, _| async move {
        let value = ctx.get_kv_value_from_instance_typed::<u32>("other", "k").await?;
        let bad = ctx.get_kv_value_from_instance_typed::<u32>("other", "k").await;
        let none = ctx.get_kv_value_from_instance("other", "k").await?;
        Ok(format!("{value:?} {} {none:?}", bad.unwrap_err()))
    });
    story.waits([]);
    story.waits([done(2, "\"7\"")]);
    story.waits([done(4, "\"x\"")]);
    let text = story.output([done(6, "null")]);
    assert!(text.starts_with("Some(7) KV deserialization error for key 'k': "), "{text}");
    assert!(text.ends_with(" None"), "{text}");
}

#[test]
fn a_value_that_cannot_be_encoded_fails_the_orchestration() {
    let mut story = story(|ctx, _| async move {
        ctx.set_kv_value_typed("k", &std::collections::BTreeMap::from([((1, 2), 3)]));
        Ok(String::new())
    });
    let text = story.failure([]);
    assert_has(&text, "the value of set_kv_value_typed at ");
    assert_has(&text, "kv.rs:");
}

#[test]
fn the_custom_status_is_seen_carried_and_cleared() {
    let mut story = story(|ctx, _| async move {
        let carried = ctx.get_custom_status();
        ctx.set_custom_status("own");
        let own = ctx.get_custom_status();
        ctx.reset_custom_status();
        Ok(format!("{carried:?} {own:?} {:?}", ctx.get_custom_status()))
    })
    .started(|start| start.custom_status = Some("before".into()));
    assert_eq!(story.output([]), r#"Some("before") Some("own") None"#);
}

#[test]
fn a_status_of_an_earlier_turn_or_execution_is_carried_on_and_a_cleared_one_is_not() {
    let carried = |how: &'static str| {
        let mut story = story(move |ctx, _| async move {
            match how {
                "set" => ctx.set_custom_status("early"),
                "reset" => ctx.reset_custom_status(),
                _ => {}
            }
            ctx.schedule_wait("go").await;
            ctx.continue_as_new("").await
        })
        .started(|start| start.custom_status = Some("before".into()));
        story.waits([]);
        let turn = story.turn([raise("go", "")]);
        match turn.effects.messages.into_iter().next().unwrap() {
            steadfast_core::WorkItem::ContinueAsNew { initial_custom_status, .. } => initial_custom_status,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(carried("set").as_deref(), Some("early"));
    assert_eq!(carried("keep").as_deref(), Some("before"));
    assert_eq!(carried("reset"), None);
}

#[test]
fn the_snapshot_is_not_recorded_again() {
    let entry = KvEntry { value: "v".into(), last_updated_at_ms: 1 };
    let mut story = story(|_, _| async move { Ok(String::new()) }).kv("k", &entry.value, 1);
    assert_eq!(story.turn([]).events.len(), 2);
}
