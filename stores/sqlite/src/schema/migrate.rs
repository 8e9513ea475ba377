//! Migrations: forward only, each in its own transaction, each recorded with the hash of its text (F10).

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use sha2::{Digest, Sha256};

use crate::link::connection::Location;
use crate::link::db::sql;
use crate::link::open::OpenError;

/// The migrations of this build, in order; the first is version 1.
const MIGRATIONS: &[&str] = &[
    sql!("migrations/0001_tables"),
    sql!("migrations/0002_waiting"),
    sql!("migrations/0003_clock"),
    sql!("migrations/0004_order"),
    sql!("migrations/0005_workers"),
    sql!("migrations/0006_orphans_batches"),
    sql!("migrations/0007_lists"),
    sql!("migrations/0008_session_trail"),
    sql!("migrations/0009_closed_sessions"),
    sql!("migrations/0010_released_claims"),
    sql!("migrations/0011_starts"),
    sql!("migrations/0012_replaced_claims"),
    sql!("migrations/0013_tries"),
];

/// Brings a database to the schema of this build.
pub(crate) fn migrate(connection: &mut Connection, place: &Location) -> Result<(), OpenError> {
    apply(connection, place, MIGRATIONS)
}

pub(crate) fn apply(
    connection: &mut Connection,
    place: &Location,
    migrations: &[&str],
) -> Result<(), OpenError> {
    let known = migrations.len() as i64;
    loop {
        // The lock is taken before the look, so that of two processes that start at the same time one
        // migrates.
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| place.explain(error))?;
        check_owner(&transaction, place)?;
        transaction.execute_batch(sql!("schema/ledger")).map_err(OpenError::driver)?;
        let applied = check_ledger(&transaction, place, migrations)?;
        if applied > known {
            return Err(OpenError::TooNew { place: place.to_string(), found: applied, known });
        }
        let Some(migration) = usize::try_from(applied).ok().and_then(|next| migrations.get(next)) else {
            return transaction.commit().map_err(OpenError::driver);
        };
        let version = applied + 1;
        let failed = |source| OpenError::Migration { place: place.to_string(), version, source };
        transaction.execute_batch(migration).map_err(failed)?;
        transaction.execute(sql!("schema/applied"), params![version, hash(migration)]).map_err(failed)?;
        transaction.commit().map_err(failed)?;
    }
}

/// Refuses a database that another program made.
fn check_owner(connection: &Connection, place: &Location) -> Result<(), OpenError> {
    let tables = tables_of(connection).map_err(|error| place.explain(error))?;
    let has = |name: &str| tables.iter().any(|table| table == name);
    if tables.is_empty() || has("steadfast_migrations") {
        return Ok(());
    }
    if has("orchestrator_queue") && has("worker_queue") && has("history") {
        return Err(OpenError::Duroxide { place: place.to_string() });
    }
    Err(OpenError::Foreign { place: place.to_string(), found: tables.into_iter().next().unwrap_or_default() })
}

fn tables_of(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(sql!("schema/tables"))?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}

/// Returns the newest version that was applied, after checking that every applied migration is the one of
/// this build.
fn check_ledger(connection: &Connection, place: &Location, migrations: &[&str]) -> Result<i64, OpenError> {
    let newest: Option<i64> =
        connection.query_row(sql!("schema/newest"), [], |row| row.get(0)).map_err(OpenError::driver)?;
    for (version, migration) in (1..).zip(migrations) {
        let applied: Option<String> = connection
            .query_row(sql!("schema/hash"), [version], |row| row.get(0))
            .optional()
            .map_err(OpenError::driver)?;
        if applied.is_some_and(|applied| applied != hash(migration)) {
            return Err(OpenError::Changed { place: place.to_string(), version });
        }
    }
    Ok(newest.unwrap_or(0))
}

fn hash(migration: &str) -> String {
    Sha256::digest(migration.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
