//! S20 with routes: a fetch and a report cost the same however much is routed (S21), and no more than before
//! while nothing is, counted in steps of SQLite's virtual machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::params;
use steadfast_core::TagFilter;
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{
    Abandon, Attempt, LeaseToken, Owner, SessionRequest, SessionScope, Store, TurnRequest, WorkRequest,
    WorkerId,
};
use tempfile::TempDir;

use super::only;
use crate::stage::{
    LONG, activity, asked, open, place, raw, refusal, start, turn_request, work_request, worker,
};

/// Rows that copy a routed one ?1 times: `key`, `seq` and `id` tell them apart, and all of them are older.
const COPIES: [&str; 5] = [
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
     INSERT INTO instances (key, instance, turn, head, since, pin)
     SELECT 1000000 + i, 'routed' || i, 1, -i, 1, pin FROM n, instances WHERE instance = 'routed'",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
     INSERT INTO messages (seq, key, state, visible_at, starts, item)
     SELECT -i, 1000000 + i, 1, 1, 1, item FROM n, messages
     WHERE messages.key = (SELECT key FROM instances WHERE instance = 'routed')",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
     INSERT INTO work (seq, key, execution, activity, state, tag, session, visible_at, since, item, route)
     SELECT -i, key, 2, i, 1, tag, session, 1, 1, item, route FROM n, work
     WHERE activity = 1 AND execution = 1",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 / 10)
     INSERT INTO sessions (id, instance, session_id) SELECT 1000000 + i, '', 'routed' || i FROM n",
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
     INSERT INTO work (seq, key, execution, activity, state, tag, session, visible_at, since, item, route)
     SELECT -1000000 - i, key, 3, i, 1, tag, 1000001 + i % (?1 / 10), 1, 1, item, route FROM n, work
     WHERE activity = 2 AND execution = 1",
];

/// The heads of the sessions of the copies.
const HEADS: &str = "INSERT INTO heads (session, tag, head, owner, since)
     SELECT session, tag, min(seq), '', 1 FROM work WHERE session > 1000000 GROUP BY session, tag";

