//! Histories: events are added and never changed, and each execution has its own.

use steadfast_core::Event;
use steadfast_store::{ProviderError, ProviderErrorKind};

use crate::bench::{Bench, Commit, answered, event, ok, raise, refused, scheduled, started, status_set};
use crate::case::{cases, need};
use crate::{Damage, Verdict};

cases![
    s8_a_commit_of_an_event_without_an_id_is_refused,
    s8_a_commit_of_an_event_that_is_there_is_a_conflict,
    s8_a_commit_of_an_event_twice_is_a_conflict,
    s8_to_append_an_event_without_an_id_is_refused,
    s8_to_append_an_event_that_is_there_is_a_conflict,
    s8_to_append_an_event_twice_is_a_conflict,
    s8_to_append_is_all_or_nothing,
    s8_the_event_that_was_there_first_stays,
    s8_event_ids_may_leave_gaps,
    s8_to_append_is_possible_when_older_events_cannot_be_read,
    s10_an_event_id_may_be_used_in_every_execution,
    s10_to_read_is_to_read_the_latest_execution,
    s10_instances_do_not_share_events,
    s10_an_event_for_an_older_execution_goes_there,
    s10_an_unknown_instance_has_no_history,
    s10_an_unknown_execution_has_no_history,
    api_an_event_is_kept_as_it_is,
    api_events_are_read_in_the_order_of_their_ids,
    api_to_append_needs_no_lease_and_takes_none,
    api_to_append_changes_nothing_else,
    api_to_append_to_a_later_execution_does_not_begin_it,
];

async fn s8_a_commit_of_an_event_without_an_id_is_refused(bench: Bench) {
    let turn = bench.leased("a").await;
    let commit = Commit::default().event(event("a", 0, scheduled()));
    let error = refused(bench.try_commit(&turn, commit).await, ProviderErrorKind::Invalid);
    assert!(!error.is_retryable(), "another try would not help: {error}");
}

async fn s8_a_commit_of_an_event_that_is_there_is_a_conflict(bench: Bench) {
    let turn = bench.leased("a").await;
    let commit = Commit::default().event(event("a", 2, scheduled()));
    let error = refused(bench.try_commit(&turn, commit).await, ProviderErrorKind::Conflict);
    assert!(!error.is_retryable(), "another try would not help: {error}");
}

async fn s8_a_commit_of_an_event_twice_is_a_conflict(bench: Bench) {
    let turn = bench.leased("a").await;
    let commit = Commit::default().event(event("a", 3, scheduled())).event(event("a", 3, scheduled()));
    refused(bench.try_commit(&turn, commit).await, ProviderErrorKind::Conflict);
}

async fn s8_to_append_an_event_without_an_id_is_refused(bench: Bench) {
    bench.begun("a").await;
    refused(append(&bench, 1, [event("a", 0, scheduled())]).await, ProviderErrorKind::Invalid);
}

async fn s8_to_append_an_event_that_is_there_is_a_conflict(bench: Bench) {
    bench.begun("a").await;
    refused(append(&bench, 1, [event("a", 1, scheduled())]).await, ProviderErrorKind::Conflict);
}

async fn s8_to_append_an_event_twice_is_a_conflict(bench: Bench) {
    bench.begun("a").await;
    let twice = [event("a", 2, scheduled()), event("a", 2, scheduled())];
    refused(append(&bench, 1, twice).await, ProviderErrorKind::Conflict);
}

async fn s8_to_append_is_all_or_nothing(bench: Bench) {
    bench.begun("a").await;
    let events = [event("a", 2, scheduled()), event("a", 1, scheduled())];
    refused(append(&bench, 1, events).await, ProviderErrorKind::Conflict);
    assert_eq!(bench.event_ids("a").await, [1], "neither of the two should be there");
}

async fn s8_the_event_that_was_there_first_stays(bench: Bench) {
    bench.begun("a").await;
    refused(append(&bench, 1, [event("a", 1, scheduled())]).await, ProviderErrorKind::Conflict);
    assert_eq!(ok(bench.provider().read("a").await), [event("a", 1, started())]);
}

async fn s8_event_ids_may_leave_gaps(bench: Bench) {
    bench.begin("a", Commit::default().event(event("a", 99_999, scheduled()))).await;
    ok(append(&bench, 1, [event("a", 7, scheduled())]).await);
    assert_eq!(bench.event_ids("a").await, [1, 7, 99_999]);
}

async fn s8_to_append_is_possible_when_older_events_cannot_be_read(bench: Bench) -> Verdict {
    bench.begun("a").await;
    need!(bench.damage(Damage::Event { instance: "a", execution_id: 1, event_id: 1 }).await, "damage");
    ok(append(&bench, 1, [event("a", 2, scheduled())]).await);
    refused(append(&bench, 1, [event("a", 2, scheduled())]).await, ProviderErrorKind::Conflict);
    Verdict::Kept
}

