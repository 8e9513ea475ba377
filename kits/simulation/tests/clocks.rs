//! The wall clocks of workers decide nothing (A12): a story with wrong ones happens as it does with right
//! ones.

use steadfast_simulation::{
    journal::{Note, Noted},
    story::{Story, Trouble},
    world::play,
};

/// Returns what happened beside the setting of clocks.
fn other_notes(notes: Vec<Note>) -> Vec<Note> {
    let is_step = |note: &Note| match &note.what {
        Noted::World(text) => text.starts_with("Step("),
        Noted::Fact(steadfast_audit::Fact::Fault(fault)) => fault.kind == steadfast_audit::FaultKind::Stepped,
        Noted::Fact(_) | Noted::Call { .. } => false,
    };
    notes.into_iter().filter(|note| !is_step(note)).collect()
}

#[test]
fn a12_a_story_with_wrong_wall_clocks_happens_as_with_right_ones_note_for_note() {
    let mut steps = 0;
    for seed in 0..16 {
        let mut wrong = Story::of(seed);
        let mut right = wrong.clone();
        right.workers.iter_mut().for_each(|worker| worker.ahead_ms = 0);
        // They are not removed: the world goes on until the last event.
        for event in &mut right.events {
            if let Trouble::Step(_, by_ms) = &mut event.what {
                *by_ms = 0;
                steps += 1;
            }
        }
        for (number, worker) in wrong.workers.iter_mut().enumerate() {
            worker.ahead_ms = [-86_400_000, 3_600_000, 5_000][number % 3];
        }
        let (wrong, right) = (play(&wrong).expect("plays"), play(&right).expect("plays"));
        let (wrong, right) = (other_notes(wrong.notes), other_notes(right.notes));
        let differ = wrong.iter().zip(&right).position(|(wrong, right)| wrong != right);
        if let Some(place) = differ {
            panic!("seed {seed}, note {place}:\n{}\n{}", wrong[place], right[place]);
        }
        assert_eq!(wrong.len(), right.len(), "seed {seed}");
    }
    assert!(steps > 0, "no clock was set");
}
