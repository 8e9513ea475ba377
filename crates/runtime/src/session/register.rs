//! The name under which this process owns sessions: its node with the number of this start.
//!
//! A store tells processes of one node id apart by that number. A process that has a node id and no number
//! yet would share the sessions, and the epochs, of an older process of the same name. So it takes no session
//! work until it is registered (G1).
//!
//! The newest start is the node, and only the process that registers knows when it started. A call of an
//! older process, late or repeated, must not take the node from a newer one: a start has an id, and it
//! replaces only an incarnation that its process has seen (G44).

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::{Clock, MachineTime};
use steadfast_store::{NodeRegistration, NodeStart, Owner, ProviderError, ProviderErrorKind, Store};

use super::detach::node_replaced;
use super::renew;
use crate::activity::builtin::simple_guid;
use crate::dispatch::backoff::Backoff;
use crate::dispatch::in_time;
use crate::dispatch::until_stopped;
use crate::runtime::RuntimeShared;

/// Bounds how long a start waits for the registration: a store that hangs must not keep it.
const START_PATIENCE: Duration = Duration::from_secs(5);

/// Bounds how long a later try waits. Longer, because only the work of sessions waits for it: a store that is
/// slow gets its time.
const LATER_PATIENCE: Duration = Duration::from_secs(30);

/// Bounds how often one try looks again because yet another process has started under this name meanwhile.
const MAX_RIVALS: usize = 16;

/// How this process owns sessions, as far as that is known when it starts.
pub(crate) struct NodeName {
    /// The owner of its sessions: a random name for a process without a node id, else the node with the
    /// number of this start. `None` if the node could not be registered; [`keep_node`] tries again.
    pub(crate) owner: Option<Owner>,
    /// The start to register; `None` for a process without a node id.
    pub(crate) start: Option<ThisStart>,
}

/// The start of this process under the name of its node.
#[derive(Debug, Clone)]
pub(crate) struct ThisStart {
    start: NodeStart,
    /// The time of the machine at which the process started.
    began: Duration,
}

impl ThisStart {
    fn new(node_id: &str, id: String, clock: &dyn Clock) -> Self {
        Self { start: NodeStart::new(node_id, id), began: since_boot(clock) }
    }

    /// Describes the start for a call that is made now.
    fn now(&mut self, clock: &dyn Clock) -> &NodeStart {
        self.start.age = since_boot(clock).saturating_sub(self.began);
        &self.start
    }
}

/// The time of the machine, sleep included: a process that slept is not younger for it.
fn since_boot(clock: &dyn Clock) -> Duration {
    let MachineTime { awake, slept, .. } = clock.machine();
    awake.saturating_add(slept)
}

/// Names this process, and registers its node if it has one.
pub(crate) async fn name_process(
    store: &dyn Store,
    clock: &dyn Clock,
    node_id: Option<&str>,
    random: u128,
) -> NodeName {
    let id = simple_guid(random);
    let Some(node_id) = node_id else { return NodeName { owner: Some(Owner::unnamed(id)), start: None } };
    let mut start = ThisStart::new(node_id, id, clock);
    let owner = match register(store, clock, &mut start, START_PATIENCE).await {
        Ok(owner) => Some(owner),
        Err(error) => {
            tracing::warn!(
                target: "steadfast::runtime",
                node_id,
                %error,
                "the node could not be registered; until it is, this process takes no session work"
            );
            None
        }
    };
    NodeName { owner, start: Some(start) }
}

/// Registers the node if that is still to be done, then renews the leases of sessions. A node that serves no
/// sessions is kept too, because the answers tell when a newer process replaces it (G44).
pub(crate) async fn keep_node(shared: Arc<RuntimeShared>) {
    if shared.sessions.owner().is_none() {
        until_stopped(&shared.stop, register_again(&shared)).await;
    }
    let Some(owner) = shared.sessions.owner() else { return };
    let serves_sessions = shared.plan.worker_slots > 0 && shared.plan.max_sessions > 0;
    if serves_sessions || owner.incarnation.is_some() {
        renew::keep_leases(Arc::clone(&shared)).await;
    }
}

