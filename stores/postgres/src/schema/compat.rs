//! Functions with the names and parameters of the compatible crate, for programs that call the database
//! directly.
//!
//! Each does for one element what the store does for many, by calling the store's function. Ids are passed
//! and returned in their stored form ([`crate::link::escape`]). A NULL time stands for the database's clock.

use crate::schema::functions::{Function, functions};

/// A function in the language SQL is checked when it is created, so it comes after those that it calls.
pub(crate) const FUNCTIONS: &[Function] = functions![
    "compat/admin/everything",
    "compat/item_of",
    "compat/kind_of_item",
    "compat/instance_of_item",
    "compat/turn/starts_an_execution",
    "compat/packed_of",
    "compat/history/check_history_delta",
    "compat/history/events_of_delta",
    "compat/turn/effects_of_events",
    "compat/work/work_of_items",
    "compat/turn/messages_of_items",
    "compat/work/activities_of_json",
    "compat/turn/name_of_turn",
    "compat/turn/fetch_readable_turn",
    "compat/turn/fetch_orchestration_item",
    "compat/turn/ack_orchestration_item",
    "compat/turn/abandon_orchestration_item",
    "compat/turn/renew_orchestration_item_lock",
    "compat/turn/enqueue_orchestrator_work",
    "compat/work/fetch_work_item",
    "compat/work/ack_worker",
    "compat/work/abandon_work_item",
    "compat/work/renew_work_item_lock",
    "compat/work/enqueue_worker_work",
    "compat/session/renew_session_lock",
    "compat/session/cleanup_orphaned_sessions",
    "compat/history/latest_execution_id",
    "compat/history/fetch_history",
    "compat/history/fetch_history_with_execution",
    "compat/history/append_history",
    "compat/admin/list_instances",
    "compat/admin/list_instances_by_status",
    "compat/admin/list_executions",
    "compat/admin/list_children",
    "compat/admin/get_parent_id",
    "compat/admin/get_instance_info",
    "compat/admin/get_execution_info",
    "compat/admin/get_system_metrics",
    "compat/admin/get_queue_depths",
    "compat/admin/delete_instances_atomic",
    "compat/admin/prune_executions",
    "compat/admin/cleanup_schema",
];
