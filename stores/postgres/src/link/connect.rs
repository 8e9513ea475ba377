//! Connections: from a connection string to a pool.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Connect, Manager, ManagerConfig, Pool, QueueMode, RecyclingMethod, Runtime};
use steadfast_clock::SystemClock;
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Connection, Error, Socket};
use tracing::{debug, info};

use crate::link::backoff::ConnectBackoff;
use crate::link::encrypted::{Encrypted, MakeEncrypted};
use crate::link::error::chain;
use crate::link::open::OpenError;
use crate::link::options::PostgresPlan;
use crate::link::statement::sql;
use crate::link::tls;
use crate::link::url::Address;

/// The encrypted stream of a connection.
pub(crate) type ServerStream = Encrypted<Socket>;

/// Makes connections to one server.
#[derive(Clone)]
pub(crate) struct Connector {
    inner: Arc<ConnectorInner>,
}

struct ConnectorInner {
    config: Config,
    /// `config` with the server's own limits, which a pooler does not accept.
    limited: Config,
    tls: MakeEncrypted,
    /// The server, database and user, for messages.
    server: String,
    is_pooled: AtomicBool,
    backoff: ConnectBackoff,
}

/// TCP keep-alive, by which a server that vanished is noticed in half a minute. A connection is probed after
/// this time without traffic, then every `KEEPALIVE_INTERVAL`, and is given up after `KEEPALIVE_RETRIES`
/// probes, or when sent bytes stay unconfirmed for `UNCONFIRMED`.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
const UNCONFIRMED: Duration = Duration::from_secs(30);

/// How long a statement waits for a lock. A transaction of the store holds its locks for a moment, one of an
/// application for as long as it stays open. So the statement fails, and the request is repeated later: it
/// blocks neither merged requests nor a connection meanwhile.
const LOCK_LIMIT_MS: u32 = 500;

/// How long a cancellation may take before it is given up.
const CANCEL_LIMIT: Duration = Duration::from_secs(10);

