//! The functions of the compatible crate, called by name: parameters, columns, JSON shapes, exceptions.

mod decided;

use steadfast_cluster::{Schema, Server};
use steadfast_postgres::PostgresProvider;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls, Row};

/// A caller that uses only the functions of the compatible crate.
struct CompatCaller {
    client: Client,
    schema: Schema,
    url: String,
}

type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

const START: &str = concat!(
    r#"{"StartOrchestration":{"instance":"i","orchestration":"Hello","input":"a\u0000b","#,
    r#""version":"1.2.0","parent_instance":null,"parent_id":null,"execution_id":1}}"#
);
const STARTED: &str = r#"[{"event_id":1,"event_type":"OrchestrationStarted",
    "event_data":"{\"type\":\"OrchestrationStarted\",\"name\":\"Hello\",\"version\":\"1.2.0\"}"}]"#;
const HELLO: &str =
    r#"{"orchestration_name":"Hello","orchestration_version":"1.2.0","pinned_duroxide_version":null}"#;
const NO_TEXT: Option<&str> = None;
const NO_NUMBER: Option<i64> = None;

impl CompatCaller {
    async fn new(hint: &str) -> Self {
        let server = Server::join().expect("a server");
        let schema = server.schema(hint);
        PostgresProvider::new_with_schema(server.url(), Some(schema.name())).await.expect("a store");
        let client = connected(server.url()).await;
        let path = format!("SET search_path TO {}", schema.name());
        client.batch_execute(&path).await.expect("a search path");
        Self { client, schema, url: server.url().to_owned() }
    }

    async fn rows(&self, call: &str, given: Parameters<'_>) -> Vec<Row> {
        self.client.query(call, given).await.unwrap_or_else(|error| panic!("{call}: {error:?}"))
    }

    async fn row(&self, call: &str, given: Parameters<'_>) -> Row {
        let mut rows = self.rows(call, given).await;
        assert_eq!(rows.len(), 1, "{call}");
        rows.remove(0)
    }

    async fn run(&self, call: &str, given: Parameters<'_>) {
        self.rows(call, given).await;
    }

    async fn number(&self, call: &str, given: Parameters<'_>) -> i64 {
        self.row(call, given).await.get(0)
    }

    async fn texts(&self, call: &str, given: Parameters<'_>) -> Vec<String> {
        self.rows(call, given).await.iter().map(|row| row.get(0)).collect()
    }

    /// The SQLSTATE and the text of the exception that a call raises.
    async fn raised(&self, call: &str, given: Parameters<'_>) -> (String, String) {
        match self.client.query(call, given).await {
            Ok(rows) => panic!("{call} gave {rows:?}"),
            Err(error) => {
                let error = error.as_db_error().unwrap_or_else(|| panic!("{call}: {error:?}"));
                (error.code().code().to_owned(), error.message().to_owned())
            }
        }
    }

    async fn start(&self, now: i64) {
        let start = "SELECT enqueue_orchestrator_work('i', $1, to_timestamp($2::bigint / 1000.0),
                         NULL, NULL, NULL, $2)";
        self.run(start, &[&START, &now]).await;
    }

    async fn fetch(&self, now: i64) -> Option<Row> {
        self.rows("SELECT * FROM fetch_orchestration_item($1, $2)", &[&now, &30_000_i64]).await.pop()
    }

    /// Leases the instance that was started, and returns the token.
    async fn begun(&self, now: i64) -> String {
        self.start(now).await;
        self.fetch(now).await.expect("a turn").get("out_lock_token")
    }

    async fn ack(&self, token: &str, now: i64, commit: AckArguments<'_>) {
        self.run(
            ACK,
            &[
                &token,
                &now,
                &commit.execution,
                &commit.delta,
                &commit.work,
                &commit.messages,
                &commit.metadata,
                &commit.withdrawn,
            ],
        )
        .await;
    }

    async fn refused(&self, token: &str, now: i64, commit: AckArguments<'_>) -> (String, String) {
        let given: Parameters<'_> = &[
            &token,
            &now,
            &commit.execution,
            &commit.delta,
            &commit.work,
            &commit.messages,
            &commit.metadata,
            &commit.withdrawn,
        ];
        self.raised(ACK, given).await
    }

    async fn fetch_work(&self, now: i64, owner: Option<&str>) -> Option<(String, String, i32)> {
        let rows = self
            .rows("SELECT * FROM fetch_work_item($1, $2, $3, $4)", &[&now, &1_000_i64, &owner, &NO_NUMBER])
            .await;
        rows.first()
            .map(|row| (row.get("out_work_item"), row.get("out_lock_token"), row.get("out_attempt_count")))
    }

    async fn enqueue_work(&self, now: i64, session: Option<&str>) {
        self.run(
            "SELECT enqueue_worker_work($1, $2, 'i', 1, 2, $3)",
            &[&"{\"ActivityExecute\":{}}", &now, &session],
        )
        .await;
    }
}

