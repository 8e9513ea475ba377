//! Floors on a real server (decision 0007): rows that were processed do not slow a fetch, and no runnable row
//! is below the key where a fetch starts.

use std::env;

use tokio_postgres::Client;

use crate::work::blocks;
use crate::{connect, execute, number, open, server};

/// The environment variable that says how many sets of 250 instances are processed. 1334 sets are a million
/// rows.
const SETS: &str = "STEADFAST_FLOOR_SETS";

/// The blocks that a fetch may read more than after a vacuum. Floors are raised in steps, and a fetch reads
/// past the rows that were processed since the last step.
const STEP_BLOCKS: u64 = 32;

/// The same while an old snapshot may still see the processed rows: then each index entry costs a block.
const STEP_BLOCKS_SEEN: u64 = 2500;

/// Leases an instance if one is ready, and reports the blocks that were read.
const FETCH_TURN_COST: &str =
    "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) SELECT * FROM {name}.fetch_turns(NULL, 2000, 1)";

/// Leases an activity if one is ready, and reports the blocks that were read.
const FETCH_WORK_COST: &str = r#"
    EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) SELECT * FROM {name}.fetch_work_items(1,
        '{""}', '{w}', 2000, p_terms => true)"#;

/// The blocks that four fetches read: of a ready turn, of no turn, of a ready activity, of no activity. The
/// least of several counts, because now and then a fetch also tends the floors.
async fn costs(client: &Client, schema: &str) -> [u64; 4] {
    let mut least = [u64::MAX; 4];
    for _ in 0..12 {
        execute(
            client,
            "SELECT {name}.start_instances('{probe}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}',
                 '{}', '{}', '{}', NULL);
             SELECT {name}.enqueue_work('x', 'probe', 1, 1, '', '', NULL, NULL)",
            schema,
        )
        .await;
        let costs = [
            blocks(client, FETCH_TURN_COST, schema).await,
            blocks(client, FETCH_TURN_COST, schema).await,
            blocks(client, FETCH_WORK_COST, schema).await,
            blocks(client, FETCH_WORK_COST, schema).await,
        ];
        execute(
            client,
            "DELETE FROM {name}.orchestrator_queue;
             DELETE FROM {name}.instance_locks WHERE instance_id = 'probe';
             DELETE FROM {name}.worker_queue",
            schema,
        )
        .await;
        least = std::array::from_fn(|at| least[at].min(costs[at]));
    }
    least
}

/// Starts instances in sets of 250, runs an activity for each, and ends them: twice as many turns as
/// activities. Each step is a transaction of its own.
const PROCESS: &str = r#"
    DO $block$
    DECLARE
        v_count CONSTANT INTEGER := 250;
        v_lock CONSTANT BIGINT := 2000;
        v_ones INTEGER[] := ARRAY(SELECT generate_series(1, v_count));
        v_no_texts TEXT[] := array_fill(NULL::text, ARRAY[v_count]);
        v_no_numbers INTEGER[] := array_fill(NULL::integer, ARRAY[v_count]);
        v_first BIGINT[] := array_fill(1::bigint, ARRAY[v_count]);
        v_second BIGINT[] := array_fill(2::bigint, ARRAY[v_count]);
        v_empty TEXT[] := array_fill(''::text, ARRAY[v_count]);
        v_texts TEXT[] := array_fill('x'::text, ARRAY[v_count]);
        v_no BOOLEAN[] := array_fill(false, ARRAY[v_count]);
        v_instances TEXT[];
        v_tokens TEXT[];
    BEGIN
        FOR v_set IN 1..{sets} LOOP
            v_instances := ARRAY(SELECT '{prefix}' || v_set || '-' || n FROM generate_series(1,
                v_count) AS n);
            PERFORM {name}.start_instances(v_instances, v_texts, array_fill(NULL::bigint,
                ARRAY[v_count]), v_no_texts,
                '{}', '{}', '{}', '{}', '{}', '{}', NULL);
            COMMIT;
            SELECT array_agg(f.token), array_agg(f.instance_id) INTO v_tokens, v_instances
            FROM {name}.fetch_turns(NULL, v_lock, v_count) AS f WHERE f.kind = 'turn';
            COMMIT;
            PERFORM {name}.commit_turns(NULL, v_tokens, v_first, v_texts, v_texts, v_no_texts,
                array_fill('Running'::text, ARRAY[v_count]), v_no_texts, v_no_texts, v_no_numbers,
                    v_no_numbers, v_no_numbers,
                v_no, v_no_texts, v_no, v_ones, v_first, v_texts, v_texts,
                '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
                v_ones, v_texts, v_instances, v_first, v_second, v_empty, v_empty, v_no_texts,
                    v_no_texts,
                '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', p_rising => v_first);
            COMMIT;
            SELECT array_agg(f.token), array_agg(f.instance_id) INTO v_tokens, v_instances
            FROM {name}.fetch_work_items(v_count, '{""}', v_texts, v_lock) AS f WHERE f.kind =
                'lease';
            COMMIT;
            PERFORM {name}.finish_work_items(v_tokens, v_instances, v_texts, v_no_texts);
            COMMIT;
            SELECT array_agg(f.token) INTO v_tokens
            FROM {name}.fetch_turns(NULL, v_lock, v_count) AS f WHERE f.kind = 'turn';
            COMMIT;
            PERFORM {name}.commit_turns(NULL, v_tokens, v_first, v_texts, v_texts, v_no_texts,
                array_fill('Completed'::text, ARRAY[v_count]), v_no_texts, v_no_texts, v_no_numbers,
                    v_no_numbers, v_no_numbers,
                v_no, v_no_texts, v_no, v_ones, v_second, v_texts, v_texts,
                '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
                '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
                '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', p_rising => v_second);
            COMMIT;
        END LOOP;
    END
    $block$"#;

