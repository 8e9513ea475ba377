//! Routes: who is given refused work.

use std::time::Duration;

use semver::Version;
use steadfast_core::{DispatcherCapabilityFilter, SemverRange, TagFilter};
use steadfast_store::{
    Cold, MAX_UNREADABLE_ATTEMPTS, Refused, TurnRequest, UNREADABLE_RETRY, WorkRequest, WorkerId,
    WorkerReport,
};

use super::{
    asking, capable, counting, eager, fleet, listed, needed, parking, the_activity, the_orchestration, worker,
};
use crate::bench::{Bench, Commit, LEASE, activity, activity_with, ok, raise};
use crate::case::{cases, need};
use crate::{Damage, Verdict};

cases![
    s21_a_routed_turn_is_not_given_to_a_worker_that_lacks_the_handler,
    s21_routed_work_is_not_given_to_a_worker_that_lacks_the_handler,
    s21_a_worker_that_lacks_a_handler_is_given_what_is_behind,
    s21_routed_turns_are_given_oldest_first,
    s21_routed_work_is_given_oldest_first,
    s21_work_of_other_handlers_goes_to_any_worker,
    s21_a_request_without_a_worker_is_given_routed_work,
    s21_a_worker_without_a_row_is_given_routed_work,
    s21_a_worker_that_takes_unlisted_work_leaves_listed_work_alone,
    s21_routed_work_goes_to_who_takes_unlisted_work_when_its_last_lister_stops,
    s21_routed_work_goes_to_who_takes_unlisted_work_when_its_last_lister_is_silent,
    s21_routed_work_waits_for_a_lister_where_no_worker_takes_unlisted_work,
    s21_a_route_with_a_version_leads_to_workers_with_that_version,
    s21_a_route_without_a_version_leads_to_workers_with_any,
    s21_a_later_refusal_replaces_the_route,
    s21_routed_work_keeps_its_tag,
    s21_a_routed_turn_keeps_its_engine_version,
    s21_a_route_survives_an_expired_lease_and_an_abandon,
    s21_a_route_survives_a_restart_of_the_store,
    s21_a_route_survives_a_message_that_cannot_be_read,
    s21_the_route_of_a_start_that_is_set_aside_keeps_no_stray,
    s21_of_many_workers_without_the_handler_one_refuses_and_none_counts,
];

async fn s21_a_routed_turn_is_not_given_to_a_worker_that_lacks_the_handler(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    for old in ["one", "other"] {
        fleet.report(eager(old)).await;
    }
    bench.start("a").await;
    fleet.refuse_turn("one").await;
    assert!(fleet.turn("one").await.is_none(), "it refused it");
    assert!(fleet.turn("other").await.is_none(), "it lacks the handler too");
    assert!(fleet.turn("new").await.is_some(), "it lists the handler");
    Verdict::Kept
}

async fn s21_routed_work_is_not_given_to_a_worker_that_lacks_the_handler(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    for old in ["one", "other"] {
        fleet.report(eager(old)).await;
    }
    bench.enqueue(activity("a", 2)).await;
    fleet.refuse_work("one").await;
    assert!(fleet.work("one").await.is_none(), "it refused it");
    assert!(fleet.work("other").await.is_none(), "it lacks the handler too");
    assert!(fleet.work("new").await.is_some(), "it lists the handler");
    Verdict::Kept
}

async fn s21_a_worker_that_lacks_a_handler_is_given_what_is_behind(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    for instance in ["a", "b"] {
        bench.start(instance).await;
        bench.enqueue(activity(instance, 2)).await;
    }
    fleet.refuse_turn("old").await;
    fleet.refuse_work("old").await;
    assert_eq!(fleet.turned("old").await.instance, "b", "the next one was not refused yet");
    assert_eq!(fleet.worked("old").await.item, activity("b", 2), "the next one was not refused yet");
    Verdict::Kept
}

async fn s21_routed_turns_are_given_oldest_first(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    for instance in ["a", "b"] {
        bench.start(instance).await;
        fleet.refuse_turn("old").await;
    }
    bench.start("c").await;
    let mut given = Vec::new();
    while let Some(lease) = fleet.turn("new").await {
        given.push(lease.instance);
    }
    assert_eq!(given, ["a", "b", "c"], "a refusal does not change the order");
    Verdict::Kept
}

