//! The bounds of a search, and what the model does otherwise than the engine.

use crate::Mutation;

/// The bounds of a search, and what the model does otherwise than the engine.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// How many processes there are, at most 3. The first two have one node id.
    pub processes: usize,
    /// How many sessions there are, at most 2: a shared one, and one of an instance.
    pub sessions: usize,
    /// The ticks of a lease.
    pub lease: u8,
    /// The ticks for which a process proves a lease from the moment at which it asked. Shorter than a lease.
    pub proof: u8,
    /// How many sessions with an activity a process may serve.
    pub limit: usize,
    /// How many faults a run may have; see the documentation of the crate.
    pub faults: u8,
    /// How many processes may be paused at the same time.
    pub paused: usize,
    /// How many messages may be on their way before another fetch or renewal is sent.
    pub messages: usize,
    /// How many things may be under way at the same time, in all processes: sessions, activities, messages,
    /// pauses.
    pub under_way: usize,
    /// Whether requests may wait on their way to the store. Without that only answers and releases do.
    pub late_requests: bool,
    /// Whether each state is checked for what follows from it without further faults (A6).
    pub must_recover: bool,
    /// Whether no epoch may be attached again, however long after its release (D23).
    pub is_strict: bool,
    /// Whether a process remembers what it released for as long as the lease lives on in the store, and
    /// releases it again when a renewal names it, as the engine does.
    pub releases_again: bool,
    /// What is broken on purpose.
    pub mutation: Option<Mutation>,
}

impl Rules {
    /// The bounds of an ordinary run: 3 workers × 2 sessions.
    pub const ORDINARY: Self = Self {
        processes: 3,
        sessions: 2,
        lease: 3,
        proof: 2,
        limit: 1,
        faults: 1,
        paused: 1,
        messages: 1,
        under_way: 4,
        late_requests: false,
        must_recover: false,
        is_strict: true,
        releases_again: true,
        mutation: None,
    };

    pub(crate) fn has(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }
}
