//! The engine's own activities: a guid, the time, a value of another instance. They are recorded, so that a
//! replay sees the same values.

use std::sync::Arc;

use serde::Deserialize;
use steadfast_core::{SYSCALL_GET_KV_VALUE, SYSCALL_NEW_GUID, SYSCALL_UTC_NOW_MS};

use crate::handler::FnActivity;
use crate::registry::{ActivityRegistry, FIRST_VERSION};

/// Returns the activities of the application together with the engine's own.
pub(crate) fn with_builtins(
    registry: &ActivityRegistry,
    clock: Arc<dyn steadfast_clock::Clock>,
) -> ActivityRegistry {
    let mut builder = ActivityRegistry::builder_from(registry);
    let guid = |_, _| async { Ok(uuid::Uuid::new_v4().to_string()) };
    let now = move |_, _| {
        let now = clock.now_ms();
        async move { Ok(now.to_string()) }
    };
    let kv = |ctx: crate::ActivityContext, input: String| async move {
        let query: KvQuery = serde_json::from_str(&input).map_err(|error| error.to_string())?;
        let value = ctx.get_client().get_kv_value(&query.instance_id, &query.key).await;
        let value = value.map_err(|error| error.to_string())?;
        serde_json::to_string(&value).map_err(|error| error.to_string())
    };
    builder.insert(SYSCALL_NEW_GUID.to_owned(), FIRST_VERSION, Arc::new(FnActivity(guid)));
    builder.insert(SYSCALL_UTC_NOW_MS.to_owned(), FIRST_VERSION, Arc::new(FnActivity(now)));
    builder.insert(SYSCALL_GET_KV_VALUE.to_owned(), FIRST_VERSION, Arc::new(FnActivity(kv)));
    builder.build()
}

#[derive(Deserialize)]
struct KvQuery {
    instance_id: String,
    key: String,
}
