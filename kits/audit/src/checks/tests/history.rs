//! Broken histories and rows.

use steadfast_core::{ErrorDetails, EventKind, SessionKey};
use steadfast_store::{ExecutionState, Gauges, Queue, SessionInfo, SetAside, TurnState};

use super::*;
use crate::{
    Told,
    checks::{end, history, state},
};

fn well() -> Case {
    with(case(Vec::new()), "i", 1, vec![started(), scheduled(), result(2, "r"), completed("x")])
}

#[test]
fn an_instance_that_has_not_ended_is_noticed() {
    assert!(found(end::everything_has_ended, &well()).is_empty());
    assert_eq!(found(end::everything_has_ended, &with(case(Vec::new()), "i", 1, vec![started()])), ["I7"]);
}

#[test]
fn a_message_that_is_left_is_noticed() {
    let mut case = well();
    case.records.gauges = Some(Gauges { running_instances: 0, messages: 0, work: 0 });
    assert!(found(end::nothing_is_left_in_the_queues, &case).is_empty());
    case.records.gauges = Some(Gauges { running_instances: 0, messages: 1, work: 0 });
    assert_eq!(found(end::nothing_is_left_in_the_queues, &case), ["I7"]);
}

fn session(key: SessionKey) -> SessionInfo {
    SessionInfo {
        key,
        owner: None,
        epoch: 1,
        locked_until_ms: 0,
        last_activity_at_ms: BEGAN_MS,
        queued: 0,
        idle_timeout_ms: None,
        concurrency: steadfast_core::SessionConcurrency::Unbounded,
    }
}

#[test]
fn a_session_that_outlives_its_instance_is_noticed() {
    let mut case = well();
    assert!(found(end::no_session_outlives_its_instance, &case).is_empty());
    let key = SessionKey::owned("i", "s");
    case.records.sessions.insert(key.clone(), session(key));
    assert_eq!(found(end::no_session_outlives_its_instance, &case), ["A10"]);
}

#[test]
fn a_session_that_is_not_cleaned_up_is_noticed() {
    let mut case = well();
    let key = SessionKey::shared("s");
    case.records.sessions.insert(key.clone(), session(key));
    let now = |ms| Some(TurnState { now_ms: BEGAN_MS + ms, ..TurnState::default() });
    case.records.instances.values_mut().for_each(|instance| instance.turn = now(1_000));
    assert!(found(end::ended_sessions_are_cleaned_up, &case).is_empty());
    case.records.instances.values_mut().for_each(|instance| instance.turn = now(900_000));
    assert_eq!(found(end::ended_sessions_are_cleaned_up, &case), ["D20"]);
}

#[test]
fn a_failure_of_the_infrastructure_is_noticed() {
    let details = ErrorDetails::Infrastructure {
        operation: "commit_turn".to_owned(),
        message: String::new(),
        retryable: true,
    };
    let failed = (None, EventKind::OrchestrationFailed { details });
    let case = with(case(Vec::new()), "i", 1, vec![started(), failed]);
    assert_eq!(found(end::no_infrastructure_fails_an_instance, &case), ["I12"]);
    assert!(found(end::no_infrastructure_fails_an_instance, &well()).is_empty());
}

/// An instance that failed as poison at a delivery, after so many deaths.
fn poison(attempt_count: u32, deaths: u64) -> Case {
    let message_type =
        steadfast_core::PoisonMessageType::Orchestration { instance: "i".to_owned(), execution_id: 1 };
    let details =
        ErrorDetails::Poison { attempt_count, max_attempts: 10, message_type, message: String::new() };
    let failed = (None, EventKind::OrchestrationFailed { details });
    let deaths = (0..deaths).map(|second| fault(second, FaultKind::Killed, "p", 0)).collect();
    with(case(deaths), "i", 1, vec![started(), failed])
}

#[test]
fn poison_after_too_few_deliveries_is_noticed() {
    let after = |deliveries| {
        let mut case = poison(deliveries, 0);
        case.terms.may_fail = Some(Arc::new(|_, _| true));
        found(end::no_infrastructure_fails_an_instance, &case)
    };
    assert!(after(11).is_empty());
    assert_eq!(after(10), ["I12"]);
}

#[test]
fn poison_after_fewer_deaths_than_deliveries_are_allowed_is_noticed() {
    let after = |deaths| found(end::no_infrastructure_fails_an_instance, &poison(11, deaths));
    assert!(after(10).is_empty(), "the eleventh delivery is poison");
    assert_eq!(after(9), ["I12"]);
}

#[test]
fn a_second_answer_is_noticed() {
    assert!(found(history::an_action_is_answered_once, &well()).is_empty());
    let twice = vec![started(), scheduled(), result(2, "r"), result(2, "r")];
    assert_eq!(found(history::an_action_is_answered_once, &with(case(Vec::new()), "i", 1, twice)), ["I6"]);
    let unknown = vec![started(), result(7, "r")];
    assert_eq!(found(history::an_action_is_answered_once, &with(case(Vec::new()), "i", 1, unknown)), ["I6"]);
}

