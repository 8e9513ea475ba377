//! The compatible session methods (C1.16): renewal by owner ids, clean-up with a count.

use std::time::Duration;

use steadfast_core::TagFilter;
use steadfast_store::SessionFetchConfig;

use super::{IDLE, queue};
use crate::bench::{Bench, LEASE, TICK, ok};
use crate::case::cases;

cases![
    s13_the_compatible_renewal_counts_what_it_extends,
    s13_the_compatible_renewal_extends_several_owners,
    s13_the_compatible_renewal_of_an_empty_list_is_zero,
    s13_the_compatible_renewal_skips_other_owners,
    s13_the_compatible_renewal_skips_expired_leases,
    s13_the_compatible_renewal_skips_idle_sessions,
    s13_the_compatible_renewal_keeps_sessions_with_running_work,
    s13_the_compatible_renewal_follows_the_last_finished_work,
    s13_the_compatible_renewal_follows_the_renewal_of_work,
    s13_the_compatible_clean_up_counts_what_it_removes,
    s13_work_outlives_its_session_in_the_compatible_form,
];

/// Makes an owner hold a session for as long as given, with nothing running.
async fn attach(bench: &Bench, owner: &str, session: &str, lease: Duration) {
    let token = claim(bench, owner, session, lease).await;
    ok(bench.provider().ack_work_item(&token, None).await);
}

async fn claim(bench: &Bench, owner: &str, session: &str, lease: Duration) -> String {
    queue(bench, session, 1).await;
    let config = SessionFetchConfig { owner_id: owner.to_owned(), lock_timeout: lease };
    let (_, token, _) =
        bench.fetch_work_as(Some(&config), &TagFilter::DefaultOnly).await.expect("the session is free");
    token
}

async fn renew(bench: &Bench, owners: &[&str]) -> usize {
    ok(bench.provider().renew_session_lock(owners, LEASE, IDLE).await)
}

async fn is_free(bench: &Bench, session: &str) -> bool {
    queue(bench, session, 9).await;
    bench.fetch_work_for("somebody else").await.is_some()
}

async fn s13_the_compatible_renewal_counts_what_it_extends(bench: Bench) {
    attach(&bench, "A", "S", LEASE).await;
    attach(&bench, "A", "T", LEASE).await;
    bench.advance(LEASE - TICK);
    assert_eq!(renew(&bench, &["A"]).await, 2);
    bench.advance(LEASE - TICK);
    assert!(!is_free(&bench, "S").await, "S was extended");
    assert!(!is_free(&bench, "T").await, "T was extended");
}

async fn s13_the_compatible_renewal_extends_several_owners(bench: Bench) {
    attach(&bench, "A", "S", LEASE).await;
    attach(&bench, "B", "T", LEASE).await;
    attach(&bench, "C", "U", LEASE).await;
    bench.advance(LEASE - TICK);
    assert_eq!(renew(&bench, &["A", "nobody", "B", "A"]).await, 2, "each lease counts once");
    bench.advance(TICK);
    assert!(is_free(&bench, "U").await, "C was not named");
    assert!(!is_free(&bench, "S").await);
    assert!(!is_free(&bench, "T").await);
}

async fn s13_the_compatible_renewal_of_an_empty_list_is_zero(bench: Bench) {
    attach(&bench, "A", "S", LEASE).await;
    assert_eq!(renew(&bench, &[]).await, 0);
}

async fn s13_the_compatible_renewal_skips_other_owners(bench: Bench) {
    attach(&bench, "A", "S", LEASE).await;
    bench.advance(LEASE - TICK);
    assert_eq!(renew(&bench, &["B"]).await, 0);
    bench.advance(TICK);
    assert!(is_free(&bench, "S").await);
}

async fn s13_the_compatible_renewal_skips_expired_leases(bench: Bench) {
    attach(&bench, "A", "S", LEASE).await;
    bench.advance(LEASE);
    assert_eq!(renew(&bench, &["A"]).await, 0);
    assert!(is_free(&bench, "S").await, "a renewal never revives");
}

async fn s13_the_compatible_renewal_skips_idle_sessions(bench: Bench) {
    attach(&bench, "A", "S", IDLE + LEASE).await;
    bench.advance(IDLE);
    assert_eq!(renew(&bench, &["A"]).await, 0);
    bench.advance(LEASE);
    assert!(is_free(&bench, "S").await, "its lease ran out");
}

async fn s13_the_compatible_renewal_keeps_sessions_with_running_work(bench: Bench) {
    let token = claim(&bench, "A", "S", 3 * IDLE).await;
    ok(bench.provider().renew_work_item_lock(&token, 3 * IDLE).await);
    bench.advance(2 * IDLE);
    assert_eq!(renew(&bench, &["A"]).await, 1, "an activity of it runs");
}

async fn s13_the_compatible_renewal_follows_the_last_finished_work(bench: Bench) {
    let token = claim(&bench, "A", "S", 3 * IDLE).await;
    ok(bench.provider().renew_work_item_lock(&token, 3 * IDLE).await);
    bench.advance(IDLE);
    ok(bench.provider().ack_work_item(&token, None).await);
    bench.advance(IDLE - TICK);
    assert_eq!(renew(&bench, &["A"]).await, 1, "idle time counts from the ack");
}

async fn s13_the_compatible_renewal_follows_the_renewal_of_work(bench: Bench) {
    let token = claim(&bench, "A", "S", 3 * IDLE).await;
    bench.advance(LEASE - TICK);
    ok(bench.provider().renew_work_item_lock(&token, LEASE).await);
    bench.advance(IDLE - TICK);
    assert_eq!(renew(&bench, &["A"]).await, 1, "idle time counts from the renewal");
}

async fn s13_the_compatible_clean_up_counts_what_it_removes(bench: Bench) {
    attach(&bench, "A", "S", LEASE).await;
    attach(&bench, "A", "T", LEASE).await;
    attach(&bench, "A", "U", 3 * LEASE).await;
    queue(&bench, "T", 2).await;
    bench.advance(LEASE);
    let removed = ok(bench.provider().cleanup_orphaned_sessions(IDLE).await);
    assert!(removed <= 1, "T has work and U is held: {removed} removed");
    assert!(bench.fetch_work_for("B").await.is_some(), "T's work is there");
    assert!(!is_free(&bench, "U").await, "U is still A's");
}

async fn s13_work_outlives_its_session_in_the_compatible_form(bench: Bench) {
    let token = claim(&bench, "A", "S", TICK).await;
    bench.advance(TICK);
    assert!(is_free(&bench, "S").await, "the session's lease is over");
    ok(bench.provider().renew_work_item_lock(&token, LEASE).await);
    ok(bench.provider().ack_work_item(&token, None).await);
}
