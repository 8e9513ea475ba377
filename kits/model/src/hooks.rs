//! The one name that the state machine of the runtime takes from its neighbour.

/// Tells why a session is detached, as the runtime's type of this name does. The model does not look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetachReason {
    Idle,
    Released,
    Lost,
    Shutdown,
    Closed,
}
