//! A ledger: evidence in a file that outlives the processes that write it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
};

use crate::evidence::{Entry, Evidence};

/// A file that several processes append facts to. A fact that [`append`](Self::append) has returned from
/// survives the death of the process and a loss of power.
#[derive(Debug)]
pub struct Ledger {
    file: File,
}

impl Ledger {
    /// Opens the ledger at a path, and makes it if it does not exist.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().create(true).append(true).open(path)? })
    }

    /// Appends a fact in one write, and syncs the file.
    ///
    /// # Errors
    ///
    /// What the file system says. The fact may be in the file or not.
    pub fn append(&self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_string(entry)?;
        line.push('\n');
        (&self.file).write_all(line.as_bytes())?;
        self.file.sync_data()
    }

    /// Reads the facts of a ledger, in the order of time. A line that its process could not finish is left
    /// out: nothing was done after it.
    ///
    /// # Errors
    ///
    /// What the file system says, or that a finished line is no fact.
    pub fn read(path: &Path) -> io::Result<Evidence> {
        let text = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
        let mut entries = Vec::new();
        for line in text.split_inclusive('\n') {
            match serde_json::from_str(line) {
                Ok(entry) => entries.push(entry),
                Err(_) if !line.ends_with('\n') || line.trim().is_empty() => {}
                Err(error) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{error}: {line}")));
                }
            }
        }
        Ok(Evidence::of(entries))
    }
}
