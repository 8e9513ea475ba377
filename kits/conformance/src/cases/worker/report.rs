//! Reports: work that was refused while no live worker had the handler becomes runnable when one reports it.

use semver::Version;
use steadfast_core::{SessionKey, TagFilter};
use steadfast_store::{Abandon, Attempt, Refused, WorkerReport};

use super::{
    BACKOFF, capable, counting, eager, engines_up_to, fleet, listed, needed, the_orchestration, worker,
};
use crate::Verdict;
use crate::bench::{Bench, Commit, DAWN_MS, LEASE, TICK, activity, activity_with, ok, raise, timer};
use crate::case::{cases, need};

cases![
    s21_a_report_makes_a_refused_turn_runnable_at_once,
    s21_a_report_makes_refused_work_runnable_at_once,
    s21_every_report_makes_refused_work_runnable,
    s21_a_report_of_another_handler_makes_nothing_runnable,
    s21_a_report_of_another_version_makes_no_turn_runnable,
    s21_a_report_of_another_tag_makes_no_work_runnable,
    s21_a_report_of_a_worker_without_sessions_makes_no_work_of_one_runnable,
    s21_a_report_of_another_engine_version_makes_no_turn_runnable,
    s21_a_report_of_a_stopped_worker_makes_nothing_runnable,
    s21_a_report_makes_no_timer_run_early,
    s21_a_report_ends_no_delay_but_that_of_a_refusal,
    s21_a_report_makes_much_refused_work_runnable,
];

async fn s21_a_report_makes_a_refused_turn_runnable_at_once(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(eager("old")).await;
    bench.start("a").await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Unlisted);
    assert!(fleet.turn_as(None).await.is_none(), "it is held back");
    fleet.report(capable("new")).await;
    assert_eq!(fleet.turned("new").await.attempt, 2, "a refusal delays only those who refused");
    Verdict::Kept
}

async fn s21_a_report_makes_refused_work_runnable_at_once(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(eager("old")).await;
    bench.enqueue(activity("a", 2)).await;
    assert_eq!(fleet.refuse_work("old").await, Refused::Unlisted);
    assert!(ok(fleet.store.fetch_work(super::asking("unknown")).await).is_none(), "it is held back");
    fleet.report(capable("new")).await;
    assert_eq!(fleet.worked("new").await.attempt, 2, "a refusal delays only those who refused");
    Verdict::Kept
}

async fn s21_every_report_makes_refused_work_runnable(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.silence();
    fleet.report(eager("old")).await;
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Unlisted, "the worker is silent");
    assert_eq!(fleet.refuse_work("old").await, Refused::Unlisted, "the worker is silent");
    fleet.report(capable("new")).await;
    assert!(fleet.turn("new").await.is_some(), "it is not its first report");
    assert!(fleet.work("new").await.is_some(), "it is not its first report");
    Verdict::Kept
}

async fn s21_a_report_of_another_handler_makes_nothing_runnable(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    let (turn, work) = (fleet.turned("old").await, fleet.worked("old").await);
    fleet.refuse(&turn.token, counting(needed("Other", None))).await;
    fleet.refuse(&work.token, counting(needed("Other", None))).await;
    fleet.report(capable("new")).await;
    assert!(fleet.turn_as(None).await.is_none(), "it is held back as before");
    assert!(fleet.work("unknown").await.is_none(), "it is held back as before");
    Verdict::Kept
}

async fn s21_a_report_of_another_version_makes_no_turn_runnable(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    bench.start("a").await;
    fleet.refuse_turn("old").await;
    let orchestrations = vec![listed("Orchestration", &["2.0.0"])];
    fleet.report(WorkerReport { orchestrations, ..worker("new") }).await;
    assert!(fleet.turn_as(None).await.is_none(), "it is held back as before");
    fleet.report(capable("new")).await;
    assert!(fleet.turn("new").await.is_some(), "that is the version");
    Verdict::Kept
}

async fn s21_a_report_of_another_tag_makes_no_work_runnable(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    bench.enqueue(activity_with("a", 2, None, Some("gpu"))).await;
    fleet.refuse_work("old").await;
    fleet.report(capable("new")).await;
    assert!(fleet.work("unknown").await.is_none(), "it is held back as before");
    fleet.report(WorkerReport { tags: TagFilter::tags(["gpu"]), ..capable("new") }).await;
    assert!(fleet.work("new").await.is_some(), "that is the tag");
    Verdict::Kept
}

