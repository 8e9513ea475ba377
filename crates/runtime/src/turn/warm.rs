//! Executions that stay in memory between their turns, so that a turn costs what is new and not what is old.
//!
//! The cache is a convenience: an execution that is not here is replayed, and decides alike. It is bounded in number
//! and in estimated bytes; the one that was used longest ago goes first.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use steadfast_core::replay::Execution;
use steadfast_store::{Held, RunId, Warm};

use crate::turn::triage::Standing;

/// An execution between two turns.
pub(crate) struct Kept {
    pub(crate) execution: Execution,
    pub(crate) run: RunId,
    pub(crate) standing: Standing,
}

impl Kept {
    fn held(&self) -> Held {
        Held { run: self.run, last_event_id: self.execution.last_event_id() }
    }
}

/// Keeps executions, by instance.
pub(crate) struct Cache {
    limit: Limit,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) executions: usize,
    pub(crate) bytes: usize,
}

#[derive(Default)]
struct State {
    entries: HashMap<String, Entry>,
    /// Who was used when, the oldest first.
    order: BTreeMap<u64, String>,
    uses: u64,
    bytes: usize,
}

struct Entry {
    kept: Box<Kept>,
    bytes: usize,
    used: u64,
}

impl Cache {
    pub(crate) fn new(limit: Limit) -> Self {
        Self { limit, state: Mutex::default() }
    }

    /// Takes the execution of an instance out. Whoever has the lease has the right to it.
    pub(crate) fn take(&self, instance: &str) -> Option<Box<Kept>> {
        let entry = self.lock().remove(instance)?;
        Some(entry.kept)
    }

    /// Puts an execution in, and lets go of others while there are too many or they are too large.
    pub(crate) fn put(&self, instance: String, kept: Box<Kept>) {
        if self.limit.executions == 0 {
            return;
        }
        let bytes = kept.execution.estimated_bytes().saturating_add(instance.len());
        let mut gone = Vec::new();
        {
            let mut state = self.lock();
            gone.extend(state.remove(&instance));
            let used = state.uses;
            state.uses += 1;
            state.bytes = state.bytes.saturating_add(bytes);
            state.order.insert(used, instance.clone());
            state.entries.insert(instance, Entry { kept, bytes, used });
            while state.entries.len() > self.limit.executions || state.bytes > self.limit.bytes {
                let Some((_, oldest)) = state.order.pop_first() else { break };
                gone.extend(state.remove(&oldest));
            }
        }
        // Outside the lock: dropping an execution runs the destructors of the user's code.
        drop(gone);
    }

    /// Counts the executions that are kept.
    pub(crate) fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Lets go of all.
    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut *self.lock());
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remove(&mut self, instance: &str) -> Option<Entry> {
        let entry = self.entries.remove(instance)?;
        self.order.remove(&entry.used);
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        Some(entry)
    }
}

impl Warm for Cache {
    fn held(&self, instance: &str) -> Option<Held> {
        self.lock().entries.get(instance).map(|entry| entry.kept.held())
    }
}

#[cfg(test)]
mod tests {
    use steadfast_core::replay::{Identity, Setup, Start};

    use super::*;

    fn kept(payload: usize) -> Box<Kept> {
        let identity = Identity {
            instance: "i".to_owned(),
            execution_id: 1,
            name: "Wait".to_owned(),
            version: "1.0.0".to_owned(),
        };
        let start = Start { input: "x".repeat(payload), ..Start::default() };
        let mut execution = Execution::start(Setup::new(identity), start, |ctx, input: String| async move {
            ctx.set_kv_value("input", input);
            Ok(ctx.schedule_wait("never").await)
        });
        execution.turn(0, Vec::new());
        Box::new(Kept { execution, run: RunId(1), standing: Standing::default() })
    }

    fn cache(executions: usize, bytes: usize) -> Cache {
        Cache::new(Limit { executions, bytes })
    }

    #[test]
    fn the_one_that_was_used_longest_ago_goes_first() {
        let cache = cache(2, usize::MAX);
        cache.put("a".to_owned(), kept(0));
        cache.put("b".to_owned(), kept(0));
        let a = cache.take("a").expect("is kept");
        cache.put("a".to_owned(), a);
        cache.put("c".to_owned(), kept(0));
        assert_eq!((cache.held("b"), cache.len()), (None, 2));
        assert!(cache.held("a").is_some() && cache.held("c").is_some());
    }

    #[test]
    fn large_ones_leave_room_for_fewer() {
        let cache = cache(100, 100_000);
        for n in 0..10 {
            cache.put(n.to_string(), kept(30_000));
        }
        assert!((1..=3).contains(&cache.len()), "{}", cache.len());
        cache.put("huge".to_owned(), kept(200_000));
        assert_eq!(cache.len(), 0, "one that is larger than the whole cache is not kept");
    }

    #[test]
    fn a_cache_of_none_keeps_none() {
        let cache = cache(0, usize::MAX);
        cache.put("a".to_owned(), kept(0));
        assert_eq!(cache.len(), 0);
    }

    #[test]
    fn an_instance_is_kept_once() {
        let cache = cache(10, usize::MAX);
        cache.put("a".to_owned(), kept(10));
        cache.put("a".to_owned(), kept(20));
        assert_eq!(cache.len(), 1);
        let state = cache.lock();
        assert_eq!(state.order.len(), 1);
        assert_eq!(state.bytes, state.entries["a"].bytes);
    }
}
