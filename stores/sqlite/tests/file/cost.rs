//! S20: a fetch that returns one lease costs the same whatever else is stored, counted in steps of SQLite's
//! virtual machine.

mod routed;
mod trail;
mod withdrawn;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast_core::{CallTerms, DispatcherCapabilityFilter, SessionKey, TagFilter};
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{
    Abandon, Attempt, LeaseToken, NewWork, Owner, SessionRef, SessionRequest, SessionScope, Store,
    TurnRequest, WorkRequest,
};

use crate::stage::{LONG, activity, asked, open, place, raw, start, turn_request, work_request};

/// What else may be stored: one statement for each kind, which adds ?1 rows.
const NOISE: &[(&str, &str)] = &[
    (
        "future timers",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO messages (key, state, visible_at, starts, item)
         SELECT 900000 + i % 1000, 0, 9000000000000 + i, 0, '{}' FROM n",
    ),
    (
        "leased instances",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO instances (key, instance, name, turn, token, locked_until)
         SELECT 1000000 + i, 'leased' || i, 'Chain', 2, 'noise-' || i, 9000000000000 + i FROM n",
    ),
    (
        "messages of leased instances",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO messages (key, state, visible_at, starts, item)
         SELECT 1000000 + i, 1, 0, 0, '{}' FROM n",
    ),
    (
        "instances pinned to other engine versions",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO instances (key, instance, name, turn, head, pin)
         SELECT 2000000 + i, 'pinned' || i, 'Chain', 1, -i, 7 FROM n",
    ),
    (
        "work of another tag",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO work (key, execution, activity, state, tag, visible_at, since, item)
         SELECT 3000000, 1, i, 1, ':other', 0, 0, '{}' FROM n",
    ),
    (
        "leased work",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO work (key, execution, activity, state, tag, visible_at, since, token, locked_until, item)
         SELECT 3000000, 2, i, 2, '', 0, 0, 'noise-' || i, 9000000000000 + i, '{}' FROM n",
    ),
    (
        "sessions of another owner",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 / 10)
         INSERT INTO sessions (id, instance, session_id, is_row, held, owner, locked_until, epoch)
         SELECT 100000 + i, '', 'theirs' || i, 1, 1, 'another', 9000000000000 + i, i FROM n",
    ),
    (
        "work pinned to another owner",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO work (key, execution, activity, state, tag, session, visible_at, since, item)
         SELECT 3000000, 3, i, 1, '', 100001 + i % (?1 / 10), 0, 0, '{}' FROM n",
    ),
    (
        "sessions with ended leases, their work of another tag",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 / 10)
         INSERT INTO sessions (id, instance, session_id, is_row, held, owner, locked_until, epoch)
         SELECT 500000 + i, '', 'ended' || i, 1, 1, 'gone', 1 + i, i FROM n",
    ),
    (
        "work of sessions with ended leases",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 / 10)
         INSERT INTO work (key, execution, activity, state, tag, session, visible_at, since, item)
         SELECT 3000000, 4, i, 1, ':other', 500000 + i, 0, 0, '{}' FROM n",
    ),
    (
        "work with terms of another tag",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO work (key, execution, activity, state, tag, session, visible_at, since, item, call)
         SELECT 3000000, 5, i, 1, ':other', 0, 0, 0, '{}', '{}' FROM n",
    ),
    (
        "leased work with terms",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO work (key, execution, activity, state, tag, session, visible_at, since, token,
             locked_until, item, call)
         SELECT 3000000, 6, i, 2, '', 0, 0, 0, 'noise-called-' || i, 9000000000000 + i, '{}', '{}' FROM n",
    ),
    (
        "work with terms that waits for its next try",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO work (key, execution, activity, state, tag, session, visible_at, since, item, call)
         SELECT 3000000, 7, i, 0, ':called', 0, 9000000000000 + i, 0, '{}', '{}' FROM n",
    ),
    (
        "work with terms pinned to another owner",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO work (key, execution, activity, state, tag, session, visible_at, since, item, call)
         SELECT 3000000, 8, i, 1, '>+', 100001 + i % (?1 / 10), 0, 0, '{}', '{}' FROM n",
    ),
    (
        "the heads of all sessions",
        "INSERT INTO heads (session, tag, head, owner)
         SELECT session, tag, min(seq), ':' || sessions.owner
         FROM work JOIN sessions ON sessions.id = work.session
         WHERE work.state = 1 AND session > 100000 AND ?1 > 0 GROUP BY session, tag",
    ),
    ("the name of another engine version", "INSERT INTO pins (id, version) SELECT 7, '99.0.0' WHERE ?1 > 0"),
];

