//! Migrations: forward only, known by their hashes, one process at a time (F10). A function is replaced when
//! its file has changed.
//!
//! A look finds the changes, and one transaction makes them. Other processes go on calling a function while
//! it is replaced: with the same parameters it keeps its oid; with more parameters, the older function is
//! dropped in the same transaction, so that calls with fewer arguments find the new one.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, IsolationLevel, Transaction};

use crate::link::db::{in_schema, millis};
use crate::link::open::{OpenError, quoted};
use crate::link::statement::{params, sql};
use crate::schema::build::Build;
use crate::schema::look::{Routine, SchemaLook, batch, failed, rows};
use crate::schema::migrations_pending::{
    FunctionChange, PendingFunction, PendingMigration, PendingMigrations,
};

/// Brings a schema to the form of a build.
///
/// # Cancel safety
/// The transaction is rolled back.
pub(crate) async fn migrate(
    client: &mut Client,
    schema: &str,
    build: &Build,
    limit: Duration,
) -> Result<(), OpenError> {
    let quoted = quoted(schema)?;
    let migrating = async {
        let mut transaction = client.transaction().await.map_err(|error| failed(schema, "begin", &error))?;
        let look = SchemaLook { transaction: &transaction, schema, quoted: &quoted, build };
        look.rows("limit", sql!("schema/limit"), params![millis(limit).to_string()]).await?;
        look.check_server().await?;
        // The lock is taken before the look, so that two processes that start at once do not both migrate.
        look.rows("wait for another process that migrates", sql!("schema/lock"), params![schema]).await?;
        let (pending, routines) = look.pending().await?;
        apply(&mut transaction, schema, &quoted, build, &pending, &routines).await?;
        transaction.commit().await.map_err(|error| failed(schema, "commit", &error))
    };
    tokio::time::timeout(limit, migrating).await.unwrap_or_else(|_| {
        let why = format!(
            "it took longer than migration_timeout, {limit:?}; raise it, or end what holds locks there"
        );
        Err(OpenError::Migration { schema: schema.to_owned(), step: "migrating".to_owned(), why })
    })
}

/// Lists the changes that [`migrate`] would make, without making them.
pub(crate) async fn pending(
    client: &mut Client,
    schema: &str,
    build: &Build,
) -> Result<PendingMigrations, OpenError> {
    let quoted = quoted(schema)?;
    let began = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    let transaction = began.start().await.map_err(|error| failed(schema, "begin", &error))?;
    let look = SchemaLook { transaction: &transaction, schema, quoted: &quoted, build };
    look.check_server().await?;
    let (pending, _) = look.pending().await?;
    Ok(pending)
}

/// Makes the pending changes, and records each of them in the ledger.
async fn apply(
    transaction: &mut Transaction<'_>,
    schema: &str,
    quoted: &str,
    build: &Build,
    pending: &PendingMigrations,
    before: &[Routine],
) -> Result<(), OpenError> {
    let by = build.version.to_string();
    for sql in &pending.setup {
        batch(transaction, schema, "creating the schema", sql).await?;
    }
    for PendingMigration { version, sql, hash } in &pending.migrations {
        batch(transaction, schema, &format!("migration {version}"), sql).await?;
        let note = in_schema(sql!("schema/migrated"), quoted);
        rows(transaction, schema, "writing the ledger", &note, params![*version, hash.as_str(), by]).await?;
    }
    for function in &pending.functions {
        match function.change {
            FunctionChange::New => transaction
                .batch_execute(&function.sql)
                .await
                .map_err(|error| unmade(schema, function, before, &error))?,
            FunctionChange::Replaced => {
                replace(transaction, schema, quoted, build, function, before).await?;
            }
        }
    }
    if pending.functions.is_empty() {
        return Ok(());
    }
    let made = made(&SchemaLook { transaction, schema, quoted, build }, pending, before).await?;
    let names: Vec<&str> = made.iter().map(|(function, _)| function.name.as_str()).collect();
    let arguments: Vec<&str> = made.iter().map(|(_, arguments)| arguments.as_str()).collect();
    let hashes: Vec<&str> = made.iter().map(|(function, _)| function.hash.as_str()).collect();
    let note = in_schema(sql!("schema/made"), quoted);
    rows(transaction, schema, "writing the ledger", &note, params![names, arguments, hashes, by]).await?;
    Ok(())
}

/// Replaces a function: in place if its parameters allow that, otherwise by dropping the older form.
async fn replace(
    transaction: &mut Transaction<'_>,
    schema: &str,
    quoted: &str,
    build: &Build,
    function: &PendingFunction,
    before: &[Routine],
) -> Result<(), OpenError> {
    let in_place = {
        let tried =
            transaction.transaction().await.map_err(|error| failed(schema, &step(function), &error))?;
        match tried.batch_execute(&function.sql).await {
            Ok(()) => tried.commit().await.map(|()| true),
            // The server cannot replace it in place: its result or the name of a parameter has changed.
            Err(error) if error.code() == Some(&SqlState::INVALID_FUNCTION_DEFINITION) => {
                tried.rollback().await.map(|()| false)
            }
            Err(error) => Err(error),
        }
    };
    let in_place = in_place.map_err(|error| failed(schema, &step(function), &error))?;
    let now = SchemaLook { transaction, schema, quoted, build }.routines(&[function.name.as_str()]).await?;
    // Only the form that this library made before is dropped; functions of the same name that the application
    // added stay.
    let is_former = |routine: &&Routine| Some(&routine.arguments) == function.former.as_ref();
    for former in now.iter().filter(|routine| before.contains(routine)).filter(is_former) {
        let drop = sql!("schema/drop").replace("{oid}", &former.oid.to_string());
        batch(transaction, schema, &step(function), &drop).await?;
    }
    if in_place { Ok(()) } else { batch(transaction, schema, &step(function), &function.sql).await }
}

/// Returns the functions that were made, with their parameters.
async fn made<'p>(
    look: &SchemaLook<'_>,
    pending: &'p PendingMigrations,
    before: &[Routine],
) -> Result<Vec<(&'p PendingFunction, String)>, OpenError> {
    let names: Vec<&str> = pending.functions.iter().map(|function| function.name.as_str()).collect();
    let now = look.routines(&names).await?;
    let find = |function: &'p PendingFunction| {
        let is_it = |routine: &&Routine| routine.name == function.name && !before.contains(routine);
        let Some(routine) = now.iter().find(is_it) else {
            let why = "its file makes no function of that name".to_owned();
            return Err(OpenError::Migration { schema: look.schema.to_owned(), step: step(function), why });
        };
        // It replaced a function that this library did not make.
        let is_taken = before.iter().any(|former| former.oid == routine.oid);
        if function.change == FunctionChange::New && is_taken {
            return Err(look.foreign(format!("function '{}'", function.name)));
        }
        Ok((function, routine.arguments.clone()))
    };
    pending.functions.iter().map(find).collect()
}

/// Makes the error for a new function that could not be created: a foreign function may have its name.
fn unmade(
    schema: &str,
    function: &PendingFunction,
    before: &[Routine],
    error: &tokio_postgres::Error,
) -> OpenError {
    let is_there = before.iter().any(|routine| routine.name == function.name);
    if is_there && error.code() == Some(&SqlState::INVALID_FUNCTION_DEFINITION) {
        return OpenError::Foreign {
            schema: schema.to_owned(),
            found: format!("function '{}'", function.name),
        };
    }
    failed(schema, &step(function), error)
}

fn step(function: &PendingFunction) -> String {
    format!("function {}", function.name)
}
