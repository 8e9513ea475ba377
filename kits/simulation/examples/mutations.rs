//! Plays stories on broken stores.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use steadfast_simulation::{story::Story, world::play_on};

fn main() -> std::io::Result<()> {
    std::panic::set_hook(Box::new(|_| {}));
    let seeds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(50);
    let only = std::env::args().nth(2);
    let mut caught = 0;
    let mut all = 0;
    for mutant in steadfast_mutants::MUTANTS {
        if only.as_deref().is_some_and(|only| !mutant.name.contains(only)) {
            continue;
        }
        all += 1;
        let mut found = None;
        for seed in 1..=seeds {
            let story = Story::of(seed);
            let played = play_on(&story, |clock| steadfast_mutants::open(mutant.name, clock))?;
            if let Some(violation) = played.violations.first() {
                found = Some((seed, violation.chars().take(90).collect::<String>().replace('\n', " ")));
                break;
            }
        }
        caught += usize::from(found.is_some());
        println!("{:4} {:70} {found:?}", mutant.clause, mutant.name);
    }
    println!("{caught} of {all}");
    Ok(())
}
