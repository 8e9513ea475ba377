//! Management: looking at instances, deleting them, pruning them.

pub(super) mod age;
pub(super) mod asked_for;
pub(super) mod bulk;
pub(super) mod delete;
pub(super) mod gauge;
pub(super) mod look;
pub(super) mod prune;

use steadfast_store::ProviderErrorKind;

use crate::bench::{Bench, Commit, refused};

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

/// Requires an error of a kind whose text holds what users match on.
fn says<T: std::fmt::Debug>(
    result: Result<T, steadfast_store::ProviderError>,
    kind: ProviderErrorKind,
    text: &str,
) {
    let error = refused(result, kind);
    assert!(error.message.to_lowercase().contains(text), "the error should say '{text}': {error}");
    assert!(!error.is_retryable(), "another try cannot help: {error}");
}

async fn child(bench: &Bench, instance: &str, parent: &str) {
    bench.begin(instance, Commit::default().parent(parent)).await;
}

async fn ended_child(bench: &Bench, instance: &str, parent: &str) {
    bench.begin(instance, Commit::default().parent(parent).complete(instance, 2, "output")).await;
}
