//! Histories and messages that no engine wrote: replay reports where code and history part, and a turn goes
//! on or fails; neither panics.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use proptest::sample::select;
use steadfast_core::replay::{Execution, Identity, Options, Setup, verify};
use steadfast_core::{Event, EventKind, OrchestrationContext, WorkItem};

use crate::cases;
use crate::spoil::golden;

/// Code that uses an operation of each kind.
async fn code(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let timer = ctx.schedule_timer(std::time::Duration::from_millis(5));
    let session = ctx.open_session_with_id("till-3").await?;
    ctx.set_kv_value("key", "value");
    ctx.set_custom_status("busy");
    let first = ctx.schedule_activity_on_session("Charge", input, session).await;
    timer.await;
    let child = ctx.schedule_sub_orchestration("Child", "").await;
    let heard = ctx.schedule_wait("approved").await;
    let next = ctx.dequeue_event("orders").await;
    Ok(format!("{first:?} {child:?} {heard} {next}"))
}

fn setup() -> Setup {
    let identity = Identity {
        instance: "order-1".into(),
        execution_id: 1,
        name: "Order".into(),
        version: "1.0.0".into(),
    };
    Setup { options: Options { owned_sessions: true, ..Options::default() }, ..Setup::new(identity) }
}

/// Events of every kind, with ids that may be in no order, doubled or as large as can be.
fn history() -> impl Strategy<Value = Vec<Event>> {
    let kinds: Vec<Event> = golden().iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
    let id = || prop_oneof![8 => 0_u64..12, 1 => Just(u64::MAX), 1 => any::<u64>()];
    let one = (select(kinds), id(), prop::option::of(id()), any::<bool>());
    let many = prop::collection::vec(one, 0..14).prop_map(|events| {
        let numbered = (2..).zip(events).map(|(place, (event, event_id, source_event_id, in_order))| {
            let event_id = if in_order { place } else { event_id };
            Event { event_id, source_event_id, ..event }
        });
        numbered.collect::<Vec<_>>()
    });
    (many, any::<bool>()).prop_map(|(mut events, has_start)| {
        if has_start {
            let kind = EventKind::OrchestrationStarted {
                name: "Order".into(),
                version: "1.0.0".into(),
                input: String::new(),
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                carry_forward_events: None,
                initial_custom_status: None,
            };
            events.insert(0, Event::at(1, 1, "order-1", 1, None, kind));
        }
        events
    })
}

fn messages() -> impl Strategy<Value = Vec<WorkItem>> {
    let items: Vec<WorkItem> = golden().iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
    prop::collection::vec(select(items), 0..6)
}

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn a_history_that_no_engine_wrote_is_replayed_or_refused(history in history()) {
        let shown = format!("{history:#?}");
        let verified = catch_unwind(AssertUnwindSafe(|| verify(setup(), history, code)));
        let verified = verified.map_err(|_| TestCaseError::fail(format!("it panics: {shown}")))?;
        if let Err(mismatch) = verified {
            prop_assert!(!mismatch.to_string().is_empty());
        }
    }

    #[test]
    fn messages_that_fit_no_call_make_no_turn_panic(
        history in history(), messages in messages(),
        now in prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
    ) {
        let shown = format!("{history:#?} {messages:#?} {now}");
        let turn = catch_unwind(AssertUnwindSafe(|| {
            let mut execution = Execution::replay(setup(), history, code);
            let turn = execution.turn(now, messages);
            serde_json::to_string(&turn.events).is_ok()
        }));
        prop_assert!(matches!(turn, Ok(true)), "it panics: {shown}");
    }
}
