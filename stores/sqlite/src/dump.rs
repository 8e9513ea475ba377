//! A look at everything, for people who debug.

use crate::db::{Db, sql};
use crate::error::Done;
use crate::store::SqliteProvider;

impl SqliteProvider {
    /// Describes what the database holds, table by table, without payloads.
    pub async fn debug_dump(&self) -> String {
        match self.read("debug_dump", |db| db.dump()).await {
            Ok(text) => text,
            Err(error) => format!("the database cannot be read: {error}"),
        }
    }
}

impl Db<'_> {
    fn dump(&self) -> Done<String> {
        let mut text = String::new();
        for (title, statement) in [
            ("instances", sql!("admin/dump_instances")),
            ("executions", sql!("admin/dump_executions")),
            ("messages", sql!("admin/dump_messages")),
            ("work", sql!("admin/dump_work")),
            ("sessions", sql!("admin/dump_sessions")),
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
