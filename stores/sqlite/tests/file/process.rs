//! Other processes: this program, run again in a role that the environment names.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const ROLE: &str = "STEADFAST_TEST_ROLE";
const FILE: &str = "STEADFAST_TEST_FILE";
const NAME: &str = "STEADFAST_TEST_NAME";

/// A process that ends with its owner: it reads the pipe that the owner holds, and is killed when dropped.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn spawn(role: &str, name: &str, file: &Path) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let child = in_role(Command::new(program), role, name, file)
            .stdin(Stdio::piped())
            .spawn()
            .expect("another process");
        Self(child)
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it has ended");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing left of it.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Runs this program in a role, under a command that runs programs.
pub(crate) fn another(mut under: Command, role: &str, name: &str, file: &Path) -> Command {
    under.arg(std::env::current_exe().expect("this program has a path"));
    in_role(under, role, name, file)
}

fn in_role(mut command: Command, role: &str, name: &str, file: &Path) -> Command {
    command
        .args(["--exact", "process::another_process", "--ignored", "--nocapture"])
        .env(ROLE, role)
        .env(NAME, name)
        .env(FILE, file)
        .stdout(Stdio::null());
    command
}

#[test]
#[ignore = "it is what other processes of these tests run"]
fn another_process() {
    let (Ok(role), Ok(name), Some(file)) = (std::env::var(ROLE), std::env::var(NAME), std::env::var_os(FILE))
    else {
        return;
    };
    let file = Path::new(&file);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    match role.as_str() {
        "sender" => runtime.block_on(crate::processes::send_on_demand(file)),
        "worker" => {
            end_with_owner();
            runtime.block_on(crate::processes::work(file, &name));
        }
        "chains" => {
            end_with_owner();
            runtime.block_on(crate::crash::run_chains(file, &name));
        }
        "writer" => runtime.block_on(crate::power::write_some(file, &name)),
        other => panic!("there is no role '{other}'"),
    }
}

fn end_with_owner() {
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        // The end of the pipe, whatever its reason, means that the owner has ended.
        drop(std::io::stdin().read_to_end(&mut rest));
        std::process::exit(0);
    });
}
