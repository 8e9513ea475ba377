//! Runs random programs on the published crate and, turn by turn, the same histories and arrivals on ours.
//!
//! ```text
//! compare [--programs N] [--seed S] [--show] [--channels] [--races-of-held]
//! ```
//!
//! `--show` prints every program and its turns. `--channels` and `--races-of-held` add what the published
//! crate cannot always replay: a channel between two branches, and a race of held futures with a newer one
//! first. A difference that is not meant is printed with its story, and the program fails.

use std::{collections::BTreeMap, error::Error, fmt, process::ExitCode, sync::Arc};

use proptest::strategy::{Strategy, ValueTree};
use steadfast_peer::{
    difference::{Difference, Known, Polls, differences},
    ours::{self, Answer},
    program::{
        generate::{self, Palette},
        script::Chances,
    },
    published::Theatre,
    record::{Ending, Run},
};
use steadfast_testing::program::generate as our_generate;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let options = Options::from_args(std::env::args().skip(1))?;
    let mut theatre = Theatre::open().await;
    let mut tally = Tally::default();
    let (mut runner, mut our_runner) = (generate::runner(options.seed), our_generate::runner(options.seed));
    let (programs, our_programs) =
        (generate::program(options.palette), our_generate::program(options.our_palette()));
    for index in 0..options.programs {
        let program = programs.new_tree(&mut runner).map_err(|reason| reason.to_string())?.current();
        let our_program =
            our_programs.new_tree(&mut our_runner).map_err(|reason| reason.to_string())?.current();
        if program.to_string() != our_program.to_string() {
            return Err("the two generators make different programs of one seed".into());
        }
        let run = theatre.play(&program, options.seed.wrapping_add(index), Chances::PUBLISHED).await?;
        if options.show {
            println!("--- program {index}\n{program}{run}");
        }
        tally.count(&run);
        let polls = polls(&program.to_string());
        for answer in ours::answers(&Arc::new(our_program), &run)? {
            for unknown in tally.compare(&run, &answer, polls) {
                println!("--- program {index}, turn {}: {unknown}\n{program}{run}", answer.index);
                println!("ours:\n{}", answer.turn);
            }
        }
    }
    theatre.close().await;
    print!("{tally}");
    Ok(if tally.unknown == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads in the story of a program whether it has what `--channels` and `--races-of-held` add.
fn polls(story: &str) -> Polls {
    if story.contains("over a channel") || story.contains("the loser is kept") {
        Polls::Apart
    } else {
        Polls::Alike
    }
}

struct Options {
    programs: u64,
    seed: u64,
    show: bool,
    palette: Palette,
}

impl Options {
    fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options = Self { programs: 1000, seed: 1, show: false, palette: Palette::PUBLISHED };
        while let Some(arg) = args.next() {
            let mut number =
                || args.next().ok_or("a number is missing")?.parse().map_err(Box::<dyn Error>::from);
            match arg.as_str() {
                "--programs" => options.programs = number()?,
                "--seed" => options.seed = number()?,
                "--show" => options.show = true,
                "--channels" => options.palette.channels = true,
                "--races-of-held" => options.palette.races_of_held = true,
                other => return Err(format!("unknown argument {other:?}").into()),
            }
        }
        Ok(options)
    }

    fn our_palette(&self) -> our_generate::Palette {
        let Palette { own, channels, races_of_held, retries, continues, panics } = self.palette;
        our_generate::Palette { own, channels, races_of_held, retries, continues, panics }
    }
}

/// How the runs ended, how long they were, which events they saw, and where ours differ.
#[derive(Default)]
struct Tally {
    endings: BTreeMap<String, u64>,
    events: BTreeMap<String, u64>,
    turns: u64,
    alike: u64,
    replayed: u64,
    known: BTreeMap<Known, u64>,
    unknown: u64,
}

impl Tally {
    fn count(&mut self, run: &Run) {
        let ending = match &run.ending {
            Ending::Terminal(ending) => ending.clone(),
            other => format!("{other:?}"),
        };
        *self.endings.entry(ending).or_default() += 1;
        self.turns += run.turns.len() as u64;
        for event in run.turns.iter().flat_map(|turn| &turn.events) {
            let kind = event["type"].as_str().unwrap_or("?").to_owned();
            *self.events.entry(kind).or_default() += 1;
        }
    }

    /// Counts how one turn compares. Gives the differences that nobody expects.
    fn compare(&mut self, run: &Run, answer: &Answer, polls: Polls) -> Vec<String> {
        let differences = differences(run, answer, polls);
        self.alike += u64::from(differences.is_empty());
        self.replayed += u64::from(answer.refuted.is_none());
        let mut unknown = Vec::new();
        for difference in differences {
            match difference {
                Difference::Known(known) => *self.known.entry(known).or_default() += 1,
                Difference::Unknown(what) => unknown.push(what),
            }
        }
        self.unknown += unknown.len() as u64;
        unknown
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, count) in self.endings.iter().chain(&self.events) {
            writeln!(f, "{count:8} {what}")?;
        }
        writeln!(f, "{:8} turns", self.turns)?;
        writeln!(f, "{:8} turns that both decide alike", self.alike)?;
        writeln!(f, "{:8} histories, each up to the end of a turn, that ours repeats", self.replayed)?;
        writeln!(f, "differences:")?;
        for known in Known::ALL {
            let (clause, reason) = known.reason();
            writeln!(f, "{:8} {clause:7} {reason}", self.known.get(&known).unwrap_or(&0))?;
        }
        writeln!(f, "{:8}         that nobody expects", self.unknown)
    }
}
