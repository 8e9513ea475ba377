//! When a wait for an instance ends.

use crate::{InstanceState, Interest, Waited};

/// Decides when a wait for an instance ends. A store reads the state of the instance, passes it to
/// [`saw`](Self::saw), and reads again when it is woken for [`interest`](Self::interest), until `saw` returns
/// the answer to the caller.
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

    /// Returns the id of the instance that the caller waits for.
    pub fn instance(&self) -> &'a str {
        self.instance
    }

    /// Returns the interest to register before reading the state: reading it again is of use only after a
    /// wake-up for this interest.
    pub fn interest(&self) -> Interest {
        match self.until {
            Until::Changed { .. } => Interest::Instance(self.instance.to_owned()),
            Until::Ended { .. } => Interest::End(self.instance.to_owned()),
        }
    }

    /// Takes the state that the store read (`None` if there is no such instance). Returns the answer to the
    /// caller if the wait ends with it, `None` if the store is to wait on.
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
