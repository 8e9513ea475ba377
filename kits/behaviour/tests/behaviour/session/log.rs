//! What the log says about sessions (D40, G26).

use super::bench::{node, shown, takes_turn};
use super::owned::acts;
use crate::workbench::{Gate, SECOND, pass_calmly};
use steadfast::providers::ProviderError;
use steadfast::runtime::RuntimeOptions;
use steadfast_behaviour::{Line, Lines, Stage, on_every_full_store};

/// The lines of the runtime that say a text, each as the values of some fields.
fn said<const N: usize>(lines: &Lines, text: &str, fields: [&str; N]) -> Vec<[String; N]> {
    let of_text = lines.of("steadfast::runtime").into_iter().filter(|line| line.says(text));
    of_text.map(|line| fields.map(|field| line.field(field).to_owned())).collect()
}

fn texts<const N: usize>(fields: [&str; N]) -> [String; N] {
    fields.map(str::to_owned)
}

/// Lines that count sessions and name none.
const COUNTS: [&str; 2] = ["sessions renewed", "ended sessions cleaned up"];

fn is_about_sessions(line: &Line) -> bool {
    line.target == "steadfast::runtime"
        && line.says("session")
        && !COUNTS.iter().any(|count| line.says(count))
}

async fn closes(stage: &Stage) {
    stage.start("closes", "Script", "open chat;open chat;Turn chat;close chat;close never;wait go").await;
    stage.has("closes", "ExternalSubscribed", 1).await;
}

