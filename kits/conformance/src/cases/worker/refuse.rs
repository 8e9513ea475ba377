//! Refusals: what is counted and held back, and which workers count as having the handler.

use semver::Version;
use steadfast_core::{SessionKey, TagFilter};
use steadfast_store::{LeaseToken, ProviderErrorKind, Refused, WORKER_LIVE_FOR, WorkRequest, WorkerReport};

use super::{
    BACKOFF, asking, capable, counting, eager, engines_up_to, fleet, listed, needed, parking, the_activity,
    the_orchestration, worker,
};
use crate::Verdict;
use crate::bench::{Bench, Commit, LEASE, TICK, activity, activity_with, lost, ok, raise};
use crate::case::{cases, need};

cases![
    s21_a_refused_turn_that_a_live_worker_lists_is_not_counted_or_delayed,
    s21_refused_work_that_a_live_worker_lists_is_not_counted_or_delayed,
    s21_a_refused_turn_that_no_worker_lists_is_abandoned_as_the_refusal_says,
    s21_refused_work_that_no_worker_lists_is_abandoned_as_the_refusal_says,
    s21_a_turn_that_no_worker_lists_can_be_refused_without_a_count,
    s21_work_that_no_worker_lists_can_be_refused_without_a_count,
    s21_a_worker_that_stopped_lists_nothing,
    s21_a_worker_that_is_silent_for_a_minute_lists_nothing,
    s21_a_report_without_the_handler_takes_it_off_the_list,
    s21_a_version_is_listed_if_it_is_named,
    s21_an_activity_is_no_orchestration_of_that_name,
    s21_an_activity_is_listed_only_with_its_tag,
    s21_work_of_a_session_is_not_left_to_a_worker_that_serves_none,
    s21_work_without_a_session_is_left_to_a_worker_that_serves_none,
    s21_a_turn_is_not_left_to_a_worker_that_does_not_run_its_engine_version,
    s21_a_turn_that_has_not_begun_is_left_to_a_worker_of_any_engine_version,
    s21_a_refusal_touches_only_what_was_leased,
    s21_a_stale_token_refuses_nothing,
    s21_withdrawn_work_cannot_be_refused,
];

async fn s21_a_refused_turn_that_a_live_worker_lists_is_not_counted_or_delayed(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    bench.start("a").await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Routed);
    let lease = fleet.turned("new").await;
    assert_eq!((lease.instance.as_str(), lease.attempt), ("a", 1), "at once, and uncounted");
    Verdict::Kept
}

async fn s21_refused_work_that_a_live_worker_lists_is_not_counted_or_delayed(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    bench.enqueue(activity("a", 2)).await;
    assert_eq!(fleet.refuse_work("old").await, Refused::Routed);
    let lease = fleet.worked("new").await;
    assert_eq!((lease.item, lease.attempt), (activity("a", 2), 1), "at once, and uncounted");
    Verdict::Kept
}

async fn s21_a_refused_turn_that_no_worker_lists_is_abandoned_as_the_refusal_says(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    bench.start("a").await;
    for expected in 1..=3 {
        fleet.report(eager("old")).await;
        let lease = fleet.turned("old").await;
        assert_eq!(lease.attempt, expected, "each refusal counts");
        assert_eq!(fleet.refuse(&lease.token, counting(the_orchestration())).await, Refused::Unlisted);
        bench.advance(BACKOFF - TICK);
        assert!(fleet.turn("old").await.is_none(), "it is held back");
        bench.advance(TICK);
    }
    Verdict::Kept
}

async fn s21_refused_work_that_no_worker_lists_is_abandoned_as_the_refusal_says(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    bench.enqueue(activity("a", 2)).await;
    for expected in 1..=3 {
        fleet.report(eager("old")).await;
        let lease = fleet.worked("old").await;
        assert_eq!(lease.attempt, expected, "each refusal counts");
        assert_eq!(fleet.refuse(&lease.token, counting(the_activity())).await, Refused::Unlisted);
        bench.advance(BACKOFF - TICK);
        assert!(fleet.work("old").await.is_none(), "it is held back");
        bench.advance(TICK);
    }
    Verdict::Kept
}

async fn s21_a_turn_that_no_worker_lists_can_be_refused_without_a_count(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(worker("old")).await;
    bench.start("a").await;
    let lease = fleet.turned("old").await;
    assert_eq!(fleet.refuse(&lease.token, parking(the_orchestration())).await, Refused::Unlisted);
    assert!(fleet.turn("old").await.is_none(), "the worker that parks it is not given it again");
    fleet.report(capable("new")).await;
    assert_eq!(fleet.turned("new").await.attempt, 1, "the refusal did not count");
    Verdict::Kept
}

