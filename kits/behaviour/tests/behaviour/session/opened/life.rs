//! Opening, closing, opening again, continuing as new, and the end of the instance (D5, D7, D10, D12, D17).

use super::{plays, sessions, turn};
use crate::workbench::{SECOND, pass_calmly};
use steadfast::{OrchestrationContext, SessionKey, SessionOptions};
use steadfast_behaviour::{Stage, on_every_full_store};
use steadfast_store::rules::SessionEffect;

/// Opens and closes sessions in every way that is allowed.
async fn in_every_way(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let (one, other) = (ctx.open_session().await?, ctx.open_session().await?);
    if one.is_empty() || one == other {
        return Err(format!("'{one}' and '{other}'"));
    }
    let named = ctx.open_session_with_id("named").await?;
    let again = ctx.open_session_with_id("named").await?;
    let mut told = vec![named, again];
    for session in [&one, &other, "named"] {
        told.push(turn(&ctx, session).await?);
    }
    ctx.close_session(&one).await?;
    ctx.close_session(&one).await?;
    ctx.close_session("never opened").await?;
    told.push(turn(&ctx, "named").await?);
    ctx.close_session("named").await?;
    ctx.open_session_with_id("named").await?;
    told.push(turn(&ctx, "named").await?);
    Ok(told.join(" "))
}

/// Takes a turn, waits for a message, and takes another.
async fn over_a_wait(ctx: OrchestrationContext, idle_seconds: String) -> Result<String, String> {
    let options = SessionOptions::default().with_id("own");
    let options = match idle_seconds.parse::<u32>() {
        Ok(seconds) => options.with_idle_timeout(seconds * SECOND),
        Err(_) => options,
    };
    let session = ctx.open_session_with(options).await?;
    let first = turn(&ctx, &session).await?;
    ctx.schedule_wait("go on").await;
    Ok(format!("{first} {}", turn(&ctx, &session).await?))
}

/// Closes before a long wait, and opens after it.
async fn before_a_long_wait(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let first = ctx.open_session().await?;
    let hydrated = turn(&ctx, &first).await?;
    let dehydrated = turn(&ctx, &first).await?;
    ctx.close_session(&first).await?;
    ctx.schedule_timer(3 * 3_600 * SECOND).await;
    let second = ctx.open_session().await?;
    if first == second {
        return Err("the engine made one id twice".to_owned());
    }
    Ok(format!("{hydrated} {dehydrated} {}", turn(&ctx, &second).await?))
}

/// Carries three sessions into the next execution, closes one there, and opens another.
async fn continued(ctx: OrchestrationContext, carried: String) -> Result<String, String> {
    if carried.is_empty() {
        let mut ids = vec![ctx.open_session().await?];
        for id in ["two", "three"] {
            ids.push(ctx.open_session_with_id(id).await?);
        }
        let mut told = Vec::new();
        for id in &ids {
            told.push(turn(&ctx, id).await?);
        }
        return ctx.continue_as_new(format!("{}|{}", ids.join(","), told.join(" "))).await;
    }
    let (ids, told) = carried.split_once('|').expect("ids and turns");
    let mut told = vec![told.to_owned()];
    for id in ids.split(',') {
        told.push(turn(&ctx, id).await?);
    }
    ctx.close_session("two").await?;
    let fresh = ctx.open_session().await?;
    told.push(turn(&ctx, &fresh).await?);
    ctx.schedule_wait("end").await;
    Ok(told.join(" "))
}

/// Opens two sessions, takes a turn on one, and ends as it is told.
async fn ends_as_told(ctx: OrchestrationContext, how: String) -> Result<String, String> {
    let session = ctx.open_session().await?;
    ctx.open_session_with_id("unused").await?;
    turn(&ctx, &session).await?;
    match how.as_str() {
        "completes" => Ok("done".to_owned()),
        "fails" => Err("broken".to_owned()),
        "panics" => panic!("broken"),
        _ => {
            ctx.schedule_wait("never").await;
            Ok("never".to_owned())
        }
    }
}

/// The events of a history that open and close sessions, with their ids; an engine-made one is `made`.
async fn opened_and_closed(stage: &Stage, instance: &str) -> Vec<String> {
    let events = stage.history(instance).await;
    let events = &events[..events.len() - 1];
    let made = |id: String| if id.starts_with("session::") { "made".to_owned() } else { id };
    SessionEffect::of(events)
        .map(|effect| match effect {
            SessionEffect::Open { session_id, .. } => format!("open {}", made(session_id.to_owned())),
            SessionEffect::Close { session_id } => format!("close {}", made(session_id.to_owned())),
            SessionEffect::CloseAll => "close all".to_owned(),
        })
        .collect()
}

