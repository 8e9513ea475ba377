//! The server that a test uses: shared, given by `TEST_DATABASE_URL`, or started for one test.

use std::env;

use crate::{
    ServerError,
    cluster::{Cluster, Settings, folder::ClusterFolder, reaper},
    database::Database,
    schema::Schema,
    sql,
};

/// The environment variable with the address of a server that is joined instead of a throw-away one.
pub const TEST_DATABASE_URL: &str = "TEST_DATABASE_URL";

/// A PostgreSQL server that tests may use.
#[derive(Debug)]
pub struct Server {
    url: String,
    own: Option<OwnCluster>,
}

impl Server {
    /// Joins the server that all tests of this user share, and starts it if it does not run.
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
        let clusters = ClusterFolder::shared()?;
        let start = clusters.lock_start()?;
        clusters.join_for_life()?;
        reaper::ensure(&clusters)?;
        let cluster = match Cluster::running(&clusters)? {
            Some(cluster) => cluster,
            None => {
                Cluster::remove_all(&clusters)?;
                Cluster::start_new(&clusters, Settings::Throwaway)?
            }
        };
        drop(start);
        Ok(Self { url: cluster.url(), own: None })
    }

    /// Starts a server for this value alone, whose commits survive a crash. Dropping the value stops the
    /// server and deletes its data.
    ///
    /// This blocks for about a second.
    ///
    /// # Errors
    ///
    /// Every kind except [`ServerError::Shared`] and [`ServerError::Sql`].
    pub fn durable() -> Result<Self, ServerError> {
        let (clusters, member) = ClusterFolder::own()?;
        reaper::ensure(&clusters)?;
        // From here on a drop deletes the folder, whatever fails.
        let mut own = OwnCluster { cluster: None, clusters, _member: member };
        let cluster = own.cluster.insert(Cluster::start_new(&own.clusters, Settings::Durable)?);
        Ok(Self { url: cluster.url(), own: Some(own) })
    }

    /// Returns the address to connect to, with user and database: `postgres://user@127.0.0.1:port/database`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Stops the server as a crash would: connections are cut, and nothing more is written.
    ///
    /// # Errors
    ///
    /// [`ServerError::Shared`] if the server is shared, else [`ServerError::Command`] or
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
    /// A file replaces an existing one of its name: `pg_hba.conf` says who may connect, `standby.signal`
    /// makes the server a standby, which is read-only.
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

    /// Returns a schema name that is used nowhere else. The schema is not created; it is dropped, if it
    /// exists, with the value.
    ///
    /// The hint makes the name readable: its first 24 characters are part of it, with `_` for other
    /// characters than letters and digits.
    pub fn schema(&self, hint: &str) -> Schema {
        Schema::new(&self.url, hint)
    }

    /// Creates a database with a unique name, which is dropped with the value.
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
struct OwnCluster {
    cluster: Option<Cluster>,
    clusters: ClusterFolder,
    /// The membership that keeps the reaper from deleting the folder. It is closed after the folder is
    /// deleted.
    _member: std::fs::File,
}

impl Drop for OwnCluster {
    fn drop(&mut self) {
        // If the server cannot be stopped, the reaper does it once this value's lock is closed.
        if let Some(cluster) = &self.cluster
            && cluster.answers().unwrap_or(true)
            && cluster.stop().is_err()
        {
            return;
        }
        self.clusters.remove();
    }
}
