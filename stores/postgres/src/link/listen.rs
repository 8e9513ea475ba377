//! The one connection of a process that listens for notifications.

use std::future::poll_fn;
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};
use tokio::task::AbortHandle;
use tokio_postgres::{AsyncMessage, Client, Connection, Socket};

use crate::link::connect::{Connector, ServerStream};
use crate::link::db::millis;
use crate::link::error::chain;
use crate::link::statement::{Statement, params, sql};
use crate::schema::look::channel;
use crate::verbs::backend::Backend;
use crate::verbs::notify::{LISTENS_FOR, hear};

/// The first pause before a new try to connect. Each failure in a row doubles it, up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long after its registration a new listener wakes all waiters once more: longer than a transaction of a
/// store usually takes.
const UNDER_WAY: Duration = Duration::from_secs(1);

/// The task that listens for notifications of other processes. Dropping this stops it.
#[derive(Debug)]
pub(crate) struct Listener {
    task: AbortHandle,
}

impl Listener {
    pub(crate) fn spawn(connector: Connector, schema: &str, backend: Backend) -> Self {
        let listening = Listening { connector, channel: channel(schema), backend };
        Self { task: tokio::spawn(listening.listen()).abort_handle() }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The state of the listening task.
struct Listening {
    connector: Connector,
    channel: String,
    backend: Backend,
}

impl Listening {
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
                    tracing::debug!(
                        target: "steadfast::store",
                        error,
                        "the listening connection ended; others are noticed by looking"
                    );
                }
                Err(error) => {
                    tracing::debug!(
                        target: "steadfast::store",
                        error = chain(&error),
                        "cannot listen; others are noticed by looking"
                    );
                }
            }
            SystemClock.sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Passes notifications on until the connection ends, and returns why it ended.
    async fn hear_all(&self, client: Client, mut connection: Connection<Socket, ServerStream>) -> String {
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
                        hear(&self.backend.me, heard.payload(), &self.backend.waiters);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return chain(&error),
                    None => return "the server closed the connection".to_owned(),
                }
            }
        };
        tokio::select! {
            biased;
            why = messages => why,
            why = commands => why,
        }
    }

    /// Subscribes the connection to the channel, and registers this process as a listener, again after each
    /// third of `LISTENS_FOR`. Returns only with an error.
    async fn subscribe(&self, client: &Client) -> Result<std::convert::Infallible, String> {
        // The channel is made of letters, digits and underscores.
        let listen = sql!("wake/subscribe").replace("{channel}", &self.channel);
        client.batch_execute(&listen).await.map_err(|error| chain(&error))?;
        self.register().await?;
        // A transaction that did not see the registration sends no notification. The waiters poll now to find
        // rows that such transactions have committed, and a little later to find those of transactions that
        // were still under way.
        self.backend.waiters.wake_all();
        SystemClock.sleep(UNDER_WAY).await;
        self.backend.waiters.wake_all();
        loop {
            SystemClock.sleep(LISTENS_FOR / 3).await;
            self.register().await?;
        }
    }

    async fn register(&self) -> Result<(), String> {
        let (me, lasts) = (&*self.backend.me, millis(LISTENS_FOR));
        let statement = Statement::of(sql!("wake/listen"), params![me, lasts]);
        self.backend.db.rows("listen", statement).await.map(drop).map_err(|error| error.to_string())
    }
}