async fn process(client: &Client, schema: &str, prefix: &str, sets: u32) {
    let statement = PROCESS.replace("{sets}", &sets.to_string()).replace("{prefix}", prefix);
    execute(client, &statement, schema).await;
}

#[tokio::test]
async fn processed_rows_do_not_slow_a_fetch() {
    let sets = env::var(SETS).ok().and_then(|sets| sets.parse().ok()).unwrap_or(16);
    // A server of its own: deleted rows stay in the indexes while any open transaction on the server may see
    // them.
    let server = steadfast_cluster::Server::durable().unwrap();
    let schema = server.schema("processed");
    open(server.url(), schema.name()).await.unwrap();
    let client = connect(server.url()).await;
    execute(
        &client,
        "ALTER TABLE {name}.orchestrator_queue SET (autovacuum_enabled = off);
         ALTER TABLE {name}.instance_locks SET (autovacuum_enabled = off);
         ALTER TABLE {name}.worker_queue SET (autovacuum_enabled = off);
         ALTER TABLE {name}.floors SET (autovacuum_enabled = off);
         ALTER TABLE {name}.beneath SET (autovacuum_enabled = off)",
        schema.name(),
    )
    .await;

    process(&client, schema.name(), "alone", sets).await;
    let alone = costs(&client, schema.name()).await;
    // While a snapshot can still see the rows, their index entries are not even marked as dead.
    let other = connect(server.url()).await;
    execute(
        &other,
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM {name}.instances",
        schema.name(),
    )
    .await;
    process(&client, schema.name(), "seen", sets).await;
    let seen = costs(&client, schema.name()).await;
    other.batch_execute("ROLLBACK").await.unwrap();

    execute(
        &client,
        "VACUUM {name}.orchestrator_queue, {name}.instance_locks, {name}.worker_queue,
             {name}.floors, {name}.beneath",
        schema.name(),
    )
    .await;
    let clean = costs(&client, schema.name()).await;
    println!("{sets} sets: {alone:?} blocks, {seen:?} with an old snapshot, {clean:?} after a vacuum");
    for (at, clean) in clean.into_iter().enumerate() {
        assert!(alone[at] <= clean + STEP_BLOCKS, "{alone:?} blocks instead of {clean:?}");
        assert!(
            seen[at] <= clean + STEP_BLOCKS_SEEN,
            "{seen:?} blocks with an old snapshot instead of {clean:?}"
        );
    }
}

