//! Runs a program to its end, within a limit, and keeps its output.

use std::{
    io::{self, Read, Seek},
    process::{Command, Stdio},
    time::Duration,
};

use super::wait;
use crate::ServerError;

/// Runs a command and returns its standard output and standard error together.
///
/// Both go to a file, not to a pipe: a server that the command leaves running would keep a pipe open.
///
/// # Errors
///
/// [`ServerError::Command`] if it fails, [`ServerError::Waited`] if it takes longer than the limit, and
/// [`ServerError::File`] if it cannot be started.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<String, ServerError> {
    let program = command.get_program().to_owned();
    let mut started = || -> io::Result<_> {
        let printed = tempfile::tempfile()?;
        let outputs = (printed.try_clone()?, printed.try_clone()?);
        let child = command.stdin(Stdio::null()).stdout(outputs.0).stderr(outputs.1).spawn()?;
        Ok((child, printed))
    };
    let (mut child, mut printed) = started().map_err(ServerError::file("run", &program))?;
    let shown = shown(command);
    let ended = wait::until(&format!("`{shown}` to end"), limit, || {
        child.try_wait().map_err(ServerError::file("wait for", &program))
    });
    let mut output = Vec::new();
    let read = printed.rewind().and_then(|()| printed.read_to_end(&mut output));
    read.map_err(ServerError::file("read the output of", &program))?;
    let output = String::from_utf8_lossy(&output).trim_end().to_owned();
    match ended {
        Ok(status) if status.success() => Ok(output),
        Ok(status) => Err(ServerError::Command { command: shown, status, output }),
        Err(ServerError::Waited { what, limit, .. }) => {
            let killed = child.kill().and_then(|()| child.wait());
            killed.map_err(ServerError::file("kill", &program))?;
            Err(ServerError::Waited { what, limit, output })
        }
        Err(other) => Err(other),
    }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn what_a_program_prints_is_returned() {
        assert_eq!(
            run(Command::new("sh").args(["-c", "echo out; echo err >&2"]), LIMIT).unwrap(),
            "out\nerr"
        );
    }

    #[test]
    fn a_failure_has_the_command_and_what_it_printed() {
        let error = run(Command::new("sh").args(["-c", "echo because; exit 3"]), LIMIT).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("sh -c") && text.contains("exit status: 3") && text.contains("because"),
            "{text}"
        );
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended_and_named() {
        let error = run(Command::new("sleep").arg("600"), Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.to_string(), "waited 0.02 s for `sleep 600` to end");
    }
}
