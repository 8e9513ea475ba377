//! Where cargo has put a program: the profile, a target triple or a setting may move it.

use std::path::PathBuf;

use serde::Deserialize;

/// Finds a program by its name in the messages of a build with `--message-format json`.
pub(crate) fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|message| serde_json::from_str::<Artifact>(message).ok())
        .filter(|artifact| artifact.target.name == name)
        .find_map(|artifact| artifact.executable)
}

#[derive(Deserialize)]
struct Artifact {
    target: BuiltTarget,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct BuiltTarget {
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_in_the_messages_of_a_build() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"serde"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"steadfast-bench-core"},"executable":"/t/steadfast-bench-core"}
{"reason":"build-finished","success":true}"#;
        let found = executable(messages, "steadfast-bench-core");
        assert_eq!(found, Some(PathBuf::from("/t/steadfast-bench-core")));
        assert_eq!(executable(messages, "serde"), None);
        assert_eq!(executable("", "steadfast-bench-core"), None);
    }
}
