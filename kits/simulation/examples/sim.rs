//! Plays stories by hand.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use steadfast_simulation::{story::Story, world::play};

fn main() -> std::io::Result<()> {
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let (from, to) = (arguments[0], arguments.get(1).copied().unwrap_or(arguments[0] + 1));
    let verbose = std::env::var("V").is_ok();
    std::panic::set_hook(Box::new(|_| {}));
    let mut bad = 0;
    for seed in from..to {
        let story = Story::of(seed);
        let played = play(&story)?;
        if verbose {
            println!("{story}");
            for note in &played.notes {
                println!("{note}");
            }
        }
        if !played.violations.is_empty() {
            bad += 1;
            println!("seed {seed}: {} steps", played.steps);
            for violation in played.violations.iter().take(3) {
                println!("  {}", violation.to_string().chars().take(400).collect::<String>());
            }
        }
    }
    println!("{} seeds, {bad} with violations", to - from);
    Ok(())
}
