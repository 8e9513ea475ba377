//! A PostgreSQL server for tests, with no set-up by hand.
//!
//! [`Server::join`] hands out the server that all tests of this user share: the one that `TEST_DATABASE_URL`
//! names, or a throw-away cluster in the temp folder, which the first process starts and a reaper stops and
//! deletes some seconds after the last process has ended, even if it was killed. [`Server::durable`] makes a
//! server of one test's own, with the settings of a real one, that can be crashed and started again.
//!
//! ```no_run
//! # fn main() -> Result<(), steadfast_cluster::ServerError> {
//! let server = steadfast_cluster::Server::join()?;
//! let schema = server.schema("orders");
//! println!("{} in {}", schema.name(), server.url());
//! # Ok(())
//! # }
//! ```
//!
//! [`Bouncer::before`] puts PgBouncer in front of a server, where it is installed.
//!
//! The servers listen on the loopback interface only and ask for no password: every user of the machine can
//! use them. Keep no data in them.
//!
//! | variable | what it sets |
//! |---|---|
//! | `TEST_DATABASE_URL` | the server to join instead of a throw-away one (without TLS) |
//! | `PG_BIN` | the folder of `initdb` and `pg_ctl` |
//! | `STEADFAST_CLUSTER_DIR` | the folder of the clusters, instead of one per user in the temp folder |
//! | `STEADFAST_CLUSTER_GRACE` | seconds that the shared cluster stays without a user, 20 by default |

mod bouncer;
mod cluster;
mod database;
mod error;
mod machine;
mod name;
mod schema;
mod server;
mod sql;

pub use bouncer::{Bouncer, INSTALL_BOUNCER, Startup};
pub use database::Database;
pub use error::ServerError;
pub use machine::binaries::{Binaries, INSTALL};
pub use schema::Schema;
pub use server::{Server, TEST_DATABASE_URL};
