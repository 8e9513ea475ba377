//! Importing a history of another engine.

use std::sync::Arc;

use steadfast_core::{Event, EventKind, ExecutionMetadata};
use steadfast_store::rules::to_json;
use steadfast_store::{ProviderError, ProviderErrorKind};

use crate::link::db::{Db, sql, time};
use crate::link::error::{DbResult, Fault};
use crate::store::SqliteProvider;

impl SqliteProvider {
    /// Imports one execution of an instance from its compatible JSON: an array of events, as the compatible
    /// API reads them. The instance then stands as its history says, and continues when its next message
    /// arrives. Queues are not imported: the completion of an activity or timer that was open must be sent
    /// again.
    ///
    /// Import executions in ascending order; the last one is the current one.
    ///
    /// # Errors
    /// `Invalid` if the text is no history of one execution, `Conflict` if the store has the execution
    /// already; nothing is changed then.
    ///
    /// # Cancel safety
    /// One transaction: a future that is dropped before it returned has had all of its effect or none.
    pub async fn import_history(
        &self,
        instance: &str,
        execution_id: u64,
        events: &str,
    ) -> Result<(), ProviderError> {
        const OPERATION: &str = "import_history";
        let invalid = |text: String| ProviderError::new(ProviderErrorKind::Invalid, OPERATION, text);
        let events: Vec<Event> = serde_json::from_str(events).map_err(|error| {
            invalid(format!("the events of '{instance}' are no compatible JSON: {error}"))
        })?;
        let metadata = metadata_of(&events).map_err(invalid)?;
        let texts = events.iter().map(|event| to_json(OPERATION, event)).collect::<Result<Vec<_>, _>>()?;
        let instance = instance.to_owned();
        let import = Arc::new(Import { instance, execution_id, events, texts, metadata });
        self.write_past_torn(OPERATION, move |db| db.import(&import)).await
    }
}

struct Import {
    instance: String,
    execution_id: u64,
    events: Vec<Event>,
    texts: Vec<String>,
    metadata: ExecutionMetadata,
}

impl Db<'_> {
    fn import(&self, import: &Import) -> DbResult<()> {
        let Import { instance, execution_id, events, texts, metadata } = import;
        let key = self.key_of(instance)?;
        let execution = time(*execution_id);
        if self.maybe(sql!("execution/run"), [key, execution])?.is_some() {
            let text = format!("execution {execution_id} of '{instance}' is here already");
            return Err(Fault::Refused(ProviderError::new(
                ProviderErrorKind::Conflict,
                "import_history",
                text,
            )));
        }
        self.record_import(key, execution, events, metadata)?;
        self.append("import_history", key, instance, *execution_id, events, texts)?;
        self.record_kv(key, events, metadata.status.is_some())?;
        self.woken.borrow_mut().ended.push(instance.clone());
        Ok(())
    }
}

/// Returns the metadata of an execution (name, version, parent, status, output), as its events tell it.
fn metadata_of(events: &[Event]) -> Result<ExecutionMetadata, String> {
    let Some(Event {
        kind: EventKind::OrchestrationStarted { name, version, parent_instance, .. },
        duroxide_version,
        ..
    }) = events.first()
    else {
        return Err("a history begins with OrchestrationStarted".to_owned());
    };
    let mut metadata = ExecutionMetadata {
        orchestration_name: Some(name.clone()),
        orchestration_version: Some(version.clone()),
        parent_instance_id: parent_instance.clone(),
        pinned_duroxide_version: duroxide_version.parse().ok(),
        ..ExecutionMetadata::default()
    };
    for event in events {
        let (status, output) = match &event.kind {
            EventKind::OrchestrationCompleted { output } => ("Completed", output.clone()),
            EventKind::OrchestrationFailed { details } => ("Failed", details.display_message()),
            EventKind::OrchestrationContinuedAsNew { input } => ("ContinuedAsNew", input.clone()),
            _ => continue,
        };
        metadata.status = Some(status.to_owned());
        metadata.output = Some(output);
    }
    Ok(metadata)
}
