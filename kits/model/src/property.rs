//! The invariants that the model checks, by their codes.

use stateright::Property;

use crate::{SessionModel, World};

/// An invariant of sessions, by its code in `docs/contract/rules.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invariant {
    /// One owner: no activity begins under an epoch that another process has too, or after a newer claim.
    A1,
    /// Epochs rise with every claim, and one that was released is not attached again while it is remembered.
    A2,
    /// Fenced: a release with an older epoch changes nothing.
    A3,
    /// Self-fencing: an activity begins only before the process's own deadline, and that is before the end of
    /// the lease.
    A4,
    /// Affinity: a fetch is not given work of a session that another process has a live lease of.
    A5,
    /// No stranding: no lease is longer than one, and without further faults all work ends.
    A6,
    /// Capacity: no process serves more sessions than it may.
    A8,
    /// Close is final: no claim of a closed session; a reopened one has a new epoch, and is claimed by
    /// another process only when its former owner has detached it, or the lease of that has ended (G41).
    A9,
    /// Idle means idle: no session with a leased or running activity is released as idle or untaken.
    A11,
    /// Node identity: a call by an older start of a node changes nothing, and its process is fenced.
    A13,
    /// Clean-up is invisible: the store answers every call as it did before.
    A14,
    /// Detaching ends with a release: no epoch is attached a second time, however long after.
    D23,
}

impl Invariant {
    /// Returns the name of the property.
    pub fn name(self) -> &'static str {
        match self {
            Self::A1 => "A1 one owner",
            Self::A2 => "A2 epochs rise",
            Self::A3 => "A3 fenced",
            Self::A4 => "A4 self-fencing",
            Self::A5 => "A5 affinity",
            Self::A6 => "A6 no stranding",
            Self::A8 => "A8 capacity",
            Self::A9 => "A9 close is final",
            Self::A11 => "A11 idle means idle",
            Self::A13 => "A13 node identity",
            Self::A14 => "A14 clean-up is invisible",
            Self::D23 => "D23 an epoch is attached once",
        }
    }
}

/// Lists the properties. Most are checked by the steps, which know what they change; the others look at the
/// state.
pub(crate) fn properties() -> Vec<Property<SessionModel>> {
    use Invariant::{A1, A2, A3, A4, A5, A6, A8, A9, A11, A13, A14, D23};
    vec![
        Property::always(A1.name(), |_, world: &World| !world.broken.contains(A1)),
        Property::always(A2.name(), |_, world: &World| !world.broken.contains(A2)),
        Property::always(A3.name(), |_, world: &World| !world.broken.contains(A3)),
        Property::always(A4.name(), |_, world: &World| !world.broken.contains(A4)),
        Property::always(A5.name(), |_, world: &World| !world.broken.contains(A5)),
        Property::always(A6.name(), |model: &SessionModel, world: &World| model.strands_nothing(world)),
        Property::always(A8.name(), |model: &SessionModel, world: &World| model.is_within_limit(world)),
        Property::always(A9.name(), |_, world: &World| !world.broken.contains(A9)),
        Property::always(A11.name(), |_, world: &World| !world.broken.contains(A11)),
        Property::always(A13.name(), |_, world: &World| !world.broken.contains(A13)),
        Property::always(A14.name(), |_, world: &World| !world.broken.contains(A14)),
        Property::always(D23.name(), |_, world: &World| !world.broken.contains(D23)),
    ]
}

impl SessionModel {
    fn is_within_limit(&self, world: &World) -> bool {
        world.processes.iter().all(|process| process.serving() <= self.rules.limit)
    }

    fn strands_nothing(&self, world: &World) -> bool {
        let rows = world.store.sessions.iter().flat_map(|stored| stored.row.into_iter().chain(stored.former));
        let are_short = rows.into_iter().all(|row| row.lease <= self.rules.lease);
        are_short && (!self.rules.must_recover || self.recovers(world))
    }
}
