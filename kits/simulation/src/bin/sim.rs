//! Plays stories on the command line: `cargo xtask sim` builds and starts this.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::{
    num::NonZero,
    ops::Range,
    path::PathBuf,
    process::ExitCode,
    str::FromStr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
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

/// Plays stories of workers, clients and a store in trouble, and names each promise that was broken.
#[derive(Parser)]
#[command(name = "cargo xtask sim", bin_name = "cargo xtask sim", after_help = AFTER_HELP)]
struct Arguments {
    /// Which seeds are played; 500 on the memory store and 60 on SQLite if none are given
    #[arg(long, value_name = "A..B")]
    seeds: Option<Seeds>,

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

    /// How many stories are played at a time; as many as there are cores if it is not given
    #[arg(long, value_name = "N")]
    jobs: Option<NonZero<usize>>,
}

const AFTER_HELP: &str = "\
`cargo xtask sim` takes three more:
  (no option)     what CI runs: the default seeds on both stores, then every broken engine and store
  --mutations     play on broken engines and stores only: each must break a promise; with --help for more
  --release       build optimized, for long runs (the build takes minutes)

Examples:
  cargo xtask sim --seed 7 --store sqlite --trace       one story, and all that happens in it
  cargo xtask sim --seeds 500..2000 --shrink            other seeds; what fails is shortened
  cargo xtask sim --story kits/simulation/stories/a_termination_before_the_start.json
  cargo xtask sim --release --seeds 0..50000 --store memory

docs/internals/simulation.md says how to read a violation.";

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
    /// Returns the seeds that are played if none are given: as many as every change can wait for.
    fn seeds(self) -> Range<u64> {
        match self {
            Self::Memory => 0..500,
            Self::Sqlite => 0..60,
        }
    }

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
const PROGRESS: usize = 100;

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
    let plays = arguments.plays_of_seeds();
    let (next, broken) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<(), Fault> {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some((on, seed)) = plays.get(place) else { return Ok(()) };
            let story = on.story(*seed);
            if tell(arguments, *on, &story, &on.play(&story)?)? {
                broken.lock().unwrap_or_else(PoisonError::into_inner).push((on.name(), *seed));
            }
            if (place + 1).is_multiple_of(PROGRESS) {
                println!("{} of {} stories", place + 1, plays.len());
            }
        }
    };
    let jobs = arguments.jobs.or(std::thread::available_parallelism().ok()).map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        all.into_iter().try_for_each(|one| one.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })?;
    let broken = broken.into_inner().unwrap_or_else(PoisonError::into_inner);
    for on in arguments.store.each() {
        let count = plays.iter().filter(|(each, _)| each == on).count();
        let seeds: Vec<u64> =
            broken.iter().filter(|(name, _)| *name == on.name()).map(|(_, seed)| *seed).collect();
        println!("{}: {count} stories, {} break a promise {seeds:?}", on.name(), seeds.len());
    }
    Ok(broken.len())
}

impl Arguments {
    /// Lists the stories that are played, by store and seed.
    fn plays_of_seeds(&self) -> Vec<(On, u64)> {
        let given = self.seed.map(|seed| seed..seed + 1).or(self.seeds.clone().map(|Seeds(range)| range));
        let of = |on: &On| given.clone().unwrap_or(on.seeds()).map(|seed| (*on, seed)).collect::<Vec<_>>();
        self.store.each().iter().flat_map(of).collect()
    }
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
