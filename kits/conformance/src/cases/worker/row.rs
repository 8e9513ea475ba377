//! The rows of workers: what a worker reports can be read, with its times.

use std::time::Duration;

use steadfast_core::TagFilter;
use steadfast_store::{
    WORKER_KEPT_FOR, WORKER_LIVE_FOR, WorkerId, WorkerInfo, WorkerProcess, WorkerReport, WorkerSlots,
};

use super::{Fleet, capable, engines_up_to, fleet, listed, worker};
use crate::Verdict;
use crate::bench::{Bench, DAWN_MS, TICK, ok};
use crate::case::{cases, need};

cases![
    s21_an_empty_store_has_no_workers,
    s21_a_report_is_read_as_it_was_written,
    s21_a_worker_is_known_since_its_first_report,
    s21_a_report_replaces_the_one_before,
    s21_a_worker_is_live_for_a_minute_after_its_last_report,
    s21_a_worker_that_stopped_is_not_live,
    s21_workers_are_listed_by_id_from_a_place_on,
    s21_the_row_of_a_worker_goes_after_a_day,
    s21_rows_of_workers_survive_a_restart_of_the_store,
];

async fn rows(fleet: &Fleet<'_>) -> Vec<WorkerInfo> {
    ok(fleet.store.workers(None).await)
}

async fn ids(fleet: &Fleet<'_>, after: Option<&str>) -> Vec<String> {
    let after = after.map(|id| WorkerId(id.to_owned()));
    let rows = ok(fleet.store.workers(after.as_ref()).await);
    rows.into_iter().map(|row| row.report.id.0).collect()
}

async fn is_live(fleet: &Fleet<'_>) -> bool {
    rows(fleet).await.first().expect("the worker should be there").is_live
}

fn everything() -> WorkerReport {
    WorkerReport {
        id: WorkerId("é 'quoted' worker".to_owned()),
        process: WorkerProcess {
            node: Some("node".to_owned()),
            incarnation: Some(7),
            host: Some("host".to_owned()),
            boot_id: Some("boot".to_owned()),
            pid_namespace: Some("pid:[4026531836]".to_owned()),
            pid: u32::MAX,
            pid_started: Some(1 << 40),
            build_id: Some("build".to_owned()),
            version: "0.3.0".to_owned(),
        },
        orchestrations: vec![listed("Order", &["1.0.0", "2.0.0"]), listed("Refund", &["1.0.0"])],
        activities: vec![listed("Charge", &[]), listed("Ship", &[])],
        tags: TagFilter::default_and(["gpu", "disk"]),
        serves_sessions: false,
        engines: Some(engines_up_to(3)),
        takes_unlisted: true,
        slots: WorkerSlots { turns: 2, turns_busy: 1, activities: 100, activities_busy: 99 },
        sessions: 3,
        is_stopped: false,
    }
}

async fn s21_an_empty_store_has_no_workers(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    assert!(rows(&fleet).await.is_empty(), "nothing has reported");
    Verdict::Kept
}

async fn s21_a_report_is_read_as_it_was_written(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    let filters = [TagFilter::Any, TagFilter::None, TagFilter::DefaultOnly, TagFilter::tags(["", ":"])];
    for tags in filters {
        fleet.report(WorkerReport { tags: tags.clone(), ..worker("bare") }).await;
        let row = rows(&fleet).await.remove(0);
        assert_eq!(row.report, WorkerReport { tags, ..worker("bare") });
    }
    fleet.report(everything()).await;
    let row = rows(&fleet).await.remove(1);
    let (since_ms, last_seen_ms) = (DAWN_MS, DAWN_MS);
    assert_eq!(row, WorkerInfo { report: everything(), since_ms, last_seen_ms, is_live: true });
    Verdict::Kept
}

async fn s21_a_worker_is_known_since_its_first_report(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(worker("w")).await;
    bench.advance(Duration::from_secs(10));
    fleet.report(worker("w")).await;
    let row = rows(&fleet).await.remove(0);
    assert_eq!((row.since_ms, row.last_seen_ms), (DAWN_MS, DAWN_MS + 10_000));
    Verdict::Kept
}

async fn s21_a_report_replaces_the_one_before(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(WorkerReport { id: WorkerId("w".to_owned()), ..everything() }).await;
    fleet.report(worker("w")).await;
    let rows = rows(&fleet).await;
    assert_eq!(rows.into_iter().map(|row| row.report).collect::<Vec<_>>(), [worker("w")]);
    Verdict::Kept
}

async fn s21_a_worker_is_live_for_a_minute_after_its_last_report(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(worker("w")).await;
    bench.advance(WORKER_LIVE_FOR - TICK);
    assert!(is_live(&fleet).await, "it reported within the minute");
    bench.advance(TICK);
    assert!(!is_live(&fleet).await, "a minute has passed");
    fleet.report(worker("w")).await;
    assert!(is_live(&fleet).await, "it reported again");
    Verdict::Kept
}

async fn s21_a_worker_that_stopped_is_not_live(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(WorkerReport { is_stopped: true, ..capable("w") }).await;
    assert!(!is_live(&fleet).await, "it said that it stopped");
    Verdict::Kept
}

async fn s21_workers_are_listed_by_id_from_a_place_on(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    for id in ["b", "c", "a", "B"] {
        fleet.report(worker(id)).await;
    }
    assert_eq!(ids(&fleet, None).await, ["B", "a", "b", "c"]);
    assert_eq!(ids(&fleet, Some("a")).await, ["b", "c"]);
    assert_eq!(ids(&fleet, Some("aa")).await, ["b", "c"], "the place need not be a worker");
    assert!(ids(&fleet, Some("c")).await.is_empty());
    Verdict::Kept
}

async fn s21_the_row_of_a_worker_goes_after_a_day(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(WorkerReport { is_stopped: true, ..worker("stopped") }).await;
    fleet.report(worker("silent")).await;
    bench.advance(WORKER_KEPT_FOR - TICK);
    fleet.report(worker("w")).await;
    assert_eq!(ids(&fleet, None).await, ["silent", "stopped", "w"], "a day has not passed");
    bench.advance(TICK);
    fleet.report(worker("w")).await;
    assert_eq!(ids(&fleet, None).await, ["w"], "a day has passed");
    Verdict::Kept
}

async fn s21_rows_of_workers_survive_a_restart_of_the_store(bench: Bench) -> Verdict {
    need!(fleet(&bench), "Store").report(everything()).await;
    let bench = need!(bench.reopen().await, "reopen");
    let fleet = need!(fleet(&bench), "Store");
    let reports: Vec<_> = rows(&fleet).await.into_iter().map(|row| row.report).collect();
    assert_eq!(reports, [everything()]);
    Verdict::Kept
}