/// One way in which a row becomes runnable with a key that the floors may already be above.
#[derive(Clone, Copy)]
struct FloorCase {
    what: &'static str,
    /// Creates the rows that `write` changes.
    make: &'static str,
    /// Makes the row runnable, in the transaction that the test steers.
    write: &'static str,
    /// Begins that transaction.
    begin: &'static str,
    /// Fetches, and counts 1 if the row was found.
    find: &'static str,
    /// The column of the floor that the row could be below.
    kind: &'static str,
}

const BEGIN: &str = "BEGIN";

/// Starts an instance and leases it for a minute.
const LEASE_TURN: &str =
    "SELECT {name}.start_instances('{i{run}}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}',
         '{}', {now});
     SELECT * FROM {name}.fetch_turns({now}, 60000, 1)";

/// Leases the instance for a very long time, and counts what was leased.
const FIND_TURN: &str =
    "SELECT count(*) FROM {name}.fetch_turns({now}, 900000000000, 1) AS f WHERE f.instance_id = 'i{run}'";

/// Starts an instance with a delay of one second, at a time five seconds ago.
const DELAYED_START: &str =
    "SELECT {name}.start_instances('{i{run}}', '{x}', '{1000}', '{NULL}', '{}', '{}', '{}', '{}', '{}',
         '{}', {now} - 5000)";

/// Sends a message to an instance whose start is delayed, and lets a fetch find that the message cannot
/// run yet.
const MESSAGE_BEFORE_START: &str =
    "SELECT {name}.start_instances('{i{run}}', '{x}', '{900000000000}', '{NULL}', '{}', '{}', '{}',
         '{}', '{}', '{}', {now});
     SELECT {name}.send_messages('{i{run}}', '{x}', '{NULL}', '{false}', '{NULL}', {now});
     SELECT * FROM {name}.fetch_turns({now}, 60000, 1)";

/// Sends the start of the instance without a delay.
const SEND_START: &str =
    "SELECT {name}.send_messages('{i{run}}', '{x}', '{NULL}', '{true}', '{NULL}', {now})";

/// Changes nothing.
const NOTHING: &str = "SELECT 1";

/// Starts an instance.
const START: &str =
    "SELECT {name}.start_instances('{i{run}}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}',
         '{}', {now})";

/// Queues an activity and leases it for a minute.
const LEASE_WORK: &str = r#"
    SELECT {name}.enqueue_work('x', 'i{run}', 1, 1, '', '', NULL, NULL, {now});
    SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 60000, p_now_ms => {now})"#;

/// Abandons the lease of the activity.
const ABANDON_WORK: &str = "
    SELECT * FROM {name}.abandon_work_items(
        ARRAY(SELECT lock_token FROM {name}.worker_queue WHERE instance_id = 'i{run}'), '{NULL}',
            '{true}', {now})";

/// Leases the activity for a very long time, and counts what was leased.
const FIND_WORK: &str = r#"
    SELECT count(*) FROM {name}.fetch_work_items(1, '{""}', '{w}', 900000000000, p_now_ms => {now})
        AS f WHERE f.instance_id = 'i{run}'"#;

/// Queues an activity.
const ENQUEUE_WORK: &str = "SELECT {name}.enqueue_work('x', 'i{run}', 1, 1, '', '', NULL, NULL, {now})";

/// Leases the activity of the session for a very long time, and counts what was leased.
const FIND_SESSION_WORK: &str = r#"
    SELECT count(*) FROM {name}.fetch_work_items(1, '{""}', '{w}', 900000000000, 'node', NULL,
        900000000000, true, p_now_ms => {now}) AS f
    WHERE f.instance_id = 'i{run}'"#;

