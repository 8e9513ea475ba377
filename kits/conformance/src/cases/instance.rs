//! Instances: starting them once, asking how they stand, waiting for them, listing them, and what each keeps.

pub(super) mod custom_status;
pub(super) mod end;
pub(super) mod execution;
pub(super) mod history;
pub(super) mod kv;
pub(super) mod list;
pub(super) mod start;
pub(super) mod state;
pub(super) mod watch;

use std::sync::Arc;

use steadfast_store::{InstanceState, Started, Store, WaitFor, Waited};
use tokio::task::JoinHandle;

use crate::bench::{Bench, Commit, LEASE, ok, raise, start_of};

async fn start(store: &dyn Store, instance: &str) -> Started {
    ok(store.start(start_of(instance).into(), Vec::new()).await)
}

async fn state(store: &dyn Store, instance: &str) -> InstanceState {
    ok(store.state(instance).await).expect("the instance should have a state")
}

/// Waits for an instance in a task of its own, so that the case can go on.
async fn waiting(bench: &Bench, what: WaitFor<'static>) -> JoinHandle<Option<Waited>> {
    let (provider, waiting) = (Arc::clone(bench.provider()), bench.clock().sleepers());
    let call = tokio::spawn(async move {
        let store = provider.into_store()?;
        Some(ok(store.wait(what, LEASE).await))
    });
    bench.parked(waiting + 1).await;
    call
}

/// What a wait for an instance says that ends now.
async fn seen(store: &dyn Store, instance: &str) -> Waited {
    Waited::Seen(ok(store.state(instance).await).map(Box::new))
}

/// Commits a turn of an instance that waits.
async fn go_on(bench: &Bench, instance: &str, commit: Commit) {
    bench.send(raise(instance, "poke")).await;
    let turn = bench.fetched().await;
    assert_eq!(turn.item.instance, instance, "nothing else is ready");
    // Whoever a fetch wakes has looked before the commit, so that only the commit can show it something.
    bench.settle().await;
    bench.commit(&turn, commit).await;
}