const ACK: &str = "
    SELECT ack_orchestration_item($1, $2, $3, $4::text::jsonb, $5::text::jsonb, $6::text::jsonb,
        $7::text::jsonb, $8::text::jsonb)";

/// The JSON arguments of `ack_orchestration_item`.
struct AckArguments<'a> {
    execution: i64,
    delta: &'a str,
    work: &'a str,
    messages: &'a str,
    metadata: &'a str,
    withdrawn: &'a str,
}

impl Default for AckArguments<'_> {
    fn default() -> Self {
        Self { execution: 1, delta: "[]", work: "[]", messages: "[]", metadata: "{}", withdrawn: "[]" }
    }
}

async fn connected(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

fn said(code: &str, text: &str) -> (String, String) {
    (code.to_owned(), text.to_owned())
}

/// A call, and the columns that it returns.
type Signature = (&'static str, Vec<(&'static str, Type)>);

/// Calls whose columns are checked by name and type.
fn signatures() -> Vec<Signature> {
    let work =
        [("out_work_item", Type::TEXT), ("out_lock_token", Type::TEXT), ("out_attempt_count", Type::INT4)];
    let void = |name| vec![(name, Type::VOID)];
    let bigint = |name| vec![(name, Type::INT8)];
    vec![
        (
            "ack_orchestration_item(NULL::text, NULL::bigint, NULL::bigint, NULL::jsonb,
                 NULL::jsonb, NULL::jsonb, NULL::jsonb, NULL::jsonb)",
            void("ack_orchestration_item"),
        ),
        (
            "ack_orchestration_item(p_lock_token => '', p_now_ms => 1, p_execution_id => 1,
                 p_history_delta => '[]', p_worker_items => '[]',
                 p_orchestrator_items => '[]', p_metadata => '{}')",
            void("ack_orchestration_item"),
        ),
        (
            "abandon_orchestration_item(NULL::text, NULL::bigint, NULL::bigint, NULL::boolean)",
            void("abandon_orchestration_item"),
        ),
        (
            "renew_orchestration_item_lock(NULL::text, NULL::bigint, NULL::bigint)",
            void("renew_orchestration_item_lock"),
        ),
        ("ack_worker(NULL::text, NULL::text, NULL::text, NULL::bigint)", void("ack_worker")),
        ("ack_worker(p_lock_token => '')", void("ack_worker")),
        (
            "abandon_work_item(NULL::text, NULL::bigint, NULL::bigint, NULL::boolean)",
            void("abandon_work_item"),
        ),
        (
            "renew_work_item_lock(p_lock_token => '', p_now_ms => 1::bigint, p_extend_secs => 1::bigint)",
            void("renew_work_item_lock"),
        ),
        (
            "enqueue_worker_work(NULL::text, NULL::bigint, NULL::text,
                 NULL::bigint, NULL::bigint, NULL::text)",
            void("enqueue_worker_work"),
        ),
        ("enqueue_worker_work(p_work_item => '', p_now_ms => 1::bigint)", void("enqueue_worker_work")),
        (
            "enqueue_orchestrator_work(NULL::text, NULL::text, NULL::timestamptz,
                 NULL::text, NULL::text, NULL::bigint)",
            void("enqueue_orchestrator_work"),
        ),
        ("fetch_work_item(NULL::bigint, NULL::bigint)", work.to_vec()),
        (
            "fetch_work_item(p_now_ms => 1::bigint, p_lock_timeout_ms => 1::bigint,
                 p_owner_id => '', p_session_lock_timeout_ms => 1::bigint)",
            work.to_vec(),
        ),
        (
            "renew_session_lock(p_owner_ids => '{}'::text[], p_now_ms => 1::bigint,
                 p_extend_ms => 1::bigint, p_idle_timeout_ms => 1::bigint)",
            bigint("renew_session_lock"),
        ),
        ("cleanup_orphaned_sessions(p_now_ms => 1::bigint)", bigint("cleanup_orphaned_sessions")),
        ("append_history(NULL::text, NULL::bigint, NULL::jsonb)", void("append_history")),
        ("latest_execution_id(NULL::text)", bigint("latest_execution_id")),
        ("cleanup_schema()", void("cleanup_schema")),
    ]
}

