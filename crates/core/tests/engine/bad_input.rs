//! Any list of events, in any order, gives an error value and never a panic.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use steadfast_core::replay::{Execution, Turn, Verdict, fail_without_code, verify};
use steadfast_core::{Event, EventKind, OrchestrationContext};

use crate::strategies;
use crate::support::*;

/// Does a bit of everything.
async fn everything(ctx: OrchestrationContext, input: String) -> Outcome {
    ctx.set_custom_status(input.clone());
    ctx.set_kv_value("k", input);
    let activity = ctx.schedule_activity("a", "");
    let tagged = ctx.schedule_activity("b", "").with_tag("t").on_session("s");
    let timer = ctx.schedule_timer(Duration::from_secs(1));
    let child = ctx.schedule_sub_orchestration("c", "");
    ctx.schedule_orchestration("d", "d-1", "");
    let (wait, message) = (ctx.schedule_wait("w"), ctx.dequeue_event("q"));
    let session = ctx.open_session().await?;
    let moved = ctx.wait_for_session_migration(&session);
    ctx.select2(activity, timer).await;
    ctx.prune_kv_values_updated_before(5);
    ctx.close_session(&session).await?;
    let (data, moved) = ctx.join2(ctx.select3(wait, message, child), moved).await;
    ctx.clear_all_kv_values();
    drop(tagged);
    ctx.continue_as_new(format!("{data:?}{moved:?}")).await
}

/// Gives every function of the engine the list, and arrivals on top.
fn try_all(events: Vec<Event>, arrivals: Vec<steadfast_core::WorkItem>) -> (Turn, bool) {
    let mut setup = setup();
    setup.options.owned_sessions = true;
    let by_hand = fail_without_code(&identity(1), &events, 5, own_error("by hand"));
    let verified = verify(setup.clone(), events.clone(), everything);
    let mut execution = Execution::replay(setup, events, everything);
    let turn = execution.turn(5, arrivals);
    execution.turn(6, vec![]);
    let told = execution.mismatch().is_some() && by_hand.is_err() && verified.is_err();
    (turn, told)
}

#[track_caller]
fn assert_corrupted(events: Vec<Event>, text: &str) {
    let (turn, told) = try_all(events.clone(), vec![]);
    assert!(told, "every function tells of it");
    match turn.verdict {
        Verdict::Failed { details } => {
            assert_has(&details.display_message(), "nondeterministic: corrupted history: ");
            assert_has(&details.display_message(), text);
        }
        // What has ended gets no second end.
        Verdict::Ended => assert_has(&verify(setup(), events, everything).unwrap_err().reason, text),
        other => panic!("{other:?}"),
    }
}

fn waiting(name: &str) -> (Option<u64>, EventKind) {
    (None, EventKind::ExternalSubscribed { name: name.into() })
}

fn output() -> (Option<u64>, EventKind) {
    (None, EventKind::OrchestrationCompleted { output: String::new() })
}

fn renumbered(kinds: Vec<(Option<u64>, EventKind)>, ids: &[u64]) -> Vec<Event> {
    let mut events = history(kinds);
    for (event, id) in events.iter_mut().zip(ids) {
        event.event_id = *id;
    }
    events
}

#[test]
fn a_list_that_is_no_history_is_named() {
    assert_corrupted(vec![], "empty");
    assert_corrupted(
        history([waiting("w")]),
        "first event must be OrchestrationStarted, found ExternalSubscribed",
    );
    assert_corrupted(history([output()]), "first event must be OrchestrationStarted");
    assert_corrupted(history([started(""), started("")]), "a second OrchestrationStarted");
    assert_corrupted(
        renumbered(vec![started(""), waiting("w")], &[1, 1]),
        "event ids must rise, found 1 after 1",
    );
    assert_corrupted(
        renumbered(vec![started(""), waiting("w")], &[5, 2]),
        "event ids must rise, found 2 after 5",
    );
    assert_corrupted(renumbered(vec![started("")], &[0]), "event ids must rise");
    assert_corrupted(renumbered(vec![started("")], &[u64::MAX]), "no event id is left");
    assert_corrupted(
        history([started(""), output(), output()]),
        "OrchestrationCompleted after OrchestrationCompleted",
    );
    assert_corrupted(
        history([started(""), output(), waiting("w")]),
        "ExternalSubscribed after OrchestrationCompleted",
    );
}

#[test]
fn a_gap_and_event_99999_are_legal() {
    let events = renumbered(vec![started(""), waiting("w")], &[1, 99_999]);
    let mut execution =
        Execution::replay(setup(), events, |ctx, _| async move { Ok(ctx.schedule_wait("w").await) });
    let turn = execution.turn(5, vec![raise("w", "d")]);
    assert_eq!(lines(&turn.events), ["100000 ExternalEvent(w, d)", "100001 Completed(d)"]);
    let failed = (None, EventKind::OrchestrationFailed { details: own_error("unreadable") });
    let ended = renumbered(vec![started(""), waiting("w"), failed], &[1, 2, 99_999]);
    assert_eq!(try_all(ended, vec![]).0.verdict, Verdict::Ended);
}

