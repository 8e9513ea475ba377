//! G12, G13: what a step of retention and the gauges cost does not grow with what has ended or is young.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::Store;

use crate::stage::{open, place, raw};

/// Adds instances: ended long ago with a child that runs, ended just now, and their histories.
fn add(path: &Path, count: i64) {
    let mut file = raw(path);
    let all = file.transaction().expect("a transaction");
    for statement in [
        "INSERT INTO instances (key, instance, name, version, ord)
         SELECT 1000000 + i, 'old' || i, 'Chain', '1.0.0', i FROM n",
        "INSERT INTO instances (key, instance, name, version, ord, parent)
         SELECT 2000000 + i, 'child' || i, 'Chain', '1.0.0', 1000000 + i, 'old' || i FROM n",
        "INSERT INTO instances (key, instance, name, version, ord)
         SELECT 3000000 + i, 'young' || i, 'Chain', '1.0.0', 2000000 + i FROM n",
        "INSERT INTO executions (key, execution, run, status, started_at, completed_at)
         SELECT 1000000 + i, 1, i, 'Completed', 0, i FROM n",
        "INSERT INTO executions (key, execution, run, status, started_at)
         SELECT 2000000 + i, 1, 1000000 + i, 'Running', 0 FROM n",
        "INSERT INTO executions (key, execution, run, status, started_at, completed_at)
         SELECT 3000000 + i, 1, 2000000 + i, 'Failed', 0, 9000000000000 FROM n",
        "INSERT INTO history (key, execution, event_id, kind, event)
         SELECT 1000000 + i, 1, 1, 'OrchestrationStarted', '{}' FROM n",
    ] {
        let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)";
        all.execute(&format!("{numbers} {statement}"), [count]).expect("the rows are there");
    }
    all.commit().expect("the rows are there");
}

struct Counted {
    _folder: tempfile::TempDir,
    path: std::path::PathBuf,
    store: Arc<SqliteProvider>,
    steps: Arc<AtomicU64>,
}

impl Counted {
    async fn with(count: i64) -> Self {
        let (folder, path) = place();
        let steps = Arc::new(AtomicU64::new(0));
        let count_steps = Some(Arc::clone(&steps));
        let options = SqliteOptions { count_steps, other_processes: None, ..SqliteOptions::default() };
        let store = open(&path, options).await;
        add(&path, count);
        Self { _folder: folder, path, store, steps }
    }

    /// Runs one step of retention. Returns how many instances it deleted and the steps that it took.
    async fn step(&self) -> (u64, u64) {
        let before = self.steps.load(Ordering::Relaxed);
        let deleted = self.store.delete_ended(Duration::from_secs(60), 10).await.expect("it deletes");
        (deleted.instances_deleted, self.steps.load(Ordering::Relaxed) - before)
    }
}

/// Ends every tree whose number is a multiple of this.
fn end_every(path: &Path, nth: i64) {
    let end = "UPDATE executions SET status = 'Completed', completed_at = 1
        WHERE key > 2000000 AND key < 3000000 AND (key - 2000000) % ?1 = 0";
    raw(path).execute(end, [nth]).expect("they have ended");
}

#[tokio::test]
async fn a_step_of_retention_looks_at_a_bounded_number_of_instances() {
    let (few, many) = (Counted::with(1_000).await, Counted::with(8_000).await);
    for counted in [&few, &many] {
        end_every(&counted.path, 50);
    }
    let ((deleted, usual), (_, cost)) = (few.step().await, many.step().await);
    eprintln!("{usual} steps beside 1000 trees that run, {cost} beside 8000");
    assert!(deleted > 0, "it finds some among those that it looks at");
    assert!(cost < usual + usual / 4, "{cost} steps instead of {usual}");
}

/// A caller ends when a call deletes nothing (S16), however many trees that run stand in front.
#[tokio::test]
async fn g12_a_call_that_deletes_nothing_means_that_nothing_is_left() {
    let counted = Counted::with(1_000).await;
    // The oldest 900 have a child that runs.
    raw(&counted.path)
        .execute_batch(
            "UPDATE executions SET status = 'Completed', completed_at = 1
             WHERE key > 2000900 AND key < 3000000",
        )
        .expect("they have ended");
    let mut deleted = 0;
    loop {
        match counted.step().await.0 {
            0 => break,
            more => deleted += more,
        }
    }
    assert_eq!(deleted, 2 * 100, "each with its child");
    assert_eq!(counted.step().await.0, 0);
}

