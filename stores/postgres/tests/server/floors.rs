//! Floors on a real server: what was processed does not slow a fetch, and nothing that can be run is below where a fetch looks.

use std::env;

use tokio_postgres::Client;

use crate::work::blocks;
use crate::{connect, execute, number, open, server, sql};

/// How many sets of 250 instances are processed; a million items are 1334 of them.
const SETS: &str = "STEADFAST_FLOOR_SETS";

/// How many blocks a fetch may read more than one after a vacuum. Floors are raised in steps, and what was processed since the
/// last step is in the way.
const STEP: u64 = 32;

/// The same while somebody may still see what was processed: then each entry costs a block.
const STEP_SEEN: u64 = 2500;

/// What a fetch costs when there is something for it, and when there is nothing: of a turn, of an activity. The least of several
/// counts, because now and then one tends the floors for all.
async fn costs(client: &Client, schema: &str) -> [u64; 4] {
    let mut least = [u64::MAX; 4];
    for _ in 0..12 {
        execute(client, sql!("floors/queue"), schema).await;
        let costs = [
            blocks(client, sql!("floors/fetch_turn_cost"), schema).await,
            blocks(client, sql!("floors/fetch_turn_cost"), schema).await,
            blocks(client, sql!("floors/fetch_work_cost"), schema).await,
            blocks(client, sql!("floors/fetch_work_cost"), schema).await,
        ];
        execute(client, sql!("floors/clear"), schema).await;
        least = std::array::from_fn(|at| least[at].min(costs[at]));
    }
    least
}

async fn process(client: &Client, schema: &str, prefix: &str, sets: u32) {
    let statement = sql!("floors/process").replace("{sets}", &sets.to_string()).replace("{prefix}", prefix);
    execute(client, &statement, schema).await;
}

#[tokio::test]
async fn what_was_processed_does_not_slow_a_fetch() {
    let sets = env::var(SETS).ok().and_then(|sets| sets.parse().ok()).unwrap_or(16);
    // A server of its own: rows that were removed stay in the way while any transaction of others may still see them.
    let server = steadfast_cluster::Server::durable().unwrap();
    let schema = server.schema("processed");
    open(server.url(), schema.name()).await.unwrap();
    let client = connect(server.url()).await;
    execute(&client, sql!("floors/no_vacuum"), schema.name()).await;

    process(&client, schema.name(), "alone", sets).await;
    let alone = costs(&client, schema.name()).await;
    // With somebody who could still see them, entries are not even marked as dead.
    let other = connect(server.url()).await;
    execute(&other, sql!("floors/old_snapshot"), schema.name()).await;
    process(&client, schema.name(), "seen", sets).await;
    let seen = costs(&client, schema.name()).await;
    other.batch_execute("ROLLBACK").await.unwrap();

    execute(&client, sql!("floors/vacuum"), schema.name()).await;
    let clean = costs(&client, schema.name()).await;
    println!("{sets} sets: {alone:?} blocks, {seen:?} with an old snapshot, {clean:?} after a vacuum");
    for (at, clean) in clean.into_iter().enumerate() {
        assert!(alone[at] <= clean + STEP, "{alone:?} blocks instead of {clean:?}");
        assert!(seen[at] <= clean + STEP_SEEN, "{seen:?} blocks with an old snapshot instead of {clean:?}");
    }
}

/// Something that comes to count with a key that floors are raised beyond.
#[derive(Clone, Copy)]
struct Case {
    what: &'static str,
    /// Makes what it needs.
    make: &'static str,
    /// Makes it count, in the transaction that is steered.
    write: &'static str,
    /// Begins that transaction.
    begin: &'static str,
    /// Counts what a fetch finds of it.
    find: &'static str,
    /// The floor that matters.
    kind: &'static str,
}

const BEGIN: &str = "BEGIN";

