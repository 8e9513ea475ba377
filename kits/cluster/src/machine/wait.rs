//! Waiting within a limit. No other module of this package reads the clock or sleeps.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::ServerError;

/// The first pause between two looks; each is longer than the one before, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// Short beside what is waited for: a server needs some hundred milliseconds to start.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Calls `look` again and again until it returns `Some`, or until the limit has passed.
///
/// # Errors
///
/// [`ServerError::Waited`] with what was waited for, or the error of a look.
#[expect(clippy::disallowed_methods, reason = "processes and locks of the machine know no virtual clock")]
pub(crate) fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>, ServerError>,
) -> Result<T, ServerError> {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if started.elapsed() >= limit {
            return Err(ServerError::Waited { what: what.to_owned(), limit, output: String::new() });
        }
        thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// Waits for a lock; `take` tries to lock once without blocking.
pub(crate) fn for_lock(
    what: &str,
    limit: Duration,
    path: &Path,
    file: &File,
    take: impl Fn(&File) -> Result<(), TryLockError>,
) -> Result<(), ServerError> {
    until(what, limit, || {
        held(take(file)).map(|held| held.then_some(())).map_err(ServerError::file("lock", path))
    })
}

/// Converts the result of a non-blocking lock: true if it was locked, false if another process holds it.
pub(crate) fn held(tried: Result<(), TryLockError>) -> io::Result<bool> {
    match tried {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_ends_says_what_it_waited_for() {
        let waited = until::<()>("godot", Duration::ZERO, || Ok(None)).unwrap_err();
        assert_eq!(waited.to_string(), "waited 0 s for godot");
    }

    #[test]
    fn a_wait_looks_until_there_is_something() {
        let mut looks = 0;
        let found = until("the third look", Duration::from_secs(60), || {
            looks += 1;
            Ok((looks == 3).then_some(looks))
        });
        assert_eq!(found.unwrap(), 3);
    }
}
