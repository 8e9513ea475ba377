//! The form of this build: its migrations, its functions and its version.

use semver::Version;

use crate::link::statement::sql;
use crate::schema::functions::{FUNCTIONS, Function};

/// The migrations of this build, in order; the first is version 1.
const MIGRATIONS: &[&str] = &[
    sql!("migrations/0001_tables"),
    sql!("migrations/0002_order"),
    sql!("migrations/0003_workers"),
    sql!("migrations/0004_set_aside"),
    sql!("migrations/0005_session_trail"),
    sql!("migrations/0006_closed_sessions"),
    sql!("migrations/0007_watchers"),
    sql!("migrations/0008_released_claims"),
    sql!("migrations/0009_starts"),
    sql!("migrations/0010_replaced_claims"),
    sql!("migrations/0011_tries"),
];

/// The form that a schema is to have.
pub(crate) struct Build {
    pub(crate) migrations: Vec<&'static str>,
    pub(crate) functions: Vec<&'static Function>,
    pub(crate) version: Version,
}

impl Build {
    /// Returns the form of this build.
    pub(crate) fn this() -> Self {
        Self {
            migrations: MIGRATIONS.to_vec(),
            functions: FUNCTIONS.iter().flat_map(|area| area.iter()).collect(),
            version: Version::parse(env!("CARGO_PKG_VERSION")).unwrap_or(Version::new(0, 0, 0)),
        }
    }

    /// Returns the names of the tables, sequences and views that the migrations create.
    pub(crate) fn relations(&self) -> Vec<&'static str> {
        let words: Vec<&str> = self.migrations.iter().flat_map(|text| text.split_whitespace()).collect();
        words
            .windows(2)
            .filter(|pair| matches!(pair[0], "TABLE" | "SEQUENCE" | "VIEW"))
            .filter_map(|pair| pair[1].strip_prefix("{schema}."))
            .map(|name| name.trim_end_matches([';', '(']))
            .collect()
    }

    /// Returns the names of its functions in the database.
    pub(crate) fn functions(&self) -> Vec<&'static str> {
        self.functions.iter().map(|function| function.short()).collect()
    }
}