fn add_noise(path: &Path, rows: u64) {
    let mut file = raw(path);
    let all = file.transaction().expect("a transaction");
    for (what, statement) in NOISE {
        let rows = i64::try_from(rows).expect("a small number");
        all.execute(statement, [rows]).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    all.commit().expect("the noise is there");
}

/// A fetch that returns one lease.
#[derive(Debug, Clone, Copy)]
enum Fetch {
    Turn,
    Work,
    WorkOfSessions,
    WorkWithTerms,
}

struct Bench {
    _folder: tempfile::TempDir,
    path: std::path::PathBuf,
    store: Arc<SqliteProvider>,
    steps: Arc<AtomicU64>,
}

impl Bench {
    async fn open() -> Self {
        let (folder, path) = place();
        let steps = Arc::new(AtomicU64::new(0));
        let count_steps = Some(Arc::clone(&steps));
        let store = open(&path, SqliteOptions { count_steps, ..SqliteOptions::default() }).await;
        store.start(start("mine").into(), Vec::new()).await.expect("it is started");
        store.enqueue_work(activity("mine", 2, Some("mine"), None)).await.expect("it is queued");
        store.enqueue_work(activity("mine", 3, None, None)).await.expect("it is queued");
        let call = Some(Box::new(CallTerms::of_key("key")));
        let called = NewWork { call, ..activity("mine", 4, None, Some("called")) };
        store.enqueue_work(called).await.expect("it is queued");
        Self { _folder: folder, path, store, steps }
    }

    /// Returns the steps that a fetch takes, and abandons its lease.
    async fn cost(&self, fetch: Fetch) -> u64 {
        let before = self.steps.load(Ordering::Relaxed);
        let token = match fetch {
            Fetch::Turn => self.turn().await,
            Fetch::Work => self.work(None).await,
            Fetch::WorkWithTerms => self.work_of(None, only("called")).await,
            Fetch::WorkOfSessions => {
                let session = SessionRequest {
                    owner: Owner::unnamed("me"),
                    lock_timeout: LONG,
                    scope: SessionScope::Claim,
                    leave_out: Vec::new(),
                };
                self.work(Some(session)).await
            }
        };
        let cost = self.steps.load(Ordering::Relaxed) - before;
        let how = Abandon { retry_after: None, attempt: Attempt::Uncounted };
        self.store.abandon(&token, how).await.expect("it can be abandoned");
        cost
    }

    async fn turn(&self) -> LeaseToken {
        let filter = DispatcherCapabilityFilter::default_for_current_build();
        let request = TurnRequest { filter: Some(&filter), ..turn_request(LONG, Duration::ZERO) };
        let lease = self.store.fetch_turn(request).await.expect("it fetches").expect("an instance");
        assert_eq!(lease.instance, "mine");
        lease.token
    }

    async fn work(&self, session: Option<SessionRequest>) -> LeaseToken {
        self.work_of(session, TagFilter::DefaultAnd(HashSet::from(["gpu".to_owned()]))).await
    }

    async fn work_of(&self, session: Option<SessionRequest>, tags: TagFilter) -> LeaseToken {
        let request = WorkRequest { session, ..work_request(Duration::ZERO, tags) };
        let lease = self.store.fetch_work(request).await.expect("it fetches").expect("an activity");
        assert_eq!(lease.item.instance(), "mine");
        lease.token
    }
}

#[tokio::test]
async fn a_fetch_costs_the_same_whatever_else_is_stored() {
    let rows = asked("STEADFAST_NOISE", 100_000);
    let bench = Bench::open().await;
    let fetches = [Fetch::Turn, Fetch::Work, Fetch::WorkOfSessions, Fetch::WorkWithTerms];
    let mut quiet = Vec::new();
    for fetch in fetches {
        // The first fetch prepares statements and claims the session.
        bench.cost(fetch).await;
        quiet.push(bench.cost(fetch).await);
    }
    add_noise(&bench.path, rows);
    // Leases that have ended are swept in bounded batches, each once: whoever fetches first pays a share.
    let (mut sweeps, mut dearest) = (0, 0);
    loop {
        let cost = bench.cost(Fetch::Work).await;
        if cost <= quiet[1] * 3 / 2 {
            break;
        }
        (sweeps, dearest) = (sweeps + 1, dearest.max(cost));
        assert!(sweeps <= rows / 1_000, "the sweep does not end");
    }
    eprintln!(
        "{} ended leases: {sweeps} fetches took part in the sweep, the dearest cost {dearest} steps",
        rows / 10
    );
    for (fetch, quiet) in fetches.into_iter().zip(quiet) {
        let cost = bench.cost(fetch).await;
        eprintln!("{fetch:?}: {quiet} steps alone, {cost} with {rows} rows of each kind of noise");
        assert!(cost * 2 <= quiet * 3, "{fetch:?} costs {cost} steps, and {quiet} alone");
    }
}

/// Sessions that another process owns, one for every ?2 rows, and ?1 activities of them, of every tag that
/// the fetches ask for.
const PINNED: &[&str] = &[
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 / ?2)
     INSERT INTO sessions (id, instance, session_id, is_row, held, owner, locked_until, epoch)
     SELECT i, '', 'theirs' || i, 1, 1, 'another', 1000 * unixepoch() + 3600000, i FROM n",
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
     INSERT INTO work (key, execution, activity, state, tag, session, visible_at, since, item)
     SELECT 3000000, 1, i, 1,
            iif(i % 4 = 0, ':plain', iif(i % 4 = 1, ':held', iif(i % 4 = 2, ':free', ':none'))),
            1 + i % (?1 / ?2), 0, 0, '{}' FROM n",
    "INSERT INTO heads (session, tag, head, owner)
     SELECT session, tag, min(seq), ':another' FROM work WHERE ?1 + ?2 > 0 GROUP BY session, tag",
];