async fn s21_routed_work_is_given_oldest_first(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    for id in [1, 2] {
        bench.enqueue(activity("a", id)).await;
        fleet.refuse_work("old").await;
    }
    bench.enqueue(activity("a", 3)).await;
    let mut given = Vec::new();
    while let Some(lease) = fleet.work("new").await {
        given.push(lease.item);
    }
    assert_eq!(given, [1, 2, 3].map(|id| activity("a", id)), "a refusal does not change the order");
    Verdict::Kept
}

async fn s21_work_of_other_handlers_goes_to_any_worker(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    let (turn, work) = (fleet.turned("old").await, fleet.worked("old").await);
    fleet.refuse(&turn.token, counting(needed("Other", None))).await;
    fleet.refuse(&work.token, counting(needed("Other", None))).await;
    bench.start("b").await;
    bench.enqueue(activity("b", 2)).await;
    for id in ["new", "old"] {
        let (turn, work) = (fleet.turned(id).await, fleet.worked(id).await);
        assert_eq!((turn.instance.as_str(), work.item), ("b", activity("b", 2)), "it was not refused");
        ok(fleet.store.abandon(&turn.token, parking(the_orchestration()).if_unlisted).await);
        ok(fleet.store.abandon(&work.token, parking(the_activity()).if_unlisted).await);
    }
    Verdict::Kept
}

async fn s21_a_request_without_a_worker_is_given_routed_work(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    fleet.refuse_turn("old").await;
    fleet.refuse_work("old").await;
    assert!(fleet.turn_as(None).await.is_some(), "the caller accepts all");
    let anyone = WorkRequest { worker: None, ..asking("caller") };
    assert!(ok(fleet.store.fetch_work(anyone).await).is_some(), "the caller accepts all");
    Verdict::Kept
}

async fn s21_a_worker_without_a_row_is_given_routed_work(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    assert_eq!(fleet.refuse_turn("unknown").await, Refused::Routed);
    assert_eq!(fleet.refuse_work("unknown").await, Refused::Routed);
    assert!(fleet.turn("unknown").await.is_some(), "a worker that never reported is judged by itself");
    assert!(fleet.work("unknown").await.is_some(), "a worker that never reported is judged by itself");
    Verdict::Kept
}

async fn s21_a_worker_that_takes_unlisted_work_leaves_listed_work_alone(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(eager("old")).await;
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    let (turn, work) = (fleet.turned("old").await, fleet.worked("old").await);
    fleet.refuse(&turn.token, parking(the_orchestration())).await;
    fleet.refuse(&work.token, parking(the_activity())).await;
    fleet.report(capable("new")).await;
    assert!(fleet.turn("old").await.is_none(), "a live worker lists the orchestration");
    assert!(fleet.work("old").await.is_none(), "a live worker lists the activity");
    Verdict::Kept
}

async fn s21_routed_work_goes_to_who_takes_unlisted_work_when_its_last_lister_stops(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    for id in ["new", "newer"] {
        fleet.report(capable(id)).await;
    }
    fleet.report(eager("old")).await;
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    fleet.refuse_turn("old").await;
    fleet.refuse_work("old").await;
    fleet.report(WorkerReport { is_stopped: true, ..capable("new") }).await;
    assert!(fleet.turn("old").await.is_none(), "another live worker lists the orchestration");
    assert!(fleet.work("old").await.is_none(), "another live worker lists the activity");
    fleet.report(WorkerReport { is_stopped: true, ..capable("newer") }).await;
    assert!(fleet.turn("old").await.is_some(), "no live worker lists the orchestration");
    assert!(fleet.work("old").await.is_some(), "no live worker lists the activity");
    Verdict::Kept
}

async fn s21_routed_work_goes_to_who_takes_unlisted_work_when_its_last_lister_is_silent(
    bench: Bench,
) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    fleet.refuse_turn("old").await;
    fleet.refuse_work("old").await;
    fleet.silence();
    fleet.report(eager("old")).await;
    assert!(fleet.turn("old").await.is_some(), "no live worker lists the orchestration");
    assert!(fleet.work("old").await.is_some(), "no live worker lists the activity");
    Verdict::Kept
}

async fn s21_routed_work_waits_for_a_lister_where_no_worker_takes_unlisted_work(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(worker("old")).await;
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    fleet.refuse_turn("old").await;
    fleet.refuse_work("old").await;
    fleet.report(WorkerReport { is_stopped: true, ..capable("new") }).await;
    assert!(fleet.turn("old").await.is_none(), "it parks what it lacks");
    assert!(fleet.work("old").await.is_none(), "it parks what it lacks");
    fleet.report(capable("newer")).await;
    assert_eq!(fleet.turned("newer").await.attempt, 1, "nothing was counted meanwhile");
    assert_eq!(fleet.worked("newer").await.attempt, 1, "nothing was counted meanwhile");
    Verdict::Kept
}

