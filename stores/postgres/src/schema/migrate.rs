//! Migrations: forward only, known by their hashes, one process at a time (F10). Functions are made anew when their file
//! has changed.
//!
//! First a look, which changes nothing, says what is to be done; then it is done, all or nothing. While a function is replaced,
//! others go on calling it: one with the same parameters keeps its place, and one with more parameters takes the place of the
//! older form in the same transaction, so that calls with fewer arguments find it.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use semver::Version;
use sha2::{Digest, Sha256};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, IsolationLevel, Row, Transaction};

use crate::link::db::{Function, in_schema, millis, sql};
use crate::link::error::chain;
use crate::link::open::{OpenError, quoted};
use crate::link::statement::{Param, params};
use crate::schema::migrations_pending::{
    FunctionChange, PendingFunction, PendingMigration, PendingMigrations,
};

/// The migrations of this build, in order; the first is version 1.
const MIGRATIONS: &[&str] = &[sql!("migrations/0001_tables")];

/// The functions of this build, by area.
const FUNCTIONS: &[&[Function]] = &[
    crate::verbs::notify::FUNCTIONS,
    crate::schema::floor::FUNCTIONS,
    crate::verbs::turn::FUNCTIONS,
    crate::verbs::message::FUNCTIONS,
    crate::verbs::history::FUNCTIONS,
    crate::verbs::kv::FUNCTIONS,
    crate::verbs::instance::FUNCTIONS,
    crate::verbs::work::FUNCTIONS,
    crate::verbs::session::FUNCTIONS,
    crate::verbs::inspect::FUNCTIONS,
    crate::verbs::set_aside::FUNCTIONS,
    crate::verbs::admin::FUNCTIONS,
    crate::schema::compat::FUNCTIONS,
];

/// The oldest server whose SQL we speak.
const OLDEST_SERVER: i32 = 130_000;

/// The form that a schema is brought to.
pub(crate) struct Build {
    pub(crate) migrations: Vec<&'static str>,
    pub(crate) functions: Vec<&'static Function>,
    pub(crate) version: Version,
}

impl Build {
    /// The form of this build.
    pub(crate) fn this() -> Self {
        Self {
            migrations: MIGRATIONS.to_vec(),
            functions: FUNCTIONS.iter().flat_map(|area| area.iter()).collect(),
            version: Version::parse(env!("CARGO_PKG_VERSION")).unwrap_or(Version::new(0, 0, 0)),
        }
    }

    /// The names of tables and sequences that the migrations make.
    fn relations(&self) -> Vec<&'static str> {
        let words: Vec<&str> = self.migrations.iter().flat_map(|text| text.split_whitespace()).collect();
        words
            .windows(2)
            .filter(|pair| matches!(pair[0], "TABLE" | "SEQUENCE" | "VIEW"))
            .filter_map(|pair| pair[1].strip_prefix("{schema}."))
            .map(|name| name.trim_end_matches([';', '(']))
            .collect()
    }

    pub(crate) fn functions(&self) -> Vec<&'static str> {
        self.functions.iter().map(|function| short(function)).collect()
    }
}

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
        let look = Look { transaction: &transaction, schema, quoted: &quoted, build };
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

/// Says what [`migrate`] would do; changes nothing.
pub(crate) async fn pending(
    client: &mut Client,
    schema: &str,
    build: &Build,
) -> Result<PendingMigrations, OpenError> {
    let quoted = quoted(schema)?;
    let began = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    let transaction = began.start().await.map_err(|error| failed(schema, "begin", &error))?;
    let look = Look { transaction: &transaction, schema, quoted: &quoted, build };
    look.check_server().await?;
    let (pending, _) = look.pending().await?;
    Ok(pending)
}

/// One form of a function that is there, and a mark that changes when it is made anew.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Routine {
    name: String,
    arguments: String,
    oid: i64,
    mark: String,
}

/// What the ledger says about a function.
struct Made {
    arguments: String,
    hash: String,
    by: String,
}

/// A look at a schema.
struct Look<'a> {
    transaction: &'a Transaction<'a>,
    schema: &'a str,
    quoted: &'a str,
    build: &'a Build,
}