/// Calls of which every column has a name that begins with `out_`.
const LISTS: &[&str] = &[
    "fetch_orchestration_item(NULL::bigint, NULL::bigint)",
    "fetch_orchestration_item(NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint)",
    "fetch_history(NULL::text)",
    "fetch_history_with_execution(NULL::text, NULL::bigint)",
    "list_instances()",
    "list_executions(NULL::text)",
    "list_instances_by_status(NULL::text)",
    "list_children(NULL::text)",
    "get_instance_info(NULL::text)",
    "get_execution_info(NULL::text, NULL::bigint)",
    "get_system_metrics()",
    "get_queue_depths(NULL::bigint)",
    "get_parent_id(NULL::text)",
    "delete_instances_atomic(NULL::text[], NULL::boolean)",
    "prune_executions(NULL::text, NULL::integer, NULL::bigint)",
];

#[tokio::test]
async fn every_function_takes_the_parameters_and_returns_the_columns_that_callers_know() {
    let caller = CompatCaller::new("compat_signatures").await;
    let prepared = async |call: &str| {
        let statement = caller.client.prepare(&format!("SELECT * FROM {call}")).await;
        statement.unwrap_or_else(|error| panic!("{call}: {error:?}"))
    };
    for (call, columns) in signatures() {
        let statement = prepared(call).await;
        let found: Vec<(&str, Type)> =
            statement.columns().iter().map(|column| (column.name(), column.type_().clone())).collect();
        assert_eq!(found, columns, "{call}");
    }
    for call in LISTS {
        let statement = prepared(call).await;
        assert!(statement.columns().iter().all(|column| column.name().starts_with("out_")), "{call}");
    }
}

#[tokio::test]
async fn a_turn_is_fetched_with_its_visible_messages() {
    let caller = CompatCaller::new("compat_fetch").await;
    caller.start(1_000).await;
    let late = "SELECT enqueue_orchestrator_work('i', '{}', to_timestamp(5), NULL, NULL, NULL, 1000)";
    caller.run(late, &[]).await;
    let turn = caller.fetch(1_000).await.expect("a turn");
    let named: (String, String, String) = (
        turn.get("out_instance_id"),
        turn.get("out_orchestration_name"),
        turn.get("out_orchestration_version"),
    );
    assert_eq!(named, ("i".to_owned(), "Hello".to_owned(), "1.2.0".to_owned()));
    assert_eq!(
        turn.get::<_, Vec<String>>("out_messages"),
        [START],
        "a message that is not visible yet is not delivered"
    );
    assert!(turn.get::<_, Vec<String>>("out_history").is_empty());
    assert_eq!((turn.get::<_, i64>("out_execution_id"), turn.get::<_, i32>("out_attempt_count")), (1, 1));
    assert!(caller.fetch(1_000).await.is_none(), "it is leased");
}

