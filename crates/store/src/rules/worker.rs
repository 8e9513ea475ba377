//! Workers: which ones are live, which ones have a handler, and how a route is stored.

use steadfast_core::TagFilter;

use super::tag::{stored_tag, stored_tags};
use crate::{ListedHandler, NeededHandler, WORKER_LIVE_FOR, WorkerReport};

/// Tells whether a worker that reported last at `last_seen_ms` is live.
pub fn is_live_worker(is_stopped: bool, last_seen_ms: u64, now_ms: u64) -> bool {
    let lives_until = last_seen_ms.saturating_add(WORKER_LIVE_FOR.as_millis() as u64);
    !is_stopped && lives_until > now_ms
}

/// Tells whether a worker has the handler that a turn needs.
pub fn lists_orchestration(worker: &WorkerReport, needed: &NeededHandler) -> bool {
    lists(&worker.orchestrations, needed)
}

/// Tells whether a worker has the handler that an activity needs, and accepts the activity's tag.
pub fn lists_activity(worker: &WorkerReport, needed: &NeededHandler, tag: Option<&str>) -> bool {
    lists(&worker.activities, needed) && accepts_tag(&worker.tags, tag)
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
    fn a_worker_is_live_for_a_minute_after_its_last_report_unless_it_stopped() {
        assert!(is_live_worker(false, 1_000, 60_999));
        assert!(!is_live_worker(false, 1_000, 61_000));
        assert!(!is_live_worker(true, 1_000, 1_000));
    }
}
