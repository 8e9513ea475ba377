//! A dump of all rows, for debugging.

use crate::link::db::{Db, sql};
use crate::link::error::DbResult;
use crate::store::SqliteProvider;

impl SqliteProvider {
    /// Describes the rows of the database, table by table, without payloads. For debugging: the text has no
    /// fixed form.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn debug_dump(&self) -> String {
        match self.read("debug_dump", |db| db.dump()).await {
            Ok(text) => text,
            Err(error) => format!("the database cannot be read: {error}"),
        }
    }
}

impl Db<'_> {
    fn dump(&self) -> DbResult<String> {
        let mut text = String::new();
        for (title, statement) in [
            ("instances", sql!("admin/dump/instances")),
            ("executions", sql!("admin/dump/executions")),
            ("messages", sql!("admin/dump/messages")),
            ("work", sql!("admin/dump/work")),
            ("sessions", sql!("admin/dump/sessions")),
        ] {
            let rows = self.all(statement, [], |row| row.get::<_, String>(0))?;
            text.push_str(&format!("{title}: {}\n", rows.len()));
            for row in rows {
                text.push_str(&format!("  {row}\n"));
            }
        }
        Ok(text)
    }
}