#[test]
fn what_goes_on_after_the_end_is_noticed() {
    assert!(found(history::an_end_is_final, &well()).is_empty());
    let more = vec![started(), completed("x"), scheduled()];
    assert_eq!(found(history::an_end_is_final, &with(case(Vec::new()), "i", 1, more)), ["I9"]);
    let mut foreign = well();
    let histories = foreign.records.instances.values_mut().flat_map(|one| one.executions.values_mut());
    histories.for_each(|history| history[1].instance_id = "other".to_owned());
    assert_eq!(found(history::an_end_is_final, &foreign), ["S10"]);
}

#[test]
fn a_state_that_is_not_that_of_the_history_is_noticed() {
    let mut case = well();
    assert!(found(history::the_state_is_that_of_the_history, &case).is_empty());
    let states = case.records.instances.values_mut();
    states.for_each(|instance| instance.state.status = ExecutionState::Completed("y".to_owned()));
    assert_eq!(found(history::the_state_is_that_of_the_history, &case), ["I10"]);
}

/// A history whose timer was asked for at one time, and fires at another by the event's own time.
fn timer(fire_at_ms: u64) -> Case {
    let history = vec![
        started(),
        (None, EventKind::TimerCreated { fire_at_ms }),
        (Some(2), EventKind::TimerFired { fire_at_ms: 0 }),
    ];
    with(case(vec![begins("p")]), "i", 1, history)
}

#[test]
fn a_timer_that_is_early_or_late_is_noticed() {
    assert!(found(history::timers_fire_on_time, &timer(BEGAN_MS + 59_000)).is_empty());
    assert_eq!(found(history::timers_fire_on_time, &timer(BEGAN_MS + 60_001)), ["I8"]);
    assert_eq!(found(history::timers_fire_on_time, &timer(BEGAN_MS + 10_000)), ["I8"]);
}

#[test]
fn a_timer_may_be_late_if_something_went_wrong() {
    let mut case = timer(BEGAN_MS + 10_000);
    let outage = Fact::Fault(Fault { kind: FaultKind::Cut, process: None, lasts_us: 50_000_000 });
    case.evidence = Evidence::of(vec![begins("p"), at(9, outage)]);
    assert!(found(history::timers_fire_on_time, &case).is_empty());
}

#[test]
fn an_execution_that_begins_with_another_input_is_noticed() {
    let continued = |input: &str| (None, EventKind::OrchestrationContinuedAsNew { input: input.to_owned() });
    let follow = |input| {
        let case = with(case(Vec::new()), "i", 1, vec![started(), continued(input)]);
        found(history::executions_follow_each_other, &with(case, "i", 2, vec![started()]))
    };
    assert!(follow("x").is_empty());
    assert_eq!(follow("y"), ["I2"]);
}

/// A parent that is told `told` of its child, which ended with `x`.
fn family(told: &str) -> Case {
    let (name, input) = ("Kid".to_owned(), "x".to_owned());
    let child = EventKind::SubOrchestrationScheduled { name, instance: "kid".to_owned(), input };
    let answer = EventKind::SubOrchestrationCompleted { result: told.to_owned() };
    let parent = vec![started(), (None, child), (Some(2), answer), completed("x")];
    let mut first = started();
    if let EventKind::OrchestrationStarted { parent_instance, parent_id, parent_execution_id, .. } =
        &mut first.1
    {
        (*parent_instance, *parent_id, *parent_execution_id) = (Some("i".to_owned()), Some(2), Some(1));
    }
    let case = with(case(Vec::new()), "i", 1, parent);
    with(case, "kid", 1, vec![first, completed("x")])
}

#[test]
fn a_parent_that_is_told_another_outcome_is_noticed() {
    assert!(found(history::a_parent_is_told_the_outcome, &family("x")).is_empty());
    assert_eq!(found(history::a_parent_is_told_the_outcome, &family("y")), ["I9"]);
}

#[test]
fn a_detached_orchestration_that_is_not_there_is_noticed() {
    let (name, input) = ("Kid".to_owned(), String::new());
    let chained = EventKind::OrchestrationChained { name, instance: "out".to_owned(), input };
    let case = with(case(Vec::new()), "i", 1, vec![started(), (None, chained)]);
    assert_eq!(found(history::detached_orchestrations_exist, &case), ["F25"]);
    let case = with(case, "out", 1, vec![started()]);
    assert!(found(history::detached_orchestrations_exist, &case).is_empty());
}

#[test]
fn code_that_does_not_repeat_its_history_is_noticed() {
    assert_eq!(found(history::code_repeats_the_history, &with_other_code(well())), ["I4"]);
}

#[test]
fn values_and_a_status_that_no_history_set_are_noticed() {
    let mut case = well();
    assert!(found(state::values_are_those_of_the_history, &case).is_empty());
    assert!(found(state::the_custom_status_is_that_of_the_history, &case).is_empty());
    for instance in case.records.instances.values_mut() {
        instance.values.insert("k".to_owned(), "v".to_owned());
        instance.state.custom_status = Some("s".to_owned());
    }
    assert_eq!(found(state::values_are_those_of_the_history, &case), ["I2"]);
    assert_eq!(found(state::the_custom_status_is_that_of_the_history, &case), ["I2"]);
}

