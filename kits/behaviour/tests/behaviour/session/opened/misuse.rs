//! What an orchestration must not do with sessions: it fails, with a text that says why (D2 to D4, D8, D9,
//! D13).

use super::{plays, sessions, turn};
use steadfast::OrchestrationContext;
use steadfast_behaviour::{StoreKind, on_every_full_store, on_every_store};

/// Does what its input names.
async fn misuse(ctx: OrchestrationContext, what: String) -> Result<String, String> {
    match what.as_str() {
        "uses what is not open" => return turn(&ctx, "x").await,
        "uses what it closed" => {
            ctx.open_session_with_id("x").await?;
            ctx.close_session("x").await?;
            return turn(&ctx, "x").await;
        }
        "closes one of two and uses the closed one" => {
            ctx.open_session_with_id("x").await?;
            ctx.open_session_with_id("y").await?;
            ctx.close_session("x").await?;
            turn(&ctx, "y").await?;
            return turn(&ctx, "x").await;
        }
        "opens one too many" => {
            for id in ["x", "y", "z"] {
                ctx.open_session_with_id(id).await?;
            }
        }
        "stays within the limit" => {
            for id in ["x", "y"] {
                ctx.open_session_with_id(id).await?;
            }
            ctx.close_session("x").await?;
            ctx.open_session_with_id("z").await?;
            return turn(&ctx, "z").await;
        }
        "opens an empty id" => drop(ctx.open_session_with_id("").await?),
        "opens a long id" => drop(ctx.open_session_with_id("x".repeat(1_025)).await?),
        "opens a fairly long id" => {
            let id = ctx.open_session_with_id("ä]".repeat(341)).await?;
            return turn(&ctx, &id).await;
        }
        "lends its session to a child" => {
            let session = ctx.open_session().await?;
            turn(&ctx, &session).await?;
            return ctx.schedule_sub_orchestration("Play", format!("child of {session}")).await;
        }
        child => {
            let session = child.strip_prefix("child of ").expect("a known play");
            return turn(&ctx, session).await;
        }
    }
    Ok("nothing failed".to_owned())
}

on_every_full_store! {
    async fn d2_an_orchestration_that_misuses_sessions_fails_and_says_why(stage) {
        plays(&stage, "A", misuse, |options| {
            options.max_sessions_per_orchestration = 2;
            options.require_open_sessions = true;
        })
        .await;
        let not_open = "schedule_activity_on_session called for session 'x' which is not open";
        for (what, expected) in [
            ("uses what is not open", Err(not_open)),
            ("uses what it closed", Err(not_open)),
            ("closes one of two and uses the closed one", Err(not_open)),
            ("opens one too many", Err("max sessions per orchestration exceeded (limit: 2, open: 2)")),
            ("stays within the limit", Ok("A1")),
            ("opens an empty id", Err("empty")),
            ("opens a long id", Err("1024")),
            ("opens a fairly long id", Ok("A1")),
            ("lends its session to a child", Err("which is not open")),
        ] {
            let ended = stage.ends_after(what, "Play", what).await.map_err(|error| error.display_message());
            match expected {
                Ok(output) => assert_eq!(ended.as_deref(), Ok(output), "{what}"),
                Err(text) => {
                    let error = ended.expect_err(what).replace(',', "");
                    assert!(error.contains(&text.replace(',', "")), "{what}: {error}");
                }
            }
        }
        assert_eq!(sessions(&stage).await, 0, "nothing is left");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d3_an_id_that_is_not_open_means_the_shared_session_unless_open_ones_are_required(stage) {
        plays(&stage, "A", misuse, |_| {}).await;
        let ended = stage.ends_after("1", "Play", "uses what is not open").await;
        assert_eq!(ended, Ok("A1".to_owned()));
        let found = stage.observer().list_sessions(None).await.expect("the store answers");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].key.instance, None, "a shared session");
        stage.stop().await;
    }
}

on_every_store! {
    async fn d9_a_store_without_owned_sessions_fails_who_opens_one(stage) {
        plays(&stage, "A", misuse, |_| {}).await;
        let ended = stage.ends_after("1", "Play", "stays within the limit").await;
        if stage.kind == StoreKind::Wrapped {
            let error = ended.expect_err("it has only the compatible methods").display_message();
            assert!(error.contains("Provider does not support sessions"), "{error}");
        } else {
            assert_eq!(ended, Ok("A1".to_owned()));
        }
        stage.stop().await;
    }
}
