//! The whole kit on the memory store.

use std::any::Any;
use std::sync::Arc;

use steadfast_clock::Clock;
use steadfast_conformance::{BoxError, Damage, Subject, async_trait};
use steadfast_memory::MemoryStore;
use steadfast_store::Provider;

struct Memory;

#[async_trait]
impl Subject for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    async fn open(&self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Provider>, BoxError> {
        Ok(Arc::new(MemoryStore::with_clock(clock)))
    }

    fn goes_by_this_machine(&self) -> bool {
        true
    }

    async fn damage(&self, provider: &Arc<dyn Provider>, what: Damage<'_>, text: &str) -> Option<usize> {
        let provider: &dyn Any = &**provider;
        let store = provider.downcast_ref::<MemoryStore>()?;
        Some(store.damage(translated(what), text))
    }
}

fn translated(what: Damage<'_>) -> steadfast_memory::Damage<'_> {
    match what {
        Damage::Messages { instance } => steadfast_memory::Damage::Messages { instance },
        Damage::Work { instance } => steadfast_memory::Damage::Work { instance },
        Damage::Event { instance, execution_id, event_id } => {
            steadfast_memory::Damage::Event { instance, execution_id, event_id }
        }
    }
}

fn main() {
    steadfast_conformance::main_with_oracle(Arc::new(Memory), Arc::new(Memory));
}