#[tokio::test]
async fn a_commit_writes_every_part_of_its_json() {
    let caller = CompatCaller::new("compat_ack").await;
    let token = caller.begun(1_000).await;
    let delta = r#"[
        {"event_id":1,"event_type":"OrchestrationStarted",
            "event_data":"{\"type\":\"OrchestrationStarted\",\"name\":\"Hello\",\"version\":\"1.2.0\"}"},
        {"event_id":2,"event_type":"KeyValueSet",
            "event_data":"{\"type\":\"KeyValueSet\",\"key\":\"k\",\"value\":\"v\",\"last_updated_at_ms\":7}"},
        {"event_id":3,"event_type":"CustomStatusUpdated",
            "event_data":"{\"type\":\"CustomStatusUpdated\",\"status\":\"busy\"}"}]"#;
    let work = r#"[
        {"ActivityExecute":{"instance":"i","execution_id":1,"id":4,"name":"A","input":""}},
        {"ActivityExecute":{"instance":"i","execution_id":1,"id":5,"name":"B","input":"","session_id":"s"}},
        {"ActivityExecute":{"instance":"i","execution_id":1,"id":6,"name":"C","input":""}}]"#;
    let messages = r#"[
        {"TimerFired":{"instance":"i","execution_id":1,"id":7,"fire_at_ms":9000}},
        {"StartOrchestration":{"instance":"child","orchestration":"Child","input":"","version":null,
            "parent_instance":"i","parent_id":8,"execution_id":1}},
        {"SubOrchCompleted":{"parent_instance":"parent","parent_execution_id":1,"parent_id":2,
            "result":""}}]"#;
    let metadata = r#"{"orchestration_name":"Hello","orchestration_version":"1.2.0",
        "parent_instance_id":"parent","status":"Running",
        "pinned_duroxide_version":{"major":1,"minor":2,"patch":3}}"#;
    let withdrawn = r#"[{"instance":"i","execution_id":1,"activity_id":6},
        {"instance":"unknown","execution_id":1,"activity_id":6}]"#;
    caller
        .ack(&token, 2_000, AckArguments { delta, work, messages, metadata, withdrawn, execution: 1 })
        .await;

    assert_eq!(caller.texts("SELECT * FROM fetch_history('i')", &[]).await.len(), 3);
    assert_eq!(caller.texts("SELECT value FROM kv WHERE key = 'k'", &[]).await, ["v"]);
    let info = caller.row("SELECT * FROM get_instance_info('i')", &[]).await;
    assert_eq!(info.get::<_, Option<String>>("out_parent_instance_id").as_deref(), Some("parent"));
    assert_eq!(info.get::<_, String>("out_status"), "Running");
    let queued = "SELECT activity_id || coalesce(session_id, '') FROM worker_queue ORDER BY id";
    assert_eq!(caller.texts(queued, &[]).await, ["4", "5s"], "cancelled work is not queued");
    let queued = "SELECT instance_id || ' ' || visible_ms FROM orchestrator_queue ORDER BY id";
    assert_eq!(caller.texts(queued, &[]).await, ["i 9000", "child 2000", "parent 2000"]);

    let (code, text) = caller.refused(&token, 2_000, AckArguments::default()).await;
    assert_eq!((code, text), said("SF001", "Invalid lock token"), "a token is good for one commit");
    // 1.2.3 is packed as 1002003.
    let within = "SELECT out_instance_id FROM fetch_orchestration_item(9000, 1, $1, $2)";
    for (min, max, expected) in
        [(0, 1_002_002, vec!["child"]), (1_002_003, 1_002_003, vec!["i"]), (1_002_004, 9_000_000, vec![])]
    {
        let found = caller.texts(within, &[&(min as i64), &(max as i64)]).await;
        assert_eq!(found, expected, "from {min} to {max}");
        caller.run("DELETE FROM orchestrator_queue WHERE instance_id IN ('child', 'parent')", &[]).await;
        caller.run("DELETE FROM instance_locks WHERE instance_id IN ('child', 'parent')", &[]).await;
    }
}

