//! The engine's own activities: a guid, the time, a value of another instance. They are recorded, so that a
//! replay sees the same values.

use std::sync::Arc;

use serde::Deserialize;
use steadfast_clock::{Clock, Random};
use steadfast_core::{SYSCALL_GET_KV_VALUE, SYSCALL_NEW_GUID, SYSCALL_UTC_NOW_MS};

use crate::handler::FnActivity;
use crate::registry::{ActivityRegistry, FIRST_VERSION};

/// Returns the activities of the application together with the engine's own.
pub(crate) fn with_builtins(
    registry: &ActivityRegistry,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
) -> ActivityRegistry {
    let mut builder = ActivityRegistry::builder_from(registry);
    let guid = move |_, _| {
        let guid = guid_of(random.draw());
        async move { Ok(guid.to_string()) }
    };
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

/// Makes a guid of the fourth kind of a random number, and writes it without hyphens.
pub(crate) fn simple_guid(random: u128) -> String {
    guid_of(random).simple().to_string()
}

fn guid_of(random: u128) -> uuid::Uuid {
    uuid::Builder::from_random_bytes(random.to_be_bytes()).into_uuid()
}

#[derive(Deserialize)]
struct KvQuery {
    instance_id: String,
    key: String,
}
