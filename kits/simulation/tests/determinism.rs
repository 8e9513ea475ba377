//! One seed is one run: what is found once can be looked at again.

use steadfast_simulation::{story::Story, world::play};

#[test]
fn a_story_that_is_played_twice_happens_the_same_note_for_note() {
    for seed in 0..24 {
        let story = Story::of(seed);
        let (one, other) = (play(&story).expect("plays"), play(&story).expect("plays"));
        let differ = one.notes.iter().zip(&other.notes).position(|(one, other)| one != other);
        if let Some(place) = differ {
            panic!("seed {seed}, note {place}:\n{}\n{}", one.notes[place], other.notes[place]);
        }
        assert_eq!(one.notes.len(), other.notes.len(), "seed {seed}");
        assert_eq!((one.steps, one.violations), (other.steps, other.violations), "seed {seed}");
    }
}
