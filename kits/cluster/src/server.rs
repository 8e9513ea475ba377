//! The server that a test uses, wherever it comes from.

use std::env;

use crate::{
    ServerError,
    cluster::{Cluster, Settings},
    database::Database,
    place::Place,
    reaper,
    schema::Schema,
    sql,
};

/// Names the environment variable whose server is joined instead of a throw-away one.
pub const TEST_DATABASE_URL: &str = "TEST_DATABASE_URL";

/// Stands for a PostgreSQL server that tests may use.
#[derive(Debug)]
pub struct Server {
    url: String,
    own: Option<Own>,
}

impl Server {
    /// Joins the server that all tests of this user share, and starts it if nobody has.
    ///
    /// The process stays a member for the rest of its life, so the server outlives every handle. It does not
    /// write through to the disk: use [`Server::durable`] for crashes and measurements.
    ///
    /// This blocks: about a second for the process that starts the server, milliseconds for the others.
    ///
    /// # Errors
    ///
    /// Every kind except [`ServerError::Shared`]. With `TEST_DATABASE_URL` only [`ServerError::Sql`].
    pub fn join() -> Result<Self, ServerError> {
        if let Some(url) = env::var(TEST_DATABASE_URL).ok().filter(|url| !url.is_empty()) {
            sql::run(&url, "connect to the server that TEST_DATABASE_URL names", &[])?;
            return Ok(Self { url, own: None });
        }
        let place = Place::shared()?;
        let start = place.lock_start()?;
        place.join_for_life()?;
        reaper::ensure(&place)?;
        let cluster = match Cluster::running(&place)? {
            Some(cluster) => cluster,
            None => {
                Cluster::remove_all(&place)?;
                Cluster::start_new(&place, Settings::Throwaway)?
            }
        };
        drop(start);
        Ok(Self { url: cluster.url(), own: None })
    }

    /// Starts a server of its own, which keeps what it has committed; it is stopped and deleted on drop.
    ///
    /// This blocks for about a second.
    ///
    /// # Errors
    ///
    /// Every kind except [`ServerError::Shared`] and [`ServerError::Sql`].
    pub fn durable() -> Result<Self, ServerError> {
        let (place, member) = Place::own()?;
        reaper::ensure(&place)?;
        // From here the folder is deleted whatever happens.
        let mut own = Own { cluster: None, place, _member: member };
        let cluster = own.cluster.insert(Cluster::start_new(&own.place, Settings::Durable)?);
        Ok(Self { url: cluster.url(), own: Some(own) })
    }

    /// Returns the address to connect to, with user and database: `postgres://user@127.0.0.1:port/database`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Stops the server as a crash would: sessions are cut, nothing is written any more.
    ///
    /// # Errors
    ///
    /// [`ServerError::Shared`] if others use the server, else [`ServerError::Command`] or
    /// [`ServerError::Waited`].
    pub fn stop_immediately(&self) -> Result<(), ServerError> {
        self.own_cluster("stopped")?.stop()
    }

    /// Starts the server again, at the same address, and waits until it has recovered.
    ///
    /// # Errors
    ///
    /// As [`Server::stop_immediately`].
    pub fn start_again(&self) -> Result<(), ServerError> {
        self.own_cluster("started again")?.start()
    }

    /// Starts the server again with more settings, and with files in its data folder that it alone can read.
    ///
    /// A file takes the place of one that is there: `pg_hba.conf` says who may connect, `standby.signal`
    /// makes a server that only reads.
    ///
    /// # Errors
    ///
    /// As [`Server::stop_immediately`], and [`ServerError::File`].
    pub fn start_changed(
        &self,
        settings: &[(&str, &str)],
        files: &[(&str, &str)],
    ) -> Result<(), ServerError> {
        let cluster = self.own_cluster("changed")?;
        cluster.stop()?;
        cluster.change(settings, files)?;
        cluster.start()
    }

    /// Thinks of a schema name that nobody else has; the schema is dropped, if it was made, with the value.
    ///
    /// The hint makes the name readable: letters, digits and underscores of it are kept.
    pub fn schema(&self, hint: &str) -> Schema {
        Schema::new(&self.url, hint)
    }

    /// Makes a database of its own, which is dropped with the value.
    ///
    /// # Errors
    ///
    /// [`ServerError::Sql`].
    pub fn database(&self, hint: &str) -> Result<Database, ServerError> {
        Database::create(&self.url, hint)
    }

    fn own_cluster(&self, what: &'static str) -> Result<&Cluster, ServerError> {
        self.own.as_ref().and_then(|own| own.cluster.as_ref()).ok_or(ServerError::Shared { what })
    }
}

/// A cluster that belongs to one value.
#[derive(Debug)]
struct Own {
    cluster: Option<Cluster>,
    place: Place,
    /// Keeps the reaper away; it is closed after the folder is gone.
    _member: std::fs::File,
}

impl Drop for Own {
    fn drop(&mut self) {
        // The reaper takes what is left: it waits for the end of this process, or for this value's lock.
        if let Some(cluster) = &self.cluster
            && cluster.answers().unwrap_or(true)
            && cluster.stop().is_err()
        {
            return;
        }
        self.place.remove();
    }
}
