//! What the published crate lacks. A program that uses it fails with a text that says so.

use futures::future::{BoxFuture, ready};

use super::{
    api::{EventKind, WorkItem},
    ast::Own,
    interpret::{Flow, Scope},
    journal::Call,
};

/// Refuses the statement.
pub(super) fn run<'a>(_: &'a mut Scope, own: &'a Own) -> BoxFuture<'a, Flow> {
    Box::pin(ready(Flow::End(Err(format!("the published crate cannot {own:?}")))))
}

/// Nor has any such event a compared field.
pub(super) fn change_field(_: &mut EventKind, _: &str) {}

/// No event of the published crate records anything beyond the shared kinds.
pub(super) fn call_recorded_in(_: EventKind) -> Option<Call> {
    None
}

/// Says whether an item starts the next execution of its instance.
pub(super) fn is_successor(item: &WorkItem) -> bool {
    matches!(item, WorkItem::ContinueAsNew { .. })
}
