//! The id of a build: a hash of the executable and of the registered names and versions.
//!
//! Linkers put a hash of the code into most Linux executables (the GNU build id). It is read from the headers
//! of the file. For an executable without one, the whole file is hashed on a thread of its own, and reports
//! have no build id until that is done.

use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, OnceLock};

use crate::registry::{ActivityRegistry, OrchestrationRegistry};

/// The id of this build, once it is known.
pub(super) struct BuildId {
    given: Option<String>,
    handlers: u64,
    executable: Arc<OnceLock<Option<u64>>>,
}

/// The hash of the executable of this process, which several runtimes share. `None` if it cannot be read.
static EXECUTABLE: OnceLock<Arc<OnceLock<Option<u64>>>> = OnceLock::new();

impl BuildId {
    /// Takes the given id. Without one it begins to find out the id of the executable.
    pub(super) fn new(
        given: Option<String>,
        orchestrations: &OrchestrationRegistry,
        activities: &ActivityRegistry,
    ) -> Self {
        let executable = if given.is_some() { Arc::default() } else { executable() };
        Self { given, handlers: handlers(orchestrations, activities), executable }
    }

    /// Returns the id; `None` while the executable is hashed, and if it cannot be read.
    pub(super) fn get(&self) -> Option<String> {
        if let Some(given) = &self.given {
            return Some(given.clone());
        }
        let executable = (*self.executable.get()?)?;
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(executable);
        hasher.write_u64(self.handlers);
        Some(format!("{:016x}", hasher.finish()))
    }
}

/// Hashes the registered names and versions.
fn handlers(orchestrations: &OrchestrationRegistry, activities: &ActivityRegistry) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (kind, listed) in [(0, orchestrations.listed()), (1, activities.listed())] {
        hasher.write_u8(kind);
        for handler in listed {
            for text in std::iter::once(&handler.name).chain(&handler.versions) {
                hasher.write_usize(text.len());
                hasher.write(text.as_bytes());
            }
            hasher.write_u8(0xff);
        }
    }
    hasher.finish()
}

/// Returns the place of the executable's hash, and begins to fill it the first time.
fn executable() -> Arc<OnceLock<Option<u64>>> {
    let place = EXECUTABLE.get_or_init(|| match open().and_then(|mut file| build_id_of(&mut file)) {
        Ok(Some(id)) => Arc::new(OnceLock::from(Some(hash(&id)))),
        Ok(None) => {
            let place: Arc<OnceLock<Option<u64>>> = Arc::default();
            let again = Arc::clone(&place);
            std::thread::spawn(move || again.get_or_init(|| open().and_then(hash_of_all).ok()).is_some());
            place
        }
        Err(_) => Arc::new(OnceLock::from(None)),
    });
    Arc::clone(place)
}

/// Opens the executable of this process. On Linux this finds it also after a deployment has put another file
/// in its place.
fn open() -> io::Result<File> {
    if cfg!(target_os = "linux") {
        File::open("/proc/self/exe")
    } else {
        File::open(std::env::current_exe()?)
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

fn hash_of_all(mut file: File) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hasher.finish()),
            count => hasher.write(&chunk[..count]),
        }
    }
}

/// Bounds the notes that are read: a build id is among the first few hundred bytes.
const MAX_NOTES: u64 = 64 << 10;

/// Bounds the headers that are looked at. Executables have about a dozen.
const MAX_HEADERS: u64 = 256;

/// Reads the GNU build id of a 64-bit little-endian ELF file; `None` for another file, or if it has none.
fn build_id_of(file: &mut (impl Read + Seek)) -> io::Result<Option<Vec<u8>>> {
    let mut header = [0; 64];
    if file.read_exact(&mut header).is_err() || header[..6] != *b"\x7fELF\x02\x01" {
        return Ok(None);
    }
    let (table, size, count) = (number(&header, 32, 8), number(&header, 54, 2), number(&header, 56, 2));
    for index in 0..count.min(MAX_HEADERS) {
        let mut entry = [0; 56];
        file.seek(SeekFrom::Start(table.saturating_add(index * size)))?;
        file.read_exact(&mut entry)?;
        const NOTES: u64 = 4;
        if number(&entry, 0, 4) != NOTES {
            continue;
        }
        let (offset, length) = (number(&entry, 8, 8), number(&entry, 32, 8));
        let mut notes = Vec::new();
        file.seek(SeekFrom::Start(offset))?;
        file.by_ref().take(length.min(MAX_NOTES)).read_to_end(&mut notes)?;
        if let Some(id) = build_id_in(&notes) {
            return Ok(Some(id.to_vec()));
        }
    }
    Ok(None)
}

/// Finds the build id among notes, each of which is: length of the name, length of the content, kind, name,
/// content; name and content padded to four bytes.
fn build_id_in(mut notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: u64 = 3;
    while notes.len() >= 12 {
        let padded = |length: u64| usize::try_from(length).ok()?.checked_next_multiple_of(4);
        let (name_length, length, kind) = (number(notes, 0, 4), number(notes, 4, 4), number(notes, 8, 4));
        let content_at = padded(name_length)?.checked_add(12)?;
        let content = notes.get(content_at..content_at.checked_add(usize::try_from(length).ok()?)?)?;
        if kind == BUILD_ID && notes.get(12..16) == Some(b"GNU\0") && !content.is_empty() {
            return Some(content);
        }
        notes = notes.get(content_at.checked_add(padded(length)?)?..)?;
    }
    None
}

/// Reads a little-endian number; bytes that are not there count as 0.
fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    let digits = bytes.iter().skip(at).take(length);
    digits.rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(orchestrations: &[&str], activities: &[&str]) -> u64 {
        let mut flows = OrchestrationRegistry::builder();
        for name in orchestrations {
            flows = flows.register(*name, |_, input| async move { Ok(input) });
        }
        let mut work = ActivityRegistry::builder();
        for name in activities {
            work = work.register(*name, |_, input| async move { Ok(input) });
        }
        handlers(&flows.build(), &work.build())
    }

    #[test]
    fn the_registered_names_are_part_of_the_build() {
        assert_eq!(id(&["A", "B"], &["C"]), id(&["B", "A"], &["C"]));
        assert_ne!(id(&["A", "B"], &["C"]), id(&["A"], &["B", "C"]));
        assert_ne!(id(&["AB"], &[]), id(&["A", "B"], &[]));
    }

    #[test]
    fn a_build_id_is_found_behind_other_notes_and_damage_is_no_panic() {
        let mut notes = Vec::new();
        for (kind, content) in [(1_u32, &b"linux"[..]), (3, b"\x01\x02\x03\x04\x05")] {
            notes.extend(4_u32.to_le_bytes());
            notes.extend((content.len() as u32).to_le_bytes());
            notes.extend(kind.to_le_bytes());
            notes.extend(b"GNU\0");
            notes.extend(content);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id_in(&notes), Some(&b"\x01\x02\x03\x04\x05"[..]));
        for length in 0..notes.len() - 4 {
            assert_eq!(build_id_in(&notes[..length]), None, "{length}");
        }
        assert_eq!(build_id_in(&[0xff; 64]), None);
    }

    #[test]
    fn an_executable_has_one_id_and_a_text_has_none() {
        let mut text = io::Cursor::new(vec![b'x'; 200]);
        assert_eq!(build_id_of(&mut text).expect("is read"), None);
        let one = hash_of_all(open().expect("opens")).expect("is read");
        assert_eq!(one, hash_of_all(open().expect("opens")).expect("is read"));
    }
}