const CASES: &[FloorCase] = &[
    FloorCase {
        what: "an old message of a lease that is abandoned",
        make: LEASE_TURN,
        write: "SELECT * FROM {name}.abandon_turns(
                    ARRAY(SELECT lock_token FROM {name}.instance_locks WHERE instance_id = 'i{run}'),
                        '{NULL}', '{true}', {now})",
        begin: BEGIN,
        find: FIND_TURN,
        kind: "turns",
    },
    FloorCase {
        what: "a message that was delayed",
        make: DELAYED_START,
        write: "SELECT {name}.sweep_turns({now})",
        begin: BEGIN,
        find: FIND_TURN,
        kind: "turns",
    },
    FloorCase {
        what: "a message ahead of its start",
        make: MESSAGE_BEFORE_START,
        write: SEND_START,
        begin: BEGIN,
        find: FIND_TURN,
        kind: "turns",
    },
    FloorCase {
        what: "a message ahead of its start, in a transaction with an old snapshot",
        make: MESSAGE_BEFORE_START,
        write: SEND_START,
        begin: "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1",
        find: FIND_TURN,
        kind: "turns",
    },
    FloorCase {
        what: "a new message",
        make: NOTHING,
        write: START,
        begin: BEGIN,
        find: FIND_TURN,
        kind: "turns",
    },
    FloorCase {
        what: "a message that is delayed",
        make: LEASE_TURN,
        write: "SELECT * FROM {name}.abandon_turns(
                    ARRAY(SELECT lock_token FROM {name}.instance_locks WHERE instance_id = 'i{run}'),
                        '{1}', '{true}', {now} - 5000)",
        begin: BEGIN,
        find: FIND_TURN,
        kind: "due_messages",
    },
    FloorCase {
        what: "a start that is delayed",
        make: NOTHING,
        write: DELAYED_START,
        begin: BEGIN,
        find: FIND_TURN,
        kind: "due_messages",
    },
    FloorCase {
        what: "a short lease",
        make: START,
        write: "SELECT * FROM {name}.fetch_turns({now} - 10, 1, 1)",
        begin: BEGIN,
        find: FIND_TURN,
        kind: "leased_turns",
    },
    FloorCase {
        what: "a lease that is renewed for a short time",
        make: LEASE_TURN,
        write: "SELECT * FROM {name}.renew_turns(
                    ARRAY(SELECT lock_token FROM {name}.instance_locks WHERE instance_id = 'i{run}'),
                        '{1}', {now} - 10)",
        begin: BEGIN,
        find: FIND_TURN,
        kind: "leased_turns",
    },
    FloorCase {
        what: "an activity whose lease is abandoned",
        make: LEASE_WORK,
        write: ABANDON_WORK,
        begin: BEGIN,
        find: FIND_WORK,
        kind: "work",
    },
    FloorCase {
        what: "a new activity",
        make: NOTHING,
        write: ENQUEUE_WORK,
        begin: BEGIN,
        find: FIND_WORK,
        kind: "work",
    },
    FloorCase {
        what: "an activity that is delayed",
        make: LEASE_WORK,
        write: "SELECT * FROM {name}.abandon_work_items(
                    ARRAY(SELECT lock_token FROM {name}.worker_queue WHERE instance_id = 'i{run}'), '{1}',
                        '{true}', {now} - 5000)",
        begin: BEGIN,
        find: FIND_WORK,
        kind: "due_work",
    },
    FloorCase {
        what: "a short lease of an activity",
        make: ENQUEUE_WORK,
        write: r#"SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 1, p_now_ms => {now} - 10)"#,
        begin: BEGIN,
        find: FIND_WORK,
        kind: "leased_work",
    },
    FloorCase {
        what: "a lease of an activity that is extended shortly",
        make: LEASE_WORK,
        write: "SELECT * FROM {name}.renew_work_items(
                    ARRAY(SELECT lock_token FROM {name}.worker_queue WHERE instance_id = 'i{run}'), '{1}',
                        {now} - 10)",
        begin: BEGIN,
        find: FIND_WORK,
        kind: "leased_work",
    },
    FloorCase {
        what: "an activity of a session whose lease is abandoned",
        make: r#"SELECT {name}.enqueue_work('x', 'i{run}', 1, 1, '', '', 's{run}', NULL, {now});
                 SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 60000, 'node', NULL, 60000, true,
                     p_now_ms => {now})"#,
        write: ABANDON_WORK,
        begin: BEGIN,
        find: FIND_SESSION_WORK,
        kind: "heads",
    },
    FloorCase {
        what: "a session that is claimed for a short time",
        make: "SELECT {name}.enqueue_work('x', 'i{run}', 1, 1, '', '', 's{run}', NULL, {now})",
        write: r#"SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 1, 'other', NULL, 1, true,
                      p_now_ms => {now} - 10)"#,
        begin: BEGIN,
        find: FIND_SESSION_WORK,
        kind: "held_sessions",
    },
    FloorCase {
        what: "a session whose lease is renewed for a short time",
        make: r#"SELECT {name}.enqueue_work('x', 'first', 1, 1, '', '', 's{run}', NULL, {now});
                 SELECT {name}.enqueue_work('x', 'i{run}', 1, 1, '', '', 's{run}', NULL, {now});
                 SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 900000000000, 'other', NULL,
                     60000, true, p_now_ms => {now})"#,
        write: r#"SELECT * FROM {name}.renew_sessions('other', NULL, 1, 900000, 900000, '{""}', false,
                      {now} - 10)"#,
        begin: BEGIN,
        find: FIND_SESSION_WORK,
        kind: "held_sessions",
    },
    FloorCase {
        what: "the next in line of a serial session",
        make: r#"SELECT {name}.open_session('i{run}', 's', NULL, true, {now});
                 SELECT {name}.enqueue_work('x', 'i{run}', 1, 1, '', 'i{run}', 's', NULL, {now});
                 SELECT {name}.enqueue_work('x', 'i{run}', 1, 2, '', 'i{run}', 's', NULL, {now});
                 SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 60000, 'node', NULL, 60000, true,
                     p_now_ms => {now})"#,
        write: "SELECT * FROM {name}.finish_work_items(
                    ARRAY(SELECT lock_token FROM {name}.worker_queue WHERE instance_id = 'i{run}'
                        AND state = 2), '{i{run}}', '{NULL}', '{NULL}', {now})",
        begin: BEGIN,
        find: FIND_SESSION_WORK,
        kind: "heads",
    },
    FloorCase {
        what: "a message that is passed over",
        make: LEASE_TURN,
        write: "SELECT p.* FROM {name}.instance_locks AS l
                CROSS JOIN LATERAL {name}.pass_over_messages(l.lock_token, l.leased, '{x}', 1, 10,
                    {now} - 10) AS p
                WHERE l.instance_id = 'i{run}'",
        begin: BEGIN,
        find: FIND_TURN,
        kind: "due_messages",
    },
    FloorCase {
        what: "an activity that is passed over",
        make: LEASE_WORK,
        write: "SELECT p.* FROM {name}.worker_queue AS w
                CROSS JOIN LATERAL {name}.pass_over_work(w.lock_token, 'x', 1, 10, false, {now} - 10) AS p
                WHERE w.instance_id = 'i{run}'",
        begin: BEGIN,
        find: FIND_WORK,
        kind: "due_work",
    },
];

