//! Listing instances, page by page.

use steadfast_store::{Cursor, DEFAULT_PAGE, InstanceQuery, MAX_PAGE, ProviderErrorKind, Store};

use super::state;
use crate::Verdict;
use crate::bench::{Bench, Commit, TICK, ok, raise, refused};
use crate::case::{cases, need};

cases![
    api_instances_are_listed_newest_first,
    api_pages_hold_every_instance_once,
    api_a_page_is_not_disturbed_by_new_instances,
    api_the_last_page_has_no_next,
    api_a_page_has_a_size_of_its_own,
    api_no_page_is_larger_than_the_largest,
    api_instances_can_be_asked_for_by_status,
    api_instances_can_be_asked_for_by_orchestration,
    api_instances_can_be_asked_for_by_the_beginning_of_their_id,
    api_ids_of_any_characters_are_found_by_their_beginning,
    api_instances_can_be_asked_for_by_parent,
    api_children_can_be_left_out,
    api_what_is_asked_for_must_all_hold,
    api_a_filter_works_across_pages,
    api_a_cursor_that_the_store_did_not_make_is_refused,
];

/// Asks for every page and returns the ids of each.
async fn pages(store: &dyn Store, query: InstanceQuery) -> Vec<Vec<String>> {
    let (mut pages, mut query) = (Vec::new(), query);
    loop {
        let page = ok(store.instances(&query).await);
        pages.push(page.instances.into_iter().map(|state| state.instance).collect());
        assert!(pages.len() < 100, "the pages should come to an end");
        match page.next {
            Some(next) => query.after = Some(next),
            None => return pages,
        }
    }
}

async fn listed(store: &dyn Store, query: InstanceQuery) -> Vec<String> {
    pages(store, query).await.concat()
}

async fn api_instances_are_listed_newest_first(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    for instance in ["b", "c", "a"] {
        bench.begun(instance).await;
        bench.advance(TICK);
    }
    bench.send(raise("b", "1")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default()).await;
    assert_eq!(listed(store, InstanceQuery::default()).await, ["a", "c", "b"], "by creation, not by change");
    let page = ok(store.instances(&InstanceQuery::default()).await);
    assert_eq!(page.instances.first(), Some(&state(store, "a").await), "each is shown as it stands");
    Verdict::Kept
}

/// Starts instances `i-0`, `i-1`, … all in the same millisecond.
async fn crowd(bench: &Bench, count: usize) {
    for number in 0..count {
        bench.begun(&format!("i-{number}")).await;
    }
}

async fn api_pages_hold_every_instance_once(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    crowd(&bench, 7).await;
    let pages = pages(store, InstanceQuery { limit: 3, ..InstanceQuery::default() }).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1]);
    let expected: Vec<String> = (0..7).rev().map(|number| format!("i-{number}")).collect();
    assert_eq!(pages.concat(), expected, "each once, also those of one millisecond");
    Verdict::Kept
}

async fn api_a_page_is_not_disturbed_by_new_instances(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    crowd(&bench, 4).await;
    let query = InstanceQuery { limit: 2, ..InstanceQuery::default() };
    let first = ok(store.instances(&query).await);
    bench.begun("new").await;
    let second = listed(store, InstanceQuery { after: first.next, ..query }).await;
    assert_eq!(second, ["i-1", "i-0"], "a page goes on where the last one ended");
    Verdict::Kept
}

async fn api_the_last_page_has_no_next(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let empty = ok(store.instances(&InstanceQuery::default()).await);
    assert!(empty.instances.is_empty() && empty.next.is_none(), "an empty store has one empty page");
    crowd(&bench, 3).await;
    let page = ok(store.instances(&InstanceQuery { limit: 3, ..InstanceQuery::default() }).await);
    assert_eq!((page.instances.len(), page.next), (3, None), "a page that holds the rest is the last");
    Verdict::Kept
}

async fn api_a_page_has_a_size_of_its_own(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    crowd(&bench, DEFAULT_PAGE + 1).await;
    let page = ok(store.instances(&InstanceQuery::default()).await);
    assert_eq!(page.instances.len(), DEFAULT_PAGE);
    assert!(page.next.is_some(), "there is one more");
    Verdict::Kept
}

async fn api_no_page_is_larger_than_the_largest(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    crowd(&bench, MAX_PAGE + 1).await;
    let page = ok(store.instances(&InstanceQuery { limit: usize::MAX, ..InstanceQuery::default() }).await);
    assert_eq!(page.instances.len(), MAX_PAGE, "a page is one answer");
    assert!(page.next.is_some(), "there is one more");
    Verdict::Kept
}