impl Connector {
    /// Reads a connection string; no connection is made yet.
    pub(crate) fn new(url: &str, plan: &PostgresPlan) -> Result<Self, OpenError> {
        let address = Address::parse(url)?;
        let tls = tls::connector(address.tls_mode, &address.roots)?;
        let server = address.server();
        let mut config = address.config;
        if config.get_connect_timeout().is_none() {
            // A host that does not answer leaves time for the other hosts.
            let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX).max(1);
            config.connect_timeout(plan.connect_timeout / hosts);
        }
        if config.get_application_name().is_none() {
            config.application_name("steadfast");
        }
        // Settings of the connection string win.
        if config.get_keepalives_interval().is_none() && config.get_keepalives_retries().is_none() {
            config.keepalives_idle(KEEPALIVE_IDLE);
            config.keepalives_interval(KEEPALIVE_INTERVAL);
            config.keepalives_retries(KEEPALIVE_RETRIES);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNCONFIRMED);
        }
        let limited = limited(&config, plan);
        let backoff = ConnectBackoff::new(plan.connect_timeout);
        let is_pooled = AtomicBool::new(false);
        Ok(Self { inner: Arc::new(ConnectorInner { config, limited, tls, server, is_pooled, backoff }) })
    }

    /// Names the server, the database and the user.
    pub(crate) fn server(&self) -> &str {
        &self.inner.server
    }

    /// Makes a pool of at most `size` connections. No connection is made yet.
    pub(crate) fn pool(&self, plan: &PostgresPlan, size: usize) -> Result<Pool, OpenError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(self.inner.config.clone(), self.clone(), recycling);
        Pool::builder(manager)
            .max_size(size)
            // The connection that was used last has the plans of the functions.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(plan.connect_timeout))
            .create_timeout(Some(plan.connect_timeout))
            .build()
            .map_err(|error| OpenError::Option { option: "max_connections", why: chain(&error) })
    }

    /// Makes a connection that is in no pool. Nothing is read from it until the connection is polled.
    ///
    /// # Cancel safety
    /// A connection that was begun is dropped.
    pub(crate) async fn open(&self) -> Result<(Client, Connection<Socket, ServerStream>), Error> {
        let inner = &self.inner;
        inner.backoff.wait(&SystemClock).await;
        let connected = inner.connect().await;
        match &connected {
            Ok(_) => inner.backoff.succeeded(),
            Err(_) => inner.backoff.failed(&SystemClock),
        }
        connected
    }

    /// Finds out whether a connection leads to the server itself or to a pooler: a pooler that accepts our
    /// startup parameters and drops them is noticed by the missing mark.
    ///
    /// # Errors
    /// The error of the connection, if it cannot run a statement.
    pub(crate) async fn recognise(&self, connection: &Client) -> Result<(), Error> {
        let mark = connection.query_typed(sql!("schema/mark"), &[]).await?;
        let mark: Option<String> = mark.first().and_then(|row| row.get(0));
        if mark.is_none() {
            self.inner.is_pooled.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Tells whether a pooler answered instead of a server. It is known once `recognise` has returned.
    pub(crate) fn is_pooled(&self) -> bool {
        self.inner.is_pooled.load(Ordering::Relaxed)
    }

    /// Asks the server to cancel the statement of a connection. It may come too late or fail.
    ///
    /// The connection stays open until the statement has ended: when it closes, a pooler forgets which
    /// statement to cancel.
    pub(crate) async fn cancel(&self, connection: &Client) {
        let cancelling = async {
            connection.cancel_token().cancel_query(self.inner.tls.clone()).await?;
            // This is answered after the cancelled statement.
            connection.batch_execute("").await
        };
        match tokio::time::timeout(CANCEL_LIMIT, cancelling).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                debug!(error = %chain(&error), "a statement that took too long could not be cancelled")
            }
            Err(_) => debug!("a statement that took too long could not be cancelled in time"),
        }
    }
}

impl ConnectorInner {
    async fn connect(&self) -> Result<(Client, Connection<Socket, ServerStream>), Error> {
        if self.is_pooled.load(Ordering::Relaxed) {
            return self.config.connect(self.tls.clone()).await;
        }
        match self.limited.connect(self.tls.clone()).await {
            // A pooler refuses parameters that it would have to set again for each transaction.
            Err(error) if error.code() == Some(&SqlState::PROTOCOL_VIOLATION) => {
                let connected = self.config.connect(self.tls.clone()).await?;
                self.is_pooled.store(true, Ordering::Relaxed);
                info!(
                    target: "steadfast::store",
                    server = %self.server,
                    "a pooler answers: statement timeouts are not passed on, and other processes are noticed \
                     every poll_interval"
                );
                Ok(connected)
            }
            connected => connected,
        }
    }
}

impl Connect for Connector {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        Box::pin(async move {
            let (client, connection) = self.open().await?;
            let carried = tokio::spawn(async move {
                if let Err(error) = connection.await {
                    debug!(error = %chain(&error), "a connection to the database ended");
                }
            });
            Ok((client, carried))
        })
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("server", &self.inner.server).finish_non_exhaustive()
    }
}

/// Adds the server's own limits. Options of the connection string come later and win.
fn limited(config: &Config, plan: &PostgresPlan) -> Config {
    let timeout = plan.statement_timeout.as_millis();
    let own = format!(
        "-c steadfast.direct=on -c statement_timeout={timeout} \
         -c idle_in_transaction_session_timeout={timeout} \
         -c default_transaction_isolation=read\\ committed -c lock_timeout={LOCK_LIMIT_MS}"
    );
    let options = match config.get_options() {
        Some(given) => format!("{own} {given}"),
        None => own,
    };
    let mut limited = config.clone();
    limited.options(options);
    limited
}
