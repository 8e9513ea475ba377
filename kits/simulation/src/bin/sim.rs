//! Plays stories on the command line: `cargo xtask sim` builds and starts this.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::{
    ops::Range,
    path::PathBuf,
    process::ExitCode,
    str::FromStr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use clap::{Parser, ValueEnum};
use steadfast_simulation::{
    kept,
    shrink::shrink,
    story::Story,
    world::{Played, play, play_on_disk},
};
use steadfast_sqlite::Durability;

/// Plays stories, and names each promise that was broken.
#[derive(Parser)]
struct Arguments {
    /// Which seeds are played
    #[arg(long, value_name = "A..B", default_value = "0..500")]
    seeds: Seeds,

    /// Play one seed only
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,

    /// Play a story that was kept
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "seed"])]
    story: Option<PathBuf>,

    /// Play on this store
    #[arg(long, value_name = "STORE", default_value = "all")]
    store: Stores,

    /// Print the story and everything that happens in it
    #[arg(long)]
    trace: bool,

    /// Shorten the stories that break a promise, and print them as text and as JSON to keep
    #[arg(long)]
    shrink: bool,

    /// How many stories a shortening plays at most
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    plays: usize,

    /// Play stories on broken engines instead: each must break a promise
    #[cfg(feature = "mutations")]
    #[arg(long)]
    mutations: bool,

    /// How many stories are played at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
}

/// The stores that stories are played on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stores {
    /// A store in memory that all processes reach, as they would reach a server
    Memory,
    /// A SQLite file on the disk of one machine, whose power fails
    Sqlite,
    /// Each story on both
    All,
}

/// One store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Memory,
    Sqlite,
}

impl Stores {
    fn each(self) -> &'static [On] {
        match self {
            Self::Memory => &[On::Memory],
            Self::Sqlite => &[On::Sqlite],
            Self::All => &[On::Memory, On::Sqlite],
        }
    }
}

impl On {
    fn story(self, seed: u64) -> Story {
        match self {
            Self::Memory => Story::of(seed),
            Self::Sqlite => Story::on_disk(seed),
        }
    }

    fn play(self, story: &Story) -> std::io::Result<Played> {
        match self {
            Self::Memory => play(story),
            Self::Sqlite => play_on_disk(story, Durability::PowerLoss),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
        }
    }
}

/// A range of seeds.
#[derive(Clone, Debug)]
struct Seeds(Range<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").ok_or("give two numbers: 0..500")?;
        let number = |text: &str| text.parse().map_err(|_| format!("'{text}' is no number"));
        let range = number(from)?..number(to)?;
        if range.is_empty() { Err("there is no seed in it".to_owned()) } else { Ok(Self(range)) }
    }
}

/// Why stories cannot be played.
type Fault = Box<dyn std::error::Error + Send + Sync>;

/// How many of the violations of a story are printed.
const SHOWN: usize = 3;

/// After how many stories the progress is printed.
const PROGRESS: u64 = 100;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Programs panic on purpose.
    std::panic::set_hook(Box::new(|_| {}));
    match run(&arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Plays what was asked for. Returns how many stories broke a promise.
fn run(arguments: &Arguments) -> Result<usize, Fault> {
    if let Some(path) = &arguments.story {
        let story = kept::read(std::fs::read_to_string(path)?)?;
        let mut broken = 0;
        for on in arguments.store.each() {
            broken += usize::from(tell(arguments, *on, &story, &on.play(&story)?)?);
        }
        return Ok(broken);
    }
    #[cfg(feature = "mutations")]
    if arguments.mutations {
        return mutations();
    }
    let seeds = arguments.seed.map_or(arguments.seeds.0.clone(), |seed| seed..seed + 1);
    let (next, broken) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()));
    let work = || -> Result<(), Fault> {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return Ok(());
            }
            for on in arguments.store.each() {
                let story = on.story(seed);
                if tell(arguments, *on, &story, &on.play(&story)?)? {
                    broken.lock().unwrap_or_else(PoisonError::into_inner).push((on.name(), seed));
                }
            }
            let done = seed - seeds.start + 1;
            if done.is_multiple_of(PROGRESS) {
                println!("{done} of {} stories", seeds.end - seeds.start);
            }
        }
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..arguments.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        all.into_iter().try_for_each(|one| one.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })?;
    let broken = broken.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{} stories, {} break a promise: {broken:?}", seeds.end - seeds.start, broken.len());
    Ok(broken.len())
}

/// How many stories are played on a broken engine at most.
#[cfg(feature = "mutations")]
const MUTATION_SEEDS: u64 = 60;

/// Prints how each broken engine was caught. Returns how many were not.
#[cfg(feature = "mutations")]
fn mutations() -> Result<usize, Fault> {
    use steadfast_simulation::mutations::{Row, table};
    let rows = table(MUTATION_SEEDS, None, |row| println!("{row}"))?;
    let survivors = rows.iter().filter(|row| !row.is_caught()).count();
    let seeds: u64 = rows.iter().filter_map(Row::seeds).sum();
    println!("{} broken engines, {survivors} survive; {seeds} stories caught the others", rows.len());
    Ok(survivors)
}

/// Prints what came of a story. Returns whether it broke a promise.
fn tell(arguments: &Arguments, on: On, story: &Story, played: &Played) -> Result<bool, Fault> {
    let mut text = String::new();
    if arguments.trace {
        text += &format!("{story}\n");
        played.notes.iter().for_each(|note| text += &format!("{note}\n"));
    }
    let Some(first) = played.violations.first() else {
        print!("{text}");
        return Ok(false);
    };
    let (seed, store) = (story.seed, on.name());
    text += &format!("seed {seed} breaks a promise; to see it: --store {store} --seed {seed} --trace\n");
    for violation in played.violations.iter().take(SHOWN) {
        text += &format!("  {}\n", violation.to_string().chars().take(600).collect::<String>());
    }
    if arguments.shrink {
        let fails = |story: &Story| -> std::io::Result<bool> {
            Ok(on.play(story)?.violations.iter().any(|violation| violation.is_like(first)))
        };
        let shrunk = shrink(story, arguments.plays, fails)?;
        text += &format!("after {} plays:\n{}", shrunk.plays, shrunk.story);
        for violation in on.play(&shrunk.story)?.violations.iter().take(SHOWN) {
            text += &format!("  {}\n", violation.to_string().chars().take(600).collect::<String>());
        }
        text += &kept::write(&shrunk.story)?;
    }
    print!("{text}");
    Ok(true)
}