/// Tries to register the node until the store takes it, or a newer process has it.
async fn register_again(shared: &Arc<RuntimeShared>) {
    let Some(mut start) = shared.node_start.clone() else { return };
    let mut backoff = Backoff::new(shared.seed);
    loop {
        let clock = &*shared.plan.clock;
        clock.sleep(backoff.next()).await;
        match register(&*shared.store, clock, &mut start, LATER_PATIENCE).await {
            Ok(owner) => {
                tracing::info!(
                    target: "steadfast::runtime",
                    node_id = start.start.node_id,
                    incarnation = owner.incarnation,
                    "the node is registered; this process takes session work"
                );
                return shared.sessions.registered(owner);
            }
            Err(error) if error.kind == ProviderErrorKind::LeaseLost => return node_replaced(shared, &error),
            Err(error) => {
                tracing::debug!(
                    target: "steadfast::runtime",
                    node_id = start.start.node_id,
                    %error,
                    "the node could not be registered; trying again"
                );
            }
        }
    }
}

/// Registers a start, and waits at most `patience` for the store. A store that does not number the starts of
/// nodes knows them by their names alone. `LeaseLost` if a newer process has the node.
async fn register(
    store: &dyn Store,
    clock: &dyn Clock,
    start: &mut ThisStart,
    patience: Duration,
) -> Result<Owner, ProviderError> {
    tokio::select! {
        biased;
        owner = take_node(store, clock, start) => owner,
        () = clock.sleep(patience) => {
            Err(ProviderError::retryable("register_node", "the store does not answer"))
        }
    }
}

/// Takes the node from the processes that started before this one.
async fn take_node(
    store: &dyn Store,
    clock: &dyn Clock,
    this: &mut ThisStart,
) -> Result<Owner, ProviderError> {
    let node_id = this.start.node_id.clone();
    for _ in 0..MAX_RIVALS {
        let (incarnation, is_younger) = match store.register_node(this.now(clock)).await {
            Ok(NodeRegistration::Registered(number)) => {
                return Ok(Owner { id: node_id, incarnation: Some(number) });
            }
            Ok(NodeRegistration::Taken { incarnation, is_younger }) => (incarnation, is_younger),
            Err(error) if error.kind == ProviderErrorKind::Unsupported => {
                return Ok(Owner::unnamed(node_id));
            }
            Err(error) => return Err(error),
        };
        if is_younger {
            let text = format!(
                "a process that started later has the worker_node_id '{node_id}' (incarnation {incarnation})"
            );
            return Err(ProviderError::new(ProviderErrorKind::LeaseLost, "register_node", text));
        }
        this.start.replaces = Some(incarnation);
    }
    let text = format!("other processes start all the time with the worker_node_id '{node_id}'");
    Err(ProviderError::retryable("register_node", text))
}

/// Asks the store whether a newer process has started under this node's name: the registration of this start
/// is repeated, which changes nothing. A process takes no more work once it was replaced, so one answer that
/// says so is not enough. False if the store does not answer: then the next call is told again.
pub(crate) async fn is_replaced(shared: &RuntimeShared) -> bool {
    let owner = shared.sessions.owner();
    let (Some(mut this), Some(Some(incarnation))) =
        (shared.node_start.clone(), owner.map(|owner| owner.incarnation))
    else {
        return false;
    };
    this.start.replaces = Some(incarnation);
    let start = this.now(&*shared.plan.clock).clone();
    match in_time(shared, "register_node", shared.store.register_node(&start)).await {
        // Another number: the store has forgotten this start, and judges it by the new one.
        Ok(NodeRegistration::Registered(number)) => number != incarnation,
        Ok(NodeRegistration::Taken { .. }) => true,
        Err(_) => false,
    }
}
