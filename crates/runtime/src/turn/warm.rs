//! Executions that stay in memory between their turns, so that a turn costs its new events and not the whole
//! history.
//!
//! The cache is a convenience: an execution that is not in it is replayed, and decides the same. It is
//! bounded in number and in estimated bytes; the least recently used execution is evicted first.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use steadfast_core::replay::Execution;
use steadfast_store::{Held, RunId, Warm};

use super::standing::Standing;

/// An execution between two turns.
pub(crate) struct WarmExecution {
    pub(super) execution: Execution,
    pub(super) run: RunId,
    pub(super) standing: Standing,
}

impl WarmExecution {
    fn held(&self) -> Held {
        Held { run: self.run, last_event_id: self.execution.last_event_id() }
    }
}

/// Keeps executions, by instance.
pub(crate) struct WarmCache {
    limit: WarmLimit,
    table: Mutex<WarmTable>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct WarmLimit {
    pub(crate) executions: usize,
    pub(crate) bytes: usize,
}

#[derive(Default)]
struct WarmTable {
    entries: HashMap<String, CachedExecution>,
    /// The instances by their last use, the oldest first.
    order: BTreeMap<u64, String>,
    uses: u64,
    bytes: usize,
}

struct CachedExecution {
    kept: Box<WarmExecution>,
    bytes: usize,
    used: u64,
}

impl WarmCache {
    pub(crate) fn new(limit: WarmLimit) -> Self {
        Self { limit, table: Mutex::default() }
    }

    /// Takes the execution of an instance out. Only the holder of the turn's lease may.
    pub(crate) fn take(&self, instance: &str) -> Option<Box<WarmExecution>> {
        let entry = self.lock().remove(instance)?;
        Some(entry.kept)
    }

    /// Puts an execution in, and evicts others while there are too many or they are too large.
    pub(crate) fn put(&self, instance: String, kept: Box<WarmExecution>) {
        if self.limit.executions == 0 {
            return;
        }
        let bytes = kept.execution.estimated_bytes().saturating_add(instance.len());
        let mut evicted = Vec::new();
        {
            let mut table = self.lock();
            evicted.extend(table.remove(&instance));
            let used = table.uses;
            table.uses += 1;
            table.bytes = table.bytes.saturating_add(bytes);
            table.order.insert(used, instance.clone());
            table.entries.insert(instance, CachedExecution { kept, bytes, used });
            while table.entries.len() > self.limit.executions || table.bytes > self.limit.bytes {
                let Some((_, oldest)) = table.order.pop_first() else { break };
                evicted.extend(table.remove(&oldest));
            }
        }
        // Outside the lock: dropping an execution runs the destructors of the user's code.
        drop(evicted);
    }

    /// Counts the executions in memory.
    pub(crate) fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Evicts all executions.
    pub(crate) fn clear(&self) {
        let evicted = std::mem::take(&mut *self.lock());
        drop(evicted);
    }

    fn lock(&self) -> MutexGuard<'_, WarmTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WarmTable {
    fn remove(&mut self, instance: &str) -> Option<CachedExecution> {
        let entry = self.entries.remove(instance)?;
        self.order.remove(&entry.used);
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        Some(entry)
    }
}

impl Warm for WarmCache {
    fn held(&self, instance: &str) -> Option<Held> {
        self.lock().entries.get(instance).map(|entry| entry.kept.held())
    }
}

#[cfg(test)]
mod tests {
    use steadfast_core::replay::{Identity, Setup, Start};

    use super::*;

    fn kept(payload: usize) -> Box<WarmExecution> {
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
        Box::new(WarmExecution { execution, run: RunId(1), standing: Standing::default() })
    }

    fn cache(executions: usize, bytes: usize) -> WarmCache {
        WarmCache::new(WarmLimit { executions, bytes })
    }

    #[test]
    fn the_least_recently_used_execution_is_evicted_first() {
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
    fn fewer_large_executions_fit() {
        let cache = cache(100, 100_000);
        for n in 0..10 {
            cache.put(n.to_string(), kept(30_000));
        }
        assert!((1..=3).contains(&cache.len()), "{}", cache.len());
        cache.put("huge".to_owned(), kept(200_000));
        assert_eq!(cache.len(), 0, "one that is larger than the whole cache is not kept");
    }

    #[test]
    fn a_cache_for_no_executions_keeps_none() {
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
        let table = cache.lock();
        assert_eq!(table.order.len(), 1);
        assert_eq!(table.bytes, table.entries["a"].bytes);
    }
}
