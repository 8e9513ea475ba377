//! A sample of the copies, read through the store and replayed with the code that wrote the templates.

use anyhow::{Context, Result, bail, ensure};
use steadfast::replay::{Identity, Setup, verify};
use steadfast_store::Store;

use crate::multiply::Made;
use crate::site::Site;
use crate::templates::{FANS, approval, order};

/// Reads copies from the beginning, the middle and the end of a store, and replays their histories.
///
/// # Errors
///
/// A copy is missing, differs from its template, or its history does not fit the code.
///
/// # Cancel safety
/// It only reads.
pub async fn check_sample(site: &Site, made: &Made) -> Result<()> {
    let opened = site.open().await?;
    let store = opened.store.as_ref();
    for copy in [1, made.sets.div_ceil(2), made.sets] {
        for template in ["old1", "old8", "recent2"] {
            let id = made.id(template, copy);
            let state = store.state(&id).await?.with_context(|| format!("{id} is missing"))?;
            ensure!(state.status.label() == "Completed", "{id} has not completed: {:?}", state.status);
            replay(store, &id, "Order").await?;
        }
        for template in ["event1", "event2"] {
            let id = made.id(template, copy);
            let state = store.state(&id).await?.with_context(|| format!("{id} is missing"))?;
            ensure!(state.status.label() == "Running", "{id} does not wait: {:?}", state.status);
            ensure!(store.kv_value(&id, "customer").await?.as_deref() == Some("ada"), "{id} has no values");
            replay(store, &id, "Approval").await?;
        }
        let parent = made.id("parent1", copy);
        let admin = store.admin().context("the store has no management")?;
        let children = admin.list_children(&parent).await?;
        ensure!(children.len() == 2, "{parent} has the children {children:?}");
        for child in children {
            replay(store, &child, "Order").await?;
        }
    }
    for ((parent, _), copy) in FANS.into_iter().flat_map(|fan| [(fan, 1), (fan, made.children)]) {
        let child = made.child_id(parent, copy);
        let state = store.state(&child).await?.with_context(|| format!("{child} is missing"))?;
        ensure!(state.parent.as_deref() == Some(parent), "the parent of {child} is {:?}", state.parent);
    }
    Ok(())
}

/// Replays the history of an instance with its code.
async fn replay(store: &dyn Store, id: &str, orchestration: &str) -> Result<()> {
    let history = store.read_history(id, None).await?;
    ensure!(history.len() >= 50, "{id} has {} events", history.len());
    ensure!(history.iter().all(|event| event.instance_id == id), "{id} has events of another instance");
    let identity = Identity {
        instance: id.to_owned(),
        execution_id: 1,
        name: orchestration.to_owned(),
        version: "1.0.0".to_owned(),
    };
    let fits = match orchestration {
        "Order" => verify(Setup::new(identity), history, order),
        "Approval" => verify(Setup::new(identity), history, approval),
        other => bail!("the code of {other} is not replayed"),
    };
    fits.map_err(|mismatch| anyhow::anyhow!("{id} cannot be replayed: {mismatch}"))
}
