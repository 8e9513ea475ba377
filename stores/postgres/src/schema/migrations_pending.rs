//! What opening a schema would do to it.

use std::fmt;

/// Says what opening a schema with this build would do to it, in this order.
///
/// It displays as a script, for somebody who wants to read it first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingMigrations {
    /// Names the schema.
    pub schema: String,
    /// Holds what makes the schema and its ledger, as far as they are not there.
    pub setup: Vec<String>,
    /// Holds the migrations of tables, in order.
    pub migrations: Vec<PendingMigration>,
    /// Holds the functions that would be made, or made anew.
    pub functions: Vec<PendingFunction>,
}

/// Holds a migration that was not applied yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingMigration {
    /// Counts from 1.
    pub version: i64,
    /// Holds its text.
    pub sql: String,
    pub(crate) hash: String,
}

/// Holds a function that would be made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingFunction {
    /// Names it.
    pub name: String,
    /// Says whether there is an older form.
    pub change: FunctionChange,
    /// Holds its text.
    pub sql: String,
    pub(crate) hash: String,
    /// The parameters of its older form.
    pub(crate) former: Option<String>,
}

/// Says what happens to a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionChange {
    /// It is not there.
    New,
    /// Its older form is replaced, while others may go on calling it.
    Replaced,
}

impl PendingMigrations {
    /// Tells whether the schema is as this build wants it.
    pub fn is_empty(&self) -> bool {
        self.setup.is_empty() && self.migrations.is_empty() && self.functions.is_empty()
    }
}

impl fmt::Display for PendingMigrations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return writeln!(f, "-- schema {}: nothing to do", self.schema);
        }
        let (migrations, functions) = (self.migrations.len(), self.functions.len());
        writeln!(f, "-- schema {}: {migrations} migrations, {functions} functions", self.schema)?;
        for sql in &self.setup {
            writeln!(f, "\n{};", sql.trim_end())?;
        }
        for migration in &self.migrations {
            writeln!(f, "\n-- migration {}\n{}", migration.version, migration.sql.trim_end())?;
        }
        for function in &self.functions {
            let change = match function.change {
                FunctionChange::New => "new",
                FunctionChange::Replaced => "replaced",
            };
            writeln!(f, "\n-- function {} ({change})\n{};", function.name, function.sql.trim_end())?;
        }
        Ok(())
    }
}
