//! Sessions that an orchestration opened, and neither uses nor closes (D40).

use super::super::bench::Told;
use super::super::owned::acts;
use crate::workbench::{Gate, SECOND, pass_calmly};
use steadfast::SessionKey;
use steadfast_behaviour::{Emitted, Lines, Stage, on_every_full_store};

const LEAKED: &str = "steadfast_leaked_sessions";

const NAMED: &str = "a session was opened, and is neither used nor closed";

/// Lists the keys of the sessions that no activity used for a minute.
async fn leaked(stage: &Stage) -> Vec<SessionKey> {
    let page = stage.client.list_leaked_sessions(60 * SECOND, None).await.expect("lists");
    assert_eq!(page.next, None);
    page.sessions.into_iter().map(|session| session.key).collect()
}

on_every_full_store! {
    async fn d40_an_open_session_without_activity_is_listed_named_once_and_counted(stage) {
        let (emitted, told) = (Emitted::default(), Told::default());
        let _listening = emitted.listen();
        let (lines, _guard) = Lines::collect();
        acts(&stage, "A", &Gate::new(), |options| {
            (options.session_leak_after, options.session_hooks) = (Some(60 * SECOND), told.hooks());
        })
        .await;
        let steps = "Turn used;Turn shared;wait more;Turn used;wait go";
        stage.start("1", "Script", &format!("open used;open never used;{steps}")).await;
        stage.has("1", "ExternalSubscribed", 1).await;
        pass_calmly(&stage, 50 * SECOND, SECOND).await;
        assert_eq!((leaked(&stage).await, lines.saying("WARN", NAMED)), (Vec::new(), Vec::new()));
        stage.client.raise_event("1", "more", "").await.expect("raises");
        stage.has("1", "ExternalSubscribed", 2).await;
        pass_calmly(&stage, 30 * SECOND, SECOND).await;
        let never = || SessionKey::owned("1", "never used");
        assert_eq!(leaked(&stage).await, [never()]);
        pass_calmly(&stage, 120 * SECOND, SECOND).await;
        assert_eq!(leaked(&stage).await, [never(), SessionKey::owned("1", "used")]);
        let named = lines.saying("WARN", NAMED);
        let named: Vec<_> =
            named.iter().map(|line| (line.field("session_id"), line.field("instance"))).collect();
        assert_eq!(named, [("never used", "1"), ("used", "1")], "once each, and not the shared one");
        assert_eq!(emitted.gauge(LEAKED), Some(2.0));
        assert_eq!(told.all(), ["attach used", "attach shared"], "nothing is closed");
        stage.client.raise_event("1", "go", "").await.expect("raises");
        assert!(stage.output("1").await.is_ok());
        assert_eq!(leaked(&stage).await, Vec::new());
        pass_calmly(&stage, 16 * SECOND, SECOND).await;
        stage.until("it is counted", async || emitted.gauge(LEAKED) == Some(0.0)).await;
        stage.stop().await;
    }

    async fn d40_a_session_whose_activity_waits_or_runs_is_not_leaked(stage) {
        let gate = Gate::new();
        acts(&stage, "A", &gate, |options| options.session_leak_after = None).await;
        stage.start("1", "Script", "open chat;Hold chat").await;
        gate.is_entered().await;
        pass_calmly(&stage, 120 * SECOND, SECOND).await;
        assert_eq!(leaked(&stage).await, Vec::new());
        gate.open();
        assert!(stage.output("1").await.is_ok());
        stage.stop().await;
    }
}
