//! The changes that opening a schema would make.

use std::fmt;

/// The changes that opening a schema with this build would make, in this order.
///
/// It displays as an SQL script, so that it can be reviewed first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingMigrations {
    /// The name of the schema that would be changed.
    pub schema: String,
    /// The statements that create the schema and its ledger; empty if they exist.
    pub setup: Vec<String>,
    /// The migrations of tables, in order.
    pub migrations: Vec<PendingMigration>,
    /// The functions that would be created or replaced.
    pub functions: Vec<PendingFunction>,
}

/// A migration that was not applied yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingMigration {
    /// The number of the migration; the first is 1.
    pub version: i64,
    /// The statements, with the name of the schema.
    pub sql: String,
    pub(crate) hash: String,
}

/// A function that would be created or replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingFunction {
    /// The name of the function, without the schema.
    pub name: String,
    /// Whether the function is created or replaced.
    pub change: FunctionChange,
    /// The statements, with the name of the schema.
    pub sql: String,
    pub(crate) hash: String,
    /// The parameters of the function that this one replaces; `None` if it replaces none.
    pub(crate) former: Option<String>,
}

/// Whether a function is created or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionChange {
    /// It is created.
    New,
    /// It is replaced; other processes can go on calling it meanwhile.
    Replaced,
}

impl PendingMigrations {
    /// Tells whether the schema already has the form of this build.
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