async fn s21_a_report_of_a_worker_without_sessions_makes_no_work_of_one_runnable(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.queue(activity_with("a", 2, Some("S"), None), Some(SessionKey::shared("S"))).await;
    bench.enqueue(activity("a", 3)).await;
    fleet.refuse_work("old").await;
    fleet.refuse_work("old").await;
    fleet.report(WorkerReport { serves_sessions: false, ..capable("new") }).await;
    assert_eq!(fleet.worked("unknown").await.item, activity("a", 3), "it is on no session");
    assert!(fleet.work("old").await.is_none(), "the session's is held back as before");
    fleet.report(capable("new")).await;
    assert!(fleet.work("old").await.is_some(), "it serves sessions");
    Verdict::Kept
}

async fn s21_a_report_of_another_engine_version_makes_no_turn_runnable(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    bench.start("a").await;
    let turn = bench.fetched().await;
    let mut commit = Commit::started("a").message(raise("a", "data"));
    commit.metadata.pinned_duroxide_version = Some(Version::new(2, 0, 0));
    bench.commit(&turn, commit).await;
    fleet.refuse_turn("old").await;
    fleet.report(WorkerReport { engines: Some(engines_up_to(1)), ..capable("new") }).await;
    assert!(fleet.turn_as(None).await.is_none(), "it is held back as before");
    fleet.report(WorkerReport { engines: Some(engines_up_to(2)), ..capable("new") }).await;
    assert!(fleet.turn("new").await.is_some(), "it runs that version");
    Verdict::Kept
}

async fn s21_a_report_of_a_stopped_worker_makes_nothing_runnable(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    fleet.refuse_turn("old").await;
    fleet.refuse_work("old").await;
    fleet.report(WorkerReport { is_stopped: true, ..capable("new") }).await;
    assert!(fleet.turn_as(None).await.is_none(), "it is held back as before");
    assert!(fleet.work("unknown").await.is_none(), "it is held back as before");
    Verdict::Kept
}

async fn s21_a_report_makes_no_timer_run_early(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    let due = BACKOFF.as_millis() as u64 * 2;
    let commit = Commit::default().message(raise("a", "data")).message(timer("a", 2, DAWN_MS + due));
    bench.begin("a", commit).await;
    fleet.refuse_turn("old").await;
    fleet.report(capable("new")).await;
    let lease = fleet.turned("new").await;
    assert_eq!(lease.messages.len(), 1, "the timer is not due");
    ok(fleet.store.commit_turn(&lease.token, steadfast_store::TurnCommit::empty(1)).await);
    bench.advance(BACKOFF * 2 - TICK);
    assert!(fleet.turn_as(None).await.is_none(), "the timer is not due");
    bench.advance(TICK);
    assert!(fleet.turn_as(None).await.is_some(), "the timer is due");
    Verdict::Kept
}

async fn s21_a_report_ends_no_delay_but_that_of_a_refusal(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.silence();
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Unlisted, "the worker is silent");
    assert_eq!(fleet.refuse_work("old").await, Refused::Unlisted, "the worker is silent");
    bench.advance(BACKOFF);
    let (turn, work) = (fleet.turned("new").await, fleet.worked("new").await);
    let later = Abandon { retry_after: Some(LEASE), attempt: Attempt::Counts };
    ok(fleet.store.abandon(&turn.token, later).await);
    ok(fleet.store.abandon(&work.token, later).await);
    fleet.report(capable("new")).await;
    fleet.report(capable("newer")).await;
    assert!(fleet.turn("newer").await.is_none(), "a worker with the handler asked for the delay");
    assert!(fleet.work("newer").await.is_none(), "a worker with the handler asked for the delay");
    bench.advance(LEASE);
    assert!(fleet.turn("newer").await.is_some() && fleet.work("newer").await.is_some());
    Verdict::Kept
}

async fn s21_a_report_makes_much_refused_work_runnable(bench: Bench) -> Verdict {
    const MANY: usize = 300;
    let fleet = need!(fleet(&bench), "Store");
    for number in 0..MANY {
        bench.start(&format!("i-{number}")).await;
        bench.enqueue(activity(&format!("i-{number}"), 2)).await;
        let lease = fleet.turned("old").await;
        fleet.refuse(&lease.token, counting(the_orchestration())).await;
        fleet.refuse_work("old").await;
    }
    fleet.report(capable("new")).await;
    let (mut turns, mut work) = (0, 0);
    while fleet.turn("new").await.is_some() {
        turns += 1;
    }
    while fleet.work("new").await.is_some() {
        work += 1;
    }
    assert_eq!((turns, work), (MANY, MANY), "all of it, in however many steps");
    Verdict::Kept
}
