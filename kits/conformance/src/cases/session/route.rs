//! Routing: which worker is given which work (D14). Shared sessions, in the compatible form.

use std::time::Duration;

use steadfast_store::SessionFetchConfig;

use super::{id_of, queue};
use crate::Commit;
use crate::bench::{Bench, LEASE, TICK, activity_with, completion, event, ok, scheduled};
use crate::case::cases;

cases![
    s13_an_item_of_a_new_session_goes_to_any_worker,
    s13_a_claimed_session_is_given_to_nobody_else,
    s13_the_owner_is_given_more_of_its_session,
    s13_an_item_without_a_session_goes_to_anybody,
    s13_without_a_session_request_no_session_work_is_given,
    s13_without_a_session_request_other_work_is_found_behind_session_work,
    s13_an_expired_session_goes_to_the_next,
    s13_a_lease_ends_at_its_last_moment,
    s13_the_oldest_item_goes_first_whichever_its_kind,
    s13_work_pinned_elsewhere_delays_nothing,
    s13_an_owner_holds_several_sessions,
    s13_sessions_of_several_owners_do_not_mix,
    s13_slots_of_one_process_share_a_session,
    s13_a_session_that_a_turn_names_is_kept,
    s13_two_instances_share_a_session_by_naming_it,
    s13_an_abandoned_item_keeps_its_session,
    s13_an_abandoned_item_goes_with_its_session_to_the_next_owner,
    s13_an_uncounted_try_at_session_work_leaves_no_trace,
    s13_a_cancelled_activity_leaves_its_session_attached,
    s13_an_item_held_back_claims_nothing,
    s13_any_id_names_a_session,
];

async fn s13_an_item_of_a_new_session_goes_to_any_worker(bench: Bench) {
    queue(&bench, "S", 1).await;
    let (item, _, attempt) = bench.fetch_work_for("A").await.expect("nobody holds the session");
    assert_eq!(item, activity_with("i", 1, Some("S"), None), "the item names its session");
    assert_eq!(attempt, 1);
}

async fn s13_a_claimed_session_is_given_to_nobody_else(bench: Bench) {
    queue(&bench, "S", 1).await;
    queue(&bench, "S", 2).await;
    bench.fetch_work_for("A").await.expect("A claims the session");
    assert!(bench.fetch_work_for("B").await.is_none(), "the session is A's");
}

async fn s13_the_owner_is_given_more_of_its_session(bench: Bench) {
    queue(&bench, "S", 1).await;
    let (_, token, _) = bench.fetch_work_for("A").await.expect("A claims the session");
    ok(bench.provider().ack_work_item(&token, Some(completion("i", 1))).await);
    queue(&bench, "S", 2).await;
    assert!(bench.fetch_work_for("B").await.is_none(), "the session is A's, also between two activities");
    let (item, ..) = bench.fetch_work_for("A").await.expect("the owner is given the next item");
    assert_eq!(id_of(&item), 2);
}

async fn s13_an_item_without_a_session_goes_to_anybody(bench: Bench) {
    queue(&bench, "S", 1).await;
    bench.fetch_work_for("A").await.expect("A claims the session");
    for (owner, id) in [("A", 2), ("B", 3)] {
        ok(bench.provider().enqueue_for_worker(activity_with("i", id, None, None)).await);
        let (item, ..) = bench.fetch_work_for(owner).await.expect("an item without a session is for all");
        assert_eq!(id_of(&item), id);
    }
}

async fn s13_without_a_session_request_no_session_work_is_given(bench: Bench) {
    queue(&bench, "S", 1).await;
    assert!(bench.fetch_work().await.is_none(), "who does not ask for sessions gets none");
    let (_, _, attempt) = bench.fetch_work_for("A").await.expect("the item waits for one who asks");
    assert_eq!(attempt, 1, "a fetch that was not given the item did not try it");
}

async fn s13_without_a_session_request_other_work_is_found_behind_session_work(bench: Bench) {
    queue(&bench, "S", 1).await;
    ok(bench.provider().enqueue_for_worker(activity_with("i", 2, None, None)).await);
    let (item, ..) = bench.fetch_work().await.expect("session work does not hide other work");
    assert_eq!(id_of(&item), 2);
}

