//! The shortest story that still breaks the same promise: what a person looks at.

use crate::story::Story;

/// A story that was shortened.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The shortest one that was found to fail.
    pub story: Story,
    /// How many stories were played to find it.
    pub plays: usize,
}

/// Shortens a story step by step for as long as it fails. It plays at most so many stories; `fails` plays one
/// and tells whether it breaks the same promise.
///
/// # Errors
///
/// The first error of `fails`.
pub fn shrink<E>(
    story: &Story,
    most: usize,
    mut fails: impl FnMut(&Story) -> Result<bool, E>,
) -> Result<Shrunk, E> {
    let mut shrunk = Shrunk { story: story.clone(), plays: 0 };
    loop {
        let mut shorter = None;
        for candidate in shrunk.story.shorter() {
            if shrunk.plays >= most {
                return Ok(shrunk);
            }
            shrunk.plays += 1;
            if fails(&candidate)? {
                shorter = Some(candidate);
                break;
            }
        }
        match shorter {
            Some(shorter) => shrunk.story = shorter,
            None => return Ok(shrunk),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::story::Trouble;

    fn has_a_kill(story: &Story) -> bool {
        story.events.iter().any(|event| matches!(event.what, Trouble::Kill(..)))
    }

    #[test]
    fn a_story_is_cut_down_to_what_makes_it_fail() {
        let story = (0..).map(Story::of).find(|story| has_a_kill(story) && story.events.len() > 5);
        let story = story.expect("one seed in a few has a kill");
        let shrunk = shrink(&story, 10_000, |story| Ok::<_, Infallible>(has_a_kill(story)));
        let Ok(shrunk) = shrunk;
        assert_eq!((shrunk.story.events.len(), shrunk.story.instances.len()), (1, 0), "{}", shrunk.story);
        assert_eq!(shrunk.story.workers.len(), 1);
    }

    #[test]
    fn no_more_stories_are_played_than_allowed() {
        let shrunk = shrink(&Story::of(3), 7, |_| Ok::<_, Infallible>(true));
        let Ok(shrunk) = shrunk;
        assert_eq!(shrunk.plays, 7);
    }

    #[test]
    fn a_shorter_story_is_never_the_same_one() {
        for seed in 0..20 {
            let story = Story::of(seed);
            assert!(story.shorter().iter().all(|shorter| *shorter != story));
        }
    }
}