#[test]
fn a_row_that_is_set_aside_is_noticed() {
    let mut case = well();
    assert!(found(end::nothing_is_set_aside, &case).is_empty());
    case.records.set_aside.push(SetAside {
        id: 1,
        queue: Queue::Worker,
        instance: Some("i".to_owned()),
        payload: "{".to_owned(),
        reason: "torn".to_owned(),
        attempts: 10,
        at_ms: BEGAN_MS,
    });
    assert_eq!(found(end::nothing_is_set_aside, &case), ["I12"]);
}

/// A case in which activity 2 of `i` was poison after so many deliveries.
fn poisoned(attempt_count: u32) -> Case {
    let (instance, activity_name) = ("i".to_owned(), "a".to_owned());
    let message_type = steadfast_core::PoisonMessageType::Activity {
        instance,
        execution_id: 1,
        activity_name,
        activity_id: 2,
    };
    let details =
        ErrorDetails::Poison { attempt_count, max_attempts: 10, message_type, message: String::new() };
    let failed = (Some(2), EventKind::ActivityFailed { details });
    with(case(Vec::new()), "i", 1, vec![started(), scheduled(), failed])
}

#[test]
fn an_activity_that_is_poison_and_killed_nothing_is_noticed() {
    let check = end::no_activity_is_poison_for_no_reason;
    assert_eq!(found(check, &poisoned(11)), ["I12"]);
    let mut lacked = poisoned(11);
    lacked.terms.lacks.insert("p".to_owned(), ["a".to_owned()].into());
    assert!(found(check, &lacked).is_empty());
    let mut other = poisoned(11);
    other.terms.lacks.insert("p".to_owned(), ["b".to_owned()].into());
    assert_eq!(found(check, &other), ["I12"], "another activity is lacked");
    let mut early = poisoned(10);
    early.terms.lacks.insert("p".to_owned(), ["a".to_owned()].into());
    assert_eq!(found(check, &early), ["I12"], "too few deliveries");
    let mut deadly = poisoned(11);
    deadly.evidence = Evidence::of((0..11).map(|at| fault(at, FaultKind::Killed, "p", 0)).collect());
    assert!(found(check, &deadly).is_empty());
}

#[test]
fn a_second_parent_that_is_told_of_a_child_that_is_not_its_own_is_noticed() {
    let check = history::a_child_has_one_parent;
    assert!(found(check, &family("x")).is_empty());
    let (name, input) = ("Kid".to_owned(), String::new());
    let child = EventKind::SubOrchestrationScheduled { name, instance: "kid".to_owned(), input };
    let told = |answer| {
        let history = vec![started(), (None, child.clone()), (Some(2), answer)];
        found(check, &with(family("x"), "j", 1, history))
    };
    let refused = EventKind::SubOrchestrationFailed {
        details: ErrorDetails::Application {
            kind: steadfast_core::AppErrorKind::OrchestrationFailed,
            message: "kid already exists".to_owned(),
            retryable: false,
        },
    };
    assert!(told(refused).is_empty());
    assert_eq!(told(EventKind::SubOrchestrationCompleted { result: "x".to_owned() }), ["I9"]);
}

#[test]
fn values_of_executions_that_a_client_removed_are_not_looked_for() {
    let mut case = with(case(Vec::new()), "i", 2, vec![started()]);
    for instance in case.records.instances.values_mut() {
        instance.values.insert("k".to_owned(), "v".to_owned());
    }
    assert_eq!(found(state::values_are_those_of_the_history, &case), ["I2"]);
    case.evidence = Evidence::of(vec![at(1, Fact::Asked(Told::Pruned("i".to_owned())))]);
    assert!(found(state::values_are_those_of_the_history, &case).is_empty());
}

#[test]
fn a_child_that_began_with_the_input_of_another_life_of_its_parent_is_noticed() {
    let check = history::a_child_has_the_input_of_its_parent;
    assert!(found(check, &family("x")).is_empty());
    let mut case = family("x");
    let kid = case.records.instances.get_mut("kid").expect("the child");
    let first = kid.executions.get_mut(&1).and_then(|history| history.first_mut()).expect("its start");
    if let EventKind::OrchestrationStarted { input, .. } = &mut first.kind {
        *input = "of a former life".to_owned();
    }
    assert_eq!(found(check, &case), ["S17"]);
}

#[test]
fn a_timer_of_an_instance_that_the_disk_did_not_return_may_be_late() {
    let fires = |damaged: bool| {
        let timer = (None, EventKind::TimerCreated { fire_at_ms: BEGAN_MS + 30_000 });
        let fired = (Some(2), EventKind::TimerFired { fire_at_ms: BEGAN_MS + 30_000 });
        let mut case = with(case(vec![begins("p")]), "i", 1, vec![started(), timer, fired]);
        case.terms.damaged.extend(damaged.then(|| "i".to_owned()));
        found(history::timers_fire_on_time, &case)
    };
    assert_eq!(fires(false), ["I8"]);
    assert!(fires(true).is_empty());
}
