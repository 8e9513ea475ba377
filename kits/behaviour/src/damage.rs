//! Damage as by a fault of the disk: rows are overwritten past the store.

use steadfast::Event;
use steadfast_memory::Damage;
use tokio_postgres::NoTls;

use crate::Stage;

impl Stage {
    /// Overwrites rows with a text, and returns how many there were.
    pub async fn damage(&self, what: Damage<'_>, text: &str) -> usize {
        match (self.memory(), self.schema()) {
            (Some(memory), _) => memory.damage(what, text),
            (None, Some((url, schema))) => in_schema(url, schema, what, text).await,
            (None, None) => in_file(&self.file(), what, text),
        }
    }

    /// Reads the events of the first execution that can be read, past the store, which reads all or none;
    /// `None` in memory, where there is no way past it.
    pub async fn readable_events(&self, instance: &str) -> Option<Vec<Event>> {
        let texts = match (self.memory(), self.schema()) {
            (Some(_), _) => return None,
            (None, Some((url, schema))) => {
                let sql = format!(
                    "SELECT event_data FROM \"{schema}\".history
                     WHERE instance_id = $1 AND execution_id = 1 ORDER BY event_id"
                );
                let rows = connect(url).await.query(&sql, &[&instance]).await.expect("reads");
                rows.iter().map(|row| row.get(0)).collect()
            }
            (None, None) => {
                let file = rusqlite::Connection::open(self.file()).expect("the file opens");
                let of = "key = (SELECT key FROM instances WHERE instance = ?1) AND execution = 1";
                let sql = format!("SELECT event FROM history WHERE {of} ORDER BY event_id");
                let mut rows = file.prepare(&sql).expect("prepares");
                let texts = rows.query_map([instance], |row| row.get::<_, String>(0)).expect("reads");
                texts.collect::<Result<Vec<_>, _>>().expect("are texts")
            }
        };
        Some(texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect())
    }
}

async fn in_schema(url: &str, schema: &str, what: Damage<'_>, text: &str) -> usize {
    let client = connect(url).await;
    let changed = match what {
        Damage::Work { instance } => {
            let sql = format!("UPDATE \"{schema}\".worker_queue SET work_item = $1 WHERE instance_id = $2");
            client.execute(&sql, &[&text, &instance]).await
        }
        Damage::Messages { instance } => {
            let sql =
                format!("UPDATE \"{schema}\".orchestrator_queue SET work_item = $1 WHERE instance_id = $2");
            client.execute(&sql, &[&text, &instance]).await
        }
        Damage::Event { instance, execution_id, event_id } => {
            let sql = format!(
                "UPDATE \"{schema}\".history SET event_data = $1
                 WHERE instance_id = $2 AND execution_id = $3 AND event_id = $4"
            );
            let (execution_id, event_id) = (execution_id as i64, event_id as i64);
            client.execute(&sql, &[&text, &instance, &execution_id, &event_id]).await
        }
    };
    usize::try_from(changed.expect("overwrites")).unwrap_or(usize::MAX)
}

fn in_file(file: &std::path::Path, what: Damage<'_>, text: &str) -> usize {
    let file = rusqlite::Connection::open(file).expect("the file opens");
    let of = "key = (SELECT key FROM instances WHERE instance = ?2)";
    let changed = match what {
        Damage::Work { instance } => {
            file.execute(&format!("UPDATE work SET item = ?1 WHERE {of}"), [text, instance])
        }
        Damage::Messages { instance } => {
            file.execute(&format!("UPDATE messages SET item = ?1 WHERE {of}"), [text, instance])
        }
        Damage::Event { instance, execution_id, event_id } => file.execute(
            &format!("UPDATE history SET event = ?1 WHERE {of} AND execution = ?3 AND event_id = ?4"),
            rusqlite::params![text, instance, execution_id as i64, event_id as i64],
        ),
    };
    changed.expect("overwrites")
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server answers");
    tokio::spawn(connection);
    client
}
