//! Pruning executions.

use std::time::Duration;

use steadfast_store::{InstanceFilter, ProviderErrorKind, PruneOptions, PruneResult};

use super::{ids, says};
use crate::Verdict;
use crate::bench::{Bench, Commit, DAWN_MS, ok, raise};
use crate::case::{cases, need};

cases![
    api_pruning_keeps_the_current_execution,
    api_pruning_keeps_as_many_as_it_is_told,
    api_pruning_never_keeps_less_than_the_last,
    api_pruning_by_time_is_strict,
    api_pruning_needs_all_its_conditions,
    api_pruning_keeps_an_execution_that_runs,
    api_pruning_an_unknown_instance_says_so,
    api_pruned_events_are_gone,
    api_bulk_pruning_takes_running_instances_too,
    api_bulk_pruning_by_ids_takes_only_these,
    api_bulk_pruning_is_bounded,
];

/// Starts an instance whose executions 1 to 4 end a second apart and whose execution 5 runs.
async fn five_executions(bench: &Bench, instance: &str) {
    bench.start(instance).await;
    for execution in 1..=4 {
        let turn = bench.fetched().await;
        bench.advance(Duration::from_secs(1));
        bench.commit(&turn, Commit::continued(instance, execution).continue_as_new(instance, 2)).await;
    }
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::continued(instance, 5)).await;
}

fn keep(keep_last: Option<u32>) -> PruneOptions {
    PruneOptions { keep_last, completed_before: None }
}

async fn api_pruning_keeps_the_current_execution(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    five_executions(&bench, "a").await;
    let pruned = ok(admin.prune_executions("a", PruneOptions::default()).await);
    let expected = PruneResult { instances_processed: 1, executions_deleted: 4, events_deleted: 8 };
    assert_eq!(pruned, expected);
    assert_eq!(ok(admin.list_executions("a").await), [5]);
    let again = ok(admin.prune_executions("a", PruneOptions::default()).await);
    assert_eq!((again.instances_processed, again.executions_deleted), (1, 0), "there is nothing left to do");
    Verdict::Kept
}

async fn api_pruning_keeps_as_many_as_it_is_told(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    five_executions(&bench, "a").await;
    assert_eq!(ok(admin.prune_executions("a", keep(Some(9))).await).executions_deleted, 0);
    assert_eq!(ok(admin.prune_executions("a", keep(Some(3))).await).executions_deleted, 2);
    assert_eq!(ok(admin.list_executions("a").await), [3, 4, 5], "the highest are kept");
    Verdict::Kept
}

async fn api_pruning_never_keeps_less_than_the_last(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    for (instance, keep_last) in [("a", None), ("b", Some(0)), ("c", Some(1))] {
        five_executions(&bench, instance).await;
        ok(admin.prune_executions(instance, keep(keep_last)).await);
        assert_eq!(ok(admin.list_executions(instance).await), [5], "keep_last {keep_last:?}");
    }
    bench.ended("over").await;
    ok(admin.prune_executions("over", keep(Some(0))).await);
    assert_eq!(ok(admin.list_executions("over").await), [1], "also when it has ended");
    Verdict::Kept
}

async fn api_pruning_by_time_is_strict(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    five_executions(&bench, "a").await;
    let options = PruneOptions { keep_last: None, completed_before: Some(DAWN_MS + 2_000) };
    assert_eq!(ok(admin.prune_executions("a", options).await).executions_deleted, 1);
    assert_eq!(ok(admin.list_executions("a").await), [2, 3, 4, 5], "the second ended at that very time");
    Verdict::Kept
}

async fn api_pruning_needs_all_its_conditions(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    five_executions(&bench, "a").await;
    let options = PruneOptions { keep_last: Some(4), completed_before: Some(DAWN_MS + 3_500) };
    assert_eq!(ok(admin.prune_executions("a", options).await).executions_deleted, 1, "three are old enough");
    assert_eq!(ok(admin.list_executions("a").await), [2, 3, 4, 5]);
    Verdict::Kept
}

async fn api_pruning_keeps_an_execution_that_runs(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("a").await;
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::continued("a", 2)).await;
    assert_eq!(ok(admin.prune_executions("a", PruneOptions::default()).await).executions_deleted, 0);
    assert_eq!(ok(admin.list_executions("a").await), [1, 2], "nobody has said that the first has ended");
    Verdict::Kept
}

async fn api_pruning_an_unknown_instance_says_so(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    let pruned = admin.prune_executions("nobody", PruneOptions::default()).await;
    says(pruned, ProviderErrorKind::NotFound, "not found");
    Verdict::Kept
}

async fn api_pruned_events_are_gone(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    five_executions(&bench, "a").await;
    ok(admin.prune_executions("a", PruneOptions::default()).await);
    assert!(ok(bench.provider().read_with_execution("a", 1).await).is_empty());
    assert_eq!(ok(admin.get_system_metrics().await).total_events, 1);
    bench.send(raise("a", "1")).await;
    let turn = bench.fetched().await;
    assert_eq!((turn.item.execution_id, turn.item.history.len()), (5, 1), "the instance goes on");
    Verdict::Kept
}

async fn api_bulk_pruning_takes_running_instances_too(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_at("running", 3).await;
    bench.begun_at("ended", 2).await;
    bench.send(raise("ended", "1")).await;
    let turn = bench.fetched().await;
    let commit = Commit { execution_id: 2, ..Commit::default() };
    bench.commit(&turn, commit.complete("ended", 2, "output")).await;
    let pruned = ok(admin.prune_executions_bulk(InstanceFilter::default(), keep(None)).await);
    let expected = PruneResult { instances_processed: 2, executions_deleted: 3, events_deleted: 6 };
    assert_eq!(pruned, expected);
    Verdict::Kept
}

async fn api_bulk_pruning_by_ids_takes_only_these(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_at("a", 2).await;
    bench.begun_at("b", 2).await;
    let only = |instances| InstanceFilter { instance_ids: Some(ids(instances)), ..InstanceFilter::default() };
    let none = ok(admin.prune_executions_bulk(only(&[]), keep(None)).await);
    assert_eq!(none, PruneResult::default(), "an empty list selects nothing");
    let one = ok(admin.prune_executions_bulk(only(&["b"]), keep(None)).await);
    assert_eq!((one.instances_processed, one.executions_deleted), (1, 1));
    assert_eq!(ok(admin.list_executions("a").await), [1, 2]);
    Verdict::Kept
}

async fn api_bulk_pruning_is_bounded(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    for number in 0..4 {
        bench.begun_at(&format!("i-{number}"), 2).await;
    }
    let filter = InstanceFilter { limit: Some(3), ..InstanceFilter::default() };
    let pruned = ok(admin.prune_executions_bulk(filter, keep(None)).await);
    assert_eq!((pruned.instances_processed, pruned.executions_deleted), (3, 3));
    Verdict::Kept
}
