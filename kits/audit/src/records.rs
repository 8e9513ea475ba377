//! What a store holds, read as a whole.

use std::collections::{BTreeMap, HashMap};

use steadfast_core::{Event, SessionKey};
use steadfast_store::{
    Gauges, InstanceQuery, InstanceState, MAX_PAGE, ProviderError, ProviderErrorKind, SessionInfo, SetAside,
    Store, TurnState, WorkState,
};

/// What a store holds.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// The instances, by id.
    pub instances: BTreeMap<String, InstanceRecords>,
    /// The sessions, by key.
    pub sessions: BTreeMap<SessionKey, SessionInfo>,
    /// The counts of what is live; `None` if the store cannot count.
    pub gauges: Option<Gauges>,
    /// The rows that were set aside.
    pub set_aside: Vec<SetAside>,
}

/// One instance.
#[derive(Clone, Debug)]
pub struct InstanceRecords {
    /// How it stands.
    pub state: InstanceState,
    /// The histories of its executions that are kept, by number.
    pub executions: BTreeMap<u64, Vec<Event>>,
    /// Its key-value state.
    pub values: HashMap<String, String>,
    /// The messages that wait for it; `None` if the store cannot tell.
    pub turn: Option<TurnState>,
    /// The activities of its current execution.
    pub work: Vec<WorkState>,
}

impl Records {
    /// Reads a store.
    ///
    /// # Errors
    ///
    /// The first error of a read.
    ///
    /// # Cancel safety
    ///
    /// It only reads, so it may be dropped at any time.
    pub async fn read(store: &dyn Store) -> Result<Self, ProviderError> {
        let mut records = Self { gauges: known(store.gauges().await)?, ..Self::default() };
        let mut query = InstanceQuery { limit: MAX_PAGE, ..InstanceQuery::default() };
        loop {
            let page = store.instances(&query).await?;
            for state in page.instances {
                let instance = InstanceRecords::read(store, state).await?;
                records.instances.insert(instance.state.instance.clone(), instance);
            }
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        while let page = store.sessions(records.sessions.keys().next_back()).await?
            && !page.is_empty()
        {
            records.sessions.extend(page.into_iter().map(|info| (info.key.clone(), info)));
        }
        while let page = store.set_aside(records.set_aside.last().map(|row| row.id)).await?
            && !page.is_empty()
        {
            records.set_aside.extend(page);
        }
        Ok(records)
    }
}

impl InstanceRecords {
    /// Tells whether no execution was removed: each one up to the current one is there.
    pub fn is_whole(&self) -> bool {
        u64::try_from(self.executions.len()).is_ok_and(|count| count == self.state.execution_id)
    }

    async fn read(store: &dyn Store, state: InstanceState) -> Result<Self, ProviderError> {
        let id = state.instance.as_str();
        let mut executions = BTreeMap::new();
        for execution in 1..=state.execution_id {
            let history = store.read_history(id, Some(execution)).await?;
            if !history.is_empty() {
                executions.insert(execution, history);
            }
        }
        let values = store.kv_values(id).await?;
        let turn = known(store.turn_of(id).await)?.flatten();
        let work = known(store.work_of(id, state.execution_id).await)?.unwrap_or_default();
        Ok(Self { state, executions, values, turn, work })
    }
}

/// Makes `None` of what a store cannot tell.
fn known<T>(answer: Result<T, ProviderError>) -> Result<Option<T>, ProviderError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.kind == ProviderErrorKind::Unsupported => Ok(None),
        Err(error) => Err(error),
    }
}