#[tokio::test]
async fn a_commit_that_is_refused_says_why_and_changes_nothing() {
    let caller = CompatCaller::new("compat_refused").await;
    let token = caller.begun(1_000).await;
    caller
        .ack(&token, 1_000, AckArguments { delta: STARTED, metadata: HELLO, ..AckArguments::default() })
        .await;
    caller.run("SELECT enqueue_orchestrator_work('i', '{}', NULL, NULL, NULL, NULL, 1000)", &[]).await;
    let token: String = caller.fetch(1_000).await.expect("a turn").get("out_lock_token");
    let taken = AckArguments { delta: STARTED, ..AckArguments::default() };
    assert_eq!(caller.refused(&token, 1_000, taken).await.0, "SF009");
    let zero = r#"[{"event_id":0,"event_type":"A","event_data":"{}"}]"#;
    assert_eq!(
        caller.refused(&token, 1_000, AckArguments { delta: zero, ..AckArguments::default() }).await.0,
        "SF010"
    );
    let timer = r#"[{"TimerFired":{"instance":"i"}}]"#;
    assert_eq!(
        caller.refused(&token, 1_000, AckArguments { work: timer, ..AckArguments::default() }).await.0,
        "SF011"
    );
    let activity = r#"[{"ActivityExecute":{"instance":"i"}}]"#;
    assert_eq!(
        caller.refused(&token, 1_000, AckArguments { messages: activity, ..AckArguments::default() }).await.0,
        "SF012"
    );
    let ended = caller.refused(&token, 100_000, AckArguments::default()).await;
    assert_eq!(ended, said("SF001", "Invalid lock token"), "its lease has expired");
    caller.ack(&token, 2_000, AckArguments::default()).await;
    assert_eq!(caller.texts("SELECT * FROM fetch_history('i')", &[]).await.len(), 1);
}

#[tokio::test]
async fn completed_at_is_set_for_every_end() {
    let caller = CompatCaller::new("compat_completed").await;
    for (status, ends) in
        [("Running", false), ("Completed", true), ("Failed", true), ("ContinuedAsNew", true)]
    {
        let instance = status.to_lowercase();
        caller
            .run(
                "SELECT enqueue_orchestrator_work($1, $2, NULL, NULL, NULL, NULL, 1000)",
                &[&instance, &START],
            )
            .await;
        let token: String = caller.fetch(1_000).await.expect("a turn").get("out_lock_token");
        let metadata = format!(
            r#"{{"orchestration_name":"H","orchestration_version":"1","status":"{status}","output":"o"}}"#
        );
        caller
            .ack(
                &token,
                2_000,
                AckArguments { delta: STARTED, metadata: &metadata, ..AckArguments::default() },
            )
            .await;
        let ended = "SELECT (extract(epoch FROM out_completed_at) * 1000)::bigint AS at, out_output
                     FROM get_execution_info($1, 1)";
        let row = caller.row(ended, &[&instance]).await;
        assert_eq!(row.get::<_, Option<i64>>("at"), ends.then_some(2_000), "{status}");
        assert_eq!(row.get::<_, Option<String>>("out_output").as_deref(), Some("o"), "{status}");
    }
}

#[tokio::test]
async fn a_lease_of_a_turn_is_renewed_and_abandoned() {
    let caller = CompatCaller::new("compat_turn_lease").await;
    let token = caller.begun(1_000).await;
    let renew = "SELECT renew_orchestration_item_lock($1, $2, $3)";
    caller.run(renew, &[&token, &2_000_i64, &60_i64]).await;
    let until = "SELECT locked_until FROM instance_locks WHERE instance_id = 'i'";
    assert_eq!(caller.number(until, &[]).await, 62_000);
    let lost = said("SF004", "Lock token invalid, expired, or already acked");
    assert_eq!(caller.raised(renew, &[&"nothing", &2_000_i64, &60_i64]).await, lost);
    assert_eq!(caller.raised(renew, &[&token, &62_000_i64, &60_i64]).await, lost);
    let abandon = "SELECT abandon_orchestration_item($1, $2, $3, $4)";
    caller.run(abandon, &[&token, &3_000_i64, &Some(500_i64), &true]).await;
    assert_eq!(
        caller.raised(abandon, &[&token, &3_000_i64, &NO_NUMBER, &false]).await,
        said("SF001", "Invalid lock token")
    );
    assert!(caller.fetch(3_499).await.is_none(), "it is held back");
    assert_eq!(
        caller.fetch(3_500).await.expect("a turn").get::<_, i32>("out_attempt_count"),
        1,
        "it was uncounted"
    );
}

