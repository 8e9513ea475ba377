//! Functions under the names and with the parameters of the compatible crate, for whoever calls the database directly.
//!
//! They do what the store does, one element at a time: each calls the function that serves the store, or is the one. Ids are given
//! and told as they are stored ([`crate::link::escape`]). A time that is NULL is the database's.

use crate::schema::functions::{Function, functions};

/// Those that others call come first: a function in SQL is checked when it is made.
pub(crate) const FUNCTIONS: &[Function] = functions![
    "compat/everything",
    "compat/item_of",
    "compat/kind_of_item",
    "compat/instance_of_item",
    "compat/starts_an_execution",
    "compat/packed_of",
    "compat/check_history_delta",
    "compat/events_of_delta",
    "compat/effects_of_events",
    "compat/work_of_items",
    "compat/messages_of_items",
    "compat/activities_of_json",
    "compat/name_of_turn",
    "compat/fetch_orchestration_item",
    "compat/ack_orchestration_item",
    "compat/abandon_orchestration_item",
    "compat/renew_orchestration_item_lock",
    "compat/enqueue_orchestrator_work",
    "compat/fetch_work_item",
    "compat/ack_worker",
    "compat/abandon_work_item",
    "compat/renew_work_item_lock",
    "compat/enqueue_worker_work",
    "compat/renew_session_lock",
    "compat/cleanup_orphaned_sessions",
    "compat/latest_execution_id",
    "compat/fetch_history",
    "compat/fetch_history_with_execution",
    "compat/append_history",
    "compat/list_instances",
    "compat/list_instances_by_status",
    "compat/list_executions",
    "compat/list_children",
    "compat/get_parent_id",
    "compat/get_instance_info",
    "compat/get_execution_info",
    "compat/get_system_metrics",
    "compat/get_queue_depths",
    "compat/delete_instances_atomic",
    "compat/prune_executions",
    "compat/cleanup_schema",
];
