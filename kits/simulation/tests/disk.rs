//! Stories on a SQLite file: each process opens it, the power of the machine fails, and its disk refuses.

use steadfast_audit::Fact;
use steadfast_simulation::{
    ground::DiskTrouble,
    journal::{Note, Noted},
    story::{Story, Theme, Trouble},
    world::{Played, play_on_disk},
};
use steadfast_sqlite::Durability;

#[allow(clippy::expect_used, reason = "a story that cannot be played fails its test")]
fn played(story: &Story) -> Played {
    play_on_disk(story, Durability::PowerLoss).expect("a story can be played")
}

/// More seeds are played by hand: `cargo xtask sim --store sqlite`.
#[test]
fn every_promise_is_kept_on_a_file_whose_machine_loses_its_power() {
    let (mut power_failures, mut refusals, mut watched) = (0, 0, 0);
    for seed in 0..16 {
        let story = Story::on_disk(seed);
        let Played { notes, violations, is_watched, .. } = played(&story);
        watched += usize::from(is_watched);
        assert!(violations.is_empty(), "seed {seed}: {violations:?}\n{story}");
        let happened = |what: &str| {
            let world = |noted: &Noted| matches!(noted, Noted::World(text) if text.contains(what));
            notes.iter().filter(|note| world(&note.what)).count()
        };
        power_failures += happened("the power fails");
        refusals += happened("cannot open the store") + happened("Disk(Reads") + happened("Disk(Writes");
    }
    assert!(power_failures >= 5 && refusals > 0, "{power_failures} {refusals}");
    assert!(watched >= 4, "the watch lasted in {watched} stories");
}

#[test]
fn a_story_on_a_file_that_is_played_twice_happens_the_same_note_for_note() {
    for seed in 0..5 {
        let story = Story::on_disk(seed);
        let (one, other) = (played(&story), played(&story));
        let differ = one.notes.iter().zip(&other.notes).position(|(one, other)| one != other);
        if let Some(place) = differ {
            panic!("seed {seed}, note {place}:\n{}\n{}", one.notes[place], other.notes[place]);
        }
        assert_eq!((one.notes.len(), one.steps), (other.notes.len(), other.steps), "seed {seed}");
    }
}

/// The simulation can find what it looks for: commits that are acknowledged and not synced.
#[test]
fn without_a_sync_of_each_commit_a_power_failure_breaks_a_promise() {
    let broken = (0..40).find(|seed| {
        let mut story = Story::on_disk(*seed);
        for event in &mut story.events {
            if let Trouble::Disk(trouble) = &mut event.what {
                *trouble = DiskTrouble::Power(std::time::Duration::from_secs(2));
            }
        }
        let normal = play_on_disk(&story, Durability::ProcessCrash).expect("a story can be played");
        !normal.violations.is_empty()
    });
    assert!(broken.is_some());
}

/// The activity of the instance whose history is lost follows a timer that is due when the disk does not
/// return it.
#[test]
fn a_history_that_the_disk_does_not_return_is_late_and_in_the_way_of_no_other() {
    for seed in 0..4 {
        let mut story = Story::of(seed);
        Theme::Torn.add(&mut story);
        let Played { notes, violations, .. } = played(&story);
        assert!(violations.is_empty(), "seed {seed}: {violations:?}\n{story}");
        let begins =
            |note: &&Note| matches!(&note.what, Noted::Fact(Fact::Began(run)) if run.instance == "i0");
        let at = notes.iter().find(begins).map(|note| note.at.as_secs());
        assert!(at.is_some_and(|at| at > 168), "seed {seed}: {at:?}");
    }
}
