//! Plays stories on broken engines and stores: `cargo xtask sim --mutations` builds and starts this.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

mod focus;
mod table;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use steadfast_mutations::kept;

use table::{Row, page, table};

/// Plays stories on broken engines and stores: each must break a promise, which the unbroken one keeps.
#[derive(Parser)]
#[command(name = "cargo xtask sim --mutations", bin_name = "cargo xtask sim --mutations")]
struct Arguments {
    /// Only the mutants whose name contains this, or those of a part: runtime, sqlite, memory
    #[arg(value_name = "NAME")]
    only: Option<String>,

    /// How many stories are played on a mutant at most
    #[arg(long, value_name = "N", default_value_t = 60)]
    stories: u64,

    /// Write the story that catches each mutant into this folder, for `cargo xtask sim --story`
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,

    /// Print the list of all mutants, as docs/internals/simulation.md has it, and play nothing
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Programs panic on purpose.
    std::panic::set_hook(Box::new(|_| {}));
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints how each mutant was caught. Returns whether all were.
fn run(arguments: &Arguments) -> std::io::Result<bool> {
    if arguments.list {
        print!("{}", page());
        return Ok(true);
    }
    let only = arguments.only.as_deref();
    let rows = table(arguments.stories, only, |row| println!("{row}"))?;
    if let Some(folder) = &arguments.keep {
        std::fs::create_dir_all(folder)?;
        for (row, story) in rows.iter().filter_map(|row| Some((row, row.story.as_ref()?))) {
            std::fs::write(folder.join(format!("{}.json", row.what)), kept::write(story)?)?;
        }
    }
    if rows.is_empty() {
        println!("no mutant has such a name");
        return Ok(false);
    }
    let survivors: Vec<&Row> = rows.iter().filter(|row| !row.is_caught()).collect();
    let stories: u64 = rows.iter().filter_map(Row::stories).sum();
    println!("{} mutants, {} survive; {stories} stories caught the others", rows.len(), survivors.len());
    survivors.iter().for_each(|row| println!("survives: {}", row.what));
    Ok(survivors.is_empty())
}