async fn s21_work_that_no_worker_lists_can_be_refused_without_a_count(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(worker("old")).await;
    bench.enqueue(activity("a", 2)).await;
    let lease = fleet.worked("old").await;
    assert_eq!(fleet.refuse(&lease.token, parking(the_activity())).await, Refused::Unlisted);
    assert!(fleet.work("old").await.is_none(), "the worker that parks it is not given it again");
    fleet.report(capable("new")).await;
    assert_eq!(fleet.worked("new").await.attempt, 1, "the refusal did not count");
    Verdict::Kept
}

async fn s21_a_worker_that_stopped_lists_nothing(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(WorkerReport { is_stopped: true, ..capable("new") }).await;
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Unlisted);
    assert_eq!(fleet.refuse_work("old").await, Refused::Unlisted);
    Verdict::Kept
}

async fn s21_a_worker_that_is_silent_for_a_minute_lists_nothing(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    for instance in ["a", "b"] {
        bench.start(instance).await;
        bench.enqueue(activity(instance, 2)).await;
    }
    bench.advance(WORKER_LIVE_FOR - TICK);
    fleet.report(worker("old")).await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Routed, "within the minute");
    assert_eq!(fleet.refuse_work("old").await, Refused::Routed, "within the minute");
    bench.advance(TICK);
    assert_eq!(fleet.refuse_turn("old").await, Refused::Unlisted, "a minute has passed");
    assert_eq!(fleet.refuse_work("old").await, Refused::Unlisted, "a minute has passed");
    Verdict::Kept
}

async fn s21_a_report_without_the_handler_takes_it_off_the_list(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(worker("new")).await;
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Unlisted, "it would not take turns now");
    assert_eq!(fleet.refuse_work("old").await, Refused::Unlisted, "it would not take activities now");
    Verdict::Kept
}

async fn s21_a_version_is_listed_if_it_is_named(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    let orchestrations = vec![listed("Other", &["2.0.0"]), listed("Orchestration", &["1.0.0", "1.5.0"])];
    fleet.report(WorkerReport { orchestrations, ..worker("new") }).await;
    let answers = [
        (Some("1.0.0"), Refused::Routed),
        (Some("1.5.0"), Refused::Routed),
        (None, Refused::Routed),
        (Some("2.0.0"), Refused::Unlisted),
        (Some("1"), Refused::Unlisted),
    ];
    for (number, (version, expected)) in answers.into_iter().enumerate() {
        let instance = format!("i-{number}");
        bench.start(&instance).await;
        fleet.report(worker("old")).await;
        let lease = fleet.turned("old").await;
        assert_eq!(lease.instance, instance, "what was refused is not given again");
        let refusal = counting(needed("Orchestration", version));
        assert_eq!(fleet.refuse(&lease.token, refusal).await, expected, "{version:?}");
    }
    Verdict::Kept
}

async fn s21_an_activity_is_no_orchestration_of_that_name(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    let activities = vec![listed("Orchestration", &["1.0.0"])];
    fleet.report(WorkerReport { activities, ..worker("one") }).await;
    fleet.report(WorkerReport { orchestrations: vec![listed("Activity", &[])], ..worker("other") }).await;
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Unlisted);
    assert_eq!(fleet.refuse_work("old").await, Refused::Unlisted);
    Verdict::Kept
}

async fn s21_an_activity_is_listed_only_with_its_tag(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(worker("old")).await;
    fleet.report(WorkerReport { tags: TagFilter::tags(["gpu"]), ..capable("new") }).await;
    let answers =
        [(Some("gpu"), Refused::Routed), (Some("disk"), Refused::Unlisted), (None, Refused::Unlisted)];
    for (id, (tag, expected)) in (1..).zip(answers) {
        bench.enqueue(activity_with("a", id, None, tag)).await;
        assert_eq!(fleet.refuse_work("old").await, expected, "{tag:?}");
    }
    Verdict::Kept
}

async fn s21_work_of_a_session_is_not_left_to_a_worker_that_serves_none(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(WorkerReport { serves_sessions: false, ..capable("new") }).await;
    fleet.report(eager("old")).await;
    fleet.queue(activity_with("a", 2, Some("S"), None), Some(SessionKey::shared("S"))).await;
    assert_eq!(fleet.refuse_work("old").await, Refused::Unlisted, "no live worker takes it");
    bench.advance(BACKOFF);
    fleet.report(WorkerReport { serves_sessions: false, ..capable("new") }).await;
    fleet.report(eager("old")).await;
    assert_eq!(fleet.worked("old").await.attempt, 2, "it is counted until it is poison");
    Verdict::Kept
}

