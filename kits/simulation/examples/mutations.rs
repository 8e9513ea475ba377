//! Plays stories on broken engines, and prints how each was caught: how many stories at most, and the name or
//! the place of the mutants.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use steadfast_simulation::mutations::table;

fn main() -> std::io::Result<()> {
    std::panic::set_hook(Box::new(|_| {}));
    let seeds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(50);
    let only = std::env::args().nth(2);
    let rows = table(seeds, only.as_deref(), |row| println!("{row}"))?;
    let caught = rows.iter().filter(|row| row.is_caught()).count();
    println!("{caught} of {} are caught", rows.len());
    Ok(())
}