/// Sessions without work: owned by other processes, owned by the worker that asks, released, and opened but
/// never claimed.
const IDLE: &[&str] = &[
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
     INSERT INTO sessions (instance, session_id, is_row, held, owner, locked_until, epoch)
     SELECT '', 'theirs' || i, 1, 1, 'another' || i % 100, 1000 * unixepoch() + 3600000, i
     FROM n WHERE ?2 > 0",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
     INSERT INTO sessions (instance, session_id, is_row, held, owner, locked_until, epoch)
     SELECT '', 'mine' || i, 1, 1, 'me', 1000 * unixepoch() + 3600000, i FROM n WHERE ?2 > 0",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
     INSERT INTO sessions (instance, session_id, is_row, held, owner, locked_until, epoch)
     SELECT '', 'released' || i, 1, 0, 'gone', 1000 * unixepoch() - 3600000, i FROM n WHERE ?2 > 0",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
     INSERT INTO sessions (instance, session_id, is_row) SELECT 'owner' || i, 'open', 1 FROM n WHERE ?2 > 0",
];

/// The kinds of work that a worker with sessions may be given.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Given {
    Plain,
    OfHeldSession,
    OfHeldSessionWhenFull,
    OfFreeSession,
    OldestOfAnyTag,
    Nothing,
}

impl Given {
    const ALL: [Self; 6] = [
        Self::Plain,
        Self::OfHeldSession,
        Self::OfHeldSessionWhenFull,
        Self::OfFreeSession,
        Self::OldestOfAnyTag,
        Self::Nothing,
    ];

