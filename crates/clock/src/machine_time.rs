//! The time of a machine since it was started.

use std::time::Duration;

/// The time of a machine since it was started: all of its processes read the same.
///
/// Time awake and time slept are apart, because what waits in a process waits by time awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineTime {
    /// The time since the machine was started, without the time that it slept. Readings never go backwards.
    pub awake: Duration,
    /// How long the machine has slept in all since it was started (suspended, hibernated). Zero if the clock
    /// cannot tell.
    pub slept: Duration,
    /// Names the run of the machine from one start to the next. `None` if the clock cannot tell: then two
    /// readings may be of different machines or of different runs.
    pub boot: Option<BootId>,
}

/// Names one run of a machine, from one start to the next, as processes see it whose clocks have one origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BootId(pub u128);