const CASES: &[Case] = &[
    Case {
        what: "an old message of a lease that is given back",
        make: sql!("floors/lease"),
        write: sql!("floors/abandon"),
        begin: BEGIN,
        find: sql!("floors/find_turn"),
        kind: "turns",
    },
    Case {
        what: "a message that was delayed",
        make: sql!("floors/later_start"),
        write: sql!("floors/sweep"),
        begin: BEGIN,
        find: sql!("floors/find_turn"),
        kind: "turns",
    },
    Case {
        what: "a message ahead of its start",
        make: sql!("floors/early"),
        write: sql!("floors/start_early"),
        begin: BEGIN,
        find: sql!("floors/find_turn"),
        kind: "turns",
    },
    Case {
        what: "a message ahead of its start, in a transaction that sees no more than there was",
        make: sql!("floors/early"),
        write: sql!("floors/start_early"),
        begin: sql!("floors/begin_old"),
        find: sql!("floors/find_turn"),
        kind: "turns",
    },
    Case {
        what: "a new message",
        make: sql!("floors/nothing"),
        write: sql!("floors/start"),
        begin: BEGIN,
        find: sql!("floors/find_turn"),
        kind: "turns",
    },
    Case {
        what: "a message that is delayed",
        make: sql!("floors/lease"),
        write: sql!("floors/abandon_delayed"),
        begin: BEGIN,
        find: sql!("floors/find_turn"),
        kind: "due_messages",
    },
    Case {
        what: "a start that is delayed",
        make: sql!("floors/nothing"),
        write: sql!("floors/later_start"),
        begin: BEGIN,
        find: sql!("floors/find_turn"),
        kind: "due_messages",
    },
    Case {
        what: "a short lease",
        make: sql!("floors/start"),
        write: sql!("floors/short_turn"),
        begin: BEGIN,
        find: sql!("floors/find_turn"),
        kind: "leased_turns",
    },
    Case {
        what: "a lease that is extended shortly",
        make: sql!("floors/lease"),
        write: sql!("floors/short_renewal"),
        begin: BEGIN,
        find: sql!("floors/find_turn"),
        kind: "leased_turns",
    },
    Case {
        what: "an activity that is given back",
        make: sql!("floors/lease_work"),
        write: sql!("floors/abandon_work"),
        begin: BEGIN,
        find: sql!("floors/find_work"),
        kind: "work",
    },
    Case {
        what: "a new activity",
        make: sql!("floors/nothing"),
        write: sql!("floors/enqueue_work"),
        begin: BEGIN,
        find: sql!("floors/find_work"),
        kind: "work",
    },
    Case {
        what: "an activity that is delayed",
        make: sql!("floors/lease_work"),
        write: sql!("floors/abandon_work_delayed"),
        begin: BEGIN,
        find: sql!("floors/find_work"),
        kind: "due_work",
    },
    Case {
        what: "a short lease of an activity",
        make: sql!("floors/enqueue_work"),
        write: sql!("floors/short_work"),
        begin: BEGIN,
        find: sql!("floors/find_work"),
        kind: "leased_work",
    },
    Case {
        what: "a lease of an activity that is extended shortly",
        make: sql!("floors/lease_work"),
        write: sql!("floors/short_work_renewal"),
        begin: BEGIN,
        find: sql!("floors/find_work"),
        kind: "leased_work",
    },
    Case {
        what: "an activity of a session that is given back",
        make: sql!("floors/lease_session_work"),
        write: sql!("floors/abandon_work"),
        begin: BEGIN,
        find: sql!("floors/find_session_work"),
        kind: "heads",
    },
    Case {
        what: "a session that is held shortly",
        make: sql!("floors/enqueue_session_work"),
        write: sql!("floors/claim_shortly"),
        begin: BEGIN,
        find: sql!("floors/find_session_work"),
        kind: "held_sessions",
    },
    Case {
        what: "a session whose lease is extended shortly",
        make: sql!("floors/claim"),
        write: sql!("floors/short_session_renewal"),
        begin: BEGIN,
        find: sql!("floors/find_session_work"),
        kind: "held_sessions",
    },
    Case {
        what: "the next in line of a serial session",
        make: sql!("floors/serial"),
        write: sql!("floors/finish_first"),
        begin: BEGIN,
        find: sql!("floors/find_session_work"),
        kind: "heads",
    },
    Case {
        what: "a message that is passed over",
        make: sql!("floors/lease"),
        write: sql!("floors/pass_over"),
        begin: BEGIN,
        find: sql!("floors/find_turn"),
        kind: "due_messages",
    },
    Case {
        what: "an activity that is passed over",
        make: sql!("floors/lease_work"),
        write: sql!("floors/pass_over_work"),
        begin: BEGIN,
        find: sql!("floors/find_work"),
        kind: "due_work",
    },
];

