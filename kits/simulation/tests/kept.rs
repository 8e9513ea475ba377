//! Every story that once showed a fault is played with every change: in `stories/`, one file each.

use std::{fs, path::Path};

use steadfast_simulation::{kept, world::play};

#[test]
fn what_broke_a_promise_once_breaks_none_today() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("stories");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    assert!(!files.is_empty(), "the stories are gone");
    for path in files {
        let text = fs::read_to_string(&path).expect("a text");
        let story = kept::read(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let played = play(&story).expect("plays");
        assert!(played.violations.is_empty(), "{}: {:?}", path.display(), played.violations);
    }
}