on_every_full_store! {
    async fn g26_opening_and_closing_are_logged_with_instance_and_reason(stage) {
        let (lines, _guard) = Lines::collect();
        acts(&stage, "A", &Gate::new(), |_| {}).await;
        closes(&stage).await;
        let opened = said(&lines, "session opened", ["level", "session_id", "instance"]);
        assert_eq!(opened.len(), 1, "the second call changes nothing: {opened:?}");
        assert_eq!(opened[0][1..], texts(["chat", "closes"]));
        let fields = ["session_id", "instance", "reason"];
        // The process logs what it has committed when the commit is answered.
        stage.until("it is told", async || !said(&lines, "session closed", fields).is_empty()).await;
        assert_eq!(said(&lines, "session closed", fields), [texts(["chat", "closes", "close_session"])]);
        stage.until("it is detached", async || !said(&lines, "session detached", fields).is_empty()).await;
        assert_eq!(said(&lines, "session detached", fields), [texts(["chat", "closes", "closed"])]);
        let owner = said(&lines, "session detached", ["owner"]);
        assert_eq!(owner, [texts(["A"])]);
        stage.ends_after("completes", "Script", "open chat").await.expect("completes");
        stage.ends_after("fails", "Script", "open chat;fail it").await.expect_err("fails");
        stage.start("is cancelled", "Script", "open chat;wait go").await;
        stage.has("is cancelled", "ExternalSubscribed", 1).await;
        stage.client.cancel_instance("is cancelled", "enough").await.expect("cancels");
        stage.ends("is cancelled").await.expect_err("is cancelled");
        let ended = [
            texts(["chat", "completes", "instance completed"]),
            texts(["chat", "fails", "instance failed"]),
            texts(["chat", "is cancelled", "instance cancelled"]),
        ];
        stage.until("all are told", async || said(&lines, "session closed", fields).len() == 4).await;
        assert_eq!(said(&lines, "session closed", fields)[1..], ended);
        stage.stop().await;
    }

    async fn g26_closing_and_opening_in_one_turn_are_logged_in_their_order(stage) {
        let (lines, _guard) = Lines::collect();
        acts(&stage, "A", &Gate::new(), |_| {}).await;
        stage.start("a", "Script", "open chat;close chat;open chat;wait go").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let is_told = |line: &Line| line.says("session opened") || line.says("session closed");
        let told = || -> Vec<String> {
            let lines = lines.of("steadfast::runtime").into_iter().filter(is_told);
            lines.map(|line| line.field("message").to_owned()).collect()
        };
        stage.until("all are told", async || told().len() == 3).await;
        assert_eq!(told(), ["session opened", "session closed", "session opened"]);
        stage.stop().await;
    }

    async fn g26_a_claim_is_new_or_a_reclaim_of_what_another_claim_has_left(stage) {
        let (lines, _guard) = Lines::collect();
        let idle = |options: &mut RuntimeOptions| options.session_idle_timeout = 40 * SECOND;
        let first = node(&stage, "A", &Gate::new(), idle).await;
        takes_turn(&stage, "1", "chat").await;
        // Its own claim has ended.
        pass_calmly(&stage, 60 * SECOND, SECOND).await;
        takes_turn(&stage, "2", "chat").await;
        first.shutdown(Some(0)).await;
        node(&stage, "B", &Gate::new(), |_| {}).await;
        takes_turn(&stage, "3", "chat").await;
        takes_turn(&stage, "4", "other").await;
        let fields = ["session_id", "owner", "from", "is_new_claim", "is_reclaim"];
        let claims = [
            texts(["chat", "A", "", "true", "false"]),
            texts(["chat", "A", "A", "false", "true"]),
            texts(["chat", "B", "A", "false", "true"]),
            texts(["other", "B", "", "true", "false"]),
        ];
        assert_eq!(said(&lines, "session claimed", fields), claims);
        assert_eq!(said(&lines, "session migrated", ["owner", "from"]), [texts(["B", "A"])]);
        stage.stop().await;
    }

    async fn g26_every_line_about_a_session_names_it(stage) {
        let (lines, _guard) = Lines::collect();
        let owner = acts(&stage, "A", &Gate::new(), |_| {}).await;
        closes(&stage).await;
        takes_turn(&stage, "1", "shared").await;
        stage.start("holds", "Script", "open held;Turn held;wait go").await;
        stage.has("holds", "ExternalSubscribed", 1).await;
        stage.faults.refuse("renew_sessions", 1, ProviderError::retryable("renew_sessions", "down"));
        pass_calmly(&stage, 16 * SECOND, SECOND).await;
        let warned = lines.saying("WARN", "sessions could not be renewed");
        assert_eq!(warned.len(), 1);
        assert_eq!(warned[0].field("session_id"), "shared, held");
        stage.faults.refuse("release_sessions", 1, ProviderError::retryable("release_sessions", "down"));
        owner.shutdown(Some(0)).await;
        assert_eq!(lines.saying("WARN", "sessions could not be released").len(), 1);
        let about: Vec<Line> = lines.all().into_iter().filter(is_about_sessions).collect();
        assert!(about.len() > 8, "{about:?}");
        for line in about {
            assert!(!line.field("session_id").is_empty(), "{line:?}");
        }
        stage.stop().await;
    }

    async fn d40_renewed_and_cleaned_up_sessions_are_counted_in_the_log(stage) {
        let (lines, _guard) = Lines::collect();
        let first = node(&stage, "A", &Gate::new(), |_| {}).await;
        for session in ["one", "two", "three"] {
            takes_turn(&stage, session, session).await;
        }
        pass_calmly(&stage, 15 * SECOND, SECOND).await;
        assert_eq!(said(&lines, "sessions renewed", ["renewed"]), [texts(["3"])]);
        first.shutdown(Some(0)).await;
        node(&stage, "B", &Gate::new(), |options| options.session_cleanup_interval = 20 * SECOND).await;
        takes_turn(&stage, "again", "one").await;
        pass_calmly(&stage, 31 * SECOND, SECOND).await;
        let cleaned = lines.saying("DEBUG", "ended sessions cleaned up");
        assert_eq!(cleaned.len(), 1);
        assert_eq!(cleaned[0].field("count"), "2", "not the one that is held");
        assert!(shown(&stage, "one").await.locked_until_ms > 0);
        stage.stop().await;
    }
}
