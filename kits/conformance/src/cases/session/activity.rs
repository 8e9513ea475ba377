//! The time of the last activity: what moves it, and for whom (D15, D16).

use std::time::Duration;

use steadfast_store::{Abandon, Attempt};

use super::{desk, leasing};
use crate::Verdict;
use crate::bench::{Bench, LEASE, ok};
use crate::case::{cases, need};

cases![
    s13_a_fetch_moves_the_last_activity,
    s13_renewing_an_activity_moves_the_last_activity_and_not_the_lease,
    s13_finishing_an_activity_moves_the_last_activity_and_not_the_lease,
    s13_abandoning_an_activity_does_not_move_the_last_activity,
    s13_renewing_sessions_does_not_move_the_last_activity,
    s13_a_former_owner_does_not_move_the_last_activity,
    s13_a_former_attachment_of_the_same_owner_does_not_move_the_last_activity,
    s13_after_the_lease_nothing_moves_the_last_activity,
];

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

async fn s13_a_fetch_moves_the_last_activity(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    bench.advance(SECOND);
    desk.queue("S", 2).await;
    desk.fetched("A").await;
    assert_eq!(desk.shared("S").await.last_activity_at_ms, bench.now_ms());
    Verdict::Kept
}

async fn s13_renewing_an_activity_moves_the_last_activity_and_not_the_lease(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let lease = desk.fetched("A").await;
    let before = desk.shared("S").await;
    bench.advance(SECOND);
    ok(desk.store.renew(&lease.token, MINUTE).await);
    let after = desk.shared("S").await;
    assert_eq!(after.last_activity_at_ms, bench.now_ms());
    assert_eq!(after.locked_until_ms, before.locked_until_ms);
    assert_eq!(after.epoch, before.epoch);
    Verdict::Kept
}

async fn s13_finishing_an_activity_moves_the_last_activity_and_not_the_lease(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let lease = desk.fetched("A").await;
    let before = desk.shared("S").await;
    bench.advance(SECOND);
    desk.finish(&lease).await;
    let after = desk.shared("S").await;
    assert_eq!(after.last_activity_at_ms, bench.now_ms());
    assert_eq!(after.locked_until_ms, before.locked_until_ms);
    Verdict::Kept
}

async fn s13_abandoning_an_activity_does_not_move_the_last_activity(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let lease = desk.fetched("A").await;
    let before = desk.shared("S").await;
    bench.advance(SECOND);
    let how = Abandon { retry_after: None, attempt: Attempt::Counts };
    ok(desk.store.abandon(&lease.token, how).await);
    let after = desk.shared("S").await;
    assert_eq!(after, before, "nothing was done on the session");
    Verdict::Kept
}

async fn s13_renewing_sessions_does_not_move_the_last_activity(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    let before = desk.shared("S").await;
    bench.advance(SECOND);
    desk.renew(super::renewal("A")).await;
    assert_eq!(desk.shared("S").await.last_activity_at_ms, before.last_activity_at_ms);
    Verdict::Kept
}

async fn s13_a_former_owner_does_not_move_the_last_activity(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    desk.queue("S", 2).await;
    let stale = desk.asked(leasing("A", MINUTE, SECOND)).await;
    bench.advance(SECOND);
    desk.fetched("B").await;
    let before = desk.shared("S").await;
    bench.advance(SECOND);
    ok(desk.store.renew(&stale.token, MINUTE).await);
    assert_eq!(desk.shared("S").await, before, "A's lock is its own, the session is B's");
    desk.finish(&stale).await;
    let after = desk.shared("S").await;
    assert_eq!(after.last_activity_at_ms, before.last_activity_at_ms);
    assert_eq!(after.locked_until_ms, before.locked_until_ms);
    Verdict::Kept
}

async fn s13_a_former_attachment_of_the_same_owner_does_not_move_the_last_activity(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    desk.queue("S", 2).await;
    let stale = desk.asked(leasing("A", MINUTE, SECOND)).await;
    bench.advance(SECOND);
    desk.fetched("A").await;
    let before = desk.shared("S").await;
    bench.advance(SECOND);
    ok(desk.store.renew(&stale.token, MINUTE).await);
    assert_eq!(desk.shared("S").await, before, "epochs decide, not names");
    Verdict::Kept
}

async fn s13_after_the_lease_nothing_moves_the_last_activity(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let lease = desk.asked(leasing("A", MINUTE, LEASE)).await;
    let before = desk.shared("S").await;
    bench.advance(LEASE);
    ok(desk.store.renew(&lease.token, MINUTE).await);
    assert_eq!(desk.shared("S").await, before, "nobody holds the session");
    Verdict::Kept
}
