//! Mutants: the memory store, broken in one place each.
//!
//! The conformance kit is only worth something if it notices when a clause is broken. Each mutant is the
//! memory store with one place changed, as the list in `list.rs` says; the test `caught` runs the cases of
//! the broken clause on it, and one of them must fail.
//!
//! The build script makes one copy of the store with all mutants in it. A store and the case that tries it
//! run on one thread, and the thread knows which mutant it runs.

use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::Clock;
use steadfast_conformance::{BoxError, Damage, Subject, async_trait};
use steadfast_store::Provider;

include!("mutant.rs");
include!("list.rs");
include!(concat!(env!("OUT_DIR"), "/broken.rs"));

/// A mutant with the store that it is.
pub type Broken = (&'static Mutant, Arc<dyn Subject>);

/// Returns every mutant, as a store that the kit can prove.
pub fn all() -> Vec<Broken> {
    MUTANTS
        .iter()
        .map(|mutant| (mutant, Arc::new(Variant { mutant: mutant.name }) as Arc<dyn Subject>))
        .collect()
}

/// Returns the copy without a mutant. It must keep the contract: otherwise a caught mutant proves nothing.
pub fn whole() -> Arc<dyn Subject> {
    Arc::new(Variant { mutant: "none" })
}

/// Opens the copy of the store with one mutant, or with none for `none`, in memory of its own. The thread
/// runs that mutant until another one is opened on it.
pub fn open(mutant: &'static str, clock: Arc<dyn Clock>) -> Arc<dyn steadfast_store::Store> {
    RUNNING.set(mutant);
    Arc::new(broken::MemoryStore::with_clock(clock))
}

thread_local! {
    static RUNNING: Cell<&'static str> = const { Cell::new("none") };
}

/// Returns the name of the mutant that this thread runs.
fn running() -> &'static str {
    RUNNING.get()
}

/// The copy of the store, with one mutant switched on.
struct Variant {
    mutant: &'static str,
}

#[async_trait]
impl Subject for Variant {
    fn name(&self) -> &str {
        self.mutant
    }

    async fn open(&self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Provider>, BoxError> {
        RUNNING.set(self.mutant);
        Ok(Arc::new(broken::MemoryStore::with_clock(clock)))
    }

    /// Short, because a store in memory answers at once: a call that takes longer is caught.
    fn patience(&self) -> Duration {
        Duration::from_secs(3)
    }

    async fn damage(&self, provider: &Arc<dyn Provider>, what: Damage<'_>, text: &str) -> Option<usize> {
        let provider: &dyn Any = &**provider;
        let what = match what {
            Damage::Messages { instance } => broken::Damage::Messages { instance },
            Damage::Work { instance } => broken::Damage::Work { instance },
            Damage::Event { instance, execution_id, event_id } => {
                broken::Damage::Event { instance, execution_id, event_id }
            }
        };
        Some(provider.downcast_ref::<broken::MemoryStore>()?.damage(what, text))
    }
}
