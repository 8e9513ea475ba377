//! The leases of activities: renewal, loss, cancellation and its grace (2.9, 2.13, F7, F24).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::workbench::{Gate, SECOND, call, handing, pass_calmly, waiting};
use steadfast::providers::{ProviderError, ProviderErrorKind, WorkItem};
use steadfast::runtime::RuntimeOptions;
use steadfast::runtime::registry::ActivityRegistryBuilder;
use steadfast::{ActivityContext, CancelReason, Either2, OrchestrationContext, TagFilter};
use steadfast_behaviour::{Lines, Stage, activities, on_every_full_store, on_every_store, orchestrations};
use tokio::sync::{Semaphore, mpsc};

/// Lets an activity race with an event, and tells which won.
async fn race(ctx: OrchestrationContext, activity: String) -> Result<String, String> {
    let work = ctx.schedule_activity(activity, "");
    match ctx.select2(work, ctx.schedule_wait("stop")).await {
        Either2::First(result) => result,
        Either2::Second(_) => {
            ctx.schedule_wait("end").await;
            Ok("stopped".to_owned())
        }
    }
}

/// Starts a race whose activity hands its context over.
async fn racing(stage: &Stage, handed: &mut mpsc::UnboundedReceiver<ActivityContext>) -> ActivityContext {
    stage.start("a", "Race", "Hand").await;
    let ctx = handed.recv().await.expect("it runs");
    stage.has("a", "ExternalSubscribed", 1).await;
    ctx
}

async fn stop_the_race(stage: &Stage) {
    stage.client.raise_event("a", "stop", "").await.expect("raises");
    stage.has("a", "ActivityCancelRequested", 1).await;
}

async fn ends_stopped(stage: &Stage) {
    stage.has("a", "ExternalSubscribed", 2).await;
    stage.client.raise_event("a", "end", "").await.expect("raises");
    assert_eq!(stage.output("a").await, Ok("stopped".to_owned()));
    let kinds = stage.kinds("a").await;
    let outcomes =
        kinds.iter().filter(|kind| ["ActivityCompleted", "ActivityFailed"].contains(&kind.as_str()));
    assert_eq!(outcomes.count(), 0, "what a cancelled activity returns is not used: {kinds:?}");
}

/// Registers `Stubborn`: it does not stop when told, and tells when it is dropped.
fn stubborn() -> (ActivityRegistryBuilder, mpsc::UnboundedReceiver<ActivityContext>, Arc<AtomicBool>) {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let (flag, (hand, handed)) = (Arc::clone(&dropped), mpsc::unbounded_channel());
    let registry = activities().register("Hand", move |ctx: ActivityContext, _| {
        let guard = Dropped(Arc::clone(&flag));
        hand.send(ctx).expect("the test listens");
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Ok(String::new())
        }
    });
    (registry, handed, dropped)
}

/// Starts a process with one slot, which is given an activity and does not get the answer to its fetch until
/// the returned semaphore has a permit.
async fn fetched_and_not_answered(stage: &Stage, gate: &Gate) -> Arc<Semaphore> {
    let late = stage.faults.hold_answer("fetch_work");
    let options = RuntimeOptions { worker_concurrency: 1, ..stage.options() };
    stage.run_with(waiting(gate), orchestrations().register("Call", call), options).await;
    stage.start("a", "Call", "Wait").await;
    stage.has("a", "ActivityScheduled", 1).await;
    stage
        .until("it is leased", async || {
            stage.observer().get_queue_depths().await.expect("counts").worker_queue == 0
        })
        .await;
    stage.settle().await;
    late
}