/// The number of steps that raise the floors if no open transaction delays them.
const STEPS: usize = 3;

/// One run of a case: the step before which its transaction writes, and the step before which it commits.
struct SteeredRun<'a> {
    case: &'a FloorCase,
    number: usize,
    writes: usize,
    commits: usize,
}

/// Does the next step of raising the floors if one is due, as any fetch does.
const STEP: &str = "SELECT {name}.read_floors({now})";

/// Brings the floors to rest, draws so many ids that the next step raises the floors beyond every row, and
/// postpones the minutely look below the floors.
const READY: &str = "UPDATE {name}.floors SET healed_ms = {now}, at_ms = {now}, drawn = -10000, cycle = NULL,
         horizon = NULL, next_turns = NULL, next_work = NULL, next_heads = NULL,
         next_due_messages = NULL, next_leased_turns = NULL, next_due_work = NULL,
         next_leased_work = NULL, next_held_sessions = NULL,
         turn_ms = 30000, work_ms = 30000, session_ms = 30000;
     SELECT max(nextval('{name}.orchestrator_queue_id_seq') + nextval('{name}.worker_queue_id_seq'))
         FROM generate_series(1, 2000)";

impl SteeredRun<'_> {
    /// The time of the run. Runs have different times, so that they do not meet each other's rows.
    fn now(&self) -> i64 {
        1_000_000_000_000 + 10_000_000 * i64::try_from(self.number).unwrap()
    }

    fn text(&self, statement: &str) -> String {
        statement.replace("{run}", &self.number.to_string()).replace("{now}", &self.now().to_string())
    }

    /// Interleaves the steps with the transaction, and returns the floor at the end.
    async fn go(&self, steps: &Client, writer: &Client, schema: &str) -> i64 {
        let step = self.text(STEP);
        execute(steps, &self.text(self.case.make), schema).await;
        execute(steps, &self.text(READY), schema).await;
        for at in 0..=STEPS {
            if at == 0 {
                execute(writer, self.case.begin, schema).await;
            }
            if at == STEPS && at == self.writes {
                raised(steps, &step, schema).await;
            }
            if at == self.writes {
                execute(writer, &self.text(self.case.write), schema).await;
            }
            if at == self.commits {
                writer.batch_execute("COMMIT").await.unwrap();
            }
            if at < STEPS {
                execute(steps, &step, schema).await;
            }
        }
        // The transaction may have delayed the floors: raise them now.
        raised(steps, &step, schema).await;
        number(steps, &"SELECT {kind} FROM {name}.floors".replace("{kind}", self.case.kind), schema).await
    }
}

