//! Workers: which ones are live, which ones have a handler, and how a route is stored.

use semver::Version;
use steadfast_core::{DispatcherCapabilityFilter, TagFilter};

use super::tag::{stored_tag, stored_tags};
use crate::{ListedHandler, NeededHandler, WORKER_LIVE_FOR, WorkerReport};

/// Tells whether a worker that reported last at `last_seen_ms` is live.
pub fn is_live_worker(is_stopped: bool, last_seen_ms: u64, now_ms: u64) -> bool {
    let lives_until = last_seen_ms.saturating_add(WORKER_LIVE_FOR.as_millis() as u64);
    !is_stopped && lives_until > now_ms
}

/// Tells whether a worker has the handler that a turn needs, and runs the engine version that the execution
/// is pinned to; `None` if it is pinned to none.
pub fn lists_orchestration(worker: &WorkerReport, needed: &NeededHandler, pinned: Option<&Version>) -> bool {
    lists(&worker.orchestrations, needed) && runs_engine(worker.engines.as_ref(), pinned)
}

/// Tells whether a worker has the handler that an activity needs, accepts the activity's tag, and serves
/// sessions if the activity is on one.
pub fn lists_activity(
    worker: &WorkerReport,
    needed: &NeededHandler,
    tag: Option<&str>,
    is_on_session: bool,
) -> bool {
    lists(&worker.activities, needed)
        && accepts_tag(&worker.tags, tag)
        && (worker.serves_sessions || !is_on_session)
}

/// Tells whether a worker that runs the executions of these engine versions runs one that is pinned to
/// `pinned`. A filter without a version fits no execution, pinned or not.
pub fn runs_engine(engines: Option<&DispatcherCapabilityFilter>, pinned: Option<&Version>) -> bool {
    engines.is_none_or(|engines| match pinned {
        Some(pinned) => engines.is_compatible(pinned),
        None => !engines.supported_duroxide_versions.is_empty(),
    })
}

fn lists(handlers: &[ListedHandler], needed: &NeededHandler) -> bool {
    handlers.iter().any(|handler| {
        handler.name == needed.name
            && needed.version.as_ref().is_none_or(|version| handler.versions.contains(version))
    })
}

fn accepts_tag(filter: &TagFilter, tag: Option<&str>) -> bool {
    stored_tags(filter).is_none_or(|tags| tags.contains(&stored_tag(tag)))
}

#[cfg(test)]
mod tests {
    use steadfast_core::SemverRange;

    use super::*;

    fn needed(version: Option<&str>) -> NeededHandler {
        NeededHandler { name: "Order".to_owned(), version: version.map(str::to_owned) }
    }

    #[test]
    fn a_handler_is_listed_by_its_name_and_if_one_is_needed_by_its_version() {
        let handlers =
            [ListedHandler { name: "Order".to_owned(), versions: vec!["1.0.0".into(), "2.0.0".into()] }];
        assert!(lists(&handlers, &needed(None)));
        assert!(lists(&handlers, &needed(Some("2.0.0"))));
        assert!(!lists(&handlers, &needed(Some("3.0.0"))));
        assert!(!lists(&[], &needed(None)));
    }

    #[test]
    fn a_worker_runs_the_executions_of_its_engine_versions_and_those_without_one() {
        let range = |min, max| SemverRange::new(Version::new(0, min, 0), Version::new(0, max, 0));
        let engines = DispatcherCapabilityFilter { supported_duroxide_versions: vec![range(1, 2)] };
        assert!(runs_engine(Some(&engines), Some(&Version::new(0, 2, 0))));
        assert!(!runs_engine(Some(&engines), Some(&Version::new(0, 3, 0))));
        assert!(runs_engine(Some(&engines), None));
        assert!(runs_engine(None, Some(&Version::new(0, 3, 0))));
        let nothing = DispatcherCapabilityFilter { supported_duroxide_versions: Vec::new() };
        assert!(!runs_engine(Some(&nothing), None));
    }

    #[test]
    fn a_worker_is_live_for_a_minute_after_its_last_report_unless_it_stopped() {
        assert!(is_live_worker(false, 1_000, 60_999));
        assert!(!is_live_worker(false, 1_000, 61_000));
        assert!(!is_live_worker(true, 1_000, 1_000));
    }
}
