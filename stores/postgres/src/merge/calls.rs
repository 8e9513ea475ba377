//! The calls that are merged: one queue for each kind of request.

use std::time::Duration;

use steadfast_store::{Abandon, Committed, Started, WorkLease};

use crate::link::lanes::{FETCHES, WRITES};
use crate::link::options::PostgresPlan;
use crate::merge::queue::{MergeQueue, MergeRules};
use crate::merge::undelivered::Guarded;
use crate::verbs::backend::Backend;
use crate::verbs::message::{StoredMessage, StoredStart};
use crate::verbs::poll::PollResult;
use crate::verbs::turn::commit::PreparedCommit;
use crate::verbs::turn::{LeasedTurn, TurnFetch};
use crate::verbs::work::WorkFetch;
use crate::verbs::work::finish::WorkEnd;
use crate::verbs::work::tries::TryEnd;

/// The queues of all requests that are merged.
#[derive(Debug)]
pub(crate) struct MergedCalls {
    pub(crate) turn_fetches: MergeQueue<TurnFetch, PollResult<Guarded<LeasedTurn>>>,
    pub(crate) turn_commits: MergeQueue<PreparedCommit, Committed>,
    pub(crate) turn_renewals: MergeQueue<LeaseRenewal, ()>,
    pub(crate) turn_abandons: MergeQueue<LeaseAbandon, ()>,
    pub(crate) work_fetches: MergeQueue<WorkFetch, PollResult<Guarded<WorkLease>>>,
    pub(crate) work_ends: MergeQueue<WorkEnd, ()>,
    pub(crate) work_renewals: MergeQueue<LeaseRenewal, ()>,
    pub(crate) work_abandons: MergeQueue<LeaseAbandon, ()>,
    pub(crate) tries: MergeQueue<TryEnd, ()>,
    pub(crate) sends: MergeQueue<Vec<StoredMessage>, ()>,
    pub(crate) starts: MergeQueue<StoredStart, Started>,
}

/// Asks to renew a lease.
#[derive(Debug, Clone)]
pub(crate) struct LeaseRenewal {
    pub(crate) token: String,
    pub(crate) extend_for: Duration,
}

/// Asks to abandon a lease.
#[derive(Debug, Clone)]
pub(crate) struct LeaseAbandon {
    pub(crate) token: String,
    pub(crate) how: Abandon,
}

impl MergedCalls {
    pub(crate) fn new(backend: &Backend, plan: &PostgresPlan) -> Self {
        let backend = Backend { db: backend.db.clone().failing_on_locks(), ..backend.clone() };
        // A call outlives the callers of its requests, so each has a handle of its own.
        macro_rules! merged {
            ($operation:literal, $method:ident, $rules:expr) => {{
                let backend = backend.clone();
                MergeQueue::new(MergeRules { operation: $operation, ..$rules }, move |asked| {
                    let backend = backend.clone();
                    async move { backend.$method(asked).await }
                })
            }};
        }
        Self {
            turn_fetches: merged!("fetch_turn", fetch_turns, fetches(plan, TurnFetch::is_like)),
            turn_commits: merged!("commit_turn", commit_turns, writes(plan, PreparedCommit::bytes)),
            turn_renewals: merged!("renew", renew_turns, writes(plan, |_| 0)),
            turn_abandons: merged!("abandon", abandon_turns, writes(plan, |_| 0)),
            work_fetches: merged!("fetch_work", fetch_work, fetches(plan, WorkFetch::is_like)),
            work_ends: merged!("finish_work", finish_work, writes(plan, WorkEnd::bytes)),
            work_renewals: merged!("renew", renew_work, writes(plan, |_| 0)),
            work_abandons: merged!("abandon", abandon_work, writes(plan, |_| 0)),
            tries: merged!("end_try", end_tries, writes(plan, TryEnd::bytes)),
            sends: merged!("send", send, writes(plan, |sent| sent.iter().map(StoredMessage::bytes).sum())),
            starts: merged!("start", start, writes(plan, StoredStart::bytes)),
        }
    }
}

/// The rules for merging fetches. A fetch skips locked rows, so it is never repeated because of a lock. Only
/// requests with equal conditions can share a call.
fn fetches<Q>(plan: &PostgresPlan, alike: fn(&Q, &Q) -> bool) -> MergeRules<Q> {
    let (max_requests, patience) = (plan.max_batch, Duration::ZERO);
    MergeRules { operation: "", max_requests, max_calls: FETCHES, patience, weigh: |_| 0, alike }
}

/// The rules for merging writes. A write that meets a lock of another transaction, or loses against it, is
/// repeated for as long as a statement may take.
fn writes<Q>(plan: &PostgresPlan, weigh: fn(&Q) -> usize) -> MergeRules<Q> {
    let (max_requests, patience) = (plan.max_batch, plan.statement_timeout);
    MergeRules { operation: "", max_requests, max_calls: WRITES, patience, weigh, alike: |_, _| true }
}