#[tokio::test]
async fn work_is_leased_acknowledged_and_abandoned() {
    let caller = CompatCaller::new("compat_work").await;
    caller.enqueue_work(1_000, None).await;
    let (item, token, attempt) = caller.fetch_work(1_000, None).await.expect("work");
    assert_eq!((item.as_str(), attempt), ("{\"ActivityExecute\":{}}", 1));
    let renew = "SELECT renew_work_item_lock($1, $2, $3)";
    caller.run(renew, &[&token, &1_500_i64, &5_i64]).await;
    let lost = said("SF004", "Lock token invalid, expired, or already acked");
    assert_eq!(caller.raised(renew, &[&token, &6_500_i64, &5_i64]).await, lost, "seconds were asked for");
    caller
        .run("SELECT abandon_work_item($1, $2, $3, $4)", &[&token, &2_000_i64, &Some(100_i64), &true])
        .await;
    let invalid = said("SF001", "Invalid lock token");
    assert_eq!(caller.raised("SELECT abandon_work_item($1, $2)", &[&token, &2_000_i64]).await, invalid);
    assert!(caller.fetch_work(2_099, None).await.is_none(), "it is held back");
    let (_, token, attempt) = caller.fetch_work(2_100, None).await.expect("work");
    assert_eq!(attempt, 1, "it was uncounted");

    let ack = "SELECT ack_worker($1, $2, $3, $4)";
    let now = 2_200_i64;
    let no_receiver = said("SF003", "p_instance_id is required when p_completion_json is provided");
    assert_eq!(caller.raised(ack, &[&token, &NO_TEXT, &Some("{}"), &now]).await, no_receiver);
    let processed = said("SF002", "Worker queue item not found or already processed");
    assert_eq!(caller.raised(ack, &[&"nothing", &NO_TEXT, &Some("{}"), &now]).await, processed);
    assert_eq!(
        caller.raised(ack, &[&token, &Some("i"), &Some("{}"), &9_000_i64]).await,
        processed,
        "its lease has expired"
    );
    caller.run(ack, &[&token, &Some("i"), &Some("{\"ActivityCompleted\":{}}"), &now]).await;
    assert_eq!(caller.raised(ack, &[&token, &Some("i"), &Some("{}"), &now]).await, processed);
    assert_eq!(
        caller.texts("SELECT work_item FROM orchestrator_queue", &[]).await,
        ["{\"ActivityCompleted\":{}}"]
    );

    caller.enqueue_work(3_000, None).await;
    let (_, token, _) = caller.fetch_work(3_000, None).await.expect("work");
    caller.run("SELECT ack_worker($1, NULL, NULL, $2)", &[&token, &3_000_i64]).await;
    assert_eq!(
        caller.number("SELECT count(*) FROM orchestrator_queue", &[]).await,
        1,
        "cancelled work sends no completion"
    );
    assert_eq!(caller.number("SELECT count(*) FROM worker_queue", &[]).await, 0);
}

#[tokio::test]
async fn a_time_of_null_means_the_time_of_the_database() {
    let caller = CompatCaller::new("compat_time").await;
    caller.run("SELECT enqueue_worker_work('{}', NULL, 'i', 1, 2)", &[]).await;
    let row = caller.row("SELECT * FROM fetch_work_item(NULL, 60000)", &[]).await;
    let token: String = row.get("out_lock_token");
    let ahead =
        "SELECT locked_until - (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM worker_queue";
    let left = caller.number(ahead, &[]).await;
    assert!((1..=60_000).contains(&left), "{left}");
    // The completion is sent although no time is given.
    caller.run("SELECT ack_worker($1, 'i', '{}')", &[&token]).await;
    assert_eq!(caller.number("SELECT count(*) FROM orchestrator_queue", &[]).await, 1);
    for call in
        ["get_queue_depths(NULL)", "fetch_orchestration_item(NULL, 1000)", "cleanup_orphaned_sessions(NULL)"]
    {
        caller.run(&format!("SELECT * FROM {call}"), &[]).await;
    }
}

