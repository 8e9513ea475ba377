//! A database for one test.

use crate::{ServerError, name, sql};

/// A database with a unique name, which is dropped with the value.
///
/// Use it for what schemas do not separate: permissions, missing databases, settings per database.
#[derive(Debug)]
pub struct Database {
    server: String,
    url: String,
    name: String,
}

impl Database {
    pub(crate) fn create(server: &str, hint: &str) -> Result<Self, ServerError> {
        let name = name::unique(hint);
        let create = sql::with_name(include_str!("../sql/create_database.sql"), &name);
        sql::run(server, &format!("create database {name}"), &[create])?;
        Ok(Self { server: server.to_owned(), url: with_database(server, &name), name })
    }

    /// Returns the name of the database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the address of the server with this database.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    #[expect(clippy::print_stderr, reason = "a drop has no other way to tell the test")]
    fn drop(&mut self) {
        let statement = sql::with_name(include_str!("../sql/drop_database.sql"), &self.name);
        if let Err(error) = sql::run(&self.server, &format!("drop database {}", self.name), &[statement]) {
            eprintln!("{error}");
        }
    }
}

/// Replaces the database in an address, which is a URL or a list of `key=value`.
fn with_database(server: &str, name: &str) -> String {
    let Some((scheme, rest)) = server.split_once("://") else {
        // The last of two equal keys counts.
        return format!("{server} dbname={name}");
    };
    let (address, query) = match rest.split_once('?') {
        Some((address, query)) => (address, format!("?{query}")),
        None => (rest, String::new()),
    };
    let host = address.split_once('/').map_or(address, |(host, _)| host);
    format!("{scheme}://{host}/{name}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_is_replaced_in_every_kind_of_address() {
        assert_eq!(with_database("postgres://me@host:1/old", "new"), "postgres://me@host:1/new");
        assert_eq!(with_database("postgres://me:a@host?x=/1", "new"), "postgres://me:a@host/new?x=/1");
        assert_eq!(with_database("host=h dbname=old", "new"), "host=h dbname=old dbname=new");
    }
}
