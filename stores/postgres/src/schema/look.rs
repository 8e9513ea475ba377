//! A look at a schema: what it holds, and which changes bring it to the form of a build. It changes nothing.

use std::collections::{HashMap, HashSet};

use semver::Version;
use sha2::{Digest, Sha256};
use tokio_postgres::{Row, Transaction};

use crate::link::db::in_schema;
use crate::link::error::chain;
use crate::link::open::OpenError;
use crate::link::statement::{Param, params, sql, typed};
use crate::schema::build::Build;
use crate::schema::migrations_pending::{
    FunctionChange, PendingFunction, PendingMigration, PendingMigrations,
};

/// The oldest supported server.
const OLDEST_SERVER: i32 = 130_000;

/// A function in the schema. Functions of one name differ in their arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Routine {
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) oid: i64,
    /// Changes when the function is replaced.
    mark: String,
}

/// The entry of a function in the ledger.
struct LedgerEntry {
    arguments: String,
    hash: String,
    by: String,
}

/// A transaction that looks at a schema.
pub(crate) struct SchemaLook<'a> {
    pub(crate) transaction: &'a Transaction<'a>,
    pub(crate) schema: &'a str,
    pub(crate) quoted: &'a str,
    pub(crate) build: &'a Build,
}

impl SchemaLook<'_> {
    /// Refuses a server that cannot be used.
    pub(crate) async fn check_server(&self) -> Result<(), OpenError> {
        let rows = self.rows("look at the server", sql!("schema/server"), params![]).await?;
        let Some(row) = rows.first() else { return Ok(()) };
        let database: String = self.get(row, "database")?;
        let refuse = |why: String| Err(OpenError::Server { why });
        if self.get(row, "is_standby")? {
            return refuse(format!(
                "it is a standby, on which database '{database}' can only be read; connect to the primary \
                 (with several hosts in the URL, add target_session_attrs=read-write)"
            ));
        }
        if self.get(row, "is_read_only")? {
            return refuse(format!(
                "default_transaction_read_only is on for database '{database}' and this role; turn it off \
                 for them"
            ));
        }
        let encoding: String = self.get(row, "encoding")?;
        if encoding != "UTF8" {
            return refuse(format!(
                "database '{database}' is encoded as {encoding}, which cannot hold every text; make one \
                 with ENCODING 'UTF8'"
            ));
        }
        let isolation: String = self.get(row, "isolation")?;
        if isolation != "read committed" {
            return refuse(format!(
                "default_transaction_isolation is '{isolation}' for database '{database}' and this role; \
                 set it to 'read committed' for them: what others commit while a call waits for them must \
                 be seen"
            ));
        }
        if self.get::<i32>(row, "version")? < OLDEST_SERVER {
            let version: String = self.get(row, "version_text")?;
            return refuse(format!(
                "it is PostgreSQL {version}, and 13 or newer is needed; update the server"
            ));
        }
        Ok(())
    }

    /// Returns the changes that bring the schema to the form of the build, and the functions in the schema
    /// that have the name of a function of the build.
    pub(crate) async fn pending(&self) -> Result<(PendingMigrations, Vec<Routine>), OpenError> {
        let exists = self.exists().await?;
        let (has_ledger, relations) = if exists { self.relations().await? } else { (false, Vec::new()) };
        if let (false, Some(found)) = (has_ledger, relations.first()) {
            return Err(self.foreign(format!("table '{found}'")));
        }
        let routines = if exists { self.routines(&self.build.functions()).await? } else { Vec::new() };
        let mut setup = Vec::new();
        if !exists {
            setup.push(self.text(sql!("schema/create")));
        }
        if !has_ledger {
            setup.push(self.text(sql!("schema/ledger")));
        }
        let pending = PendingMigrations {
            schema: self.schema.to_owned(),
            setup,
            migrations: self.migrations(has_ledger).await?,
            functions: self.functions(has_ledger, &routines).await?,
        };
        self.check_rights(&pending, exists).await?;
        Ok((pending, routines))
    }

    /// Tells whether the schema exists; refuses one that the role may not use.
    async fn exists(&self) -> Result<bool, OpenError> {
        let rows = self.rows("look for the schema", sql!("schema/exists"), params![self.schema]).await?;
        let Some(row) = rows.first() else { return Ok(false) };
        if self.get(row, "may_use")? {
            return Ok(true);
        }
        let role = self.role().await?;
        let why = format!("role '{role}' may not use it; grant it USAGE on the schema");
        Err(OpenError::Refused { schema: self.schema.to_owned(), why })
    }

    /// Refuses changes that the role may not make, before anything is tried, and a role that may not use what
    /// is there.
    async fn check_rights(&self, pending: &PendingMigrations, exists: bool) -> Result<(), OpenError> {
        if pending.is_empty() {
            return self.check_use().await;
        }
        let (question, params): (_, &[Param<'_>]) = if exists {
            (sql!("schema/exists"), params![self.schema])
        } else {
            (sql!("schema/server"), params![])
        };
        let rows = self.rows("look at the rights", question, params).await?;
        let may_create = rows.first().map_or(Ok(true), |row| self.get(row, "may_create"))?;
        if may_create {
            return Ok(());
        }
        let role = self.role().await?;
        let why = if exists {
            format!(
                "role '{role}' may not create tables and functions in it; grant it CREATE on the schema, or \
                 let a role that may open it once"
            )
        } else {
            format!(
                "it does not exist and role '{role}' may not create schemas; create it for the role, or \
                 grant it CREATE on the database"
            )
        };
        Err(OpenError::Refused { schema: self.schema.to_owned(), why })
    }

    /// Refuses a role that cannot read and write the tables, draw numbers and call the functions.
    async fn check_use(&self) -> Result<(), OpenError> {
        let (relations, functions) = (self.build.relations(), self.build.functions());
        let params = params![self.schema, relations, functions];
        let rows = self.rows("look at the rights", sql!("schema/rights/lacking"), params).await?;
        let lacking = rows.iter().map(|row| self.get(row, "what")).collect::<Result<Vec<String>, _>>()?;
        if lacking.is_empty() {
            return Ok(());
        }
        let role = self.role().await?;
        let why = format!(
            "role '{role}' lacks {}; grant it SELECT, INSERT, UPDATE and DELETE on all tables, USAGE on all \
             sequences and EXECUTE on all functions of the schema",
            lacking.join(", ")
        );
        Err(OpenError::Refused { schema: self.schema.to_owned(), why })
    }

    async fn role(&self) -> Result<String, OpenError> {
        let rows = self.rows("look at the role", sql!("schema/server"), params![]).await?;
        rows.first().map_or(Ok(String::new()), |row| self.get(row, "role"))
    }

    /// Tells whether the schema has a ledger, and lists its tables, views and sequences whose names the build
    /// or the ledger uses.
    async fn relations(&self) -> Result<(bool, Vec<String>), OpenError> {
        let mut names = self.build.relations();
        names.extend(["steadfast_migrations", "steadfast_functions"]);
        let rows =
            self.rows("look at the tables", sql!("schema/relations"), params![self.schema, names]).await?;
        let found = rows.iter().map(|row| self.get(row, "name")).collect::<Result<Vec<String>, _>>()?;
        Ok((found.iter().any(|name| name == "steadfast_migrations"), found))
    }

    pub(crate) async fn routines(&self, names: &[&str]) -> Result<Vec<Routine>, OpenError> {
        let names = names.to_vec();
        let rows =
            self.rows("look at the functions", sql!("schema/routines"), params![self.schema, names]).await?;
        let read = |row: &Row| {
            Ok(Routine {
                name: self.get(row, "name")?,
                arguments: self.get(row, "arguments")?,
                oid: self.get(row, "oid")?,
                mark: self.get(row, "mark")?,
            })
        };
        rows.iter().map(read).collect()
    }

    async fn migrations(&self, has_ledger: bool) -> Result<Vec<PendingMigration>, OpenError> {
        let known = self.build.migrations.len() as i64;
        let mut applied: HashMap<i64, String> = HashMap::new();
        if has_ledger {
            for row in self.rows("read the ledger", sql!("schema/migrations"), params![]).await? {
                applied.insert(self.get(&row, "version")?, self.get(&row, "hash")?);
            }
        }
        if let Some(found) = applied.keys().copied().filter(|version| *version > known).max() {
            return Err(OpenError::TooNew { schema: self.schema.to_owned(), found, known });
        }
        let mut pending = Vec::new();
        for (version, text) in (1..).zip(&self.build.migrations) {
            let hash = hash(text);
            match applied.get(&version) {
                Some(applied) if *applied == hash => {}
                Some(_) => return Err(OpenError::Changed { schema: self.schema.to_owned(), version }),
                None => pending.push(PendingMigration { version, sql: self.text(text), hash }),
            }
        }
        Ok(pending)
    }

    async fn functions(
        &self,
        has_ledger: bool,
        routines: &[Routine],
    ) -> Result<Vec<PendingFunction>, OpenError> {
        let mut made: HashMap<String, LedgerEntry> = HashMap::new();
        if has_ledger {
            for row in self.rows("read the ledger", sql!("schema/functions"), params![]).await? {
                let entry = LedgerEntry {
                    arguments: self.get(&row, "arguments")?,
                    hash: self.get(&row, "hash")?,
                    by: self.get(&row, "made_by")?,
                };
                made.insert(self.get(&row, "name")?, entry);
            }
        }
        let there: HashSet<(&str, &str)> =
            routines.iter().map(|routine| (routine.name.as_str(), routine.arguments.as_str())).collect();
        let mut pending = Vec::new();
        for function in &self.build.functions {
            let (name, text) = (function.short(), function.sql());
            let hash = hash(&text);
            let change = match made.get(name) {
                Some(made) if there.contains(&(name, made.arguments.as_str())) => {
                    if made.hash == hash || self.is_newer(&made.by) {
                        continue;
                    }
                    FunctionChange::Replaced
                }
                _ => FunctionChange::New,
            };
            pending.push(PendingFunction {
                name: name.to_owned(),
                change,
                sql: self.text(&text),
                hash,
                former: made.remove(name).map(|made| made.arguments),
            });
        }
        Ok(pending)
    }

    /// Tells whether a newer version made a function. A worker of the previous version that restarts during
    /// an upgrade does not replace it.
    fn is_newer(&self, version: &str) -> bool {
        Version::parse(version).is_ok_and(|version| version > self.build.version)
    }

    pub(crate) fn foreign(&self, found: String) -> OpenError {
        OpenError::Foreign { schema: self.schema.to_owned(), found }
    }

    fn text(&self, sql: &str) -> String {
        in_schema(&sql.replace("{channel}", &literal(&channel(self.schema))), self.quoted)
    }

    pub(crate) async fn rows(
        &self,
        step: &str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, OpenError> {
        rows(self.transaction, self.schema, step, &self.text(sql), params).await
    }

    fn get<'r, T: tokio_postgres::types::FromSql<'r>>(
        &self,
        row: &'r Row,
        name: &str,
    ) -> Result<T, OpenError> {
        row.try_get(name).map_err(|error| failed(self.schema, &format!("read {name}"), &error))
    }
}

pub(crate) async fn rows(
    transaction: &Transaction<'_>,
    schema: &str,
    step: &str,
    text: &str,
    params: &[Param<'_>],
) -> Result<Vec<Row>, OpenError> {
    transaction.query_typed(text, &typed(params)).await.map_err(|error| failed(schema, step, &error))
}

pub(crate) async fn batch(
    transaction: &Transaction<'_>,
    schema: &str,
    step: &str,
    text: &str,
) -> Result<(), OpenError> {
    transaction.batch_execute(text).await.map_err(|error| failed(schema, step, &error))
}

/// Returns the channel for the notifications of a schema.
pub(crate) fn channel(schema: &str) -> String {
    format!("steadfast_{}", &hash(schema)[..32])
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

pub(crate) fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes the error of a step that failed, with what to do.
pub(crate) fn failed(schema: &str, step: &str, error: &tokio_postgres::Error) -> OpenError {
    let schema = schema.to_owned();
    let Some(db) = error.as_db_error() else {
        let why = format!("{}; the connection is lost, try again", chain(error));
        return OpenError::Migration { schema, step: step.to_owned(), why };
    };
    let said = format!("{} (SQLSTATE {})", db.message(), db.code().code());
    match db.code().code() {
        "42501" => OpenError::Refused {
            schema,
            why: format!("{said}; grant the role what it needs there, or open it with the role that owns it"),
        },
        "25006" => OpenError::Server { why: format!("{said}; it only reads: connect to the primary") },
        "57014" | "55P03" => OpenError::Migration {
            schema,
            step: step.to_owned(),
            why: format!("{said}; end what holds locks there, or raise migration_timeout"),
        },
        _ => OpenError::Migration { schema, step: step.to_owned(), why: said },
    }
}
