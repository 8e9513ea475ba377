//! Lists: pages of instances by each filter and by several, and the lists of the compatible API.

use anyhow::{Result, ensure};
use steadfast_store::InstanceQuery;

use super::{Probe, rows};
use crate::figure::Growth;
use crate::templates::FANS;

/// The size of a page.
const PAGE: usize = 50;

pub(super) async fn run(probe: &mut Probe<'_>) -> Result<()> {
    let all = InstanceQuery { limit: PAGE, ..InstanceQuery::default() };
    let status = |status: &str| InstanceQuery { status: Some(status.to_owned()), ..all.clone() };
    let name = |name: &str| InstanceQuery { orchestration: Some(name.to_owned()), ..all.clone() };
    let parent = |parent: &str| InstanceQuery { parent: Some(parent.to_owned()), ..all.clone() };
    let prefix = |prefix: &str| InstanceQuery { id_prefix: Some(prefix.to_owned()), ..all.clone() };
    let middle = probe.middle("old3", 0);
    let small_parent = probe.middle("parent1", 0);
    let roots = InstanceQuery { roots_only: true, ..all.clone() };
    for (title, query, at_most) in [
        ("list all", all.clone(), PAGE),
        ("list roots", roots.clone(), PAGE),
        ("list running", status("Running"), PAGE),
        ("list completed", status("Completed"), PAGE),
        ("list failed", status("Failed"), PAGE),
        ("list continued as new (none)", status("ContinuedAsNew"), 0),
        ("list of a status that does not exist", status("Lost"), 0),
        ("list of a frequent orchestration", name("Order"), PAGE),
        ("list of a rare orchestration", name("Fan"), 2),
        ("list of an unknown orchestration", name("Unknown"), 0),
        ("list of a frequent prefix", prefix("old"), PAGE),
        ("list of a rare prefix", prefix(&middle), 1),
        ("list of an unknown prefix", prefix("zebra"), 0),
        ("list of an early prefix", prefix("\u{1}"), 0),
        ("list of a large parent", parent(FANS[0].0), PAGE),
        ("list of a small parent", parent(&small_parent), 2),
        ("list of an unknown parent", parent("zebra"), 0),
        ("list of running of a rare orchestration", both(status("Running"), name("Fan")), 1),
        ("list of failed of another orchestration", both(status("Failed"), name("Fan")), 0),
        ("list of failed roots", both(status("Failed"), roots.clone()), PAGE),
        ("list of roots of a rare orchestration", both(roots.clone(), name("Fan")), 2),
        ("list of running children of a large parent", both(status("Running"), parent(FANS[0].0)), 0),
        ("list of a prefix below a large parent", both(prefix("zebra"), parent(FANS[0].0)), 0),
    ] {
        let growth = growth_of(title);
        let store = probe.store();
        let call = async |_| {
            let page = store.instances(&query).await?;
            ensure!(page.instances.len() <= at_most, "{title}: {} instances", page.instances.len());
            ensure!(at_most == 0 || !page.instances.is_empty(), "{title}: no instance");
            Ok(rows(page.instances.len()))
        };
        probe.count(title, growth, call).await?;
    }
    pages(probe, status("Failed")).await?;
    compatible(probe).await
}

/// How the work of a list may grow. Of two conditions no index has both, so the rows of the rarer one are
/// looked at; and an index of ids does not have the order of a list.
fn growth_of(title: &str) -> Growth {
    match title {
        "list of a frequent prefix" => Growth::Known("steps over newer instances with other ids"),
        "list of failed of another orchestration"
        | "list of running children of a large parent"
        | "list of a prefix below a large parent" => {
            Growth::Known("looks at all rows of the rarer of two conditions")
        }
        _ => Growth::Flat,
    }
}

/// Joins the conditions of two queries.
fn both(one: InstanceQuery, other: InstanceQuery) -> InstanceQuery {
    InstanceQuery {
        status: one.status.or(other.status),
        orchestration: one.orchestration.or(other.orchestration),
        id_prefix: one.id_prefix.or(other.id_prefix),
        parent: one.parent.or(other.parent),
        roots_only: one.roots_only || other.roots_only,
        ..one
    }
}

/// Counts the second page, and the page behind the last.
async fn pages(probe: &mut Probe<'_>, query: InstanceQuery) -> Result<()> {
    let store = probe.store();
    let first = store.instances(&InstanceQuery { limit: 10, ..query.clone() }).await?;
    let second = InstanceQuery { limit: 10, after: first.next, ..query };
    let call = async |_| Ok(rows(store.instances(&second).await?.instances.len()));
    probe.count("second page of failed", Growth::Flat, call).await?;
    let call = async |_| Ok(rows(store.sessions(None).await?.len()));
    probe.count("first page of sessions", Growth::PerResult, call).await?;
    let call = async |_| Ok(rows(store.workers(None).await?.len()));
    probe.count("first page of workers", Growth::PerResult, call).await?;
    let call = async |_| Ok(rows(store.set_aside(None).await?.len()));
    probe.count("first page of rows set aside", Growth::PerResult, call).await
}

/// Counts the lists that have no pages: their work is divided by what they give.
async fn compatible(probe: &mut Probe<'_>) -> Result<()> {
    let admin = probe.admin()?;
    let call = async |_| Ok(rows(admin.list_instances().await?.len()));
    probe.count("list_instances", Growth::PerResult, call).await?;
    let call = async |_| Ok(rows(admin.list_instances_by_status("Failed").await?.len()));
    probe.count("list_instances_by_status Failed", Growth::PerResult, call).await?;
    let call = async |_| Ok(rows(admin.list_instances_by_status("Lost").await?.len()));
    probe.count("list_instances_by_status of none", Growth::Flat, call).await?;
    let call = async |_| Ok(rows(admin.list_children(FANS[0].0).await?.len()));
    probe.count("list_children of a large parent", Growth::PerResult, call).await?;
    let call = async |_| Ok(rows(admin.get_instance_tree(FANS[0].0).await?.all_ids.len()));
    probe.count("get_instance_tree of a large parent", Growth::PerResult, call).await?;
    let call = async |_| Ok(admin.get_system_metrics().await?.total_events);
    probe.count("get_system_metrics", Growth::Known("counts all rows by its meaning"), call).await
}
