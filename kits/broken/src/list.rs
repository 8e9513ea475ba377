/// Every mutant.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "leases_are_not_renewed",
        clause: "S4",
        file: "dispatch/lease.rs",
        find: "renewed = watch(shared, token, shared.store.renew(token, plan.lasts)) => renewed,",
        replace: "renewed = async { Ok::<Duration, ProviderError>(Duration::ZERO) } => renewed,",
    },
    Mutant {
        name: "one_failed_renewal_loses_the_lease",
        clause: "F7",
        file: "dispatch/lease.rs",
        find: "wait = RETRY.min(plan.renew_every);",
        replace: "shared.held.lose(token);\n\
                  return LeaseEnd::Unproven;",
    },
    Mutant {
        name: "what_is_owed_is_forgotten",
        clause: "G38",
        file: "dispatch/owed.rs",
        find: "OwedAnswer::Later => self.owed.add(owed),\n        \
                  }",
        replace: "OwedAnswer::Later => drop(owed),\n        \
                  }",
    },
    Mutant {
        name: "a_delivery_that_was_outlived_is_not_excused",
        clause: "G38",
        file: "dispatch/owed.rs",
        find: "self.owed.add(Owed::new(token, row, OwedCall::Excuse));",
        replace: "drop(row);",
    },
    Mutant {
        name: "every_lost_lease_counts",
        clause: "G38",
        file: "dispatch/held.rs",
        find: "let Some(lived) = self.lived else { return Loss::Excused };",
        replace: "let Some(lived) = self.lived else { return Loss::Counts };",
    },
    Mutant {
        name: "sessions_are_not_renewed",
        clause: "D17",
        file: "session/renew.rs",
        find: "if sessions.has_drained() {",
        replace: "if true {",
    },
    Mutant {
        name: "sessions_are_kept_at_the_end",
        clause: "D25",
        file: "session/detach.rs",
        find: "if cause.releases(shared.plan.release_on_shutdown) {",
        replace: "if false {",
    },
    Mutant {
        name: "twice_as_many_sessions_are_served",
        clause: "A8",
        file: "session/table.rs",
        find: "            limit,\n            \
                  table: Mutex::default(),",
        replace: "            limit: limit.saturating_mul(2),\n            \
                  table: Mutex::default(),",
    },
    Mutant {
        name: "a_process_that_is_not_registered_takes_session_work",
        clause: "G1",
        file: "session/register.rs",
        find: "            );\n            \
                  None\n        \
                  }",
        replace: "            );\n            \
                  Some(Owner::unnamed(node_id))\n        \
                  }",
    },
    Mutant {
        name: "ended_sessions_are_not_cleaned_up",
        clause: "D20",
        file: "session/renew.rs",
        find: "clean_up(shared).await;",
        replace: "until_stopped(shared).await;\n        clean_up(shared).await;",
    },
    Mutant {
        name: "an_activity_is_always_the_first_of_its_attachment",
        clause: "A15",
        file: "activity/run.rs",
        find: "session.completed();",
        replace: "let _ = session;",
    },
    Mutant {
        name: "a_result_is_handed_in_once",
        clause: "G39",
        file: "activity.rs",
        find: "if is_refused(&error, tried, self.plan.work_lease.lasts) {",
        replace: "if true {",
    },
    Mutant {
        name: "two_deliveries_are_poison_for_an_activity",
        clause: "I12",
        file: "activity.rs",
        find: "lease.attempt > self.most_deliveries(&lease)",
        replace: "lease.attempt > 1",
    },
    Mutant {
        name: "two_deliveries_are_poison_for_a_turn",
        clause: "I12",
        file: "turn/triage.rs",
        find: "(deliveries > max_deliveries).then(",
        replace: "(deliveries > 1).then(",
    },
    Mutant {
        name: "activities_are_queued_twice",
        clause: "I6",
        file: "turn/commit.rs",
        find: "let work = effects.work.into_iter();",
        replace: "let work = effects.work.clone().into_iter().chain(effects.work);",
    },
    Mutant {
        name: "timers_are_forgotten",
        clause: "I8",
        file: "turn/commit.rs",
        find: "let mut messages: Vec<Message> = effects.messages.into_iter().map(traced).collect();",
        replace: "let is_timer = |item: &WorkItem| matches!(item, WorkItem::TimerFired { .. });\n\
                  let kept = effects.messages.into_iter().filter(|item| !is_timer(item));\n\
                  let mut messages: Vec<Message> = kept.map(traced).collect();",
    },
    Mutant {
        name: "timers_are_due_at_once",
        clause: "I8",
        file: "turn/commit.rs",
        find: "let mut messages: Vec<Message> = effects.messages.into_iter().map(traced).collect();",
        replace: "let at_once = |item: WorkItem| match item {\n\
                  WorkItem::TimerFired { instance, execution_id, id, fire_at_ms } => {\n\
                  let fire_at_ms = fire_at_ms.saturating_sub(20);\n\
                  WorkItem::TimerFired { instance, execution_id, id, fire_at_ms }\n\
                  }\n\
                  other => other,\n\
                  };\n\
                  let early = effects.messages.into_iter().map(at_once);\n\
                  let mut messages: Vec<Message> = early.map(traced).collect();",
    },
    Mutant {
        name: "a_parent_is_not_told",
        clause: "I9",
        file: "turn/commit.rs",
        find: "if let Some(notice) = effects.parent {",
        replace: "if let Some(notice) = effects.parent.filter(|_| false) {",
    },
    Mutant {
        name: "dropped_activities_are_not_withdrawn",
        clause: "I9",
        file: "turn/commit.rs",
        find: "cancelled: effects.cancelled_activities,",
        replace: "cancelled: Vec::new(),",
    },
    Mutant {
        name: "passing_trouble_fails_an_orchestration",
        clause: "F8",
        file: "turn/commit.rs",
        find: "ProviderErrorKind::Invalid | ProviderErrorKind::Other => return CommitEnd::Refused(error),",
        replace: "ProviderErrorKind::Invalid\n\
                  | ProviderErrorKind::Other\n\
                  | ProviderErrorKind::Busy\n\
                  | ProviderErrorKind::Full\n\
                  | ProviderErrorKind::Unavailable => return CommitEnd::Refused(error),",
    },
    Mutant {
        name: "a_running_activity_learns_late_that_it_is_withdrawn",
        clause: "F24",
        file: "turn/commit.rs",
        find: "self.shared.running_activities.cancel(&cancelled);",
        replace: "drop(cancelled);",
    },
    Mutant {
        name: "what_is_in_memory_is_not_compared_with_the_history",
        clause: "I4",
        file: "turn/process.rs",
        find: "if events.is_empty() && Some(kept.run) == run && kept.execution.last_event_id() == after =>",
        replace: "if { let _ = (&events, after); kept.run.0 > 0 } =>",
    },
    Mutant {
        name: "a_termination_is_not_seen",
        clause: "I1",
        file: "turn/triage.rs",
        find: "let terminated = termination(&messages);",
        replace: "let terminated = None;",
    },
    Mutant {
        name: "messages_of_a_turn_arrive_in_reverse",
        clause: "I5",
        file: "turn/triage.rs",
        find: "for (place, Message { item, traceparent, failure }) in messages.into_iter().enumerate() {",
        replace: "for (place, Message { item, traceparent, failure }) in \
                  messages.into_iter().enumerate().rev() {",
    },
    Mutant {
        name: "a_refused_activity_counts",
        clause: "G5",
        file: "upkeep/worker.rs",
        find: "answer = self.store.refuse(token, Refusal { handler, if_unlisted }) => answer,",
        replace: "answer = self.store.abandon(token, Abandon {\n\
                  retry_after: Some(delay), attempt: Attempt::Counts }) => {\n\
                  drop((handler, if_unlisted));\n\
                  answer.map(|()| Refused::Unlisted)\n\
                  }",
    },
    Mutant {
        name: "an_error_of_an_activity_is_a_result",
        clause: "I6",
        file: "activity.rs",
        find: "Err(details) => WorkItem::ActivityFailed { instance, execution_id, id, details },",
        replace: "Err(details) => {\n\
                  let result = details.display_message();\n\
                  WorkItem::ActivityCompleted { instance, execution_id, id, result }\n\
                  }",
    },
    Mutant {
        name: "detached_starts_are_not_sent",
        clause: "F25",
        file: "turn/commit.rs",
        find: "let mut messages: Vec<Message> = effects.messages.into_iter().map(traced).collect();",
        replace: "let is_start = |item: &WorkItem| {\n\
                  matches!(item, WorkItem::StartOrchestration { parent_instance: None, .. })\n\
                  };\n\
                  let kept = effects.messages.into_iter().filter(|item| !is_start(item));\n\
                  let mut messages: Vec<Message> = kept.map(traced).collect();",
    },
    Mutant {
        name: "a_turn_reads_the_time_of_the_process",
        clause: "I8",
        file: "turn/step.rs",
        find: "let turn = execution.turn_of(self.now_ms, arrivals);",
        replace: "let turn = execution.turn_of(self.shared.plan.clock.now_ms(), arrivals);",
    },
    Mutant {
        name: "a_process_that_stops_keeps_its_leases",
        clause: "D24",
        file: "activity/run.rs",
        find: "drop(running);\n                \
               drop(guards);\n                \
               return self.shared.abandon_uncounted(&self.token, None).await;",
        replace: "drop(running);\n\
                  drop(guards);\n\
                  return;",
    },
    Mutant {
        name: "a_claim_enters_the_attachment_of_an_older_one",
        clause: "A7",
        file: "session/table.rs",
        find: "let same = known.filter(|known| known.local.epoch == *epoch).map(",
        replace: "let same = known.filter(|known| known.local.epoch <= *epoch).map(",
    },
    Mutant {
        name: "a_second_parent_of_a_child_is_not_told",
        clause: "I9",
        file: "turn/triage.rs",
        find: "rivals.contains(&place) || !is_own(parent, standing);",
        replace: "place > 1_000_000 && rivals.is_empty() && !is_own(parent, standing);",
    },
    Mutant {
        name: "retention_goes_by_the_clock_of_the_worker",
        clause: "G3",
        file: "upkeep/retention.rs",
        find: "match self.shared.store.delete_ended(self.retention, self.batch).await {",
        replace: "match self.delete_before().await {",
    },
];
