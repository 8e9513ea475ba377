//! Untaken work: a session moves on from an owner that will not take its waiting work (D22).

use std::collections::HashSet;
use std::time::Duration;

use steadfast_core::TagFilter;
use steadfast_store::{Abandon, Appetite, Attempt, RenewSessions, SessionsRenewed};

use crate::Verdict;
use crate::bench::{Bench, LEASE, TICK, activity_with, ok};
use crate::case::{cases, need};
use crate::cases::session::{Desk, PATIENCE, attachment, desk, leasing, renewal};

cases![
    s13_a_full_owner_loses_what_it_does_not_take,
    s13_untaken_work_goes_to_the_next_at_once,
    s13_an_owner_that_is_merely_busy_keeps_its_sessions,
    s13_a_tag_that_the_owner_refuses_moves_the_session_on,
    s13_a_tag_that_the_owner_serves_stays,
    s13_work_is_untaken_only_after_a_while,
    s13_a_running_activity_keeps_its_session_from_moving_on,
    s13_an_untaken_session_without_work_stays,
    s13_work_that_was_given_back_waits_from_then_on,
    s13_work_whose_lock_ended_waits_from_then_on,
    s13_work_that_is_held_back_does_not_wait,
];

/// Longer than any patience.
const HOUR: Duration = Duration::from_secs(3_600);

fn full(owner: &str) -> RenewSessions {
    RenewSessions { appetite: Appetite::Full, extend_for: HOUR, idle_timeout: HOUR * 24, ..renewal(owner) }
}

/// Makes A hold S for an hour, with nothing running.
async fn held(desk: &Desk<'_>) -> steadfast_store::SessionRef {
    desk.queue("S", 1).await;
    let lease = desk.asked(leasing("A", LEASE, HOUR)).await;
    desk.finish(&lease).await;
    attachment(&lease)
}

async fn s13_a_full_owner_loses_what_it_does_not_take(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let session = held(&desk).await;
    desk.queue("S", 2).await;
    bench.advance(PATIENCE + TICK);
    let outcome = desk.renew(RenewSessions { held: vec![session.clone()], ..full("A") }).await;
    assert_eq!(outcome, SessionsRenewed { untaken: vec![session], ..SessionsRenewed::default() });
    assert!(desk.shared("S").await.locked_until_ms <= bench.now_ms(), "its lease was ended");
    Verdict::Kept
}

async fn s13_untaken_work_goes_to_the_next_at_once(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let session = held(&desk).await;
    desk.queue("S", 2).await;
    bench.advance(PATIENCE + TICK);
    desk.renew(full("A")).await;
    let lease = desk.fetched("B").await;
    assert!(attachment(&lease).epoch > session.epoch, "B's is another attachment");
    Verdict::Kept
}

async fn s13_an_owner_that_is_merely_busy_keeps_its_sessions(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    held(&desk).await;
    desk.queue("S", 2).await;
    bench.advance(10 * PATIENCE);
    let outcome = desk.renew(RenewSessions { appetite: Appetite::Hungry, ..full("A") }).await;
    assert_eq!((outcome.renewed.len(), outcome.untaken.len()), (1, 0), "it will be served oldest first");
    Verdict::Kept
}

async fn s13_a_tag_that_the_owner_refuses_moves_the_session_on(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    held(&desk).await;
    ok(desk.store.enqueue_work(activity_with("i", 2, Some("S"), Some("gpu")).into()).await);
    bench.advance(PATIENCE + TICK);
    let refusing = RenewSessions { appetite: Appetite::Hungry, tags: TagFilter::DefaultOnly, ..full("A") };
    let outcome = desk.renew(refusing).await;
    assert_eq!((outcome.renewed.len(), outcome.untaken.len()), (0, 1));
    Verdict::Kept
}

async fn s13_a_tag_that_the_owner_serves_stays(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    held(&desk).await;
    ok(desk.store.enqueue_work(activity_with("i", 2, Some("S"), Some("gpu")).into()).await);
    bench.advance(PATIENCE + TICK);
    let tags = TagFilter::DefaultAnd(HashSet::from(["gpu".to_owned()]));
    let outcome = desk.renew(RenewSessions { appetite: Appetite::Hungry, tags, ..full("A") }).await;
    assert_eq!((outcome.renewed.len(), outcome.untaken.len()), (1, 0));
    Verdict::Kept
}

async fn s13_work_is_untaken_only_after_a_while(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    held(&desk).await;
    desk.queue("S", 2).await;
    bench.advance(PATIENCE);
    assert_eq!(desk.renew(full("A")).await.renewed.len(), 1, "it has waited no longer than it may");
    bench.advance(TICK);
    assert_eq!(desk.renew(full("A")).await.untaken.len(), 1);
    Verdict::Kept
}

async fn s13_a_running_activity_keeps_its_session_from_moving_on(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    desk.asked(leasing("A", HOUR, HOUR)).await;
    desk.queue("S", 2).await;
    bench.advance(2 * PATIENCE);
    let outcome = desk.renew(full("A")).await;
    assert_eq!((outcome.renewed.len(), outcome.untaken.len()), (1, 0), "A still serves it");
    Verdict::Kept
}

async fn s13_an_untaken_session_without_work_stays(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    held(&desk).await;
    bench.advance(2 * PATIENCE);
    assert_eq!(desk.renew(full("A")).await.renewed.len(), 1, "nothing waits for it");
    Verdict::Kept
}

async fn s13_work_that_was_given_back_waits_from_then_on(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let lease = desk.asked(leasing("A", HOUR, HOUR)).await;
    bench.advance(2 * PATIENCE);
    let how = Abandon { retry_after: None, attempt: Attempt::Uncounted };
    ok(desk.store.abandon(&lease.token, how).await);
    bench.advance(PATIENCE);
    assert_eq!(desk.renew(full("A")).await.renewed.len(), 1, "while it ran, it did not wait");
    bench.advance(TICK);
    assert_eq!(desk.renew(full("A")).await.untaken.len(), 1);
    Verdict::Kept
}

async fn s13_work_whose_lock_ended_waits_from_then_on(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    desk.asked(leasing("A", 2 * PATIENCE, HOUR)).await;
    bench.advance(3 * PATIENCE);
    assert_eq!(desk.renew(full("A")).await.renewed.len(), 1, "its lock ended one patience ago");
    bench.advance(TICK);
    assert_eq!(desk.renew(full("A")).await.untaken.len(), 1);
    Verdict::Kept
}

async fn s13_work_that_is_held_back_does_not_wait(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let lease = desk.asked(leasing("A", LEASE, HOUR)).await;
    let how = Abandon { retry_after: Some(2 * PATIENCE), attempt: Attempt::Counts };
    ok(desk.store.abandon(&lease.token, how).await);
    bench.advance(3 * PATIENCE);
    assert_eq!(desk.renew(full("A")).await.renewed.len(), 1, "it became visible one patience ago");
    bench.advance(TICK);
    assert_eq!(desk.renew(full("A")).await.untaken.len(), 1);
    Verdict::Kept
}
