//! A mutant whose statement is no SQL would be caught for a wrong reason.

use rusqlite::Connection;
use steadfast_broken_sqlite::{SqliteProvider, changed_statements};

#[tokio::test]
#[allow(clippy::expect_used, clippy::panic, reason = "what fails is the test")]
async fn every_changed_statement_can_be_prepared() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("store.db");
    let store = SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.expect("a store");
    drop(store);
    let database = Connection::open(&path).expect("a database");
    for (mutant, text) in changed_statements() {
        if let Err(error) = database.prepare(text) {
            panic!("{mutant}: {error}");
        }
    }
}
