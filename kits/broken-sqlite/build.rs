//! Copies the SQLite store with every mutant of its code in it (`copy.rs` of `kits/mutants`), and lets the
//! copy ask for the text of each statement that it prepares: a mutant of a statement has another.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

include!("../mutants/src/mutant.rs");
include!("src/list.rs");
include!("../mutants/src/copy.rs");

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=../mutants/src");
    let store = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../stores/sqlite");
    copy(&store.join("src"), CODE)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut asked = 0;
    for path in files_below(&out.join("copy"))? {
        let text = fs::read_to_string(&path)?;
        asked += text.matches(PREPARE).count();
        // Statements are files of the store.
        let text =
            text.replace("env!(\"CARGO_MANIFEST_DIR\")", &format!("{:?}", store.display().to_string()));
        // The page for users is tested with the store.
        let text = text.replace("#[doc = include_str!(\"../README.md\")]", "");
        fs::write(&path, asking(&text)?)?;
    }
    if asked == 0 {
        return Err("the store prepares no statement".into());
    }
    let sql = store.join("sql");
    println!("cargo::rerun-if-changed={}", sql.display());
    fs::write(out.join("changed.rs"), changed(&sql)?)?;
    Ok(())
}

const PREPARE: &str = ".prepare_cached(";

/// Lets the copy ask for the text of each statement that it prepares.
fn asking(text: &str) -> Result<String, Box<dyn Error>> {
    let mut parts = text.split(PREPARE);
    let mut asking = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut depth = 1;
        let end = part.find(|letter| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            depth == 0
        });
        let end = end.ok_or("a call of prepare_cached does not end")?;
        write!(asking, "{PREPARE}crate::text_of({}){}", &part[..end], &part[end..])?;
    }
    Ok(asking)
}

/// Lists the statements that mutants change: the name of the mutant, the text of the store, and its own.
fn changed(sql: &Path) -> Result<String, Box<dyn Error>> {
    let mut list = "const CHANGED: &[(&str, &str, &str)] = &[\n".to_owned();
    for mutant in SQL {
        let text = fs::read_to_string(sql.join(mutant.file))?;
        let found = text.matches(mutant.find).count();
        if found != 1 {
            let place = format!("{} has {found} places like {:?}", mutant.file, mutant.find);
            return Err(format!("mutant {}: {place}; it must be exactly one", mutant.name).into());
        }
        let changed = text.replace(mutant.find, mutant.replace);
        writeln!(list, "({:?}, {text:?}, {changed:?}),", mutant.name)?;
    }
    Ok(list + "];\n")
}
