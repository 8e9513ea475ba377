//! Sessions that change hands: shutdown, drain, loss, fencing, limits (D14, D22 to D27, D30, D31,
//! D33, D34, D39, D40; A4, A13).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bench::{Told, flows, node, release, shown, takes_turn, troubled, turns};
use crate::workbench::{Gate, SECOND, pass_calmly};
use steadfast::providers::{ProviderError, ProviderErrorKind};
use steadfast::runtime::{DetachReason, RuntimeOptions, Session, SessionHooks};
use steadfast::{ActivityContext, OrchestrationContext, TagFilter};
use steadfast_behaviour::{Emitted, Faults, Lines, on_every_full_store, on_every_store};
use steadfast_clock::Clock;

const LOST: &str = "steadfast_sessions_lost_total";

const UNTAKEN: &str = "steadfast_sessions_untaken_total";

fn table<const N: usize>(counters: [(&str, u64); N]) -> BTreeMap<String, u64> {
    counters.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Keeps `on_attach` at a gate.
#[derive(Debug)]
struct Slow(Gate);

#[async_trait::async_trait]
impl SessionHooks for Slow {
    async fn on_attach(&self, _: &Session) {
        self.0.pass().await;
    }

    async fn on_detach(&self, _: &Session, _: DetachReason) {}
}

on_every_store! {
    async fn d14_turns_of_a_session_find_the_state_that_the_first_one_made(stage) {
        node(&stage, "A", &Gate::new(), |_| {}).await;
        node(&stage, "B", &Gate::new(), |_| {}).await;
        let first = takes_turn(&stage, "1", "chat").await;
        let (owner, _) = first.split_once(' ').expect("names its node");
        assert_eq!(first, format!("{owner} first 1, attempt 1"));
        for n in 2..6 {
            let later = takes_turn(&stage, &n.to_string(), "chat").await;
            assert_eq!(later, format!("{owner} later {n}, attempt 1"));
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d31_work_of_a_dead_owner_moves_when_its_lease_ends(stage) {
        let faults = Faults::default();
        let polls = |options: &mut RuntimeOptions| options.dispatcher_long_poll_timeout = SECOND;
        let dead = troubled(&stage, "A", &Gate::new(), &faults, polls).await;
        assert_eq!(takes_turn(&stage, "1", "chat").await, "A first 1, attempt 1");
        faults.outage();
        // What it had asked before is answered, with nothing.
        pass_calmly(&stage, 2 * SECOND, SECOND / 4).await;
        node(&stage, "B", &Gate::new(), |_| {}).await;
        stage.start("2", "One", "Turn/chat").await;
        stage.has("2", "ActivityScheduled", 1).await;
        pass_calmly(&stage, 27 * SECOND, SECOND).await;
        assert_eq!(
            stage.kinds("2").await,
            ["OrchestrationStarted", "ActivityScheduled"],
            "the lease still lives"
        );
        let moved = stage.ends_as_time_passes("2", SECOND).await;
        assert_eq!(moved, Ok("B first 1, attempt 1".to_owned()));
        dead.shutdown(Some(0)).await;
        stage.stop().await;
    }

    async fn d25_a_drained_runtime_renews_nothing_and_its_sessions_move(stage) {
        let (gate, told) = (Gate::new(), Told::default());
        let first = node(&stage, "A", &gate, |options| options.session_hooks = told.hooks()).await;
        takes_turn(&stage, "1", "idle").await;
        stage.start("2", "One", "Hold/busy").await;
        gate.is_entered().await;
        let draining = Arc::clone(&first);
        let drain = tokio::spawn(async move { draining.drain().await });
        stage.until("the idle one goes", async || told.all().len() == 3).await;
        pass_calmly(&stage, 45 * SECOND, SECOND).await;
        gate.open();
        drain.await.expect("the drain ends");
        assert_eq!(stage.output("2").await, Ok("A first 1, attempt 1".to_owned()), "it kept its session");
        assert_eq!(told.all()[2..], ["detach idle Shutdown after 1", "detach busy Shutdown after 1"]);
        let renewals = stage.faults.calls("renew_sessions");
        node(&stage, "B", &Gate::new(), |options| options.orchestration_concurrency = 0).await;
        for (instance, session) in [("3", "idle"), ("4", "busy")] {
            stage.start(instance, "One", &format!("Turn/{session}")).await;
            stage.has(instance, "ActivityScheduled", 1).await;
        }
        // A store that cannot release lets leases end: one more than was left of the last renewal.
        pass_calmly(&stage, 31 * SECOND, SECOND).await;
        for instance in ["3", "4"] {
            assert_eq!(stage.output(instance).await, Ok("B first 1, attempt 1".to_owned()));
        }
        assert!(stage.faults.calls("renew_sessions") <= renewals + 2, "only B renews");
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

on_every_full_store! {
    async fn d24_a_shutdown_hands_sessions_on_at_once(stage) {
        let told = Told::default();
        let first = node(&stage, "A", &Gate::new(), |options| options.session_hooks = told.hooks()).await;
        assert_eq!(takes_turn(&stage, "1", "chat").await, "A first 1, attempt 1");
        let before = shown(&stage, "chat").await.epoch;
        first.shutdown(Some(0)).await;
        assert_eq!(told.all(), ["attach chat", "detach chat Shutdown after 1"]);
        node(&stage, "B", &Gate::new(), |_| {}).await;
        // No time passes.
        assert_eq!(takes_turn(&stage, "2", "chat").await, "B first 1, attempt 1");
        assert!(shown(&stage, "chat").await.epoch > before, "a new attachment");
        stage.stop().await;
    }

    async fn d24_what_a_forced_shutdown_stops_moves_at_once_and_is_not_counted(stage) {
        let gate = Gate::new();
        let first = node(&stage, "A", &gate, |_| {}).await;
        stage.start("1", "One", "Hold/chat").await;
        gate.is_entered().await;
        first.shutdown(Some(0)).await;
        let other = Gate::new();
        node(&stage, "B", &other, |_| {}).await;
        other.is_entered().await;
        other.open();
        assert_eq!(stage.output("1").await, Ok("B first 1, attempt 1".to_owned()));
        stage.stop().await;
    }

    async fn d24_a_node_that_keeps_its_sessions_has_them_back_at_its_next_start(stage) {
        let keeps = |options: &mut RuntimeOptions| options.release_sessions_on_shutdown = false;
        let first = node(&stage, "A", &Gate::new(), keeps).await;
        assert_eq!(takes_turn(&stage, "1", "chat").await, "A first 1, attempt 1");
        first.shutdown(Some(0)).await;
        node(&stage, "B", &Gate::new(), |_| {}).await;
        stage.start("2", "One", "Turn/chat").await;
        stage.has("2", "ActivityScheduled", 1).await;
        assert_eq!(takes_turn(&stage, "plain", "").await, "B without a session");
        assert_eq!(stage.kinds("2").await, ["OrchestrationStarted", "ActivityScheduled"], "it is not for B");
        node(&stage, "A", &Gate::new(), keeps).await;
        assert_eq!(
            stage.output("2").await,
            Ok("A first 1, attempt 1".to_owned()),
            "a new process knows nothing"
        );
        stage.stop().await;
    }

    async fn d24_the_sessions_of_one_that_stops_are_shared_out_and_each_has_one_new_owner(stage) {
        let first = node(&stage, "A", &Gate::new(), |_| {}).await;
        for n in 0..6 {
            assert_eq!(takes_turn(&stage, &format!("a{n}"), &n.to_string()).await, "A first 1, attempt 1");
        }
        node(&stage, "B", &Gate::new(), |_| {}).await;
        node(&stage, "C", &Gate::new(), |_| {}).await;
        first.shutdown(Some(0)).await;
        for n in 0..6 {
            let moved = takes_turn(&stage, &format!("b{n}"), &n.to_string()).await;
            let (owner, _) = moved.split_once(' ').expect("names its node");
            assert!(["B", "C"].contains(&owner), "{moved}");
            assert_eq!(moved, format!("{owner} first 1, attempt 1"));
            let later = takes_turn(&stage, &format!("c{n}"), &n.to_string()).await;
            assert_eq!(later, format!("{owner} later 2, attempt 1"));
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d25_a_drain_hands_idle_sessions_on_at_once_and_busy_ones_when_they_are_done(stage) {
        let (gate, told) = (Gate::new(), Told::default());
        let first = node(&stage, "A", &gate, |options| options.session_hooks = told.hooks()).await;
        takes_turn(&stage, "1", "idle").await;
        stage.start("2", "One", "Hold/busy").await;
        gate.is_entered().await;
        let draining = Arc::clone(&first);
        let drain = tokio::spawn(async move { draining.drain().await });
        stage.until("the idle one goes", async || told.all().len() == 3).await;
        assert_eq!(told.all(), ["attach idle", "attach busy", "detach idle Shutdown after 1"]);
        node(&stage, "B", &Gate::new(), |options| options.orchestration_concurrency = 0).await;
        assert_eq!(takes_turn(&stage, "3", "idle").await, "B first 1, attempt 1");
        stage.start("4", "One", "Turn/busy").await;
        stage.has("4", "ActivityScheduled", 1).await;
        assert!(!drain.is_finished(), "an activity still runs");
        gate.open();
        assert_eq!(stage.output("2").await, Ok("A first 1, attempt 1".to_owned()));
        drain.await.expect("the drain ends");
        assert_eq!(stage.output("4").await, Ok("B first 1, attempt 1".to_owned()));
        assert_eq!(told.all().last().map(String::as_str), Some("detach busy Shutdown after 1"));
        assert!(first.health().await.accepting, "turns go on");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn a4_a_process_that_cannot_renew_gives_up_before_its_lease_ends(stage) {
        let (faults, told) = (Faults::default(), Told::default());
        let lost =
            troubled(&stage, "A", &Gate::new(), &faults, |options| options.session_hooks = told.hooks())
                .await;
        takes_turn(&stage, "1", "chat").await;
        let lease_ends = shown(&stage, "chat").await.locked_until_ms;
        faults.outage();
        pass_calmly(&stage, 26 * SECOND, SECOND).await;
        assert_eq!(told.all(), ["attach chat"], "it can still be proven");
        pass_calmly(&stage, SECOND, SECOND).await;
        stage.until("it is given up", async || told.all().len() == 2).await;
        assert_eq!(told.all(), ["attach chat", "detach chat Lost after 1"]);
        assert!(stage.clock.now_ms() < lease_ends, "nobody else can have it yet");
        lost.shutdown(Some(0)).await;
    }

    async fn a4_what_was_given_up_and_lives_on_in_the_store_is_released_when_the_store_answers(stage) {
        let emitted = Emitted::default();
        let _listening = emitted.listen();
        let (faults, told) = (Faults::default(), Told::default());
        let back =
            troubled(&stage, "A", &Gate::new(), &faults, |options| options.session_hooks = told.hooks())
                .await;
        takes_turn(&stage, "1", "chat").await;
        let before = shown(&stage, "chat").await.epoch;
        faults.outage();
        pass_calmly(&stage, 27 * SECOND, SECOND).await;
        stage.until("it is given up", async || told.all().len() == 2).await;
        faults.heal();
        let again = stage.start("2", "One", "Turn/chat");
        again.await;
        let again = stage.ends_as_time_passes("2", SECOND / 4).await;
        assert_eq!(again, Ok("A first 1, attempt 1".to_owned()), "the state of before is not used again");
        assert!(shown(&stage, "chat").await.epoch > before, "a new attachment");
        assert_eq!(
            emitted.counters("steadfast_sessions_"),
            table([(LOST, 1)]),
            "also after the store answered"
        );
        back.shutdown(Some(0)).await;
    }

    async fn a4_an_activity_that_was_fetched_does_not_begin_when_the_lease_cannot_be_proven(stage) {
        let (faults, slow, gate) = (Faults::default(), Gate::new(), Gate::new());
        let hooks: Arc<dyn SessionHooks> = Arc::new(Slow(slow.clone()));
        let late = troubled(&stage, "A", &gate, &faults, |options| {
            options.session_hooks = Some(hooks);
            options.session_hook_timeout = 600 * SECOND;
        })
        .await;
        stage.start("1", "One", "Hold/chat").await;
        slow.is_entered().await;
        let down = ProviderError::retryable("renew_session_lock", "down");
        faults.refuse("renew_sessions", u64::MAX, down);
        pass_calmly(&stage, 28 * SECOND, SECOND).await;
        slow.open();
        stage.until("it is given back", async || faults.abandoned() == 1).await;
        assert_eq!(gate.waiting(), 0, "it did not begin");
        late.shutdown(Some(0)).await;
        let other = Gate::new();
        node(&stage, "B", &other, |_| {}).await;
        other.open();
        let output = stage.ends_as_time_passes("1", SECOND).await;
        assert_eq!(output, Ok("B first 1, attempt 1".to_owned()), "not an attempt");
        stage.stop().await;
    }

    async fn a13_an_older_process_of_the_same_name_is_told_and_takes_no_more_work(stage) {
        let (lines, _guard) = Lines::collect();
        let told = Told::default();
        node(&stage, "A", &Gate::new(), |options| options.session_hooks = told.hooks()).await;
        takes_turn(&stage, "1", "chat").await;
        let newer = node(&stage, "A", &Gate::new(), |_| {}).await;
        stage.pass_slowly(16 * SECOND, SECOND).await;
        stage.until("the older one knows", async || told.all().len() == 2).await;
        assert_eq!(told.all(), ["attach chat", "detach chat Lost after 1"]);
        let errors = lines.saying("ERROR", "another process has started with the worker_node_id of this one");
        assert_eq!(errors.len(), 1);
        assert!(errors[0].field("error").contains("was replaced by incarnation"), "{errors:?}");
        assert_eq!(takes_turn(&stage, "2", "chat").await, "A first 1, attempt 1", "the newer one");
        newer.shutdown(Some(0)).await;
        stage.start("3", "One", "Turn/chat").await;
        stage.settle().await;
        assert!(stage.history("3").await.is_empty(), "no turn is taken either");
        stage.stop().await;
    }

    async fn d27_beyond_the_limit_the_least_recently_used_idle_session_is_released(stage) {
        let (gate, told) = (Gate::new(), Told::default());
        node(&stage, "A", &gate, |options| {
            options.max_attached_sessions = Some(2);
            options.session_hooks = told.hooks();
        })
        .await;
        for (n, session) in ["one", "two", "one"].into_iter().enumerate() {
            takes_turn(&stage, &n.to_string(), session).await;
        }
        takes_turn(&stage, "third", "three").await;
        stage.until("one goes", async || told.all().len() == 4).await;
        assert_eq!(told.all(), ["attach one", "attach two", "attach three", "detach two Released after 1"]);
        assert_eq!(takes_turn(&stage, "again", "one").await, "A later 3, attempt 1", "it was used since");
        stage
            .until("two is free", async || shown(&stage, "two").await.locked_until_ms <= stage.clock.now_ms())
            .await;
        assert!(shown(&stage, "three").await.locked_until_ms > stage.clock.now_ms());
        stage.stop().await;
    }

    async fn d22_work_that_a_full_owner_does_not_take_moves_on(stage) {
        let (lines, _guard) = Lines::collect();
        let emitted = Emitted::default();
        let _listening = emitted.listen();
        let gate = Gate::new();
        let full = |options: &mut RuntimeOptions| options.max_sessions_per_runtime = 1;
        node(&stage, "A", &gate, full).await;
        assert_eq!(takes_turn(&stage, "1", "two").await, "A first 1, attempt 1");
        stage.start("held", "One", "Hold/one").await;
        gate.is_entered().await;
        node(&stage, "B", &Gate::new(), |_| {}).await;
        stage.start("2", "One", "Turn/two").await;
        stage.has("2", "ActivityScheduled", 1).await;
        pass_calmly(&stage, 59 * SECOND, SECOND).await;
        assert_eq!(
            stage.kinds("2").await,
            ["OrchestrationStarted", "ActivityScheduled"],
            "A keeps it for two leases"
        );
        pass_calmly(&stage, 20 * SECOND, SECOND).await;
        assert_eq!(stage.output("2").await, Ok("B first 1, attempt 1".to_owned()));
        let released = lines.saying("INFO", "session released");
        assert_eq!(released.len(), 1);
        assert_eq!((released[0].field("session_id"), released[0].field("reason")), ("two", "untaken"));
        assert_eq!(emitted.counters("steadfast_sessions_"), table([(UNTAKEN, 1)]));
        gate.open();
        assert_eq!(
            stage.output("held").await,
            Ok("A first 1, attempt 1".to_owned()),
            "a running activity stays"
        );
        stage.stop().await;
    }

    async fn d30_work_whose_tag_the_owner_refuses_moves_on(stage) {
        let flows = || {
            flows().register("Tagged", |ctx: OrchestrationContext, _: String| async move {
                ctx.schedule_activity("Turn", "").with_tag("gpu").on_session("chat").await
            })
        };
        let plain = RuntimeOptions { worker_node_id: Some("A".to_owned()), ..stage.options() };
        stage.run_with(turns(&Gate::new()), flows(), plain).await;
        assert_eq!(takes_turn(&stage, "1", "chat").await, "A first 1, attempt 1");
        let gpu = TagFilter::tags(["gpu"]);
        let tagged = RuntimeOptions {
            worker_node_id: Some("B".to_owned()),
            worker_tag_filter: gpu,
            ..stage.options()
        };
        stage.run_with(turns(&Gate::new()), flows(), tagged).await;
        stage.start("2", "Tagged", "").await;
        stage.has("2", "ActivityScheduled", 1).await;
        pass_calmly(&stage, 59 * SECOND, SECOND).await;
        assert_eq!(
            stage.kinds("2").await,
            ["OrchestrationStarted", "ActivityScheduled"],
            "A keeps it for two leases"
        );
        pass_calmly(&stage, 20 * SECOND, SECOND).await;
        assert_eq!(stage.output("2").await, Ok("B first 1, attempt 1".to_owned()));
        stage.stop().await;
    }

    async fn d22_an_owner_whose_slots_are_busy_keeps_its_sessions(stage) {
        let gate = Gate::new();
        node(&stage, "A", &gate, |options| options.worker_concurrency = 1).await;
        takes_turn(&stage, "1", "two").await;
        stage.start("held", "One", "Hold/one").await;
        gate.is_entered().await;
        node(&stage, "B", &Gate::new(), |_| {}).await;
        stage.start("2", "One", "Turn/two").await;
        stage.has("2", "ActivityScheduled", 1).await;
        pass_calmly(&stage, 120 * SECOND, SECOND).await;
        assert_eq!(stage.kinds("2").await, ["OrchestrationStarted", "ActivityScheduled"]);
        gate.open();
        assert_eq!(stage.output("2").await, Ok("A later 2, attempt 1".to_owned()));
        stage.stop().await;
    }

    async fn d33_a_session_whose_activity_has_no_handler_here_goes_to_a_worker_that_has_it(stage) {
        let told = Told::default();
        node(&stage, "A", &Gate::new(), |options| options.session_hooks = told.hooks()).await;
        takes_turn(&stage, "1", "chat").await;
        stage.start("2", "One", "New/chat").await;
        stage.until("the session goes", async || told.all().len() == 2).await;
        assert_eq!(told.all(), ["attach chat", "detach chat Released after 1"]);
        let upgraded = turns(&Gate::new()).register("New", |ctx: ActivityContext, _: String| async move {
            Ok(format!("{}, attempt {}", ctx.worker_id(), ctx.counted_deliveries()))
        });
        let options = RuntimeOptions { worker_node_id: Some("B".to_owned()), ..stage.options() };
        stage.run_with(upgraded, flows(), options).await;
        let output = stage.ends_as_time_passes("2", SECOND / 4).await.expect("completes");
        assert!(output.starts_with("work-") && output.ends_with("-B, attempt 2"), "{output}");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d33_the_session_is_left_out_until_the_longest_back_off_has_passed(stage) {
        node(&stage, "A", &Gate::new(), |_| {}).await;
        stage.start("2", "One", "New/chat").await;
        stage.until("it is given back", async || stage.faults.abandoned() == 1).await;
        pass_calmly(&stage, 59 * SECOND, SECOND).await;
        assert_eq!(stage.faults.abandoned(), 1, "others have their chance");
        pass_calmly(&stage, 2 * SECOND, SECOND).await;
        stage.until("it is tried again", async || stage.faults.abandoned() == 2).await;
        stage.stop().await;
    }

    async fn d34_a_poisoned_activity_fails_alone_and_its_session_goes_on(stage) {
        node(&stage, "A", &Gate::new(), |options| options.max_attempts = 1).await;
        takes_turn(&stage, "1", "chat").await;
        let before = shown(&stage, "chat").await.epoch;
        let invalid = ProviderError::new(ProviderErrorKind::Invalid, "ack_work_item", "refused");
        stage.faults.refuse("finish_work", 1, invalid);
        stage.start("2", "One", "Turn/chat").await;
        let poisoned =
            stage.ends_as_time_passes("2", SECOND / 4).await.expect_err("its attempts are used up");
        assert!(poisoned.display_message().starts_with("poison: "), "{}", poisoned.display_message());
        assert_eq!(takes_turn(&stage, "3", "chat").await, "A later 3, attempt 1");
        assert_eq!(shown(&stage, "chat").await.epoch, before);
        stage.stop().await;
    }

    async fn d39_a_session_that_is_released_by_hand_is_claimed_by_who_comes_first(stage) {
        let (lines, _guard) = Lines::collect();
        let (gate, told) = (Gate::new(), Told::default());
        node(&stage, "A", &gate, |options| {
            options.worker_concurrency = 1;
            options.session_hooks = told.hooks();
        })
        .await;
        takes_turn(&stage, "1", "chat").await;
        stage.start("busy", "One", "Hold/").await;
        gate.is_entered().await;
        node(&stage, "B", &Gate::new(), |_| {}).await;
        let epoch = shown(&stage, "chat").await.epoch.to_string();
        assert!(release(&stage, "chat").await);
        let released = lines.saying("INFO", "session released");
        let fields = ["session_id", "owner", "epoch", "reason"];
        let said: Vec<&str> = released.iter().flat_map(|line| fields.map(|name| line.field(name))).collect();
        assert_eq!(said, ["chat", "A", epoch.as_str(), "by hand"]);
        assert_eq!(takes_turn(&stage, "2", "chat").await, "B first 1, attempt 1");
        pass_calmly(&stage, 16 * SECOND, SECOND).await;
        stage.until("A knows", async || told.all().len() == 2).await;
        assert_eq!(told.all(), ["attach chat", "detach chat Lost after 1"]);
        assert!(!release(&stage, "none").await);
        assert!(release(&stage, "chat").await, "B has it");
        assert!(!release(&stage, "chat").await, "nobody has it");
        assert_eq!(lines.saying("INFO", "session released").len(), 2, "what was not held is not told");
        stage.stop().await;
    }

    async fn d40_the_log_and_the_metrics_tell_where_a_session_was_and_why_it_moved(stage) {
        let (lines, _guard) = Lines::collect();
        let emitted = Emitted::default();
        let _listening = emitted.listen();
        let first = node(&stage, "A", &Gate::new(), |_| {}).await;
        takes_turn(&stage, "1", "chat").await;
        let on_a = shown(&stage, "chat").await.epoch.to_string();
        pass_calmly(&stage, 15 * SECOND, SECOND).await;
        assert_eq!(emitted.counter("steadfast_session_renewals_total"), 1);
        assert_eq!(emitted.gauge("steadfast_attached_sessions"), Some(1.0));
        first.shutdown(Some(0)).await;
        assert_eq!(emitted.gauge("steadfast_attached_sessions"), Some(0.0));
        node(&stage, "B", &Gate::new(), |_| {}).await;
        takes_turn(&stage, "2", "chat").await;
        let on_b = shown(&stage, "chat").await.epoch.to_string();
        let all = lines.all();
        let told: Vec<[&str; 4]> = all
            .iter()
            .filter(|line| {
                line.level == "INFO"
                    && line.field("session_id") == "chat"
                    && line.target == "steadfast::runtime"
            })
            .map(|line| [line.field("message"), line.field("owner"), line.field("epoch"), line.field("from")])
            .collect();
        assert_eq!(
            told,
            [
                ["session claimed", "A", on_a.as_str(), ""],
                ["session released", "A", on_a.as_str(), ""],
                ["session claimed", "B", on_b.as_str(), "A"],
                ["session migrated", "B", on_b.as_str(), "A"],
            ]
        );
        assert_eq!(emitted.counter("steadfast_session_claims_total"), 2);
        assert_eq!(emitted.counter("steadfast_session_migrations_total"), 1);
        let run = "steadfast_activity_executions_total{activity_name=Turn,outcome=success,retry_attempt=0,\
            session=yes,tag=default}";
        assert_eq!(emitted.counter(run), 2);
        stage.stop().await;
    }

    async fn d40_renewals_that_fail_are_counted_and_lose_nothing_until_a_session_is_taken_away(stage) {
        let emitted = Emitted::default();
        let _listening = emitted.listen();
        node(&stage, "A", &Gate::new(), |_| {}).await;
        takes_turn(&stage, "1", "chat").await;
        let down = ProviderError::retryable("renew_session_lock", "down");
        stage.faults.refuse("renew_sessions", 2, down);
        pass_calmly(&stage, 20 * SECOND, SECOND / 4).await;
        assert_eq!(emitted.counter("steadfast_session_renewal_failures_total"), 2);
        assert_eq!(emitted.counter("steadfast_session_renewals_total"), 1, "the third try");
        assert_eq!(emitted.counters("steadfast_sessions_"), table([]));
        assert!(release(&stage, "chat").await);
        pass_calmly(&stage, 16 * SECOND, SECOND).await;
        stage.until("A knows", async || emitted.counter(LOST) == 1).await;
        assert_eq!(emitted.counters("steadfast_sessions_"), table([(LOST, 1)]));
        assert_eq!(emitted.counter("steadfast_session_renewal_failures_total"), 2);
        stage.stop().await;
    }

    async fn d40_the_wait_before_a_claim_is_told_and_no_other(stage) {
        let emitted = Emitted::default();
        let _listening = emitted.listen();
        node(&stage, "turns", &Gate::new(), |options| options.worker_concurrency = 0).await;
        stage.start("1", "One", "Turn/chat").await;
        stage.has("1", "ActivityScheduled", 1).await;
        pass_calmly(&stage, 7 * SECOND, SECOND).await;
        let first = node(&stage, "A", &Gate::new(), |_| {}).await;
        assert_eq!(stage.output("1").await, Ok("A first 1, attempt 1".to_owned()));
        takes_turn(&stage, "2", "chat").await;
        takes_turn(&stage, "plain", "").await;
        first.shutdown(Some(0)).await;
        stage.start("3", "One", "Turn/chat").await;
        stage.has("3", "ActivityScheduled", 1).await;
        pass_calmly(&stage, 3 * SECOND, SECOND).await;
        node(&stage, "B", &Gate::new(), |_| {}).await;
        assert_eq!(stage.output("3").await, Ok("B first 1, attempt 1".to_owned()));
        assert_eq!(emitted.histogram("steadfast_session_claim_wait_seconds"), [7.0, 3.0]);
        stage.stop().await;
    }
}
