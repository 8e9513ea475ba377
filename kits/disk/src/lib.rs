//! A disk for SQLite that is kept in memory and fails as planned: it loses writes that were not synced when
//! the power fails, lets parts of a write arrive, has no room, and refuses reads, writes and syncs.
//!
//! A [`Disk`] is the disk of one machine. Each process of it opens files through a [`Mount`], so that the
//! process can be killed: its locks are free at once, and nothing that it still does has an effect. What a
//! process reads is all that was written; what is there after [`Disk::crash`] is what was synced, and of the
//! rest what the dice say.
//!
//! What the system promises a program holds here too: a write changes no byte beside it, also when it is torn
//! (`SQLITE_IOCAP_POWERSAFE_OVERWRITE`), and a name is durable when its folder was synced.
//!
//! ```
//! use rusqlite::{Connection, OpenFlags};
//! use steadfast_disk::{Disk, Loss, VFS};
//!
//! let disk = Disk::new(7)?;
//! let mount = disk.mount("first");
//! let flags = OpenFlags::default();
//! let connection = Connection::open_with_flags_and_vfs(mount.path("app.db"), flags, VFS)?;
//! connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)")?;
//!
//! disk.crash(Loss::All);
//! let again = Connection::open_with_flags_and_vfs(disk.mount("second").path("app.db"), flags, VFS)?;
//! assert_eq!(again.query_row("SELECT x FROM t", [], |row| row.get::<_, i64>(0))?, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod disk;
mod fault;
mod handle;
mod image;
mod lock;
mod shared_memory;
#[expect(unsafe_code, reason = "SQLite calls a VFS through C")]
mod shim;

pub use disk::{Disk, DiskError, Loss, Mount};
pub use fault::{DiskFault, Failure, FileCall};
pub use shim::VFS;