#[tokio::test]
async fn steps_of_retention_reach_every_instance_that_has_ended() {
    let counted = Counted::with(1_000).await;
    end_every(&counted.path, 10);
    let mut deleted = 0;
    for _ in 0..40 {
        deleted += counted.step().await.0;
    }
    assert_eq!(deleted, 2 * 100, "each with its child");
    assert!(counted.store.state("old10").await.expect("it reads").is_none());
    assert!(counted.store.state("young10").await.expect("it reads").is_some(), "it ended just now");
}

#[tokio::test]
async fn gauges_read_neither_histories_nor_what_has_ended() {
    let counted = Counted::with(100).await;
    let cost = async || {
        let before = counted.steps.load(Ordering::Relaxed);
        let gauges = counted.store.gauges().await.expect("it counts");
        (gauges.running_instances, counted.steps.load(Ordering::Relaxed) - before)
    };
    // The first call prepares the statement.
    cost().await;
    let (running, usual) = cost().await;
    assert_eq!(running, 100, "the children run");
    raw(&counted.path)
        .execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
             INSERT INTO history (key, execution, event_id, kind, event)
             SELECT 1000001, 1, 1 + i, 'Noise', '{}' FROM n;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
             INSERT INTO instances (key, instance, name, version, ended_at)
             SELECT 5000000 + i, 'ended' || i, 'Chain', '1.0.0', i FROM n",
        )
        .expect("the rows are there");
    assert_eq!(cost().await, (running, usual));
}

/// Adds a parent that runs, and children of it that have ended.
fn add_children(path: &Path, count: i64) {
    raw(path)
        .execute_batch(&format!(
            "INSERT INTO instances (key, instance, name, version, ord)
             VALUES (10, 'parent', 'Chain', '1.0.0', 1);
             INSERT INTO executions (key, execution, run, status, started_at)
             VALUES (10, 1, 1, 'Running', 0);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
             INSERT INTO instances (key, instance, name, version, ord, parent, ended_at)
             SELECT 4000000 + i, 'part' || i, 'Chain', '1.0.0', 10 + i, 'parent', i FROM n"
        ))
        .expect("the rows are there");
}

#[tokio::test]
async fn g12_a_call_with_nothing_to_delete_does_not_walk_the_ended_children_of_a_parent_that_runs() {
    let mut costs = Vec::new();
    for count in [10, 10_000] {
        let counted = Counted::with(1).await;
        add_children(&counted.path, count);
        // The first call prepares the statements.
        counted.step().await;
        let (deleted, cost) = counted.step().await;
        assert_eq!(deleted, 0);
        costs.push(cost);
    }
    assert_eq!(costs[0], costs[1], "the steps beside 10 children and beside 10000");
}

/// The parent may vanish, come again under its id, and vanish again.
#[tokio::test]
async fn children_are_deleted_by_retention_exactly_while_their_parent_is_gone() {
    let counted = Counted::with(1).await;
    add_children(&counted.path, 3);
    let file = raw(&counted.path);
    let run = |sql: &str| file.execute_batch(sql).expect("it is changed");
    run("DELETE FROM executions WHERE key = 10; DELETE FROM instances WHERE key = 10");
    // An id that something refers to is not an instance yet.
    run("INSERT INTO instances (key, instance) VALUES (11, 'parent')");
    run("UPDATE instances SET ended_at = 9000000000000 WHERE instance IN ('part2', 'part3')");
    assert_eq!(counted.step().await.0, 1, "the first child has no parent");
    run("UPDATE instances SET name = 'Chain', version = '1.0.0' WHERE key = 11;
         UPDATE instances SET ended_at = 1 WHERE instance = 'part2'");
    assert_eq!(counted.step().await.0, 0, "the parent is there again");
    run("INSERT INTO instances (key, instance) VALUES (12, 'part4');
         UPDATE instances SET name = 'Chain', version = '1.0.0', parent = 'gone', ended_at = 1
         WHERE key = 12");
    assert_eq!(counted.step().await.0, 1, "a child whose parent was gone when it began");
    run("DELETE FROM instances WHERE key = 11");
    assert_eq!(counted.step().await.0, 1, "the second child has no parent again");
    assert!(counted.store.state("part3").await.expect("it reads").is_some(), "it ended just now");
}