async fn s21_a_route_with_a_version_leads_to_workers_with_that_version(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    let with = |id: &str, version: &str| WorkerReport {
        orchestrations: vec![listed("Orchestration", &[version])],
        ..worker(id)
    };
    fleet.report(with("one", "1.0.0")).await;
    fleet.report(with("two", "2.0.0")).await;
    bench.start("a").await;
    let lease = fleet.turned("one").await;
    fleet.refuse(&lease.token, counting(needed("Orchestration", Some("2.0.0")))).await;
    assert!(fleet.turn("one").await.is_none(), "it has another version");
    assert!(fleet.turn("two").await.is_some(), "it has that version");
    Verdict::Kept
}

async fn s21_a_route_without_a_version_leads_to_workers_with_any(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    let orchestrations = vec![listed("Orchestration", &["9.0.0"])];
    fleet.report(WorkerReport { orchestrations, ..worker("nine") }).await;
    fleet.report(worker("old")).await;
    bench.start("a").await;
    let lease = fleet.turned("old").await;
    assert_eq!(fleet.refuse(&lease.token, counting(needed("Orchestration", None))).await, Refused::Routed);
    assert!(fleet.turn("old").await.is_none(), "it has no version");
    assert!(fleet.turn("nine").await.is_some(), "it has one");
    Verdict::Kept
}

async fn s21_a_later_refusal_replaces_the_route(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    let with = |id: &str, version: &str| WorkerReport {
        orchestrations: vec![listed("Orchestration", &[version])],
        ..worker(id)
    };
    fleet.report(with("one", "1.0.0")).await;
    fleet.report(with("two", "2.0.0")).await;
    fleet.report(worker("old")).await;
    bench.start("a").await;
    let lease = fleet.turned("old").await;
    fleet.refuse(&lease.token, counting(needed("Orchestration", None))).await;
    let lease = fleet.turned("one").await;
    fleet.refuse(&lease.token, counting(needed("Orchestration", Some("2.0.0")))).await;
    assert!(fleet.turn("one").await.is_none(), "the later refusal names the version");
    assert_eq!(fleet.turned("two").await.attempt, 1, "both refusals are uncounted");
    Verdict::Kept
}

async fn s21_routed_work_keeps_its_tag(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(worker("old")).await;
    fleet.report(WorkerReport { tags: TagFilter::Any, ..capable("new") }).await;
    bench.enqueue(activity_with("a", 2, None, Some("gpu"))).await;
    assert_eq!(fleet.refuse_work("old").await, Refused::Routed);
    let told = ok(fleet.store.work_of("a", 1).await);
    assert_eq!(told.first().map(|work| work.tag.as_deref()), Some(Some("gpu")), "people see the tag");
    for tags in [TagFilter::DefaultOnly, TagFilter::tags(["disk"]), TagFilter::None] {
        let other = WorkRequest { tags, ..asking("new") };
        assert!(ok(fleet.store.fetch_work(other).await).is_none(), "the filter refuses the tag");
    }
    let gpu = WorkRequest { tags: TagFilter::tags(["gpu"]), ..asking("new") };
    let lease = ok(fleet.store.fetch_work(gpu).await).expect("the filter accepts the tag");
    assert_eq!((lease.item, lease.attempt), (activity_with("a", 2, None, Some("gpu")), 1));
    Verdict::Kept
}

async fn s21_a_routed_turn_keeps_its_engine_version(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(worker("old")).await;
    let mut commit = Commit::default().message(raise("a", "data"));
    commit.metadata.pinned_duroxide_version = Some(Version::new(2, 0, 0));
    bench.begin("a", commit).await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Routed);
    for (major, given) in [(1, false), (2, true)] {
        let version = Version::new(major, 0, 0);
        let ranges = vec![SemverRange::new(version.clone(), version)];
        let filter = DispatcherCapabilityFilter { supported_duroxide_versions: ranges };
        let request = TurnRequest {
            lock_timeout: LEASE,
            poll_timeout: Duration::ZERO,
            filter: Some(&filter),
            warm: &Cold,
            worker: Some(&WorkerId("new".to_owned())),
        };
        assert_eq!(ok(fleet.store.fetch_turn(request).await).is_some(), given, "{major}");
    }
    Verdict::Kept
}