#[test]
fn a_failure_after_a_continuation_is_how_older_engines_ended_and_is_legal() {
    let events = history([
        started(""),
        (None, EventKind::OrchestrationContinuedAsNew { input: String::new() }),
        (None, EventKind::OrchestrationFailed { details: infrastructure("no successor") }),
    ]);
    let mut execution = Execution::replay(setup(), events.clone(), everything);
    assert_eq!(execution.turn(5, vec![]).verdict, Verdict::Ended);
    assert!(execution.mismatch().is_none());
    assert_eq!(fail_without_code(&identity(1), &events, 5, own_error("")).unwrap().verdict, Verdict::Ended);
}

#[test]
fn an_answer_that_history_has_no_schedule_for_is_named() {
    for kind in [
        EventKind::ActivityCompleted { result: String::new() },
        EventKind::ActivityFailed { details: own_error("") },
        EventKind::TimerFired { fire_at_ms: 0 },
        EventKind::SubOrchestrationCompleted { result: String::new() },
        EventKind::SubOrchestrationFailed { details: own_error("") },
    ] {
        let events = history([started(""), (Some(77), kind)]);
        let turn = replay_once(events, |_, _| futures::future::pending());
        assert_has(&failure_of(&turn).display_message(), "completion without open schedule: id=77");
    }
}

#[test]
fn an_answer_without_a_source_is_ignored() {
    let events = history([started(""), (None, EventKind::ActivityCompleted { result: "lost".into() })]);
    let turn = replay_once(events, |_, _| futures::future::pending());
    assert_eq!(turn.verdict, Verdict::Waiting { stuck: true });
}

#[test]
fn requests_to_cancel_what_was_never_scheduled_change_nothing() {
    let cancels = [
        EventKind::ActivityCancelRequested { reason: "x".into() },
        EventKind::SubOrchestrationCancelRequested { reason: "x".into() },
        EventKind::ExternalSubscribedCancelled { reason: "x".into() },
        EventKind::QueueSubscriptionCancelled { reason: "x".into() },
    ];
    let kinds = cancels.into_iter().flat_map(|kind| [(Some(77), kind.clone()), (None, kind)]);
    let turn =
        replay_once(history([started("")].into_iter().chain(kinds)), |_, _| futures::future::pending());
    assert_eq!(turn.verdict, Verdict::Waiting { stuck: true });
}

/// Draws lists that look like a history at first: a start, and ids that rise.
fn nearly_history() -> impl Strategy<Value = Vec<Event>> {
    let kinds = vec((proptest::option::of(1..8u64), strategies::event_kind()), 0..12);
    (kinds, any::<bool>()).prop_map(|(kinds, own)| {
        let events = history([started("x")].into_iter().chain(kinds));
        if own { events } else { stamped(events, "0.1.32") }
    })
}

fn tries() -> ProptestConfig {
    ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(tries())]

    #[test]
    fn no_list_of_events_makes_the_engine_panic(
        events in vec(strategies::event(), 0..12), arrivals in vec(strategies::work_item(), 0..6),
    ) {
        try_all(events, arrivals);
    }

    #[test]
    fn no_list_that_begins_well_makes_the_engine_panic(
        events in nearly_history(), arrivals in vec(strategies::work_item(), 0..6),
    ) {
        let (turn, _) = try_all(events.clone(), arrivals);
        let mut ids: Vec<u64> = events.iter().chain(&turn.events).map(|event| event.event_id).collect();
        let given = ids.len();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), given, "no id is given twice");
        let ends = turn.events.iter().filter(|event| event.is_terminal()).count();
        prop_assert_eq!(ends, usize::from(matches!(
            turn.verdict, Verdict::Completed { .. } | Verdict::Failed { .. } | Verdict::ContinuedAsNew { .. }
        )));
    }

    #[test]
    fn no_damage_to_a_real_history_makes_the_engine_panic(
        remove in any::<prop::sample::Index>(), swap in any::<prop::sample::Index>(),
        foreign in strategies::event(), insert in any::<prop::sample::Index>(), how in 0..4,
    ) {
        let mut story = story(everything).owned_sessions().warm_only();
        story.turn([]);
        story.turn([done(4, "r"), enqueue("q", "m"), raise("w", "d")]);
        let mut events = story.history;
        match how {
            0 => { events.remove(remove.index(events.len())); }
            1 => { let (a, b) = (remove.index(events.len()), swap.index(events.len())); events.swap(a, b); }
            2 => { events.insert(insert.index(events.len()), foreign); }
            _ => { let at = insert.index(events.len()); let copy = events[at].clone(); events.push(copy); }
        }
        try_all(events, vec![]);
    }
}