impl Look<'_> {
    /// Refuses a server that cannot be used.
    async fn check_server(&self) -> Result<(), OpenError> {
        let rows = self.rows("look at the server", sql!("schema/server"), params![]).await?;
        let Some(row) = rows.first() else { return Ok(()) };
        let database: String = self.get(row, "database")?;
        let refuse = |why: String| Err(OpenError::Server { why });
        if self.get(row, "is_standby")? {
            return refuse(format!(
                "it is a standby, on which database '{database}' can only be read; connect to the primary (with several \
                 hosts in the URL, add target_session_attrs=read-write)"
            ));
        }
        if self.get(row, "is_read_only")? {
            return refuse(format!(
                "default_transaction_read_only is on for database '{database}' and this role; turn it off for them"
            ));
        }
        let encoding: String = self.get(row, "encoding")?;
        if encoding != "UTF8" {
            return refuse(format!(
                "database '{database}' is encoded as {encoding}, which cannot hold every text; make one with ENCODING 'UTF8'"
            ));
        }
        let isolation: String = self.get(row, "isolation")?;
        if isolation != "read committed" {
            return refuse(format!(
                "default_transaction_isolation is '{isolation}' for database '{database}' and this role; set it to \
                 'read committed' for them: what others commit while a call waits for them must be seen"
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

    /// Says what is to be done, and which functions of our names are there.
    async fn pending(&self) -> Result<(PendingMigrations, Vec<Routine>), OpenError> {
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

    /// Tells whether the schema is there; refuses one that may not be used.
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

    /// Refuses before anything is tried what the role may not do.
    async fn check_rights(&self, pending: &PendingMigrations, exists: bool) -> Result<(), OpenError> {
        if pending.is_empty() {
            return Ok(());
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
                "role '{role}' may not create tables and functions in it; grant it CREATE on the schema, or let a role \
                 that may open it once"
            )
        } else {
            format!(
                "it does not exist and role '{role}' may not create schemas; create it for the role, or grant it CREATE \
                 on the database"
            )
        };
        Err(OpenError::Refused { schema: self.schema.to_owned(), why })
    }

    async fn role(&self) -> Result<String, OpenError> {
        let rows = self.rows("look at the role", sql!("schema/server"), params![]).await?;
        rows.first().map_or(Ok(String::new()), |row| self.get(row, "role"))
    }

    /// Tells whether there is a ledger, and which tables have our names.
    async fn relations(&self) -> Result<(bool, Vec<String>), OpenError> {
        let mut names = self.build.relations();
        names.extend(["steadfast_migrations", "steadfast_functions"]);
        let rows =
            self.rows("look at the tables", sql!("schema/relations"), params![self.schema, names]).await?;
        let found = rows.iter().map(|row| self.get(row, "name")).collect::<Result<Vec<String>, _>>()?;
        Ok((found.iter().any(|name| name == "steadfast_migrations"), found))
    }

    async fn routines(&self, names: &[&str]) -> Result<Vec<Routine>, OpenError> {
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
        let mut made: HashMap<String, Made> = HashMap::new();
        if has_ledger {
            for row in self.rows("read the ledger", sql!("schema/functions"), params![]).await? {
                let entry = Made {
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
            let (name, hash) = (short(function), hash(function.text));
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
                sql: self.text(function.text),
                hash,
                former: made.remove(name).map(|made| made.arguments),
            });
        }
        Ok(pending)
    }

    /// A worker of the previous version that starts again during an upgrade leaves alone what the next version made.
    fn is_newer(&self, version: &str) -> bool {
        Version::parse(version).is_ok_and(|version| version > self.build.version)
    }

    fn foreign(&self, found: String) -> OpenError {
        OpenError::Foreign { schema: self.schema.to_owned(), found }
    }

    fn text(&self, sql: &str) -> String {
        in_schema(&sql.replace("{channel}", &literal(&channel(self.schema))), self.quoted)
    }

    async fn rows(&self, step: &str, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, OpenError> {
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

/// Does what is to be done.
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
    let made = made(&Look { transaction, schema, quoted, build }, pending, before).await?;
    let names: Vec<&str> = made.iter().map(|(function, _)| function.name.as_str()).collect();
    let arguments: Vec<&str> = made.iter().map(|(_, arguments)| arguments.as_str()).collect();
    let hashes: Vec<&str> = made.iter().map(|(function, _)| function.hash.as_str()).collect();
    let note = in_schema(sql!("schema/made"), quoted);
    rows(transaction, schema, "writing the ledger", &note, params![names, arguments, hashes, by]).await?;
    Ok(())
}

/// Makes a function anew: in its place if it can be, else in place of its older form.
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
            // What it returns has changed, or a parameter its name.
            Err(error) if error.code() == Some(&SqlState::INVALID_FUNCTION_DEFINITION) => {
                tried.rollback().await.map(|()| false)
            }
            Err(error) => Err(error),
        }
    };
    let in_place = in_place.map_err(|error| failed(schema, &step(function), &error))?;
    let now = Look { transaction, schema, quoted, build }.routines(&[function.name.as_str()]).await?;
    // Forms that somebody else added beside ours stay.
    let is_former = |routine: &&Routine| Some(&routine.arguments) == function.former.as_ref();
    for former in now.iter().filter(|routine| before.contains(routine)).filter(is_former) {
        let drop = sql!("schema/drop").replace("{oid}", &former.oid.to_string());
        batch(transaction, schema, &step(function), &drop).await?;
    }
    if in_place { Ok(()) } else { batch(transaction, schema, &step(function), &function.sql).await }
}

/// Returns the functions that were made, with their parameters.
async fn made<'p>(
    look: &Look<'_>,
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
        // One that takes the place of a function that was not ours was never wanted.
        let is_taken = before.iter().any(|former| former.oid == routine.oid);
        if function.change == FunctionChange::New && is_taken {
            return Err(look.foreign(format!("function '{}'", function.name)));
        }
        Ok((function, routine.arguments.clone()))
    };
    pending.functions.iter().map(find).collect()
}

/// Says why a new function could not be made: one of somebody else may be in its place.
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

async fn rows(
    transaction: &Transaction<'_>,
    schema: &str,
    step: &str,
    text: &str,
    params: &[Param<'_>],
) -> Result<Vec<Row>, OpenError> {
    transaction
        .query_typed(text, &crate::link::statement::typed(params))
        .await
        .map_err(|error| failed(schema, step, &error))
}

async fn batch(transaction: &Transaction<'_>, schema: &str, step: &str, text: &str) -> Result<(), OpenError> {
    transaction.batch_execute(text).await.map_err(|error| failed(schema, step, &error))
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

/// Says what kept a step from being done, and what to do.
fn failed(schema: &str, step: &str, error: &tokio_postgres::Error) -> OpenError {
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
