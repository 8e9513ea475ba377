//! Functions with the names and parameters of the compatible crate, for programs that call the database
//! directly.
//!
//! Each does for one element what the store does for many, by calling the store's function. Ids are passed
//! and returned in their stored form ([`crate::link::escape`]). A NULL time stands for the database's clock.

use crate::schema::functions::{Function, functions};

/// A function in the language SQL is checked when it is created, so it comes after those that it calls.
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
