//! Processes that share a cluster, join it, end and are killed.
//!
//! Each test has a folder of its own for its clusters, and runs the program of this package as its processes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test panics where an expectation does not hold")]

use std::{
    fs::{self, Permissions},
    io::{BufRead, BufReader, Read},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use steadfast_cluster::{INSTALL, Server};
use tempfile::TempDir;

/// Ends a test that hangs. What it bounds takes a second on an idle machine.
const LIMIT: Duration = Duration::from_secs(60);
/// Longer than one process needs to begin after another has ended, on a machine under load.
const LONG_GRACE: &str = "5";

#[expect(clippy::disallowed_methods, reason = "other processes know no virtual clock")]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LIMIT, "waited {LIMIT:?} for {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A folder for the clusters of one test, and the grace time of its processes.
struct TestFolder {
    folder: TempDir,
    grace: &'static str,
}

impl TestFolder {
    fn new(grace: &'static str) -> Self {
        let open = Permissions::from_mode(0o755);
        let folder = tempfile::Builder::new().prefix("world-").permissions(open).tempdir().unwrap();
        Self { folder, grace }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast-cluster"));
        command
            .env_remove("TEST_DATABASE_URL")
            .env("STEADFAST_CLUSTER_DIR", self.folder.path())
            .env("STEADFAST_CLUSTER_GRACE", self.grace);
        command
    }

    fn process(&self) -> Process {
        Process::spawn(&mut self.command())
    }

    /// Finds the process that will stop and delete the shared cluster.
    fn reaper(&self) -> Option<String> {
        let folder = self.folder.path().join("shared");
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let mut reapers = processes.filter(|process| {
            let words = fs::read(process.join("cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
            words.contains(&b"steadfast-cluster-reaper".as_slice())
                && words.contains(&folder.as_os_str().as_encoded_bytes())
        });
        reapers.next()?.file_name()?.to_str().map(str::to_owned)
    }

    /// Lists what is left of clusters: the folders of shared ones, and everything of durable ones.
    fn list(&self) -> Vec<PathBuf> {
        let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
        let shared = entries(self.folder.path().join("shared")).map(|entry| entry.path());
        let own = entries(self.folder.path().to_path_buf()).map(|entry| entry.path());
        let named = |path: &PathBuf, start: &str| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
        };
        shared.filter(|path| named(path, "cluster-")).chain(own.filter(|path| named(path, "own-"))).collect()
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        if !thread::panicking() {
            until("the reaper", || self.list().is_empty());
        }
    }
}

/// A process that has a server and keeps it until it is told to end.
struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// Returns the first line that the process prints: the address.
    fn url(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }

    /// Ends the process as `kill -9` does.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn fail(mut self) -> String {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        assert!(!self.child.wait().unwrap().success(), "{text}");
        text
    }
}

fn answers(url: &str) -> bool {
    let address = url.strip_prefix("postgres://postgres@").and_then(|rest| rest.strip_suffix("/postgres"));
    TcpStream::connect(address.unwrap_or_else(|| panic!("not an address: {url}"))).is_ok()
}

#[test]
fn processes_that_start_at_once_share_one_cluster() {
    let clusters = TestFolder::new("0.1");
    let mut processes: Vec<Process> = (0..4).map(|_| clusters.process()).collect();
    let urls: Vec<String> = processes.iter_mut().map(Process::url).collect();
    assert!(urls.iter().all(|url| *url == urls[0] && answers(url)), "{urls:?}");
    assert_eq!(clusters.list().len(), 1);
    processes.into_iter().for_each(Process::end);
}

#[test]
fn a_killed_process_leaves_no_cluster() {
    let clusters = TestFolder::new("0.1");
    let mut process = clusters.process();
    let url = process.url();
    assert!(answers(&url));
    process.kill();
    until("the cluster to go", || clusters.list().is_empty());
    assert!(!answers(&url));
}

#[test]
fn a_process_that_is_killed_while_it_starts_a_cluster_leaves_none() {
    let clusters = TestFolder::new("0.1");
    let process = clusters.process();
    until("the cluster to appear", || !clusters.list().is_empty());
    process.kill();
    until("the cluster to go", || clusters.list().is_empty());
}

#[test]
fn a_killed_process_leaves_no_durable_cluster() {
    let clusters = TestFolder::new("0.1");
    let mut process = Process::spawn(clusters.command().arg("durable"));
    let url = process.url();
    assert!(answers(&url));
    process.kill();
    until("the cluster to go", || clusters.list().is_empty());
    assert!(!answers(&url));
}

#[test]
fn the_cluster_stays_while_one_of_its_processes_lives() {
    let clusters = TestFolder::new("0");
    let (mut first, mut second) = (clusters.process(), clusters.process());
    let url = first.url();
    assert_eq!(second.url(), url);
    first.kill();
    // The grace is zero, so the reaper would delete the cluster at once if it did not see the second process.
    let mut third = clusters.process();
    assert_eq!(third.url(), url);
    third.end();
    assert!(answers(&url));
    second.end();
}

#[test]
fn the_cluster_stays_over_a_pause_between_processes() {
    let clusters = TestFolder::new(LONG_GRACE);
    let mut first = clusters.process();
    let url = first.url();
    first.end();
    let mut second = clusters.process();
    assert_eq!(second.url(), url);
    second.end();
}

