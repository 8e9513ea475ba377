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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Fact, Life};

    #[test]
    fn a_ledger_is_read_in_the_order_of_time_without_the_line_that_was_torn() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("ledger");
        let entry = |at_us| Entry { at_us, fact: Fact::Process("p".to_owned(), Life::Started) };
        let (one, other) = (Ledger::open(&path)?, Ledger::open(&path)?);
        one.append(&entry(2))?;
        other.append(&entry(1))?;
        (&other.file).write_all(br#"{"at_us":3,"#)?;
        assert_eq!(Ledger::read(&path)?, Evidence::of(vec![entry(1), entry(2)]));
        Ok(())
    }

    #[test]
    fn a_line_that_is_no_fact_is_an_error() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("ledger");
        std::fs::write(&path, "nonsense\n")?;
        assert!(Ledger::read(&path).is_err());
        Ok(())
    }
}
