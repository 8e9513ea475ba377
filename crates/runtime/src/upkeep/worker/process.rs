//! The process of this worker: facts by which another process on the same host can tell whether it is dead.

use steadfast_core::BUILD_VERSION;
use steadfast_store::WorkerProcess;

/// Reads the facts of this process. A fact that the platform does not tell is `None`.
pub(super) fn facts(node: Option<String>) -> WorkerProcess {
    WorkerProcess {
        node,
        incarnation: None,
        host: platform::host(),
        boot_id: platform::boot_id(),
        pid_namespace: platform::pid_namespace(),
        pid: std::process::id(),
        pid_started: platform::pid_started(),
        build_id: None,
        version: BUILD_VERSION.to_owned(),
    }
}

#[cfg(target_os = "linux")]
mod platform {
    use std::fs;

    /// The name of the host, as the processes of this container see it.
    pub(super) fn host() -> Option<String> {
        text("/proc/sys/kernel/hostname")
    }

    /// A random id that the kernel draws at each boot.
    pub(super) fn boot_id() -> Option<String> {
        text("/proc/sys/kernel/random/boot_id")
    }

    /// The name of the namespace, such as `pid:[4026531836]`.
    pub(super) fn pid_namespace() -> Option<String> {
        fs::read_link("/proc/self/ns/pid").ok()?.into_os_string().into_string().ok()
    }

    /// The time at which this process started, in clock ticks since the boot.
    pub(super) fn pid_started() -> Option<u64> {
        super::started_of(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    fn text(path: &str) -> Option<String> {
        let text = fs::read_to_string(path).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    pub(super) fn host() -> Option<String> {
        None
    }

    pub(super) fn boot_id() -> Option<String> {
        None
    }

    pub(super) fn pid_namespace() -> Option<String> {
        None
    }

    pub(super) fn pid_started() -> Option<u64> {
        None
    }
}

/// Returns the 22nd field of `/proc/<pid>/stat`. The second field is the name of the program in parentheses,
/// and may itself contain spaces and parentheses.
#[cfg(any(target_os = "linux", test))]
fn started_of(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_a_name_with_spaces_and_parentheses() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3";
        assert_eq!(started_of(stat), Some(987_654));
        assert_eq!(started_of("7 (a) S 1"), None);
        assert_eq!(started_of(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_tells_every_fact_of_a_process_and_the_same_each_time() {
        let told = facts(Some("n1".to_owned()));
        assert_eq!(told, facts(Some("n1".to_owned())));
        assert_eq!(told.node.as_deref(), Some("n1"));
        assert!(told.host.is_some() && told.boot_id.is_some(), "{told:?}");
        assert!(told.pid_namespace.as_deref().is_some_and(|name| name.starts_with("pid:[")), "{told:?}");
        assert!(told.pid_started.is_some_and(|ticks| ticks > 0), "{told:?}");
    }
}