/// Does steps until the floors are raised. Open transactions of other tests on the server may delay that.
async fn raised(client: &Client, step: &str, schema: &str) {
    while number(client, "SELECT count(cycle) FROM {name}.floors", schema).await > 0 {
        execute(client, step, schema).await;
    }
}

#[tokio::test]
async fn a_row_that_becomes_runnable_while_floors_are_raised_is_found() {
    let schema = server().schema("raised");
    open(server().url(), schema.name()).await.unwrap();
    let (steps, writer) = (connect(server().url()).await, connect(server().url()).await);
    let mut runs = 0;
    for case in CASES {
        let mut highest = 0;
        for writes in 0..=STEPS {
            for commits in writes..=STEPS {
                runs += 1;
                let run = SteeredRun { case, number: runs, writes, commits };
                highest = highest.max(run.go(&steps, &writer, schema.name()).await);
                let found = number(&steps, &run.text(case.find), schema.name()).await;
                assert_eq!(found, 1, "{}: written at {writes}, committed at {commits}", case.what);
            }
        }
        assert!(highest > 1000, "{}: its floor was raised", case.what);
    }
}

#[tokio::test]
async fn floors_wait_for_a_writer_that_began_before_they_were_proposed() {
    let schema = server().schema("number");
    open(server().url(), schema.name()).await.unwrap();
    let (steps, writer) = (connect(server().url()).await, connect(server().url()).await);
    let older = connect(server().url()).await;
    let run = SteeredRun { case: &CASES[0], number: 1, writes: 0, commits: 0 };
    let step = run.text(STEP);
    execute(&steps, &run.text(run.case.make), schema.name()).await;
    execute(&steps, &run.text(READY), schema.name()).await;
    execute(&older, "BEGIN; SELECT pg_current_xact_id()", schema.name()).await;
    // Its transaction id is higher than that of `older`, and it does not see the proposed floors.
    execute(&writer, BEGIN, schema.name()).await;
    execute(&writer, &run.text(run.case.write), schema.name()).await;
    execute(&steps, &step, schema.name()).await;
    execute(&older, &step, schema.name()).await;
    older.batch_execute("COMMIT").await.unwrap();
    execute(&steps, &step, schema.name()).await;
    execute(&steps, &step, schema.name()).await;
    writer.batch_execute("COMMIT").await.unwrap();
    assert_eq!(number(&steps, &run.text(run.case.find), schema.name()).await, 1, "it is found");
}

#[tokio::test]
async fn a_row_that_was_made_runnable_by_hand_is_found_within_a_minute() {
    let schema = server().schema("by_hand");
    open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    let case = &CASES[0];
    let run = SteeredRun { case: &FloorCase { write: NOTHING, ..*case }, number: 1, writes: 0, commits: 0 };
    run.go(&client, &connect(server().url()).await, schema.name()).await;
    execute(
        &client,
        &run.text(
            "UPDATE {name}.instance_locks AS l
             SET lock_token = NULL, locked_until = NULL,
                 head = (SELECT min(q.id) FROM {name}.orchestrator_queue AS q WHERE q.instance_id =
                     l.instance_id)
             WHERE l.instance_id = 'i{run}'",
        ),
        schema.name(),
    )
    .await;
    assert_eq!(number(&client, &run.text(case.find), schema.name()).await, 0, "it is below the floor");
    let later = case.find.replace("{now}", "{now} + 60000");
    let found = number(&client, &run.text(&later), schema.name()).await;
    assert_eq!(found, 1, "a look from the bottom finds it");
}