    fn request(self) -> WorkRequest {
        let tags = match self {
            Self::Plain => only("plain"),
            Self::OfHeldSession | Self::OfHeldSessionWhenFull => only("held"),
            Self::OfFreeSession => only("free"),
            Self::OldestOfAnyTag => TagFilter::Any,
            Self::Nothing => only("none"),
        };
        let scope = match self {
            Self::OfHeldSessionWhenFull => SessionScope::Only(vec![SessionKey::shared("held")]),
            _ => SessionScope::Claim,
        };
        // As long as the longest of the crowd's leases, so that none of them looks like that of a wrong clock
        // (S16).
        let lock_timeout = 60 * LONG;
        let owner = Owner::unnamed("me");
        let session = Some(SessionRequest { owner, lock_timeout, scope, leave_out: Vec::new() });
        WorkRequest { session, ..work_request(Duration::ZERO, tags) }
    }
}

fn only(tag: &str) -> TagFilter {
    TagFilter::Tags(HashSet::from([tag.to_owned()]))
}

/// Returns the steps of each fetch behind a crowd of older rows: `rows` is the first parameter of each
/// statement, `share` the second.
async fn costs_behind(crowd: &[&str], rows: u64, share: u64) -> Vec<u64> {
    let (_folder, path) = place();
    let steps = Arc::new(AtomicU64::new(0));
    let count_steps = Some(Arc::clone(&steps));
    let store = open(&path, SqliteOptions { count_steps, ..SqliteOptions::default() }).await;
    {
        let mut file = raw(&path);
        let all = file.transaction().expect("a transaction");
        for statement in crowd {
            let numbers = [rows, share].map(|number| i64::try_from(number).expect("a small number"));
            let added =
                all.execute(statement, numbers).unwrap_or_else(|error| panic!("{statement}: {error}"));
            assert!(added > 0, "{statement}");
        }
        all.commit().expect("the crowd is there");
    }
    for (id, (session, tag)) in (1..).zip([(None, "plain"), (Some("held"), "held"), (Some("free"), "free")]) {
        store.enqueue_work(activity("mine", id, session, Some(tag))).await.expect("it is queued");
    }
    let mut costs = Vec::new();
    for given in Given::ALL {
        // The first of the two prepares statements and claims the session that is to be held.
        fetch_and_abandon(&store, given, &steps).await;
        costs.push(fetch_and_abandon(&store, given, &steps).await);
    }
    costs
}

async fn fetch_and_abandon(store: &SqliteProvider, given: Given, steps: &AtomicU64) -> u64 {
    if given == Given::OfHeldSessionWhenFull {
        assert!(store.session(&SessionKey::shared("held")).await.is_ok_and(|held| held.is_some()));
    }
    let before = steps.load(Ordering::Relaxed);
    let lease = store.fetch_work(given.request()).await.expect("it fetches");
    let cost = steps.load(Ordering::Relaxed) - before;
    let Some(lease) = lease else {
        assert_eq!(given, Given::Nothing);
        return cost;
    };
    assert!(
        lease.item.instance() == "mine" && given != Given::Nothing,
        "{given:?} was given {:?}",
        lease.item
    );
    let how = Abandon { retry_after: None, attempt: Attempt::Uncounted };
    store.abandon(&lease.token, how).await.expect("it can be abandoned");
    if let (Given::OfFreeSession, Some(session)) = (given, lease.session) {
        let claim = SessionRef { key: session.key, epoch: session.epoch };
        let released = store.release_sessions(&Owner::unnamed("me"), &[claim]).await;
        assert_eq!(released.expect("it is released").len(), 1);
    }
    cost
}

#[tokio::test]
async fn a_fetch_costs_the_same_with_many_items_pinned_elsewhere_or_many_idle_sessions() {
    let rows = asked("STEADFAST_NOISE", 100_000);
    let alone = costs_behind(&[], 0, 1).await;
    for (what, crowd, share) in [
        ("items pinned to another owner, in ten sessions", PINNED, rows / 10),
        ("items pinned to another owner, ten in each session", PINNED, 10),
        ("items pinned to another owner, each in its own session", PINNED, 1),
        ("idle sessions of each kind", IDLE, 1),
    ] {
        let costs = costs_behind(crowd, rows, share).await;
        for ((given, alone), cost) in Given::ALL.into_iter().zip(&alone).zip(costs) {
            eprintln!("{rows} {what}: {given:?} costs {cost} steps, {alone} alone");
            assert!(cost * 2 <= alone * 3, "{rows} {what}: {given:?} costs {cost} steps, {alone} alone");
        }
    }
}