async fn s10_an_event_id_may_be_used_in_every_execution(bench: Bench) {
    bench.begun_at("a", 3).await;
    for (execution, events) in [(1, 2), (2, 2), (3, 1)] {
        let found = ok(bench.provider().read_with_execution("a", execution).await);
        assert_eq!(found.len(), events, "execution {execution} should have its own events");
        assert_eq!(found.first().map(Event::event_id), Some(1), "each begins with event 1");
    }
}

async fn s10_to_read_is_to_read_the_latest_execution(bench: Bench) {
    bench.begin("a", Commit::default().continue_as_new("a", 2)).await;
    assert_eq!(bench.event_ids("a").await, [1, 2], "the second execution has not begun");
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::continued("a", 2).schedule("a", 5)).await;
    assert_eq!(bench.event_ids("a").await, [1, 5], "the second execution has begun");
}

async fn s10_instances_do_not_share_events(bench: Bench) {
    bench.begun_with_work("a").await;
    bench.begun("a::sub").await;
    bench.begun("A").await;
    assert_eq!(bench.event_ids("a").await, [1, 2]);
    assert_eq!(bench.event_ids("a::sub").await, [1]);
    assert_eq!(bench.event_ids("A").await, [1]);
}

async fn s10_an_event_for_an_older_execution_goes_there(bench: Bench) {
    bench.begun_at("a", 2).await;
    ok(append(&bench, 1, [event("a", 9, scheduled())]).await);
    assert_eq!(bench.event_ids("a").await, [1], "the latest execution has nothing to do with it");
    let first = ok(bench.provider().read_with_execution("a", 1).await);
    assert_eq!(first.last().map(Event::event_id), Some(9));
}

async fn s10_an_unknown_instance_has_no_history(bench: Bench) {
    bench.begun("a").await;
    assert_eq!(ok(bench.provider().read("nobody").await), Vec::<Event>::new());
}

async fn s10_an_unknown_execution_has_no_history(bench: Bench) {
    bench.begun("a").await;
    assert_eq!(ok(bench.provider().read_with_execution("a", 2).await), Vec::<Event>::new());
}

async fn api_an_event_is_kept_as_it_is(bench: Bench) {
    let text = "{\"a\": 'ü ☃'}\n\\ %s ; --";
    let mut kept = answered("a", 2, 1, status_set(Some(text)));
    kept.timestamp_ms = u64::from(u32::MAX) * 1_000 + 1;
    kept.duroxide_version = "0.1.31".to_owned();
    kept.child_version = Some("1.2.3".to_owned());
    kept.traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());
    bench.begin("a", Commit::default().event(kept.clone())).await;
    assert_eq!(ok(bench.provider().read("a").await).last(), Some(&kept));
    bench.send(raise("a", "data")).await;
    assert_eq!(bench.fetched().await.item.history.last(), Some(&kept));
}

async fn api_events_are_read_in_the_order_of_their_ids(bench: Bench) {
    bench.begin("a", Commit::default().event(event("a", 11, scheduled()))).await;
    ok(append(&bench, 1, [event("a", 10, scheduled()), event("a", 2, scheduled())]).await);
    assert_eq!(bench.event_ids("a").await, [1, 2, 10, 11]);
}

async fn api_to_append_needs_no_lease_and_takes_none(bench: Bench) {
    let turn = bench.leased("a").await;
    ok(append(&bench, 1, [event("a", 3, scheduled())]).await);
    assert!(bench.fetch().await.is_none(), "the lease should last");
    bench.commit(&turn, Commit::default().event(event("a", 4, scheduled()))).await;
    assert_eq!(bench.event_ids("a").await, [1, 2, 3, 4]);
}

async fn api_to_append_changes_nothing_else(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun("a").await;
    let ended = Commit::default().complete("a", 2, "output").events;
    ok(bench.provider().append_with_execution("a", 1, ended).await);
    assert_eq!(ok(admin.get_instance_info("a").await).status, "Running", "the status is told by commits");
    assert_eq!(ok(admin.get_execution_info("a", 1).await).completed_at, None);
    Verdict::Kept
}

async fn api_to_append_to_a_later_execution_does_not_begin_it(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.begun_with_work("a").await;
    ok(append(&bench, 2, [event("a", 1, started())]).await);
    assert_eq!(ok(admin.get_instance_info("a").await).current_execution_id, 1);
    assert_eq!(bench.event_ids("a").await, [1, 2], "the first execution is still the latest");
    Verdict::Kept
}

async fn append<const N: usize>(
    bench: &Bench,
    execution: u64,
    events: [Event; N],
) -> Result<(), ProviderError> {
    bench.provider().append_with_execution("a", execution, events.into()).await
}