async fn s21_a_route_survives_an_expired_lease_and_an_abandon(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    fleet.refuse_turn("old").await;
    fleet.refuse_work("old").await;
    let (turn, work) = (fleet.turned("new").await, fleet.worked("new").await);
    ok(fleet.store.abandon(&turn.token, counting(the_activity()).if_unlisted).await);
    ok(fleet.store.abandon(&work.token, parking(the_activity()).if_unlisted).await);
    assert!(fleet.work("old").await.is_none(), "it is routed as before");
    fleet.worked("new").await;
    bench.advance(LEASE);
    assert!(fleet.turn("old").await.is_none(), "it is held back, and routed");
    assert!(fleet.work("old").await.is_none(), "it is routed as before");
    bench.advance(super::BACKOFF);
    fleet.report(capable("new")).await;
    assert!(fleet.turn("old").await.is_none(), "it is routed as before");
    assert!(fleet.turn("new").await.is_some() && fleet.work("new").await.is_some());
    Verdict::Kept
}

async fn s21_a_route_survives_a_restart_of_the_store(bench: Bench) -> Verdict {
    {
        let fleet = need!(fleet(&bench), "Store");
        fleet.report(capable("new")).await;
        fleet.report(eager("old")).await;
        bench.start("a").await;
        bench.enqueue(activity("a", 2)).await;
        fleet.refuse_turn("old").await;
        fleet.refuse_work("old").await;
    }
    let bench = need!(bench.reopen().await, "reopen");
    let fleet = need!(fleet(&bench), "Store");
    assert!(fleet.turn("old").await.is_none(), "the route is stored");
    assert!(fleet.work("old").await.is_none(), "the route is stored");
    assert!(fleet.turn("new").await.is_some() && fleet.work("new").await.is_some());
    Verdict::Kept
}

async fn s21_of_many_workers_without_the_handler_one_refuses_and_none_counts(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    let old: Vec<String> = (0..9).map(|number| format!("old-{number}")).collect();
    for id in &old {
        fleet.report(eager(id)).await;
    }
    for number in 0..20 {
        bench.start(&format!("i-{number}")).await;
    }
    let mut refusals = 0;
    while let Some((id, lease)) = first_given(&fleet, &old).await {
        assert!(old.contains(&id));
        fleet.refuse(&lease.token, counting(the_orchestration())).await;
        refusals += 1;
    }
    assert_eq!(refusals, 20, "each instance is refused once");
    for _ in 0..20 {
        assert_eq!(fleet.turned("new").await.attempt, 1, "no refusal counts");
    }
    Verdict::Kept
}

/// The first of several workers that is given an instance, with it.
async fn first_given(
    fleet: &super::Fleet<'_>,
    workers: &[String],
) -> Option<(String, steadfast_store::TurnLease)> {
    for id in workers {
        if let Some(lease) = fleet.turn(id).await {
            return Some((id.clone(), lease));
        }
    }
    None
}

async fn s21_a_route_survives_a_message_that_cannot_be_read(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    bench.begun("a").await;
    bench.send(raise("a", "1")).await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Routed);
    need!(bench.damage(Damage::Messages { instance: "a" }).await, "damage");
    assert!(fleet.turn("new").await.is_none(), "its message is held back");
    bench.send(raise("a", "2")).await;
    assert!(fleet.turn("old").await.is_none(), "it still lacks the handler");
    assert_eq!(fleet.turned("new").await.messages.len(), 1);
    Verdict::Kept
}

async fn s21_the_route_of_a_start_that_is_set_aside_keeps_no_stray(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(eager("old")).await;
    bench.start("a").await;
    assert_eq!(fleet.refuse_turn("old").await, Refused::Routed);
    need!(bench.damage(Damage::Messages { instance: "a" }).await, "damage");
    bench.send(raise("a", "1")).await;
    for _ in 0..MAX_UNREADABLE_ATTEMPTS {
        assert!(fleet.turn("new").await.is_none(), "its start cannot be read");
        bench.advance(UNREADABLE_RETRY);
        fleet.report(capable("new")).await;
        fleet.report(eager("old")).await;
    }
    assert_eq!(ok(fleet.store.set_aside(None).await).len(), 1, "the start");
    assert!(fleet.turn("old").await.is_none(), "it settles what has no instance");
    assert!(ok(fleet.store.turn_of("a").await).is_none(), "nothing waits for the route");
    Verdict::Kept
}