async fn s13_an_expired_session_goes_to_the_next(bench: Bench) {
    queue(&bench, "S", 1).await;
    let (_, token, _) = bench.fetch_work_for("A").await.expect("A claims the session");
    ok(bench.provider().ack_work_item(&token, None).await);
    queue(&bench, "S", 2).await;
    bench.advance(LEASE + TICK);
    let (item, ..) = bench.fetch_work_for("B").await.expect("A's lease is over");
    assert_eq!(id_of(&item), 2);
    queue(&bench, "S", 3).await;
    assert!(bench.fetch_work_for("A").await.is_none(), "now the session is B's");
}

async fn s13_a_lease_ends_at_its_last_moment(bench: Bench) {
    queue(&bench, "S", 1).await;
    queue(&bench, "S", 2).await;
    bench.fetch_work_for("A").await.expect("A claims the session");
    bench.advance(LEASE - TICK);
    assert!(bench.fetch_work_for("B").await.is_none(), "one moment of the lease is left");
    bench.advance(TICK);
    assert!(bench.fetch_work_for("B").await.is_some(), "a session is owned while its lease lies ahead");
}

async fn s13_the_oldest_item_goes_first_whichever_its_kind(bench: Bench) {
    let sessions = [Some("S"), None, Some("T"), None, Some("S")];
    for (id, session) in (1..).zip(sessions) {
        ok(bench.provider().enqueue_for_worker(activity_with("i", id, session, None)).await);
    }
    for expected in 1..=5 {
        let (item, ..) = bench.fetch_work_for("A").await.expect("nothing is pinned elsewhere");
        assert_eq!(id_of(&item), expected, "items go in the order of the queue");
    }
}

async fn s13_work_pinned_elsewhere_delays_nothing(bench: Bench) {
    queue(&bench, "S", 1).await;
    bench.fetch_work_for("A").await.expect("A claims the session");
    for id in 2..30 {
        queue(&bench, "S", id).await;
    }
    queue(&bench, "T", 30).await;
    ok(bench.provider().enqueue_for_worker(activity_with("i", 31, None, None)).await);
    for expected in [30, 31] {
        let (item, ..) = bench.fetch_work_for("B").await.expect("B looks past what is A's");
        assert_eq!(id_of(&item), expected);
    }
}

async fn s13_an_owner_holds_several_sessions(bench: Bench) {
    for (id, session) in (1..).zip(["S", "T", "U"]) {
        queue(&bench, session, id).await;
        bench.fetch_work_for("A").await.expect("A claims one more session");
    }
    for (id, session) in (4..).zip(["S", "T", "U"]) {
        queue(&bench, session, id).await;
        assert!(bench.fetch_work_for("B").await.is_none(), "{session} is A's");
        let (item, ..) = bench.fetch_work_for("A").await.expect("A is given more of each");
        assert_eq!(id_of(&item), id);
    }
}

async fn s13_sessions_of_several_owners_do_not_mix(bench: Bench) {
    for (id, (owner, session)) in (1..).zip([("A", "S"), ("B", "T")]) {
        queue(&bench, session, id).await;
        bench.fetch_work_for(owner).await.expect("each claims one session");
    }
    queue(&bench, "S", 3).await;
    queue(&bench, "T", 4).await;
    for (owner, id) in [("B", 4), ("A", 3)] {
        let (item, ..) = bench.fetch_work_for(owner).await.expect("each has an item");
        assert_eq!(id_of(&item), id, "{owner} is given the item of its own session");
    }
}

async fn s13_slots_of_one_process_share_a_session(bench: Bench) {
    queue(&bench, "S", 1).await;
    queue(&bench, "S", 2).await;
    assert!(bench.fetch_work_for("A").await.is_some(), "one slot claims the session");
    assert!(bench.fetch_work_for("A").await.is_some(), "another slot runs beside it: no exclusivity inside");
}

async fn s13_a_session_that_a_turn_names_is_kept(bench: Bench) {
    let item = activity_with("a", 2, Some("S"), None);
    bench.begin("a", Commit::default().event(event("a", 2, scheduled())).work(item.clone())).await;
    assert!(bench.fetch_work().await.is_none(), "the committed item belongs to a session");
    let (fetched, ..) = bench.fetch_work_for("A").await.expect("A claims the session");
    assert_eq!(fetched, item);
    queue(&bench, "S", 3).await;
    assert!(bench.fetch_work_for("B").await.is_none(), "the session is A's");
}

