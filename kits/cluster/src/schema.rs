//! A schema for one test.

use crate::{name, sql};

/// A unique schema name. The schema is dropped with the value, with all that is in it.
#[derive(Debug)]
pub struct Schema {
    url: String,
    name: String,
}

impl Schema {
    pub(crate) fn new(url: &str, hint: &str) -> Self {
        Self { url: url.to_owned(), name: name::unique(hint) }
    }

    /// Returns the name. The caller creates the schema.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Schema {
    #[expect(clippy::print_stderr, reason = "a drop has no other way to tell the test")]
    fn drop(&mut self) {
        let statements = [
            sql::with_name(include_str!("../sql/end_users_of_schema.sql"), &self.name),
            sql::with_name(include_str!("../sql/drop_schema.sql"), &self.name),
        ];
        if let Err(error) = sql::run(&self.url, &format!("drop schema {}", self.name), &statements) {
            eprintln!("{error}");
        }
    }
}
