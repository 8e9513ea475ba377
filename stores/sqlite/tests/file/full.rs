//! No room left: a call that is told so has changed nothing, and with more room the store works again.

use std::path::Path;

use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{ProviderErrorKind, Store};

use crate::group::{Hold, Starting, starting, starting_with};
use crate::stage::{LONG, assert_sound, open, place, raw, start, start_with, turn_request};

/// Enough for the tables and a little more.
const ROOM: u32 = 90;

fn options(max_pages: Option<u32>) -> SqliteOptions {
    SqliteOptions { max_pages, ..SqliteOptions::default() }
}

fn is_there(path: &Path, instance: &str) -> bool {
    let count = "SELECT count(*) FROM messages JOIN instances USING (key) WHERE instance = ?1";
    raw(path).query_row(count, [instance], |row| row.get::<_, i64>(0)).expect("the file can be read") == 1
}

/// Fills the file until a call is refused.
async fn fill(path: &Path, store: &SqliteProvider) {
    for number in 0..1_000 {
        let instance = format!("fill{number}");
        match store.start(start_with(&instance, "x".repeat(4_000)).into(), Vec::new()).await {
            Ok(_) => assert!(is_there(path, &instance)),
            Err(error) => {
                assert_eq!(error.kind, ProviderErrorKind::Full, "{error:?}");
                assert!(error.is_retryable() && !is_there(path, &instance));
                return;
            }
        }
    }
    panic!("the file never was full");
}

#[tokio::test]
async fn a_full_file_refuses_and_works_again_with_more_room() {
    let (_folder, path) = place();
    let store = open(&path, options(Some(ROOM))).await;
    fill(&path, &store).await;
    // What needs no room still works: reading, and giving room back.
    assert!(store.state("fill0").await.expect("readers go on").is_none());
    assert_sound(&path);
    drop(store);

    let store = open(&path, options(None)).await;
    store.start(start("more").into(), Vec::new()).await.expect("there is room");
    let lease = store.fetch_turn(turn_request(LONG, LONG)).await.expect("it works").expect("an instance");
    assert_eq!((lease.instance.as_str(), lease.attempt), ("fill0", 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_meets_a_full_file_is_answered_as_it_is_stored() {
    let (_folder, path) = place();
    let store = open(&path, options(Some(ROOM))).await;
    let (hold, first) = Hold::take(&path, &store).await;
    let mut calls: Vec<(String, Starting)> = vec![("first".to_owned(), first)];
    for number in 0..40 {
        let instance = format!("i{number}");
        // One of them needs more than there is.
        let input = "x".repeat(if number == 20 { 4_096 * ROOM as usize } else { 10 });
        calls.push((instance.clone(), starting_with(&store, &instance, input)));
    }
    Hold::gather().await;
    hold.end();
    let mut refused = 0;
    for (instance, call) in calls {
        match call.await.expect("it returns") {
            Ok(_) => assert!(is_there(&path, &instance), "{instance} was acknowledged"),
            Err(error) => {
                // G8: the file is full for the one that did not fit; the others of its group may try again.
                let own =
                    if instance == "i20" { ProviderErrorKind::Full } else { ProviderErrorKind::Unavailable };
                assert_eq!(error.kind, own, "{instance}: {error:?}");
                assert!(error.is_retryable() && !is_there(&path, &instance), "{instance} was refused");
                refused += 1;
            }
        }
    }
    eprintln!("{refused} of 41 were answered with the one that did not fit");
    assert!(refused >= 1);
    // The next ones fit.
    starting(&store, "small").await.expect("it returns").expect("there is room for a small one");
    assert_sound(&path);
}

/// Rolls a whole commit back, as an I/O error does, when a message with this text is stored.
const ROLL_BACK: &str = "CREATE TRIGGER roll_back BEFORE INSERT ON messages WHEN NEW.item LIKE '%poisonous%'
    BEGIN SELECT RAISE(ROLLBACK, 'told to'); END";

#[tokio::test]
async fn g8_a_request_that_rolls_its_whole_commit_back_fails_no_other_for_good() {
    let (_folder, path) = place();
    let store = open(&path, options(None)).await;
    let other = rusqlite::Connection::open(&path).expect("opens");
    other.execute_batch(ROLL_BACK).expect("there is such a table");
    drop(other);
    let (hold, first) = Hold::take(&path, &store).await;
    let mut calls: Vec<(String, Starting)> = vec![("first".to_owned(), first)];
    for number in 0..40 {
        let instance = format!("i{number}");
        let input = if number == 20 { "poisonous" } else { "healthy" };
        calls.push((instance.clone(), starting_with(&store, &instance, input.to_owned())));
    }
    Hold::gather().await;
    hold.end();
    let mut taken_along = 0;
    for (instance, call) in calls {
        let answer = call.await.expect("it returns");
        assert_eq!(answer.is_ok(), is_there(&path, &instance), "{instance}: {answer:?}");
        if let Err(error) = answer
            && instance != "i20"
        {
            assert_eq!(error.kind, ProviderErrorKind::Unavailable, "{instance}: {error:?}");
            taken_along += 1;
            starting(&store, &instance).await.expect("it returns").expect("it may be tried again");
        }
    }
    assert!(taken_along > 0, "others were in its commit");
}
