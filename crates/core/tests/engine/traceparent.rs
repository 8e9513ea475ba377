//! The trace context of a start: recorded with it, and seen by the code on every replay.

use crate::support::*;

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn looks(traceparent: Option<&str>) -> Story {
    let story = story(|ctx, _| async move {
        let before = ctx.traceparent();
        ctx.schedule_activity("a", "").await?;
        Ok(format!("{before:?} {:?}", ctx.traceparent()))
    });
    story.started(|start| start.traceparent = traceparent.map(str::to_owned))
}

#[test]
fn it_is_recorded_with_the_start_alone_and_seen_in_every_turn() {
    let mut story = looks(Some(TRACE));
    let turn = story.waits([]);
    let recorded: Vec<_> = turn.events.iter().map(|event| event.traceparent.as_deref()).collect();
    assert_eq!(recorded, [Some(TRACE), None]);
    assert_eq!(story.output([done(2, "")]), format!("Some({TRACE:?}) Some({TRACE:?})"));
}

#[test]
fn without_one_nothing_is_recorded_and_nothing_seen() {
    let mut story = looks(None);
    let turn = story.waits([]);
    assert!(turn.events.iter().all(|event| event.traceparent.is_none()));
    assert_eq!(story.output([done(2, "")]), "None None");
}