#[tokio::test]
async fn a_session_belongs_to_one_owner_at_a_time() {
    let caller = CompatCaller::new("compat_sessions").await;
    caller.enqueue_work(1_000, Some("s")).await;
    caller.enqueue_work(1_000, Some("s")).await;
    assert!(caller.fetch_work(1_000, None).await.is_none(), "without an owner there are no sessions");
    let (_, token, _) = caller.fetch_work(1_000, Some("one")).await.expect("work");
    assert!(caller.fetch_work(1_000, Some("other")).await.is_none(), "the session belongs to another owner");
    // Without a timeout of its own the session is leased for as long as the activity.
    assert_eq!(caller.number("SELECT locked_until FROM sessions", &[]).await, 2_000);
    caller.run("SELECT renew_work_item_lock($1, 1500, 1)", &[&token]).await;
    assert_eq!(caller.number("SELECT last_activity_at FROM sessions", &[]).await, 1_500);

    let renew = "SELECT renew_session_lock($1, $2, $3, $4)";
    let owners = |owners: &[&str]| owners.iter().map(|owner| (*owner).to_owned()).collect::<Vec<String>>();
    for (who, now, expected) in [
        (owners(&[]), 1_500, 0),
        (owners(&["other"]), 1_500, 0),
        (owners(&["other", "one", "one"]), 1_500, 1),
    ] {
        assert_eq!(
            caller.number(renew, &[&who, &(now as i64), &5_000_i64, &60_000_i64]).await,
            expected,
            "{who:?}"
        );
    }
    assert_eq!(caller.number("SELECT locked_until FROM sessions", &[]).await, 6_500);
    assert_eq!(
        caller.number(renew, &[&owners(&["one"]), &6_500_i64, &5_000_i64, &60_000_i64]).await,
        0,
        "the lease has expired"
    );
    assert!(caller.fetch_work(6_500, Some("other")).await.is_some(), "the lease of the session has expired");

    assert_eq!(
        caller.number("SELECT cleanup_orphaned_sessions(100000)", &[]).await,
        0,
        "there is work for it"
    );
    caller.run("DELETE FROM worker_queue", &[]).await;
    assert_eq!(caller.number("SELECT cleanup_orphaned_sessions(100000)", &[]).await, 1);
}

