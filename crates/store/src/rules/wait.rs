//! When a wait for an instance ends.

use crate::{InstanceState, Interest, Waited};

/// Judges whether a wait for an instance is over. A store looks at the instance, tells this what it saw, and
/// looks again when it is woken for [`interest`](Self::interest), until [`saw`](Self::saw) returns the
/// answer.
#[derive(Debug)]
pub struct InstanceWait<'a> {
    instance: &'a str,
    until: Until,
}

#[derive(Debug)]
enum Until {
    Changed { seen: u64 },
    Ended { was_there: bool },
}

impl<'a> InstanceWait<'a> {
    /// Waits until the instance has changed since `seen`. For a caller that knows the instance, its deletion
    /// is a change.
    pub fn for_change(instance: &'a str, seen: u64) -> Self {
        Self { instance, until: Until::Changed { seen } }
    }

    /// Waits until the instance has ended, or was deleted after it was seen once.
    pub fn for_end(instance: &'a str) -> Self {
        Self { instance, until: Until::Ended { was_there: false } }
    }

    /// Returns the id of the instance.
    pub fn instance(&self) -> &'a str {
        self.instance
    }

    /// Returns what must happen before another look is worth it.
    pub fn interest(&self) -> Interest {
        match self.until {
            Until::Changed { .. } => Interest::Instance(self.instance.to_owned()),
            Until::Ended { .. } => Interest::End(self.instance.to_owned()),
        }
    }

    /// Takes the state that a look found (`None` if there is no such instance) and returns the answer to the
    /// caller if the wait is over.
    pub fn saw(&mut self, state: Option<InstanceState>) -> Option<Waited> {
        let is_over = match &mut self.until {
            Until::Changed { seen } => state.as_ref().map_or(0, |state| state.change) != *seen,
            Until::Ended { was_there } => match &state {
                Some(state) => {
                    *was_there = true;
                    state.status.is_ended()
                }
                None => *was_there,
            },
        };
        is_over.then(|| Waited::Seen(state.map(Box::new)))
    }
}
