//! Children: how they are named, started and heard of.

use steadfast_core::replay::AnsweredChild;
use steadfast_core::{EventKind, WorkItem};

use crate::support::*;

#[test]
fn ids_made_in_the_first_execution_carry_the_event_alone() {
    let mut story = story(|ctx, _| async move {
        ctx.set_custom_status("one before");
        ctx.schedule_sub_orchestration("c", "").await
    });
    let turn = story.waits([]);
    assert_eq!(lines(&turn.events)[2], "3 SubOrchestrationScheduled(c, sub::3, )");
    assert_eq!(sent(&turn), ["start i::sub::3 c() for 3"]);
}

#[test]
fn ids_made_in_a_later_execution_carry_its_number_too() {
    let mut story = story(|ctx, _| async move { ctx.schedule_sub_orchestration("c", "").await }).execution(4);
    let turn = story.waits([]);
    assert_eq!(lines(&turn.events)[1], "2 SubOrchestrationScheduled(c, sub::4_2, )");
    assert_eq!(sent(&turn), ["start i::sub::4_2 c() for 2"]);
}

#[test]
fn an_id_of_ones_own_is_taken_verbatim() {
    let mut story =
        story(|ctx, _| async move { ctx.schedule_sub_orchestration_with_id("c", "a::sub::b", "").await });
    let turn = story.waits([]);
    assert_eq!(lines(&turn.events)[1], "2 SubOrchestrationScheduled(c, a::sub::b, )");
    assert_eq!(sent(&turn), ["start a::sub::b c() for 2"]);
}

#[test]
fn an_id_with_the_reserved_marker_is_refused_at_once_without_an_event() {
    let mut story = story(|ctx, _| async move {
        Ok(ctx.schedule_sub_orchestration_with_id("c", "sub::9", "").await.unwrap_err())
    });
    let turn = story.turn([]);
    assert_eq!(turn.events.len(), 2);
    let text = lines(&turn.events)[1].clone();
    assert_has(&text, "reserved marker");
    assert_has(&text, "sub::9");
}

#[test]
fn a_detached_id_with_the_reserved_marker_panics_and_fails_the_orchestration() {
    for id in ["sub::9", "x::sub::9"] {
        let mut story = story(|ctx, id| async move {
            ctx.schedule_orchestration("c", id, "");
            Ok(String::new())
        })
        .input(id);
        let text = story.failure([]);
        assert_has(&text, "orchestration panicked:");
        assert_has(&text, "reserved sub-orchestration marker");
    }
}

#[test]
fn a_detached_id_with_the_reserved_marker_is_an_error_where_asked_for() {
    let mut story = story(|ctx, _| async move {
        let refused = ctx.try_schedule_orchestration("c", None, "sub::9", "");
        ctx.try_schedule_orchestration("c", None, "fine", "")?;
        refused.map(|()| String::new())
    });
    let turn = story.turn([]);
    assert_has(&failure_of(&turn).display_message(), "reserved sub-orchestration marker");
    assert_eq!(sent(&turn), ["start fine c()"]);
}

#[test]
fn the_requested_version_is_sent_and_recorded() {
    let mut story = story(|ctx, _| async move {
        ctx.schedule_orchestration_versioned("d", Some("3.0.0".into()), "d-1", "");
        ctx.schedule_sub_orchestration_versioned("c", Some("2.0.0".into()), "").await
    });
    let turn = story.waits([]);
    let versions: Vec<_> = turn.events.iter().filter_map(|event| event.child_version.as_deref()).collect();
    assert_eq!(versions, ["3.0.0", "2.0.0"]);
    let sent_versions: Vec<_> = turn
        .effects
        .messages
        .iter()
        .map(|message| match message {
            WorkItem::StartOrchestration { version, .. } => version.as_deref(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sent_versions, [Some("3.0.0"), Some("2.0.0")]);
}

#[test]
fn replay_uses_the_id_that_history_records() {
    let mut events = history([
        started(""),
        (
            None,
            EventKind::SubOrchestrationScheduled {
                name: "c".into(),
                instance: "recorded".into(),
                input: String::new(),
            },
        ),
    ]);
    events = stamped(events, "0.1.32");
    let mut execution = steadfast_core::replay::Execution::replay(setup(), events, |ctx, _| async move {
        ctx.schedule_sub_orchestration_with_id("c", "computed", "").await
    });
    let turn = execution.turn(5, vec![cancel("stop")]);
    assert_eq!(sent(&turn), ["cancel recorded: parent canceled"]);
}

#[test]
fn inputs_and_outputs_of_typed_children_are_encoded() {
    let mut story = story(|ctx, _| async move {
        let sum: u32 = ctx.schedule_sub_orchestration_typed("c", &vec![1, 2]).await?;
        let named: u32 = ctx.schedule_sub_orchestration_with_id_typed("c", "n", &sum).await?;
        Ok(named.to_string())
    });
    assert_eq!(sent(&story.waits([])), ["start i::sub::2 c([1,2]) for 2"]);
    assert_eq!(sent(&story.waits([child_done(2, "3")])), ["start n c(3) for 4"]);
    assert_eq!(story.output([child_done(4, "4")]), "4");
}

#[test]
fn an_answer_that_cannot_be_decoded_is_an_error_of_the_result() {
    let mut story = story(|ctx, _| async move {
        let sum: Result<u32, String> = ctx.schedule_sub_orchestration_typed("c", &1).await;
        Ok(sum.is_err().to_string())
    });
    story.waits([]);
    assert_eq!(story.output([child_done(2, "three")]), "true");
}

#[test]
fn a_turn_tells_which_children_answered_and_how_long_they_took() {
    let mut story = story(|ctx, _| async move {
        let (kept, lost) = (ctx.schedule_sub_orchestration("c", ""), ctx.schedule_sub_orchestration("d", ""));
        let (kept, _) = ctx.join2(kept, lost).await;
        kept
    });
    assert_eq!(story.waits([]).answered, []);
    story.waits([raise("nothing", "")]);
    let turn = story.waits([child_done(2, "x"), child_done(2, "again")]);
    assert_eq!(turn.answered, [AnsweredChild { name: "c".into(), took_ms: 2_000, succeeded: true }]);
    let turn = story.turn([child_failed(3, own_error("no"))]);
    assert_eq!(turn.answered, [AnsweredChild { name: "d".into(), took_ms: 3_000, succeeded: false }]);
}