/// Steps after which the floors are raised, if nobody is in the way.
const STEPS: usize = 3;

/// One run of a case: at which step its transaction writes, and before which it is committed.
struct Run<'a> {
    case: &'a Case,
    number: usize,
    writes: usize,
    commits: usize,
}

impl Run<'_> {
    /// The time of the run; each has its own.
    fn now(&self) -> i64 {
        1_000_000_000_000 + 10_000_000 * i64::try_from(self.number).unwrap()
    }

    fn text(&self, statement: &str) -> String {
        statement.replace("{run}", &self.number.to_string()).replace("{now}", &self.now().to_string())
    }

    /// Does the steps and the transaction in their order; returns how high the floor is in the end.
    async fn go(&self, steps: &Client, writer: &Client, schema: &str) -> i64 {
        let step = self.text(sql!("floors/step"));
        execute(steps, &self.text(self.case.make), schema).await;
        execute(steps, &self.text(sql!("floors/ready")), schema).await;
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
        // What the transaction kept from being raised is raised now.
        raised(steps, &step, schema).await;
        number(steps, &sql!("floors/floor").replace("{kind}", self.case.kind), schema).await
    }
}

/// Does steps until the floors are raised. Transactions of other tests on the server may be in the way for a while.
async fn raised(client: &Client, step: &str, schema: &str) {
    while number(client, sql!("floors/cycle"), schema).await > 0 {
        execute(client, step, schema).await;
    }
}

#[tokio::test]
async fn what_comes_to_count_while_floors_are_raised_is_found() {
    let schema = server().schema("raised");
    open(server().url(), schema.name()).await.unwrap();
    let (steps, writer) = (connect(server().url()).await, connect(server().url()).await);
    let mut runs = 0;
    for case in CASES {
        let mut highest = 0;
        for writes in 0..=STEPS {
            for commits in writes..=STEPS {
                runs += 1;
                let run = Run { case, number: runs, writes, commits };
                highest = highest.max(run.go(&steps, &writer, schema.name()).await);
                let found = number(&steps, &run.text(case.find), schema.name()).await;
                assert_eq!(found, 1, "{}: written at {writes}, committed at {commits}", case.what);
            }
        }
        assert!(highest > 1000, "{}: its floor was raised", case.what);
    }
}

#[tokio::test]
async fn who_began_to_write_before_the_next_floors_does_not_tell_who_sees_them() {
    let schema = server().schema("number");
    open(server().url(), schema.name()).await.unwrap();
    let (steps, writer) = (connect(server().url()).await, connect(server().url()).await);
    let older = connect(server().url()).await;
    let run = Run { case: &CASES[0], number: 1, writes: 0, commits: 0 };
    let step = run.text(sql!("floors/step"));
    execute(&steps, &run.text(run.case.make), schema.name()).await;
    execute(&steps, &run.text(sql!("floors/ready")), schema.name()).await;
    execute(&older, sql!("floors/number"), schema.name()).await;
    // It has a higher number than the older one, and does not see the next floors.
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
async fn what_comes_to_count_by_hand_is_found_after_a_while() {
    let schema = server().schema("by_hand");
    open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    let case = &CASES[0];
    let run =
        Run { case: &Case { write: sql!("floors/nothing"), ..*case }, number: 1, writes: 0, commits: 0 };
    run.go(&client, &connect(server().url()).await, schema.name()).await;
    execute(&client, &run.text(sql!("floors/by_hand")), schema.name()).await;
    assert_eq!(number(&client, &run.text(case.find), schema.name()).await, 0, "it is below the floor");
    let later = case.find.replace("{now}", "{now} + 60000");
    let found = number(&client, &run.text(&later), schema.name()).await;
    assert_eq!(found, 1, "a look from the bottom finds it");
}
