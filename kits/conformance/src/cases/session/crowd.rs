//! A crowd: many processes at once, and still one owner at a time (A1, A2, A5).

use std::collections::{BTreeMap, BTreeSet};

use steadfast_core::SessionKey;
use steadfast_store::{Provider, SessionRef};

use super::{attachment, desk, id_of, request};
use crate::Verdict;
use crate::bench::{Bench, LEASE, completion, ok};
use crate::case::{cases, need};

cases![
    s13_a_crowd_never_shares_an_attachment,
    s13_a_crowd_of_claimers_has_one_winner,
    s13_a_crowd_that_lets_go_never_repeats_an_epoch,
];

const CROWD: usize = 8;

/// What one process saw: the attachments it had, and the items it was given.
type Seen = (BTreeSet<SessionRef>, Vec<u64>);

async fn s13_a_crowd_never_shares_an_attachment(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let items = 200;
    for id in 1..=items {
        desk.queue(&format!("S{}", id % 7), id).await;
    }
    let crowd: Vec<_> = (0..CROWD)
        .map(|number| tokio::spawn(serve(bench.provider().clone(), format!("owner {number}"))))
        .collect();
    let mut owners: BTreeMap<SessionRef, usize> = BTreeMap::new();
    let mut served = Vec::new();
    for (number, member) in crowd.into_iter().enumerate() {
        let (attachments, items) = member.await.expect("no member of the crowd panics");
        for attachment in attachments {
            let other = owners.insert(attachment.clone(), number);
            assert_eq!(other, None, "{attachment:?} was given to two processes");
        }
        served.extend(items);
    }
    served.sort_unstable();
    assert_eq!(served, (1..=items).collect::<Vec<_>>(), "each item was given once");
    Verdict::Kept
}

/// Serves until there is nothing that this process may have.
async fn serve(provider: std::sync::Arc<dyn Provider>, owner: String) -> Seen {
    let store = provider.into_store().expect("the case asked for it");
    let mut seen = Seen::default();
    while let Some(lease) = ok(store.fetch_work(request(&owner)).await) {
        seen.0.insert(attachment(&lease));
        seen.1.push(id_of(&lease.item));
        tokio::task::yield_now().await;
        ok(store.finish_work(&lease.token, completion("i", id_of(&lease.item)).into()).await);
    }
    seen
}

async fn s13_a_crowd_of_claimers_has_one_winner(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    for round in 1..=10 {
        desk.queue("S", round).await;
        let crowd: Vec<_> = (0..CROWD)
            .map(|number| {
                let provider = bench.provider().clone();
                tokio::spawn(async move {
                    let store = provider.into_store().expect("the case asked for it");
                    ok(store.fetch_work(request(&format!("owner {number}"))).await)
                })
            })
            .collect();
        let mut winners = Vec::new();
        for member in crowd {
            winners.extend(member.await.expect("no member of the crowd panics"));
        }
        let [winner] = winners.as_slice() else { panic!("{} won, one should", winners.len()) };
        assert_eq!(winner.attempt, 1, "those who lost counted nothing");
        desk.finish(winner).await;
        bench.advance(LEASE);
    }
    Verdict::Kept
}

async fn s13_a_crowd_that_lets_go_never_repeats_an_epoch(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    for id in 1..=100 {
        desk.queue("S", id).await;
    }
    let crowd: Vec<_> = (0..CROWD)
        .map(|number| tokio::spawn(grab(bench.provider().clone(), format!("owner {number}"))))
        .collect();
    let mut epochs = BTreeSet::new();
    let mut count = 0;
    for member in crowd {
        let grabbed = member.await.expect("no member of the crowd panics");
        assert!(grabbed.is_sorted_by(|one, next| one < next), "epochs rise: {grabbed:?}");
        count += grabbed.len();
        epochs.extend(grabbed);
    }
    assert_eq!((count, epochs.len()), (100, 100), "each attachment has an epoch of its own");
    let left = desk.find(&SessionKey::shared("S")).await.map(|session| session.queued);
    assert_eq!(left.unwrap_or(0), 0);
    Verdict::Kept
}

/// Claims, finishes and releases until no work is left. Another worker may have a turn between two tries.
async fn grab(provider: std::sync::Arc<dyn Provider>, owner: String) -> Vec<u64> {
    let store = provider.into_store().expect("the case asked for it");
    let me = steadfast_store::Owner::unnamed(&owner);
    let mut epochs = Vec::new();
    loop {
        if let Some(lease) = ok(store.fetch_work(request(&owner)).await) {
            let held = attachment(&lease);
            epochs.push(held.epoch);
            ok(store.finish_work(&lease.token, completion("i", id_of(&lease.item)).into()).await);
            ok(store.release_sessions(&me, &[held]).await);
        } else {
            let session = ok(store.session(&SessionKey::shared("S")).await);
            if session.is_none_or(|session| session.queued == 0) {
                return epochs;
            }
        }
        tokio::task::yield_now().await;
    }
}