on_every_full_store! {
    async fn d7_sessions_are_opened_used_closed_and_opened_again(stage) {
        plays(&stage, "A", in_every_way, |_| {}).await;
        let output = stage.ends_after("1", "Play", "").await;
        assert_eq!(output, Ok("named named A1 A1 A1 A2 A1".to_owned()));
        let expected = [
            "open made", "open made", "open named", "open named", "close made", "close made",
            "close never opened", "close named", "open named",
        ];
        assert_eq!(opened_and_closed(&stage, "1").await, expected, "every call is recorded");
        assert_eq!(sessions(&stage).await, 0, "the end of the instance closed what was open");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d5_a_history_that_every_turn_replays_finds_its_sessions_open(stage) {
        plays(&stage, "A", in_every_way, |options| options.max_warm_orchestrations = 0).await;
        let output = stage.ends_after("1", "Play", "").await;
        assert_eq!(output, Ok("named named A1 A1 A1 A2 A1".to_owned()));
        stage.stop().await;
    }

    async fn d17_an_open_session_without_an_idle_time_is_held_while_it_is_open(stage) {
        plays(&stage, "A", over_a_wait, |_| {}).await;
        stage.start("1", "Play", "").await;
        stage.has("1", "ActivityCompleted", 1).await;
        pass_calmly(&stage, 1_200 * SECOND, 5 * SECOND).await;
        plays(&stage, "B", over_a_wait, |_| {}).await;
        stage.client.raise_event("1", "go on", "").await.expect("it is raised");
        assert_eq!(stage.output("1").await, Ok("A1 A2".to_owned()));
        stage.stop().await;
    }

    async fn d17_an_open_session_with_an_idle_time_is_free_for_others_after_it(stage) {
        let first = plays(&stage, "A", over_a_wait, |_| {}).await;
        stage.start("1", "Play", "60").await;
        stage.has("1", "ActivityCompleted", 1).await;
        pass_calmly(&stage, 120 * SECOND, 5 * SECOND).await;
        let key = SessionKey::owned("1", "own");
        stage.until("it is released", async || {
            let session = stage.observer().get_session(&key).await.expect("the store answers");
            let trail = stage.client.session_trail(&key).await.expect("the store answers");
            session.is_some() && trail.len() == 2
        })
        .await;
        first.shutdown(Some(0)).await;
        plays(&stage, "B", over_a_wait, |_| {}).await;
        stage.client.raise_event("1", "go on", "").await.expect("it is raised");
        assert_eq!(stage.output("1").await, Ok("A1 B1".to_owned()));
        stage.stop().await;
    }

    async fn d10_a_session_is_closed_before_a_long_wait_and_another_opened_after_it(stage) {
        plays(&stage, "A", before_a_long_wait, |_| {}).await;
        stage.start("1", "Play", "").await;
        stage.has("1", "SessionClosed", 1).await;
        assert_eq!(sessions(&stage).await, 0, "nothing is held during the wait");
        stage.pass(3 * 3_600 * SECOND);
        assert_eq!(stage.output("1").await, Ok("A1 A2 A1".to_owned()), "the last turn hydrates anew");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d12_open_sessions_travel_through_continue_as_new_and_can_be_closed_there(stage) {
        plays(&stage, "A", continued, |_| {}).await;
        stage.start("1", "Play", "").await;
        stage.until("the fresh one had its turn", async || sessions(&stage).await == 3).await;
        stage.until("it waits", async || stage.kinds("1").await.iter().any(|kind| {
            kind == "ExternalSubscribed"
        }))
        .await;
        let two = stage.observer().get_session(&SessionKey::owned("1", "two")).await;
        assert_eq!(two.expect("the store answers"), None, "it is closed");
        stage.client.raise_event("1", "end", "").await.expect("it is raised");
        assert_eq!(stage.output("1").await, Ok("A1 A1 A1 A2 A2 A2 A1".to_owned()));
        assert_eq!(sessions(&stage).await, 0);
        stage.stop().await;
    }

    async fn d12_the_end_of_an_instance_closes_its_sessions_however_it_ends(stage) {
        plays(&stage, "A", ends_as_told, |_| {}).await;
        for how in ["completes", "fails", "panics"] {
            let ended = stage.ends_after(how, "Play", how).await;
            assert_eq!(ended.is_ok(), how == "completes", "{how}: {ended:?}");
            assert_eq!(sessions(&stage).await, 0, "{how}");
        }
        stage.start("cancelled", "Play", "waits").await;
        stage.has("cancelled", "ExternalSubscribed", 1).await;
        assert_eq!(sessions(&stage).await, 2);
        stage.client.cancel_instance("cancelled", "enough").await.expect("it is cancelled");
        assert!(stage.ends("cancelled").await.is_err());
        assert_eq!(sessions(&stage).await, 0, "cancelled");
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