async fn s13_two_instances_share_a_session_by_naming_it(bench: Bench) {
    for instance in ["a", "b"] {
        ok(bench.provider().enqueue_for_worker(activity_with(instance, 1, Some("S"), None)).await);
    }
    bench.fetch_work_for("A").await.expect("A claims the session through one instance");
    assert!(bench.fetch_work_for("B").await.is_none(), "it is the same session for the other");
    let (item, ..) = bench.fetch_work_for("A").await.expect("A is given the other's item too");
    assert_eq!(item.instance(), "b");
}

async fn s13_an_abandoned_item_keeps_its_session(bench: Bench) {
    queue(&bench, "S", 1).await;
    let (_, token, _) = bench.fetch_work_for("A").await.expect("A claims the session");
    ok(bench.provider().abandon_work_item(&token, None, false).await);
    assert!(bench.fetch_work().await.is_none(), "the item still belongs to its session");
    assert!(bench.fetch_work_for("B").await.is_none(), "the session is still A's");
    let (_, _, attempt) = bench.fetch_work_for("A").await.expect("A is given the item again");
    assert_eq!(attempt, 2);
}

async fn s13_an_abandoned_item_goes_with_its_session_to_the_next_owner(bench: Bench) {
    queue(&bench, "S", 1).await;
    queue(&bench, "S", 2).await;
    let (_, token, _) = bench.fetch_work_for("A").await.expect("A claims the session");
    ok(bench.provider().abandon_work_item(&token, None, false).await);
    bench.advance(LEASE);
    let (item, _, attempt) = bench.fetch_work_for("B").await.expect("A's lease is over");
    assert_eq!((id_of(&item), attempt), (1, 2), "it kept its place in the queue and its count");
    let (item, ..) = bench.fetch_work_for("B").await.expect("the rest of the session came along");
    assert_eq!(id_of(&item), 2);
    assert!(bench.fetch_work_for("A").await.is_none(), "now the session is B's");
}

async fn s13_an_uncounted_try_at_session_work_leaves_no_trace(bench: Bench) {
    queue(&bench, "S", 1).await;
    for _ in 0..3 {
        let (_, token, attempt) = bench.fetch_work_for("A").await.expect("A holds the session");
        assert_eq!(attempt, 1, "a try that is taken back is as if it had not been");
        ok(bench.provider().abandon_work_item(&token, None, true).await);
        assert!(bench.fetch_work_for("B").await.is_none(), "the session is still A's");
    }
}

async fn s13_a_cancelled_activity_leaves_its_session_attached(bench: Bench) {
    let item = activity_with("a", 2, Some("S"), None);
    bench.begin("a", Commit::default().event(event("a", 2, scheduled())).work(item)).await;
    bench.fetch_work_for("A").await.expect("A claims the session");
    bench.send(crate::bench::raise("a", "cancel it")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default().cancel("a", 1, 2)).await;
    queue(&bench, "S", 3).await;
    assert!(bench.fetch_work_for("B").await.is_none(), "the session is still A's");
    assert!(bench.fetch_work_for("A").await.is_some());
}

async fn s13_an_item_held_back_claims_nothing(bench: Bench) {
    queue(&bench, "S", 1).await;
    let short = SessionFetchConfig { owner_id: "A".to_owned(), lock_timeout: TICK };
    let (_, token, _) = bench
        .fetch_work_as(Some(&short), &steadfast_core::TagFilter::DefaultOnly)
        .await
        .expect("A claims the session for a moment");
    ok(bench.provider().abandon_work_item(&token, Some(Duration::from_secs(60)), false).await);
    bench.advance(TICK);
    assert!(bench.fetch_work_for("B").await.is_none(), "the item is held back");
    queue(&bench, "S", 2).await;
    let (item, ..) = bench.fetch_work_for("C").await.expect("looking did not claim the session for B");
    assert_eq!(id_of(&item), 2);
}

async fn s13_any_id_names_a_session(bench: Bench) {
    let long = "s".repeat(1_024);
    let ids = ["it's \"quoted\"; --", "naïve 会話 🦀", " ", "%_\\", "NULL", "session::x", long.as_str()];
    for (id, session) in (1..).zip(ids) {
        queue(&bench, session, id).await;
        let (item, ..) = bench.fetch_work_for("A").await.expect("any id names a session");
        assert_eq!(item, activity_with("i", id, Some(session), None));
        queue(&bench, session, 100 + id).await;
        assert!(bench.fetch_work_for("B").await.is_none(), "{session:?} is A's");
        assert!(bench.fetch_work_for("A").await.is_some());
    }
}