async fn api_instances_can_be_asked_for_by_status(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("running").await;
    bench.ended("completed").await;
    bench.begin("failed", Commit::default().status("Failed", "no")).await;
    bench.begin("continued", Commit::default().continue_as_new("continued", 2)).await;
    for (status, expected) in [
        ("Running", vec!["running"]),
        ("Completed", vec!["completed"]),
        ("Failed", vec!["failed"]),
        ("ContinuedAsNew", vec!["continued"]),
        ("completed", vec![]),
    ] {
        let query = InstanceQuery { status: Some(status.to_owned()), ..InstanceQuery::default() };
        assert_eq!(listed(store, query).await, expected, "status {status}");
    }
    Verdict::Kept
}

fn named(name: &str) -> Commit {
    let mut commit = Commit::default();
    commit.metadata.orchestration_name = Some(name.to_owned());
    commit.metadata.orchestration_version = Some("2.0.0".to_owned());
    commit
}

async fn api_instances_can_be_asked_for_by_orchestration(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begin("a", named("Ship")).await;
    bench.begin("b", named("Bill")).await;
    let query = InstanceQuery { orchestration: Some("Ship".to_owned()), ..InstanceQuery::default() };
    assert_eq!(listed(store, query).await, ["a"]);
    Verdict::Kept
}

async fn api_instances_can_be_asked_for_by_the_beginning_of_their_id(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    for instance in ["order-1", "order_2", "Order-3", "my-order-4", "%order"] {
        bench.begun(instance).await;
    }
    for (prefix, expected) in
        [("order", vec!["order_2", "order-1"]), ("order_", vec!["order_2"]), ("%", vec!["%order"])]
    {
        let query = InstanceQuery { id_prefix: Some(prefix.to_owned()), ..InstanceQuery::default() };
        assert_eq!(listed(store, query).await, expected, "prefix {prefix}, to the letter");
    }
    Verdict::Kept
}

/// Starts a root with two children and another root.
async fn family(bench: &Bench) {
    bench.begun("root").await;
    bench.begin("root::1", Commit::default().parent("root")).await;
    bench.begin("root::2", Commit::default().parent("root").complete("root::2", 2, "output")).await;
    bench.begun("other").await;
}

async fn api_ids_of_any_characters_are_found_by_their_beginning(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let ids = ["a\0b", "a\u{10ffff}b", "a%b", "a_b", "A%b"];
    for id in ids {
        bench.begun(id).await;
    }
    for id in ids {
        let id_prefix = Some(id.to_owned());
        let alone = InstanceQuery { id_prefix: id_prefix.clone(), ..InstanceQuery::default() };
        assert_eq!(listed(store, alone).await, [id]);
        let status = Some("Running".to_owned());
        let running = InstanceQuery { id_prefix, status, ..InstanceQuery::default() };
        assert_eq!(listed(store, running).await, [id], "also with another condition");
    }
    Verdict::Kept
}

async fn api_instances_can_be_asked_for_by_parent(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    family(&bench).await;
    let query = InstanceQuery { parent: Some("root".to_owned()), ..InstanceQuery::default() };
    assert_eq!(listed(store, query).await, ["root::2", "root::1"]);
    Verdict::Kept
}

async fn api_children_can_be_left_out(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    family(&bench).await;
    let query = InstanceQuery { roots_only: true, ..InstanceQuery::default() };
    assert_eq!(listed(store, query).await, ["other", "root"]);
    Verdict::Kept
}

async fn api_what_is_asked_for_must_all_hold(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    family(&bench).await;
    let query = InstanceQuery {
        status: Some("Completed".to_owned()),
        id_prefix: Some("root".to_owned()),
        orchestration: Some("Orchestration".to_owned()),
        parent: Some("root".to_owned()),
        ..InstanceQuery::default()
    };
    assert_eq!(listed(store, query.clone()).await, ["root::2"]);
    assert!(
        listed(store, InstanceQuery { roots_only: true, ..query }).await.is_empty(),
        "a child is no root"
    );
    Verdict::Kept
}

async fn api_a_filter_works_across_pages(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    for number in 0..6 {
        bench.begun(&format!("running-{number}")).await;
        bench.ended(&format!("ended-{number}")).await;
    }
    let query = InstanceQuery { status: Some("Completed".to_owned()), limit: 4, ..InstanceQuery::default() };
    let pages = pages(store, query).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [4, 2], "pages are filled");
    assert!(pages.concat().iter().all(|id| id.starts_with("ended")));
    Verdict::Kept
}

async fn api_a_cursor_that_the_store_did_not_make_is_refused(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let query = InstanceQuery { after: Some(Cursor("no cursor".to_owned())), ..InstanceQuery::default() };
    refused(store.instances(&query).await, ProviderErrorKind::Invalid);
    Verdict::Kept
}
