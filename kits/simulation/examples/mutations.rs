//! Plays stories on broken engines, and prints how each was caught.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use steadfast_simulation::mutations::{Row, table};

fn main() -> std::io::Result<()> {
    std::panic::set_hook(Box::new(|_| {}));
    let seeds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(50);
    let only = std::env::args().nth(2);
    let rows = table(seeds, only.as_deref(), print)?;
    let caught = rows.iter().filter(|row| row.caught.is_some()).count();
    println!("{caught} of {} are caught", rows.len());
    Ok(())
}

fn print(row: &Row) {
    let Row { number, place, what, clause, caught, unbroken } = row;
    let how = match caught {
        Some((violation, seeds)) => {
            let text: String = violation.text.chars().take(100).collect();
            format!("{:7} {seeds:3}  {text}", violation.rule)
        }
        None => "SURVIVES".to_owned(),
    };
    println!("{number:3} {place:28} {what:72} {clause:4} {how}");
    for violation in unbroken {
        println!("    UNBROKEN {violation}");
    }
}
