//! The one connection of a process that listens.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};
use steadfast_store::Waiters;
use tokio::task::AbortHandle;
use tokio_postgres::{AsyncMessage, Client, Connection, Socket};

use crate::link::connect::{Connector, Stream};
use crate::link::db::{Db, millis, sql};
use crate::link::error::chain;
use crate::link::statement::params;
use crate::schema::migrate::channel;
use crate::verbs::notify::{LISTENS_FOR, hear};

/// Waits so long before the first new try to connect, and at most so long before a later one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Longer than a transaction of a store takes.
const UNDER_WAY: Duration = Duration::from_secs(1);

/// Listens until it is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    task: AbortHandle,
}

impl Listener {
    pub(crate) fn spawn(
        connector: Connector,
        schema: &str,
        me: Arc<str>,
        db: Db,
        waiters: Arc<Waiters>,
    ) -> Self {
        let ear = Ear { connector, channel: channel(schema), me, db, waiters };
        Self { task: tokio::spawn(ear.listen()).abort_handle() }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Ear {
    connector: Connector,
    channel: String,
    me: Arc<str>,
    db: Db,
    waiters: Arc<Waiters>,
}

impl Ear {
    async fn listen(self) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.connector.open().await {
                Ok((client, connection)) => {
                    let begun = SystemClock.monotonic();
                    let error = self.hear_all(client, connection).await;
                    if SystemClock.monotonic() - begun >= LISTENS_FOR {
                        pause = FIRST_PAUSE;
                    }
                    tracing::debug!(target: "steadfast::store", error, "the listening connection ended; others are noticed by looking");
                }
                Err(error) => {
                    tracing::debug!(target: "steadfast::store", error = chain(&error), "cannot listen; others are noticed by looking");
                }
            }
            SystemClock.sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Hears until the connection ends, and says why it did.
    async fn hear_all(&self, client: Client, mut connection: Connection<Socket, Stream>) -> String {
        let commands = async {
            match self.subscribe(&client).await {
                Ok(never) => match never {},
                Err(why) => why,
            }
        };
        let messages = async {
            loop {
                match poll_fn(|context| connection.poll_message(context)).await {
                    Some(Ok(AsyncMessage::Notification(heard))) => {
                        hear(&self.me, heard.payload(), &self.waiters);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return chain(&error),
                    None => return "the server closed the connection".to_owned(),
                }
            }
        };
        tokio::select! {
            why = messages => why,
            why = commands => why,
        }
    }

    /// Listens, and says from time to time that it does.
    async fn subscribe(&self, client: &Client) -> Result<std::convert::Infallible, String> {
        // The channel is made of letters, digits and underscores.
        let listen = sql!("wake/subscribe").replace("{channel}", &self.channel);
        client.batch_execute(&listen).await.map_err(|error| chain(&error))?;
        self.register().await?;
        // Who commits without knowing that somebody listens tells nobody: what was committed before is found by looking, and what
        // was under way a little later.
        self.waiters.wake_all();
        SystemClock.sleep(UNDER_WAY).await;
        self.waiters.wake_all();
        loop {
            SystemClock.sleep(LISTENS_FOR / 3).await;
            self.register().await?;
        }
    }

    async fn register(&self) -> Result<(), String> {
        let said = params![&*self.me, millis(LISTENS_FOR)];
        self.db.rows("listen", sql!("wake/listen"), said).await.map(drop).map_err(|error| error.to_string())
    }
}