on_every_store! {
    async fn r2_9_a_long_activity_keeps_its_lease(stage) {
        let gate = Gate::new();
        stage.run(waiting(&gate), orchestrations().register("Call", call)).await;
        stage.start("a", "Call", "Wait").await;
        gate.is_entered().await;
        pass_calmly(&stage, 600 * SECOND, 5 * SECOND).await;
        assert_eq!(gate.waiting(), 0, "nobody else began it meanwhile");
        gate.open();
        assert_eq!(stage.output("a").await, Ok("attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f24_a_lease_of_half_a_second_is_renewed_in_time(stage) {
        let gate = Gate::new();
        let options = RuntimeOptions {
            worker_lock_timeout: SECOND / 2,
            session_lock_timeout: 3600 * SECOND,
            ..stage.options()
        };
        stage.run_with(waiting(&gate), orchestrations().register("Call", call), options).await;
        stage.start("a", "Call", "Wait").await;
        gate.is_entered().await;
        pass_calmly(&stage, 5 * SECOND, SECOND / 20).await;
        gate.open();
        assert_eq!(stage.output("a").await, Ok("attempt 1".to_owned()));
        assert!(stage.faults.calls("renew") >= 10, "{}", stage.faults.calls("renew"));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f7_a_renewal_that_fails_for_a_while_loses_nothing(stage) {
        let (acts, mut handed) = handing();
        let gate = Gate::new();
        let passing = gate.clone();
        let acts = acts.register("Wait", move |ctx: ActivityContext, _| {
            let gate = passing.clone();
            async move {
                gate.pass().await;
                Ok(format!("attempt {}, cancelled {}", ctx.counted_deliveries(), ctx.is_cancelled()))
            }
        });
        stage.run(acts, orchestrations().register("Call", call)).await;
        stage.start("a", "Call", "Wait").await;
        stage.start("b", "Call", "Hand").await;
        gate.is_entered().await;
        let ctx = handed.recv().await.expect("it runs");
        stage.faults.refuse("renew", 20, ProviderError::retryable("renew", "down"));
        pass_calmly(&stage, 25 * SECOND, SECOND / 4).await;
        assert!(stage.faults.calls("renew") > 20, "the trouble is over: {}", stage.faults.calls("renew"));
        pass_calmly(&stage, 60 * SECOND, 5 * SECOND).await;
        assert_eq!((ctx.is_cancelled(), ctx.cancel_reason()), (false, None));
        gate.open();
        assert_eq!(stage.output("a").await, Ok("attempt 1, cancelled false".to_owned()));
        stage.stop().await;
    }

    async fn f7_a_worker_that_cannot_renew_stops_when_its_lease_ends_and_its_result_is_not_used(stage) {
        let acts = activities().register("Hand", |ctx: ActivityContext, _| async move {
            ctx.cancelled().await;
            assert_eq!(ctx.cancel_reason(), Some(CancelReason::LeaseLost));
            Ok("too late".to_owned())
        });
        let options = RuntimeOptions { worker_concurrency: 1, ..stage.options() };
        let runtime = stage.run_with(acts, orchestrations().register("Call", call), options).await;
        stage.faults.refuse("renew", u64::MAX, ProviderError::retryable("renew", "down"));
        stage.start("a", "Call", "Hand").await;
        stage.has("a", "ActivityScheduled", 1).await;
        stage
            .until("it is leased", async || {
                stage.observer().get_queue_depths().await.expect("counts").worker_queue == 0
            })
            .await;
        // The slot of this runtime takes nothing further: the next one to ask is the other worker.
        stage.faults.hang("fetch_work", u64::MAX);
        stage.pass_slowly(30 * SECOND, SECOND / 4).await;
        let other = stage.inner().fetch_work_item(30 * SECOND, Duration::ZERO, None, &TagFilter::Any).await;
        let (_, token, attempt) = other.expect("answers").expect("it is free again");
        assert_eq!(attempt, 1, "its process lives, so the delivery does not count (G38)");
        stage.until("the first worker has let go", async || stage.faults.calls("fetch_work") == 2).await;
        let (instance, result) = ("a".to_owned(), "by another".to_owned());
        let done = WorkItem::ActivityCompleted { instance, execution_id: 1, id: 2, result };
        stage.inner().ack_work_item(&token, Some(done)).await.expect("its lease lives");
        assert_eq!(stage.output("a").await, Ok("by another".to_owned()));
        stage.stop().await;
        let counts = runtime.metrics_snapshot().expect("counts");
        assert_eq!((counts.activity_success, counts.activity_app_errors), (0, 0));
        stage.nothing_waits().await;
    }

    async fn f7_only_the_word_of_the_store_cancels_at_once(stage) {
        let (acts, mut handed) = handing();
        stage.run(acts, orchestrations().register("Call", call)).await;
        stage.start("a", "Call", "Hand").await;
        let ctx = handed.recv().await.expect("it runs");
        stage.faults.refuse("renew", 1, ProviderError::lease_lost("renew", "it is gone"));
        stage.pass(15 * SECOND);
        ctx.cancelled().await;
        assert_eq!((ctx.is_cancelled(), ctx.cancel_reason()), (true, Some(CancelReason::LeaseLost)));
        assert!(ctx.cancellation_token().is_cancelled());
        stage.stop().await;
    }

    async fn f7_work_that_is_called_withdrawn_and_is_not_runs_again(stage) {
        let (acts, mut handed) = handing();
        let options =
            RuntimeOptions { activity_cancellation_grace_period: Duration::ZERO, ..stage.options() };
        stage.run_with(acts, orchestrations().register("Call", call), options).await;
        stage.start("a", "Call", "Hand").await;
        let misled = handed.recv().await.expect("it runs");
        let untrue = ProviderError::new(ProviderErrorKind::Withdrawn, "renew", "this is not true");
        stage.faults.refuse("renew", 1, untrue);
        stage.pass(15 * SECOND);
        misled.cancelled().await;
        assert_eq!(misled.cancel_reason(), Some(CancelReason::Withdrawn));
        let ctx = handed.recv().await.expect("its orchestration waits for it, so it runs again");
        assert_eq!((ctx.counted_deliveries(), ctx.is_cancelled()), (1, false));
        stage.stop().await;
    }

    async fn f24_a_cancelled_activity_of_the_same_process_is_told_at_once(stage) {
        let (acts, mut handed) = handing();
        stage.run(acts, orchestrations().register("Race", race)).await;
        let ctx = racing(&stage, &mut handed).await;
        assert!(!ctx.is_cancelled());
        stop_the_race(&stage).await;
        // No time passes, so no renewal could have told it.
        ctx.cancelled().await;
        assert_eq!(ctx.cancel_reason(), Some(CancelReason::Withdrawn));
        ends_stopped(&stage).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f24_an_activity_of_a_cancelled_instance_is_told_at_once(stage) {
        let (acts, mut handed) = handing();
        stage.run(acts, orchestrations().register("Call", call)).await;
        stage.start("a", "Call", "Hand").await;
        let ctx = handed.recv().await.expect("it runs");
        stage.client.cancel_instance("a", "enough").await.expect("cancels");
        assert_eq!(stage.output("a").await, Err("canceled: enough".to_owned()));
        ctx.cancelled().await;
        assert_eq!(ctx.cancel_reason(), Some(CancelReason::Withdrawn));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f24_a_cancelled_activity_of_another_process_is_told_within_one_renewal(stage) {
        let (acts, mut handed) = handing();
        let worker = RuntimeOptions { orchestration_concurrency: 0, ..stage.options() };
        stage.run_with(acts, orchestrations(), worker).await;
        let turns = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
        stage.run_with(activities(), orchestrations().register("Race", race), turns).await;
        let ctx = racing(&stage, &mut handed).await;
        stop_the_race(&stage).await;
        pass_calmly(&stage, 14 * SECOND, SECOND).await;
        assert!(!ctx.is_cancelled(), "nobody could tell it yet");
        stage.pass(SECOND);
        ctx.cancelled().await;
        assert_eq!(ctx.cancel_reason(), Some(CancelReason::Withdrawn), "the store tells why (G42)");
        ends_stopped(&stage).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_a_cancelled_activity_that_stops_in_its_grace_is_not_aborted(stage) {
        let (lines, _guard) = Lines::collect();
        let gate = Gate::new();
        let passing = gate.clone();
        let acts = activities().register("Hand", move |ctx: ActivityContext, _| {
            let gate = passing.clone();
            async move {
                ctx.cancelled().await;
                gate.pass().await;
                Ok("cleaned up".to_owned())
            }
        });
        stage.run(acts, orchestrations().register("Race", race)).await;
        stage.start("a", "Race", "Hand").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage
            .until("it is leased", async || {
                stage.observer().get_queue_depths().await.expect("counts").worker_queue == 0
            })
            .await;
        stop_the_race(&stage).await;
        gate.is_entered().await;
        pass_calmly(&stage, 9 * SECOND, SECOND).await;
        gate.open();
        stage.until("it has ended", async || stage.faults.abandoned() >= 1).await;
        assert_eq!(lines.saying("WARN", "did not stop in time").len(), 0);
        ends_stopped(&stage).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_a_cancelled_activity_that_does_not_stop_is_aborted_after_its_grace(stage) {
        let (lines, _guard) = Lines::collect();
        let (acts, mut handed, dropped) = stubborn();
        stage.run(acts, orchestrations().register("Race", race)).await;
        racing(&stage, &mut handed).await;
        let sleepers = stage.clock.sleepers();
        stop_the_race(&stage).await;
        stage.until("its grace begins", async || stage.clock.sleepers() > sleepers).await;
        pass_calmly(&stage, 9 * SECOND, 9 * SECOND).await;
        assert!(!dropped.load(Ordering::Relaxed), "it still has a second");
        stage.pass(SECOND);
        stage.until("it is aborted", async || dropped.load(Ordering::Relaxed)).await;
        let [line] = &lines.saying("WARN", "did not stop in time")[..] else { panic!("{:?}", lines.all()) };
        assert_eq!(line.field("activity"), "Hand");
        ends_stopped(&stage).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_the_grace_is_an_option(stage) {
        let (acts, mut handed, dropped) = stubborn();
        let options =
            RuntimeOptions { activity_cancellation_grace_period: Duration::ZERO, ..stage.options() };
        stage.run_with(acts, orchestrations().register("Race", race), options).await;
        racing(&stage, &mut handed).await;
        stop_the_race(&stage).await;
        stage.until("it is aborted", async || dropped.load(Ordering::Relaxed)).await;
        ends_stopped(&stage).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_13_a_cancelled_activity_that_nobody_fetched_disappears(stage) {
        let options = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
        stage.run_with(activities(), orchestrations().register("Race", race), options).await;
        stage.start("a", "Race", "Hand").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let waits = async || stage.observer().get_queue_depths().await.expect("counts").worker_queue;
        assert_eq!(waits().await, 1);
        stop_the_race(&stage).await;
        assert_eq!(waits().await, 0);
        ends_stopped(&stage).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

on_every_full_store! {
    async fn f24_the_end_of_a_former_run_hides_no_later_run_of_the_same_activity(stage) {
        let (acts, mut handed) = handing();
        let options =
            RuntimeOptions { activity_cancellation_grace_period: Duration::ZERO, ..stage.options() };
        stage.run_with(acts, orchestrations().register("Race", race), options).await;
        let former = racing(&stage, &mut handed).await;
        stage.client.delete_instance("a", true).await.expect("deletes");
        let later = racing(&stage, &mut handed).await;
        pass_calmly(&stage, 20 * SECOND, 5 * SECOND).await;
        former.cancelled().await;
        stage.until("the former run has ended", async || stage.faults.abandoned() >= 1).await;
        stage.settle().await;
        assert!(!later.is_cancelled());
        stop_the_race(&stage).await;
        // No time passes, so no renewal could have told it.
        later.cancelled().await;
        assert_eq!(later.cancel_reason(), Some(CancelReason::Withdrawn));
        ends_stopped(&stage).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f24_a_late_answer_to_a_commit_cancels_no_activity_of_a_later_instance(stage) {
        let (acts, mut handed) = handing();
        stage.run(acts, orchestrations().register("Call", call)).await;
        stage.start("a", "Call", "Hand").await;
        let former = handed.recv().await.expect("it runs");
        let answer = stage.faults.hold_answer("commit_turn");
        stage.client.cancel_instance("a", "enough").await.expect("cancels");
        assert_eq!(stage.output("a").await, Err("canceled: enough".to_owned()));
        stage.client.delete_instance("a", true).await.expect("deletes");
        stage.start("a", "Call", "Hand").await;
        let later = handed.recv().await.expect("it runs");
        let renewals = stage.faults.calls("renew");
        answer.add_permits(1);
        former.cancelled().await;
        assert_eq!(former.cancel_reason(), Some(CancelReason::Withdrawn));
        stage.until("the store is asked", async || stage.faults.calls("renew") > renewals).await;
        stage.settle().await;
        assert!(!later.is_cancelled(), "nobody withdrew it");
        stage.client.cancel_instance("a", "enough").await.expect("cancels");
        assert_eq!(stage.output("a").await, Err("canceled: enough".to_owned()));
        later.cancelled().await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f24_an_activity_that_begins_while_its_withdrawal_is_under_way_is_told_at_once(stage) {
        let (acts, mut handed) = handing();
        let fetched = stage.faults.hold_answer("fetch_work");
        let options = RuntimeOptions { worker_concurrency: 1, ..stage.options() };
        stage.run_with(acts, orchestrations().register("Race", race), options).await;
        stage.start("a", "Race", "Hand").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage
            .until("it is leased", async || {
                stage.observer().get_queue_depths().await.expect("counts").worker_queue == 0
            })
            .await;
        let committed = stage.faults.hold_answer("commit_turn");
        stop_the_race(&stage).await;
        fetched.add_permits(1);
        let ctx = handed.recv().await.expect("it runs");
        committed.add_permits(1);
        // No time passes: only a renewal before its time could have told it.
        ctx.cancelled().await;
        assert_eq!(ctx.cancel_reason(), Some(CancelReason::Withdrawn));
        ends_stopped(&stage).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f24_an_activity_that_was_withdrawn_before_the_answer_to_its_fetch_is_told_at_once(stage) {
        let (acts, mut handed) = handing();
        let fetched = stage.faults.hold_answer("fetch_work");
        let options = RuntimeOptions { worker_concurrency: 1, ..stage.options() };
        stage.run_with(acts, orchestrations().register("Race", race), options).await;
        stage.start("a", "Race", "Hand").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.settle().await;
        stop_the_race(&stage).await;
        stage.settle().await;
        fetched.add_permits(1);
        // It may begin, because the store is asked beside it. No time passes.
        let ctx = handed.recv().await.expect("it runs");
        ctx.cancelled().await;
        assert_eq!(ctx.cancel_reason(), Some(CancelReason::Withdrawn));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g85_an_activity_that_another_process_has_run_meanwhile_does_not_begin(stage) {
        let gate = Gate::new();
        let late = fetched_and_not_answered(&stage, &gate).await;
        // The answer is under way for longer than the lease, and another process has the activity done.
        stage.pass(31 * SECOND);
        stage.run(waiting(&gate), orchestrations().register("Call", call)).await;
        gate.is_entered().await;
        gate.open();
        assert_eq!(stage.output("a").await, Ok("attempt 2".to_owned()));
        late.add_permits(1);
        stage.until("the late delivery is excused", async || stage.faults.calls("excuse") >= 1).await;
        stage.settle().await;
        assert_eq!(gate.waiting(), 0, "its result is recorded");
        assert_eq!(stage.faults.calls("finish_work"), 1);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g85_after_a_sleep_of_the_machine_the_store_is_asked_before_an_activity_begins(stage) {
        let gate = Gate::new();
        let late = fetched_and_not_answered(&stage, &gate).await;
        // The monotonic clock of the process does not count this.
        stage.clock.suspend(60 * SECOND);
        late.add_permits(1);
        stage.until("the store is asked", async || stage.faults.calls("renew") >= 1).await;
        gate.open();
        assert_eq!(stage.ends_as_time_passes("a", SECOND / 4).await, Ok("attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g85_an_activity_whose_lease_lives_when_the_answer_comes_late_begins(stage) {
        let gate = Gate::new();
        let late = fetched_and_not_answered(&stage, &gate).await;
        let renewals = stage.faults.calls("renew");
        // So late that the process cannot know whether the lease has ended.
        stage.pass(28 * SECOND);
        late.add_permits(1);
        gate.is_entered().await;
        assert_eq!(stage.faults.calls("renew"), renewals + 1, "the store is asked");
        // The lease counts from its renewal.
        pass_calmly(&stage, 10 * SECOND, SECOND).await;
        assert_eq!(gate.waiting(), 0, "nobody else began it meanwhile");
        gate.open();
        assert_eq!(stage.output("a").await, Ok("attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