#[tokio::test]
async fn histories_are_appended_to_and_read() {
    let caller = CompatCaller::new("compat_history").await;
    let append = "SELECT append_history('i', $1, $2::text::jsonb)";
    let event =
        |id: i64, data: &str| format!(r#"{{"event_id":{id},"event_type":"A","event_data":"{data}"}}"#);
    caller.run(append, &[&1_i64, &format!("[{},{}]", event(2, "b"), event(1, "a"))]).await;
    assert_eq!(caller.texts("SELECT * FROM fetch_history_with_execution('i', 1)", &[]).await, ["a", "b"]);
    let taken = format!("[{},{}]", event(3, "c"), event(2, "d"));
    let conflict = said("SF009", "Event id already exists in execution 1 of instance 'i'");
    assert_eq!(caller.raised(append, &[&1_i64, &taken]).await, conflict);
    assert_eq!(caller.raised(append, &[&1_i64, &format!("[{}]", event(0, "z"))]).await.0, "SF010");
    assert_eq!(caller.texts("SELECT * FROM fetch_history('i')", &[]).await, ["a", "b"], "all or none");
    assert_eq!(caller.number("SELECT latest_execution_id('unknown')", &[]).await, 1);
    assert!(caller.texts("SELECT * FROM fetch_history('unknown')", &[]).await.is_empty());
}

#[tokio::test]
async fn instances_are_listed_deleted_and_pruned() {
    let caller = CompatCaller::new("compat_admin").await;
    for (instance, metadata) in [
        (
            "root",
            r#"{"orchestration_name":"R","orchestration_version":"1","status":"Completed","output":"o"}"#,
        ),
        (
            "child",
            r#"{"orchestration_name":"C","orchestration_version":"1",
                "parent_instance_id":"root","status":"Running"}"#,
        ),
    ] {
        caller
            .run(
                "SELECT enqueue_orchestrator_work($1, $2, NULL, NULL, NULL, NULL, 1000)",
                &[&instance, &START],
            )
            .await;
        let token: String = caller.fetch(1_000).await.expect("a turn").get("out_lock_token");
        caller.ack(&token, 1_000, AckArguments { delta: STARTED, metadata, ..AckArguments::default() }).await;
    }
    assert_eq!(caller.texts("SELECT * FROM list_instances()", &[]).await, ["child", "root"]);
    assert_eq!(caller.texts("SELECT * FROM list_instances_by_status('Completed')", &[]).await, ["root"]);
    assert_eq!(caller.texts("SELECT * FROM list_children('root')", &[]).await, ["child"]);
    assert_eq!(caller.texts("SELECT * FROM get_parent_id('child')", &[]).await, ["root"]);
    assert!(caller.rows("SELECT * FROM get_parent_id('unknown')", &[]).await.is_empty());
    assert!(caller.rows("SELECT * FROM get_instance_info('unknown')", &[]).await.is_empty());
    let counted = caller.row("SELECT * FROM get_system_metrics()", &[]).await;
    let counted: Vec<i64> = (0..6).map(|at| counted.get(at)).collect();
    assert_eq!(counted, [2, 2, 1, 1, 0, 2]);
    let depths = caller.row("SELECT * FROM get_queue_depths(1000)", &[]).await;
    assert_eq!((depths.get::<_, i64>(0), depths.get::<_, i64>(1)), (0, 0));

    let delete = "SELECT * FROM delete_instances_atomic($1, $2)";
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<String>>();
    assert_eq!(caller.raised(delete, &[&ids(&["root"]), &true]).await.0, "SF006");
    let (code, text) = caller.raised(delete, &[&ids(&["root", "child"]), &false]).await;
    assert_eq!(code, "SF005");
    assert!(text.contains("still running"), "{text}");
    assert_eq!(caller.raised("SELECT * FROM prune_executions('unknown', 1, NULL)", &[]).await.0, "SF007");
    let pruned = caller.row("SELECT * FROM prune_executions('root', NULL, NULL)", &[]).await;
    assert_eq!((pruned.get::<_, i64>(0), pruned.get::<_, i64>(1)), (1, 0), "the current one stays");
    let deleted = caller.row(delete, &[&ids(&["root", "child"]), &true]).await;
    let deleted: Vec<i64> = (0..4).map(|at| deleted.get(at)).collect();
    assert_eq!(deleted, [2, 2, 2, 0]);
    assert!(caller.texts("SELECT * FROM list_instances()", &[]).await.is_empty());
}

#[tokio::test]
async fn cleaning_a_schema_drops_all_that_the_store_made_and_nothing_else() {
    let caller = CompatCaller::new("compat_cleanup").await;
    caller
        .client
        .batch_execute(
            "CREATE TABLE orders (id BIGINT); CREATE SEQUENCE order_numbers;
             CREATE VIEW newest AS SELECT max(id) FROM orders;
             CREATE FUNCTION list_children(INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT 1';",
        )
        .await
        .expect("objects of another application");
    caller.run("SELECT cleanup_schema()", &[]).await;
    let left = "SELECT relname::text FROM pg_class WHERE relnamespace = $1::text::regnamespace ORDER BY 1";
    assert_eq!(caller.texts(left, &[&caller.schema.name()]).await, ["newest", "order_numbers", "orders"]);
    let left = "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = $1::text::regnamespace";
    assert_eq!(caller.texts(left, &[&caller.schema.name()]).await, ["list_children(integer)"]);
    caller.client.batch_execute("DROP FUNCTION list_children(INTEGER)").await.expect("nothing in the way");
    PostgresProvider::new_with_schema(&caller.url, Some(caller.schema.name()))
        .await
        .expect("a store made anew");
}