/// Says which worker asks for what.
#[derive(Debug, Clone, Copy)]
enum Ask {
    Turn(&'static str),
    Work(&'static str),
    WorkOfSessions(&'static str),
}

impl Ask {
    const ALL: [Self; 6] = [
        Self::Turn("old"),
        Self::Work("old"),
        Self::WorkOfSessions("old"),
        Self::Turn("new"),
        Self::Work("new"),
        Self::WorkOfSessions("new"),
    ];
}

/// A store with one routed instance, one routed activity and one on a session, and as much that is not routed
/// behind them; "new" has the handlers, "old" lacks them.
struct Routed {
    _folder: TempDir,
    path: PathBuf,
    store: Arc<SqliteProvider>,
    steps: Arc<AtomicU64>,
}

impl Routed {
    async fn open() -> Self {
        let (folder, path) = place();
        let steps = Arc::new(AtomicU64::new(0));
        let count_steps = Some(Arc::clone(&steps));
        let store = open(&path, SqliteOptions { count_steps, ..SqliteOptions::default() }).await;
        let routed = Self { _folder: folder, path, store, steps };
        routed.report("new", true).await;
        routed.report("old", false).await;
        routed.queue("routed", [1, 2]).await;
        let turn = routed.turn("old").await.0;
        routed.store.refuse(&turn, refusal("Chain", None)).await.expect("it is refused");
        for sessions in [false, true] {
            let (work, _) = routed.work("old", sessions).await;
            routed.store.refuse(&work, refusal("Step", None)).await.expect("it is refused");
        }
        routed.release().await;
        routed.queue("plain", [3, 4]).await;
        routed
    }

    async fn report(&self, id: &str, is_capable: bool) -> u64 {
        let before = self.steps.load(Ordering::Relaxed);
        self.store.report_worker(&worker(id, is_capable)).await.expect("it reports");
        self.steps.load(Ordering::Relaxed) - before
    }

    async fn queue(&self, instance: &str, [free, on_session]: [u64; 2]) {
        self.store.start(start(instance).into(), Vec::new()).await.expect("it is started");
        self.store.enqueue_work(activity(instance, free, None, Some("free"))).await.expect("it is queued");
        let on_session = activity(instance, on_session, Some(instance), None);
        self.store.enqueue_work(on_session).await.expect("it is queued");
    }

    /// Adds copies of what is routed.
    fn add(&self, rows: u64) {
        let rows = i64::try_from(rows).expect("a small number");
        let mut file = raw(&self.path);
        let all = file.transaction().expect("a transaction");
        for statement in COPIES {
            let added = all.execute(statement, [rows]).unwrap_or_else(|error| panic!("{statement}: {error}"));
            assert!(added > 0, "{statement}");
        }
        assert!(all.execute(HEADS, params![]).expect("the heads are added") > 0);
        all.commit().expect("the rows are there");
    }

    /// Returns the lease of an instance, and whether it is a routed one.
    async fn turn(&self, id: &str) -> (LeaseToken, bool) {
        let id = WorkerId(id.to_owned());
        let request = TurnRequest { worker: Some(&id), ..turn_request(LONG, Duration::ZERO) };
        let lease = self.store.fetch_turn(request).await.expect("it fetches").expect("an instance");
        (lease.token, lease.instance.starts_with("routed"))
    }

    /// Returns the lease of an activity, and whether it is a routed one.
    async fn work(&self, id: &str, sessions: bool) -> (LeaseToken, bool) {
        let session = sessions.then(|| SessionRequest {
            owner: Owner::unnamed(id),
            lock_timeout: LONG,
            scope: SessionScope::Claim,
            leave_out: Vec::new(),
        });
        let worker = Some(WorkerId(id.to_owned()));
        let tags = if sessions { TagFilter::DefaultOnly } else { only("free") };
        let request = WorkRequest { session, worker, ..work_request(Duration::ZERO, tags) };
        let lease = self.store.fetch_work(request).await.expect("it fetches").expect("an activity");
        (lease.token, lease.item.instance() == "routed")
    }

    async fn release(&self) {
        for owner in ["old", "new"] {
            let sessions = self.store.sessions(None).await.expect("it lists").into_iter();
            let claims: Vec<_> = sessions
                .map(|session| steadfast_store::SessionRef { key: session.key, epoch: session.epoch })
                .collect();
            self.store.release_sessions(&Owner::unnamed(owner), &claims).await.expect("they are released");
        }
    }

    /// Returns the steps that a fetch takes, and abandons its lease.
    async fn cost(&self, ask: Ask) -> u64 {
        let before = self.steps.load(Ordering::Relaxed);
        let ((token, is_routed), id) = match ask {
            Ask::Turn(id) => (self.turn(id).await, id),
            Ask::Work(id) => (self.work(id, false).await, id),
            Ask::WorkOfSessions(id) => (self.work(id, true).await, id),
        };
        let cost = self.steps.load(Ordering::Relaxed) - before;
        assert_eq!(is_routed, id == "new", "{ask:?}: what is routed is older, and goes to 'new' only");
        let how = Abandon { retry_after: None, attempt: Attempt::Uncounted };
        self.store.abandon(&token, how).await.expect("it can be abandoned");
        self.release().await;
        cost
    }

    async fn costs(&self) -> Vec<u64> {
        let mut costs = Vec::new();
        for ask in Ask::ALL {
            // The first of the two prepares statements.
            self.cost(ask).await;
            costs.push(self.cost(ask).await);
        }
        costs
    }
}

#[tokio::test]
async fn a_fetch_costs_the_same_however_much_is_routed() {
    let rows = asked("STEADFAST_NOISE", 100_000);
    let routed = Routed::open().await;
    let few = routed.costs().await;
    routed.add(rows);
    for ((ask, few), many) in Ask::ALL.into_iter().zip(few).zip(routed.costs().await) {
        eprintln!("{ask:?}: {few} steps, {many} with {rows} routed rows of each kind");
        assert!(many * 2 <= few * 3, "{ask:?} costs {many} steps, and {few} with one of each kind");
    }
}

#[tokio::test]
async fn a_report_costs_the_same_however_much_is_routed() {
    let rows = asked("STEADFAST_NOISE", 100_000);
    let routed = Routed::open().await;
    routed.report("new", true).await;
    let few = routed.report("new", true).await;
    routed.add(rows);
    let many = routed.report("new", true).await;
    eprintln!("a report: {few} steps, {many} with {rows} routed rows of each kind");
    assert!(many * 2 <= few * 3, "a report costs {many} steps, and {few} with one of each kind");
}

/// Without routes a fetch that names its worker does what one without a name does.
#[tokio::test]
async fn a_fetch_that_names_its_worker_costs_no_more_while_nothing_is_routed() {
    let (_folder, path) = place();
    let steps = Arc::new(AtomicU64::new(0));
    let statements = Arc::new(AtomicU64::new(0));
    let options = SqliteOptions {
        count_steps: Some(Arc::clone(&steps)),
        count_statements: Some(Arc::clone(&statements)),
        ..SqliteOptions::default()
    };
    let store = open(&path, options).await;
    store.report_worker(&worker("new", true)).await.expect("it reports");
    store.start(start("mine").into(), Vec::new()).await.expect("it is started");
    store.enqueue_work(activity("mine", 1, None, None)).await.expect("it is queued");
    let id = WorkerId("new".to_owned());
    let how = Abandon { retry_after: None, attempt: Attempt::Uncounted };
    let mut costs = Vec::new();
    for worker in [None, None, Some(&id)] {
        let before = [&steps, &statements].map(|count| count.load(Ordering::Relaxed));
        let turn = TurnRequest { worker, ..turn_request(LONG, Duration::ZERO) };
        let turn = store.fetch_turn(turn).await.expect("it fetches").expect("an instance");
        let work =
            WorkRequest { worker: worker.cloned(), ..work_request(Duration::ZERO, TagFilter::DefaultOnly) };
        let work = store.fetch_work(work).await.expect("it fetches").expect("an activity");
        let after = [&steps, &statements].map(|count| count.load(Ordering::Relaxed));
        costs.push([after[0] - before[0], after[1] - before[1]]);
        for token in [&turn.token, &work.token] {
            store.abandon(token, how).await.expect("it can be abandoned");
        }
    }
    eprintln!("steps and statements of a turn and an activity: {:?}", costs[1]);
    assert_eq!(costs[1][1], costs[2][1], "statements without and with a name");
    assert!(costs[2][0] <= costs[1][0] + 10, "steps without and with a name: {costs:?}");
}
