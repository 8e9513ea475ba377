//! Work on a real server while other transactions use the same rows: every decision is made under the lock,
//! and rows that one transaction locks hide no other rows.

use std::future::Future;
use std::pin::pin;

use steadfast_cluster::Schema;
use tokio_postgres::Client;

use crate::{connect, execute, number, open, server};

/// A store whose functions several connections call, with times of their choice.
struct Scene {
    schema: Schema,
    watch: Client,
}

/// The parameters of a fetch.
#[derive(Clone, Copy)]
struct FetchArguments<'a> {
    owner: Option<&'a str>,
    start: Option<i64>,
    count: u32,
    tags: &'a str,
    lock: i64,
    now: i64,
}

/// A fetch of one activity without a tag and without a session.
const ONE: FetchArguments<'static> =
    FetchArguments { owner: None, start: None, count: 1, tags: "ARRAY['']", lock: 60_000, now: 1_000_000 };

struct LeasedWork {
    item: String,
    token: String,
    claim: Option<String>,
}

fn or_null(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| value.to_string())
}

fn quoted(text: &str) -> String {
    format!("'{text}'")
}

/// Replaces `{name}` by its value, for each pair.
fn with(statement: &str, values: &[(&str, &str)]) -> String {
    values
        .iter()
        .fold(statement.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// Queues an activity.
const QUEUE: &str = "SELECT {name}.enqueue_work('{item}', 'i', 1, 1, {tag}, {scope}, {session}, NULL, {now})";

impl Scene {
    async fn new(hint: &str) -> Self {
        let schema = server().schema(hint);
        open(server().url(), schema.name()).await.unwrap();
        Self { schema, watch: connect(server().url()).await }
    }

    async fn client(&self) -> Client {
        connect(server().url()).await
    }

    async fn run(&self, client: &Client, statement: &str, values: &[(&str, &str)]) {
        execute(client, &with(statement, values), self.schema.name()).await;
    }

    async fn number(&self, statement: &str, values: &[(&str, &str)]) -> i64 {
        number(&self.watch, &with(statement, values), self.schema.name()).await
    }

    async fn texts(&self, client: &Client, statement: &str, values: &[(&str, &str)]) -> Vec<String> {
        let statement = with(statement, values).replace("{name}", self.schema.name());
        client.query(&statement, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    /// Queues an activity with no tag, of a shared session if one is named.
    async fn queue(&self, client: &Client, item: &str, session: Option<&str>) {
        let session = or_null(session.map(quoted));
        let values =
            [("item", item), ("tag", "''"), ("scope", "''"), ("session", &session), ("now", "1000000")];
        self.run(client, QUEUE, &values).await;
    }

    async fn fetch(&self, client: &Client, fetch: FetchArguments<'_>) -> Vec<LeasedWork> {
        let (owner, start) = (or_null(fetch.owner.map(quoted)), or_null(fetch.start));
        let (count, lock, now) = (fetch.count.to_string(), fetch.lock.to_string(), fetch.now.to_string());
        let values = [
            ("owner", owner.as_str()),
            ("start", &start),
            ("count", &count),
            ("tags", fetch.tags),
            ("lock", &lock),
            ("now", &now),
            ("name", self.schema.name()),
        ];
        let rows = client
            .query(
                &with(
                    "SELECT item, token, claim FROM {name}.fetch_work_items({count}, {tags},
                         array_fill('w'::text, ARRAY[{count}]), {lock}, {owner},
                         {start}, {lock}, {owner} IS NOT NULL, p_now_ms => {now}, p_terms => true)
                     WHERE kind = 'lease' ORDER BY place",
                    &values,
                ),
                &[],
            )
            .await
            .unwrap();
        rows.iter().map(|row| LeasedWork { item: row.get(0), token: row.get(1), claim: row.get(2) }).collect()
    }

    /// Fetches, and returns the items of the leases.
    async fn fetched(&self, client: &Client, fetch: FetchArguments<'_>) -> Vec<String> {
        self.fetch(client, fetch).await.into_iter().map(|lease| lease.item).collect()
    }

    async fn is_held_by(&self, owner: &str, start: Option<i64>) -> bool {
        let values = [("owner", owner), ("start", &or_null(start))];
        self.number(
            "SELECT count(*) FROM {name}.sessions AS s
             WHERE s.session_id = 'S' AND s.held AND s.worker_id = '{owner}' AND s.incarnation IS NOT
                 DISTINCT FROM {start}",
            &values,
        )
        .await
            == 1
    }

    /// Makes a call, and runs `then` as soon as the call waits for a lock or has ended.
    async fn beside<T, U>(
        &self,
        caller: &Client,
        call: impl Future<Output = T>,
        then: impl Future<Output = U>,
    ) -> (T, U) {
        let pid: i32 = caller.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        let pid = pid.to_string();
        let waits = async {
            while self
                .number("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = {pid}", &[("pid", &pid)])
                .await
                == 0
            {}
        };
        let mut call = pin!(call);
        tokio::select! {
            answer = &mut call => return (answer, then.await),
            () = waits => {}
        }
        tokio::join!(call, then)
    }

    async fn register(&self) -> i64 {
        self.number("SELECT {name}.register_node('node')", &[]).await
    }
}

/// Stops every fetch at the point where it has found work of a session.
const HOLD_WATCHERS: &str = "BEGIN; LOCK TABLE {name}.watchers";

#[tokio::test]
async fn s13_an_older_incarnation_of_a_node_takes_nothing_from_a_newer_one() {
    let scene = Scene::new("older_start").await;
    let (old, new) = (scene.client().await, scene.client().await);
    let older = scene.register().await;
    scene.queue(&old, "one", Some("S")).await;
    scene.queue(&old, "two", Some("S")).await;
    scene.run(&new, HOLD_WATCHERS, &[]).await;
    let fetch = FetchArguments { owner: Some("node"), ..ONE };
    let then = async {
        let newer = scene.register().await;
        assert_eq!(scene.fetched(&new, FetchArguments { start: Some(newer), ..fetch }).await, ["one"]);
        new.batch_execute("COMMIT").await.unwrap();
        newer
    };
    let look = scene.fetched(&old, FetchArguments { start: Some(older), ..fetch });
    let (found, newer) = scene.beside(&old, look, then).await;
    assert_eq!(found, Vec::<String>::new());
    assert!(scene.is_held_by("node", Some(newer)).await);
}

#[tokio::test]
async fn s13_an_older_incarnation_claims_nothing_once_the_node_has_registered_again() {
    let scene = Scene::new("fenced_meanwhile").await;
    let (old, new) = (scene.client().await, scene.client().await);
    let older = scene.register().await;
    scene.queue(&old, "one", Some("S")).await;
    scene.run(&new, HOLD_WATCHERS, &[]).await;
    let then = async {
        scene.register().await;
        new.batch_execute("COMMIT").await.unwrap();
    };
    let fetch = FetchArguments { owner: Some("node"), start: Some(older), ..ONE };
    let (found, ()) = scene.beside(&old, scene.fetched(&old, fetch), then).await;
    assert_eq!(found, Vec::<String>::new());
    assert!(!scene.is_held_by("node", Some(older)).await);
}

/// Finishes an activity.
const FINISH: &str =
    "SELECT code FROM {name}.finish_work_items('{{token}}', '{NULL}', '{NULL}', '{NULL}', {now})";

/// Renews the lease of an activity.
const RENEW: &str = "SELECT code FROM {name}.renew_work_items('{{token}}', '{30000}', {now})";

/// Deletes the row of an activity directly, past the functions of the store.
const DELETE_ROW: &str = "DELETE FROM {name}.worker_queue WHERE work_item = '{item}'";

#[tokio::test]
async fn s4_a_lease_that_is_being_renewed_is_judged_after_the_renewal() {
    let scene = Scene::new("renewed_meanwhile").await;
    let (holder, caller) = (scene.client().await, scene.client().await);
    for call in
        [FINISH, RENEW, "SELECT code FROM {name}.abandon_work_items('{{token}}', '{NULL}', '{false}', {now})"]
    {
        scene.queue(&holder, "one", None).await;
        let lease = scene.fetch(&holder, FetchArguments { lock: 100, ..ONE }).await.remove(0);
        holder.batch_execute("BEGIN").await.unwrap();
        let renewed = [("token", lease.token.as_str()), ("now", "1000099")];
        assert_eq!(scene.texts(&holder, RENEW, &renewed).await, ["ok"]);
        // At this time the lease has expired, unless the renewal counts.
        let later = [("token", lease.token.as_str()), ("now", "1000101")];
        let commit = holder.batch_execute("COMMIT");
        let (codes, committed) = scene.beside(&caller, scene.texts(&caller, call, &later), commit).await;
        committed.unwrap();
        assert_eq!(codes, ["ok"], "{call}");
        scene.run(&holder, DELETE_ROW, &[("item", "one")]).await;
    }
}

/// Renews the sessions of an owner that has no free slot.
const RENEW_SESSIONS: &str = r#"
    SELECT session || ' ' || outcome FROM {name}.renew_sessions('A', NULL, 60000, 5000, 5000, '{""}',
        true, {now})"#;

#[tokio::test]
async fn s13_a_session_stays_with_its_owner_while_a_fetch_of_its_work_is_under_way() {
    let scene = Scene::new("untaken").await;
    let (fetcher, renewer) = (scene.client().await, scene.client().await);
    let fetch = FetchArguments { owner: Some("A"), ..ONE };
    scene.queue(&fetcher, "one", Some("S")).await;
    scene.queue(&fetcher, "two", Some("S")).await;
    let lease = scene.fetch(&fetcher, fetch).await.remove(0);
    let done = [("token", lease.token.as_str()), ("now", "1000000")];
    scene.run(&fetcher, FINISH, &done).await;
    fetcher.batch_execute("BEGIN").await.unwrap();
    assert_eq!(scene.fetched(&fetcher, FetchArguments { now: 1_010_000, ..fetch }).await, ["two"]);
    let renewal = scene.texts(&renewer, RENEW_SESSIONS, &[("now", "1010000")]);
    let (told, committed) = scene.beside(&renewer, renewal, fetcher.batch_execute("COMMIT")).await;
    committed.unwrap();
    assert_eq!(told, ["S renewed"]);
    assert!(scene.is_held_by("A", None).await);
}

/// Locks the lines of sessions.
const HOLD_SESSIONS: &str =
    "SELECT {name}.lock_lines(array_agg(l.instance_id), array_agg(l.session_id)) FROM {name}.lines AS l
         WHERE l.session_id = ANY ('{sessions}')";

#[tokio::test]
async fn s13_a_session_that_was_used_while_its_renewal_waited_is_not_idle() {
    let scene = Scene::new("idle").await;
    let (fetcher, renewer) = (scene.client().await, scene.client().await);
    let fetch = FetchArguments { owner: Some("A"), count: 2, ..ONE };
    scene.queue(&fetcher, "one", Some("I")).await;
    scene.queue(&fetcher, "two", Some("S")).await;
    for lease in scene.fetch(&fetcher, fetch).await {
        let done = [("token", lease.token.as_str()), ("now", "1000000")];
        scene.run(&fetcher, FINISH, &done).await;
    }
    scene.queue(&fetcher, "three", Some("S")).await;
    fetcher.batch_execute("BEGIN").await.unwrap();
    scene.run(&fetcher, HOLD_SESSIONS, &[("sessions", "{S}")]).await;
    let other = scene.client().await;
    let then = async {
        scene.queue(&other, "four", Some("I")).await;
        assert_eq!(
            scene.fetched(&other, FetchArguments { count: 1, now: 1_010_000, ..fetch }).await,
            ["four"]
        );
        fetcher.batch_execute("COMMIT").await.unwrap();
    };
    let renewal = scene.texts(&renewer, RENEW_SESSIONS, &[("now", "1010000")]);
    let (told, ()) = scene.beside(&renewer, renewal, then).await;
    assert_eq!(told, ["I renewed", "S untaken"]);
}

#[tokio::test]
async fn s18_a_head_whose_row_was_deleted_hides_no_other_work() {
    for count in [1, 2] {
        let scene = Scene::new("removed_head").await;
        let client = scene.client().await;
        for (item, session) in [("one", "R"), ("two", "S"), ("three", "S"), ("four", "T")] {
            scene.queue(&client, item, Some(session)).await;
        }
        for item in ["one", "two"] {
            scene.run(&client, DELETE_ROW, &[("item", item)]).await;
        }
        let fetch = FetchArguments { owner: Some("A"), count, ..ONE };
        let mut found = scene.fetched(&client, fetch).await;
        if count == 1 {
            found.extend(scene.fetched(&client, fetch).await);
        }
        assert_eq!(found, ["three", "four"], "{count} at a time");
    }
}

/// Opens a session whose activities run one after the other.
const OPEN_SERIAL: &str = "SELECT {name}.open_session('i', 'S', NULL, true, {now})";

#[tokio::test]
async fn s18_a_serial_session_continues_after_a_head_whose_row_was_deleted() {
    for count in [1, 2] {
        let scene = Scene::new("removed_serial_head").await;
        let client = scene.client().await;
        scene.run(&client, OPEN_SERIAL, &[("now", "1000000")]).await;
        for item in ["one", "two", "three"] {
            let values =
                [("item", item), ("tag", "''"), ("scope", "'i'"), ("session", "'S'"), ("now", "1000000")];
            scene.run(&client, QUEUE, &values).await;
        }
        scene.run(&client, DELETE_ROW, &[("item", "one")]).await;
        let fetch = FetchArguments { owner: Some("A"), count, ..ONE };
        assert_eq!(scene.fetched(&client, fetch).await, ["two"], "{count} at a time");
    }
}

#[tokio::test]
async fn s18_a_head_that_a_transaction_with_an_old_snapshot_wrote_hides_no_work() {
    let scene = Scene::new("old_view").await;
    let (client, old) = (scene.client().await, scene.client().await);
    scene.queue(&client, "one", Some("S")).await;
    scene.run(&old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1", &[]).await;
    let fetch = FetchArguments { owner: Some("A"), ..ONE };
    assert_eq!(scene.fetched(&client, fetch).await, ["one"]);
    // In the old snapshot the first activity is still the head.
    scene.queue(&old, "two", Some("S")).await;
    old.batch_execute("COMMIT").await.unwrap();
    scene.queue(&client, "three", Some("T")).await;
    assert_eq!(scene.fetched(&client, fetch).await, ["two"]);
    assert_eq!(scene.fetched(&client, FetchArguments { owner: Some("B"), ..ONE }).await, ["three"]);
}

#[tokio::test]
async fn s18_locked_activities_hide_no_work_of_sessions() {
    let scene = Scene::new("held_activity").await;
    let (holder, client) = (scene.client().await, scene.client().await);
    for item in ["one", "two", "three", "four", "five", "six"] {
        scene.queue(&client, item, None).await;
    }
    scene.queue(&client, "seven", Some("S")).await;
    holder.batch_execute("BEGIN").await.unwrap();
    assert_eq!(scene.fetch(&holder, FetchArguments { count: 6, ..ONE }).await.len(), 6);
    for tags in ["ARRAY['']", "ARRAY['', ':x']", "NULL"] {
        client.batch_execute("BEGIN").await.unwrap();
        let fetch = FetchArguments { owner: Some("A"), tags, ..ONE };
        assert_eq!(scene.fetched(&client, fetch).await, ["seven"], "{tags}");
        client.batch_execute("ROLLBACK").await.unwrap();
    }
}

#[tokio::test]
async fn s18_locked_activities_hide_no_others_from_a_fetch_of_several_tags() {
    let scene = Scene::new("held_tags").await;
    let (holder, client) = (scene.client().await, scene.client().await);
    for item in ["one", "two", "three", "four"] {
        scene.queue(&client, item, None).await;
    }
    holder.batch_execute("BEGIN").await.unwrap();
    assert_eq!(scene.fetch(&holder, FetchArguments { count: 2, ..ONE }).await.len(), 2);
    let fetch = FetchArguments { tags: "ARRAY['', ':x']", ..ONE };
    assert_eq!(scene.fetched(&client, fetch).await, ["three"]);
    assert_eq!(scene.fetched(&client, FetchArguments { count: 2, ..fetch }).await, ["four"]);
}

#[tokio::test]
async fn s18_locked_sessions_hide_no_others() {
    let scene = Scene::new("held_lines").await;
    let (holder, client) = (scene.client().await, scene.client().await);
    for session in ["a", "b", "c", "d", "e", "f"] {
        scene.queue(&client, session, Some(session)).await;
    }
    holder.batch_execute("BEGIN").await.unwrap();
    scene.run(&holder, HOLD_SESSIONS, &[("sessions", "{a,b,c,d}")]).await;
    let fetch = FetchArguments { owner: Some("A"), ..ONE };
    // A fetch leases no more than it was asked for, however many rows it looked at.
    assert_eq!(scene.fetched(&client, fetch).await, ["e"]);
    assert_eq!(scene.fetched(&client, FetchArguments { count: 2, ..fetch }).await, ["f"]);
}

/// Queues 300 activities, of one session or of one session each.
const QUEUE_MANY: &str = "SELECT {name}.enqueue_work('many', 'many', 1, n, '', '', {session}, NULL, {now})
         FROM generate_series(1, 300) AS n";

#[tokio::test]
async fn s18_locked_sessions_hide_no_others_however_much_work_they_have() {
    let scene = Scene::new("held_full_lines").await;
    let (holder, client) = (scene.client().await, scene.client().await);
    for session in ["'a'", "'b'", "'c'", "'d'", "'e'", "'f'"] {
        let many = [("session", session), ("now", "1000000")];
        scene.run(&client, QUEUE_MANY, &many).await;
    }
    scene.queue(&client, "one", Some("g")).await;
    holder.batch_execute("BEGIN").await.unwrap();
    scene.run(&holder, HOLD_SESSIONS, &[("sessions", "{a,b,c,d,e,f}")]).await;
    for count in [1, 2] {
        client.batch_execute("BEGIN").await.unwrap();
        let fetch = FetchArguments { owner: Some("A"), count, ..ONE };
        assert_eq!(scene.fetched(&client, fetch).await, ["one"], "{count} at a time");
        client.batch_execute("ROLLBACK").await.unwrap();
    }
}

/// Locks the lines of the sessions that [`QUEUE_MANY`] uses.
const HOLD_MANY: &str =
    "SELECT {name}.lock_lines(array_agg(l.instance_id), array_agg(l.session_id)) FROM {name}.lines AS l
         WHERE l.session_id LIKE 'many%'";

#[tokio::test]
async fn s5_locked_expired_leases_hide_no_others() {
    let scene = Scene::new("held_leases").await;
    let (holder, client) = (scene.client().await, scene.client().await);
    let many = [("session", "'many'"), ("now", "1000000")];
    scene.run(&client, QUEUE_MANY, &many).await;
    let fetch = FetchArguments { owner: Some("A"), count: 300, lock: 500, ..ONE };
    assert_eq!(scene.fetch(&client, fetch).await.len(), 300);
    scene.queue(&client, "one", None).await;
    assert_eq!(scene.fetched(&client, FetchArguments { lock: 600, ..ONE }).await, ["one"]);
    holder.batch_execute("BEGIN").await.unwrap();
    scene.run(&holder, HOLD_MANY, &[]).await;
    assert_eq!(scene.fetched(&client, FetchArguments { now: 1_005_000, ..ONE }).await, ["one"]);
}

#[tokio::test]
async fn s13_locked_sessions_with_an_expired_lease_hide_no_others() {
    let scene = Scene::new("held_ended").await;
    let (holder, client) = (scene.client().await, scene.client().await);
    let many = [("session", "'many' || n"), ("now", "1000000")];
    scene.run(&client, QUEUE_MANY, &many).await;
    let fetch = FetchArguments { owner: Some("A"), count: 300, lock: 500, ..ONE };
    assert_eq!(scene.fetch(&client, fetch).await.len(), 300);
    scene.queue(&client, "one", Some("S")).await;
    scene.queue(&client, "two", Some("S")).await;
    assert_eq!(scene.fetched(&client, FetchArguments { count: 1, lock: 600, ..fetch }).await, ["one"]);
    // Only the leases of the sessions matter here.
    scene.run(&client, DELETE_ROW, &[("item", "many")]).await;
    holder.batch_execute("BEGIN").await.unwrap();
    scene.run(&holder, HOLD_MANY, &[]).await;
    let fetch = FetchArguments { owner: Some("B"), count: 2, now: 1_005_000, ..ONE };
    assert_eq!(scene.fetched(&client, fetch).await, ["one", "two"]);
}

/// Removes unused sessions, and counts them.
const CLEANUP: &str = "SELECT removed FROM {name}.cleanup_sessions()";

#[tokio::test]
async fn s13_a_session_stays_open_while_its_instance_has_a_history_or_a_start() {
    let scene = Scene::new("no_row").await;
    let client = scene.client().await;
    for trace in [
        "INSERT INTO {name}.history (instance_id, execution_id, event_id, event_type, event_data,
             created_at) VALUES ('i', 1, 1, 'x', 'x', now())",
        "INSERT INTO {name}.orchestrator_queue (instance_id, work_item, state, visible_ms, starts,
             created_at) VALUES ('i', 'x', 1, 0, true, now())",
    ] {
        scene.run(&client, OPEN_SERIAL, &[("now", "1000000")]).await;
        scene.run(&client, trace, &[]).await;
        assert_eq!(scene.number(CLEANUP, &[]).await, 0, "{trace}");
        scene.run(&client, "DELETE FROM {name}.history; DELETE FROM {name}.orchestrator_queue", &[]).await;
        assert_eq!(scene.number(CLEANUP, &[]).await, 1, "{trace}");
    }
}

/// Abandons a lease whose caller stopped waiting, and releases the claim that the lease made.
const UNDO_LEASE: &str = "SELECT {name}.unlease_work_items('{{token}}', '{true}', {now})";

/// Passes over an activity that cannot be read, and releases the claim that its lease made.
const PASS_OVER: &str = "SELECT {name}.pass_over_work('{token}', 'why', 1000, 8, true, {now})";

#[tokio::test]
async fn s5_a_claim_that_another_fetch_has_used_is_not_released() {
    for (back, is_used) in [(UNDO_LEASE, false), (UNDO_LEASE, true), (PASS_OVER, false), (PASS_OVER, true)] {
        let scene = Scene::new("used_claim").await;
        let client = scene.client().await;
        scene.queue(&client, "one", Some("S")).await;
        scene.queue(&client, "two", Some("S")).await;
        let fetch = FetchArguments { owner: Some("A"), ..ONE };
        let claim = scene.fetch(&client, fetch).await.remove(0);
        assert_eq!(claim.claim.as_deref(), Some("new"));
        if is_used {
            let other = scene.fetch(&client, fetch).await.remove(0);
            assert_eq!(other.claim.as_deref(), Some("held"));
            let done = [("token", other.token.as_str()), ("now", "1000000")];
            assert_eq!(scene.texts(&client, FINISH, &done).await, ["ok"]);
        }
        scene.run(&client, back, &[("token", claim.token.as_str()), ("now", "1000000")]).await;
        assert_eq!(scene.is_held_by("A", None).await, is_used, "{back}");
    }
}

#[tokio::test]
async fn a_lease_without_a_duration_is_refused() {
    let scene = Scene::new("endless").await;
    for (call, lacks) in [
        ("SELECT * FROM {name}.fetch_work_item(NULL, NULL)", "p_lock_timeout_ms"),
        ("SELECT * FROM {name}.fetch_orchestration_item(NULL, NULL)", "p_lock_timeout_ms"),
        ("SELECT {name}.renew_work_item_lock('x', NULL, NULL)", "p_extend_secs"),
        ("SELECT {name}.renew_orchestration_item_lock('x', NULL, NULL)", "p_extend_secs"),
    ] {
        let error =
            scene.watch.query(&with(call, &[("name", scene.schema.name())]), &[]).await.expect_err(call);
        let said = error.as_db_error().unwrap();
        assert_eq!(
            (said.code().code(), said.message()),
            ("SF013", format!("{lacks} is required").as_str()),
            "{call}"
        );
    }
}

#[tokio::test]
async fn work_of_a_session_with_tag_null_is_stored_without_a_tag() {
    let scene = Scene::new("no_tag").await;
    let client = scene.client().await;
    let values = [("item", "one"), ("tag", "NULL"), ("scope", "''"), ("session", "'S'"), ("now", "1000000")];
    scene.run(&client, QUEUE, &values).await;
    assert_eq!(scene.fetched(&client, FetchArguments { owner: Some("A"), ..ONE }).await, ["one"]);
}