async fn s21_work_without_a_session_is_left_to_a_worker_that_serves_none(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(WorkerReport { serves_sessions: false, ..capable("new") }).await;
    fleet.report(eager("old")).await;
    fleet.queue(activity_with("a", 2, Some("S"), None), Some(SessionKey::shared("S"))).await;
    bench.enqueue(activity("a", 3)).await;
    assert_eq!(fleet.refuse_work("old").await, Refused::Unlisted, "the session's comes first");
    assert_eq!(fleet.refuse_work("old").await, Refused::Routed);
    assert!(fleet.work("old").await.is_none(), "it lacks the handler");
    let plain = WorkRequest { session: None, ..asking("new") };
    let lease = ok(fleet.store.fetch_work(plain).await).expect("it has the handler");
    assert_eq!((lease.item, lease.attempt), (activity("a", 3), 1));
    Verdict::Kept
}

/// Begins an instance that is pinned to engine version 2.0.0, and has a message for it.
async fn pinned_to_two(bench: &Bench) {
    bench.start("a").await;
    let turn = bench.fetched().await;
    let mut commit = Commit::started("a");
    commit.metadata.pinned_duroxide_version = Some(Version::new(2, 0, 0));
    bench.commit(&turn, commit).await;
    bench.send(raise("a", "data")).await;
}

async fn s21_a_turn_is_not_left_to_a_worker_that_does_not_run_its_engine_version(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(WorkerReport { engines: Some(engines_up_to(1)), ..capable("one") }).await;
    fleet.report(eager("old")).await;
    pinned_to_two(&bench).await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Unlisted, "no live worker runs it");
    bench.advance(BACKOFF);
    fleet.report(WorkerReport { engines: Some(engines_up_to(1)), ..capable("one") }).await;
    fleet.report(eager("old")).await;
    assert_eq!(fleet.turned("old").await.attempt, 2, "it is counted until it is poison");
    Verdict::Kept
}

async fn s21_a_turn_that_has_not_begun_is_left_to_a_worker_of_any_engine_version(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(WorkerReport { engines: Some(engines_up_to(1)), ..capable("one") }).await;
    fleet.report(eager("old")).await;
    bench.start("a").await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Routed, "it is pinned to no version");
    assert_eq!(fleet.turned("one").await.attempt, 1);
    Verdict::Kept
}

async fn s21_a_refusal_touches_only_what_was_leased(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(eager("old")).await;
    bench.begun("a").await;
    bench.send(raise("a", "first")).await;
    let lease = fleet.turned("old").await;
    bench.send(raise("a", "second")).await;
    fleet.refuse(&lease.token, counting(the_orchestration())).await;
    let lease = fleet.turned("old").await;
    let messages: Vec<_> = lease.messages.into_iter().map(|message| message.item).collect();
    assert_eq!(messages, [raise("a", "second")], "what arrived during the lease is not held back");
    assert_eq!(lease.attempt, 1, "nor counted");
    Verdict::Kept
}

async fn s21_a_stale_token_refuses_nothing(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(worker("old")).await;
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    let (turn, work) = (fleet.turned("old").await, fleet.worked("old").await);
    bench.advance(LEASE);
    lost(fleet.try_refuse(&turn.token, counting(the_orchestration())).await);
    lost(fleet.try_refuse(&work.token, counting(the_activity())).await);
    let never = LeaseToken::Turn("no such token".to_owned());
    lost(fleet.try_refuse(&never, counting(the_orchestration())).await);
    assert_eq!(fleet.turned("old").await.attempt, 2, "nothing is routed, held back or uncounted");
    assert_eq!(fleet.worked("old").await.attempt, 2, "nothing is routed, held back or uncounted");
    Verdict::Kept
}

async fn s21_withdrawn_work_cannot_be_refused(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    bench.begun_with_work("a").await;
    let lease = fleet.worked("old").await;
    bench.send(raise("a", "data")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default().cancel("a", 1, 2)).await;
    let error = fleet.try_refuse(&lease.token, counting(the_activity())).await;
    assert_eq!(error.expect_err("the activity is gone").kind, ProviderErrorKind::Withdrawn);
    assert!(ok(fleet.store.work_of("a", 1).await).is_empty(), "it does not come back");
    Verdict::Kept
}