#[test]
fn a_reaper_that_was_killed_is_replaced() {
    let clusters = TestFolder::new("0.1");
    let mut first = clusters.process();
    let url = first.url();
    let reaper = clusters.reaper().unwrap();
    assert!(Command::new("kill").args(["-9", &reaper]).status().unwrap().success());
    until("the reaper to end", || clusters.reaper().is_none_or(|other| other != reaper));
    let mut second = clusters.process();
    assert_eq!(second.url(), url);
    first.end();
    second.end();
}

#[test]
fn a_server_that_was_killed_is_replaced() {
    let clusters = TestFolder::new("0.1");
    let (mut first, mut second) = (clusters.process(), clusters.process());
    let (url, _) = (first.url(), second.url());
    let pid_file = fs::read_to_string(clusters.list()[0].join("data/postmaster.pid")).unwrap();
    let server = pid_file.lines().next().unwrap();
    assert!(Command::new("kill").args(["-9", server]).status().unwrap().success());
    until("the server to end", || !answers(&url));
    let mut third = clusters.process();
    assert!(answers(&third.url()));
    [first, second, third].into_iter().for_each(Process::end);
}

#[test]
fn a_process_that_joins_while_the_cluster_is_stopped_gets_one_that_answers() {
    let clusters = TestFolder::new("0");
    for _ in 0..5 {
        let mut process = clusters.process();
        let url = process.url();
        assert!(answers(&url), "{url}");
        process.end();
    }
}

#[test]
fn a_cluster_that_a_switched_off_machine_left_is_replaced() {
    let clusters = TestFolder::new("0.1");
    let stale = clusters.folder.path().join("shared/cluster-stale");
    fs::create_dir_all(stale.join("data")).unwrap();
    // The pid file has the number of an unrelated process: this one.
    fs::write(stale.join("data/postmaster.pid"), format!("{}\n", std::process::id())).unwrap();
    fs::write(clusters.folder.path().join("shared/current"), "cluster-stale\n25999\n").unwrap();
    let mut process = clusters.process();
    assert!(answers(&process.url()));
    assert!(!stale.exists());
    process.end();
}

#[test]
fn a_durable_cluster_that_a_switched_off_machine_left_is_deleted() {
    let clusters = TestFolder::new("0");
    let stale = clusters.folder.path().join("own-stale");
    fs::create_dir_all(stale.join("cluster-stale/data")).unwrap();
    for lock in ["members", "reaper", "start"] {
        fs::write(stale.join(lock), "").unwrap();
    }
    let mut first = Process::spawn(clusters.command().arg("durable"));
    assert!(answers(&first.url()));
    assert!(!stale.exists());
    let mut second = Process::spawn(clusters.command().arg("durable"));
    assert!(answers(&second.url()));
    assert_eq!(clusters.list().len(), 2, "the first is in use");
    first.end();
    second.end();
    assert_eq!(clusters.list(), Vec::<PathBuf>::new());
}

#[test]
fn a_given_server_is_joined_instead() {
    let (clusters, given) = (TestFolder::new("0"), Server::durable().unwrap());
    let mut process = Process::spawn(clusters.command().env("TEST_DATABASE_URL", given.url()));
    assert_eq!(process.url(), given.url());
    process.end();
    assert!(!clusters.folder.path().join("shared").exists());
}

#[test]
fn a_given_server_that_does_not_answer_is_an_error_with_its_variable() {
    let clusters = TestFolder::new("0");
    let url = "postgres://postgres@127.0.0.1:1/postgres";
    let text = Process::spawn(clusters.command().env("TEST_DATABASE_URL", url)).fail();
    assert!(text.contains("TEST_DATABASE_URL") && text.contains("refused"), "{text}");
}

#[test]
fn a_missing_server_is_an_error_with_the_command_that_installs_one() {
    let clusters = TestFolder::new("0");
    let text = Process::spawn(clusters.command().env("PG_BIN", "/nowhere")).fail();
    assert!(text.contains(INSTALL) && text.contains("PG_BIN=/nowhere"), "{text}");
    assert_eq!(clusters.list(), Vec::<PathBuf>::new());
}

#[test]
fn a_server_that_does_not_start_is_an_error_with_what_it_said() {
    let clusters = TestFolder::new("0");
    let programs = clusters.folder.path().join("bin");
    fs::create_dir(&programs).unwrap();
    for program in ["initdb", "pg_ctl", "postgres"] {
        let path = programs.join(program);
        fs::write(&path, "#!/bin/sh\necho the disk is on fire\nexit 1\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    let text = Process::spawn(clusters.command().env("PG_BIN", &programs)).fail();
    assert!(text.contains("initdb") && text.contains("the disk is on fire"), "{text}");
}

#[test]
fn a_file_in_place_of_the_folder_is_an_error_that_names_the_variable() {
    let clusters = TestFolder::new("0");
    let file = clusters.folder.path().join("file");
    fs::write(&file, "").unwrap();
    let text = Process::spawn(clusters.command().env("STEADFAST_CLUSTER_DIR", &file)).fail();
    assert!(text.contains("STEADFAST_CLUSTER_DIR"), "{text}");
}
