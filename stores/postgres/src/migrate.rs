//! Migrations: forward only, known by their hashes, one process at a time (F10). Functions are made anew when their file
//! has changed.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use tokio_postgres::{Client, Transaction};

use crate::db::{Function, in_schema, sql};
use crate::error::chain;
use crate::open::{OpenError, quoted};

/// The migrations of this build, in order; the first is version 1.
const MIGRATIONS: &[&str] = &[sql!("migrations/0001_tables")];

/// The functions of this build, by area.
const FUNCTIONS: &[&[Function]] = &[
    crate::wake::FUNCTIONS,
    crate::turn::FUNCTIONS,
    crate::message::FUNCTIONS,
    crate::history::FUNCTIONS,
    crate::kv::FUNCTIONS,
    crate::instance::FUNCTIONS,
    crate::work::FUNCTIONS,
    crate::session::FUNCTIONS,
    crate::waiting::FUNCTIONS,
    crate::set_aside::FUNCTIONS,
    crate::admin::FUNCTIONS,
    crate::compat::FUNCTIONS,
];

/// Brings a schema to the form of this build.
pub(crate) async fn migrate(client: &mut Client, schema: &str) -> Result<(), OpenError> {
    let quoted = quoted(schema)?;
    let transaction = client.transaction().await.map_err(|error| failed(schema, "begin", &error))?;
    let work = Work { transaction: &transaction, schema, quoted: &quoted };
    // The lock is taken before the look, so that two processes that start at once do not both migrate.
    work.run("lock", sql!("schema/lock"), &[&schema]).await?;
    work.batch("create schema", sql!("schema/create")).await?;
    work.check_owner().await?;
    work.batch("ledger", sql!("schema/ledger")).await?;
    work.apply_migrations().await?;
    work.make_functions().await?;
    transaction.commit().await.map_err(|error| failed(schema, "commit", &error))
}

struct Work<'a> {
    transaction: &'a Transaction<'a>,
    schema: &'a str,
    quoted: &'a str,
}

type Params<'a> = &'a [&'a (dyn tokio_postgres::types::ToSql + Sync)];

impl Work<'_> {
    async fn rows(
        &self,
        step: &str,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<tokio_postgres::Row>, OpenError> {
        let text = in_schema(sql, self.quoted);
        self.transaction.query(&text, params).await.map_err(|error| failed(self.schema, step, &error))
    }

    async fn run(&self, step: &str, sql: &str, params: Params<'_>) -> Result<(), OpenError> {
        self.rows(step, sql, params).await.map(drop)
    }

    async fn batch(&self, step: &str, sql: &str) -> Result<(), OpenError> {
        let text = in_schema(sql, self.quoted).replace("{channel}", &literal(&channel(self.schema)));
        self.transaction.batch_execute(&text).await.map_err(|error| failed(self.schema, step, &error))
    }

    /// Refuses a schema that is somebody else's.
    async fn check_owner(&self) -> Result<(), OpenError> {
        let rows = self.rows("look", sql!("schema/tables"), &[&self.schema]).await?;
        let tables: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        // Other tables may live beside ours, as in `public`; only what has our names must be ours.
        let theirs = ["history", "orchestrator_queue", "worker_queue", "instances", "executions", "sessions"];
        let is_ours = tables.iter().any(|table| table == "steadfast_migrations");
        match tables.iter().find(|table| theirs.contains(&table.as_str())) {
            Some(found) if !is_ours => {
                Err(OpenError::Foreign { schema: self.schema.to_owned(), found: found.clone() })
            }
            _ => Ok(()),
        }
    }

    async fn apply_migrations(&self) -> Result<(), OpenError> {
        let known = MIGRATIONS.len() as i64;
        let rows = self.rows("look", sql!("schema/migrations"), &[]).await?;
        let applied: Vec<(i64, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        if let Some((found, _)) = applied.iter().find(|(version, _)| *version > known) {
            return Err(OpenError::TooNew { schema: self.schema.to_owned(), found: *found, known });
        }
        for (version, text) in (1..).zip(MIGRATIONS) {
            match applied.iter().find(|(applied, _)| *applied == version) {
                Some((_, applied)) if *applied == hash(text) => {}
                Some(_) => return Err(OpenError::Changed { schema: self.schema.to_owned(), version }),
                None => {
                    self.batch(&format!("migration {version}"), text).await?;
                    self.run("ledger", sql!("schema/migrated"), &[&version, &hash(text)]).await?;
                }
            }
        }
        Ok(())
    }

    async fn make_functions(&self) -> Result<(), OpenError> {
        let rows = self.rows("look", sql!("schema/functions"), &[]).await?;
        let made: HashMap<String, String> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        for function in FUNCTIONS.iter().flat_map(|area| area.iter()) {
            let (name, hash) = (short(function), hash(function.text));
            if made.get(name) == Some(&hash) {
                continue;
            }
            for row in self.rows("look", sql!("schema/overloads"), &[&self.quoted, &name]).await? {
                let overload: String = row.get(0);
                self.batch(name, &format!("DROP FUNCTION {overload}")).await?;
            }
            self.batch(&format!("function {name}"), function.text).await?;
            self.run("ledger", sql!("schema/made"), &[&name, &hash]).await?;
        }
        Ok(())
    }
}

/// The name of a function: the last part of the name of its file.
fn short(function: &Function) -> &'static str {
    function.name.rsplit('/').next().unwrap_or(function.name)
}

/// The channel on which processes of a schema tell each other what became runnable.
pub(crate) fn channel(schema: &str) -> String {
    format!("steadfast_{}", &hash(schema)[..32])
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

pub(crate) fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn failed(schema: &str, step: &str, error: &tokio_postgres::Error) -> OpenError {
    OpenError::Migration { schema: schema.to_owned(), step: step.to_owned(), why: chain(error) }
}
