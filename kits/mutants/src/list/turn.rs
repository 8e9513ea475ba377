/// The mutants of turns.
const TURN: &[Mutant] = &[
    Mutant {
        name: "leased_instances_are_leased_again",
        clause: "S1",
        file: "turn.rs",
        find: "self.turns.get(instance).is_some_and(|lock| lock.is_live(now))",
        replace: "{ let _ = (instance, now); false }",
    },
    Mutant {
        name: "a_batch_is_in_reverse_order",
        clause: "S2",
        file: "turn.rs",
        find: "for (_, place) in places {",
        replace: "for (_, place) in places.into_iter().rev() {",
    },
    Mutant {
        name: "a_start_waits_behind_a_full_batch",
        clause: "S2",
        file: "turn.rs",
        find: "starts.chain(others)",
        replace: "others.chain(starts)",
    },
    Mutant {
        name: "a_batch_is_in_the_order_of_arrival",
        clause: "S2",
        file: "turn.rs",
        find: "(row.due_ms, *place)",
        replace: "(0, *place)",
    },
    Mutant {
        name: "the_delay_of_an_abandon_changes_the_order",
        clause: "S6",
        file: "turn.rs",
        find: "message.visible_at_ms = after(now, Some(delay));",
        replace: "message.visible_at_ms = after(now, Some(delay));\nmessage.due_ms = message.visible_at_ms;",
    },
    Mutant {
        name: "runs_are_numbered_by_execution",
        clause: "S2",
        file: "turn.rs",
        find: "ExecutionRow::new(run, now)",
        replace: "ExecutionRow::new(RunId(commit.execution_id), now)",
    },
    Mutant {
        name: "messages_do_not_wait_for_a_delayed_start",
        clause: "S2",
        file: "turn.rs",
        find: "!self.waits_for_its_start(&message.instance, now)",
        replace: "true",
    },
    Mutant {
        name: "a_child_begins_for_a_former_parent",
        clause: "S17",
        file: "turn.rs",
        find: "if self.begins_for_former_life(",
        replace: "if false && self.begins_for_former_life(",
    },
    Mutant {
        name: "a_refused_commit_has_taken_its_messages",
        clause: "S3",
        file: "turn.rs",
        find: "commit.check()?;",
        replace: "self.messages.retain(|_, message| message.token.as_deref() != Some(token));\n\
                  commit.check()?;",
    },
    Mutant {
        name: "a_refused_commit_has_changed_the_instance",
        clause: "S3",
        file: "turn.rs",
        find: "commit.check()?;",
        replace: "self.record(&instance, &commit, &[], now);\ncommit.check()?;",
    },
    Mutant {
        name: "an_expired_turn_token_still_holds",
        clause: "S4",
        file: "turn.rs",
        find: "Some((instance, lock)) if lock.is_live(now) => Ok",
        replace: "Some((instance, _)) => Ok",
    },
    Mutant {
        name: "attempts_of_messages_are_not_counted",
        clause: "S5",
        file: "turn.rs",
        find: "row.attempts = row.attempts.saturating_add(1);",
        replace: "row.attempts = 1;",
    },
    Mutant {
        name: "messages_of_an_expired_lease_are_lost",
        clause: "S5",
        file: "turn.rs",
        find: "row.instance == instance && row.visible_at_ms",
        replace: "row.expired.is_empty() && row.instance == instance && row.visible_at_ms",
    },
    Mutant {
        name: "an_abandon_touches_what_was_not_leased",
        clause: "S6",
        file: "turn.rs",
        find: ".filter(|message| message.token.as_deref() == Some(token))",
        replace: ".filter(|message| message.instance == instance)",
    },
    Mutant {
        name: "an_abandon_uncounts_every_attempt",
        clause: "S6",
        file: "turn.rs",
        find: "message.attempts = message.attempts.saturating_sub(1);",
        replace: "message.attempts = 0;",
    },
    Mutant {
        name: "a_commit_removes_what_arrived_late",
        clause: "S7",
        file: "turn.rs",
        find: "message.token.as_deref() != Some(token)",
        replace: "message.instance != instance || message.visible_at_ms > now",
    },
    Mutant {
        name: "a_timer_is_visible_at_once",
        clause: "S9",
        file: "turn.rs",
        find: "fires_at_ms(&message.item).unwrap_or(now)",
        replace: "fires_at_ms(&message.item).unwrap_or(now).min(now)",
    },
    Mutant {
        name: "work_cancelled_by_its_own_commit_runs",
        clause: "S12",
        file: "turn.rs",
        find: "for new in work {\n            \
               self.push_work(new, now);\n        \
               }\n        \
               self.withdraw(|row| cancelled.contains(&row.identity), now);",
        replace: "self.withdraw(|row| cancelled.contains(&row.identity), now);\n\
                  for new in work {\nself.push_work(new, now);\n}",
    },
    Mutant {
        name: "running_work_is_not_cancelled",
        clause: "S12",
        file: "turn.rs",
        find: "|row| cancelled.contains(&row.identity)",
        replace: "|row| row.lock.is_none() && cancelled.contains(&row.identity)",
    },
    Mutant {
        name: "a_stray_holds_up_everything",
        clause: "S17",
        file: "turn.rs",
        find: "self.settle_strays(&instance, now);",
        replace: "return None;",
    },
    Mutant {
        name: "messages_to_an_ended_instance_are_dropped",
        clause: "S17",
        file: "turn.rs",
        find: "if self.exists(&instance) {",
        replace: "let key = (instance.clone(), self.current_execution(&instance));\n\
                  let ended = self.executions.get(&key).is_some_and(|row| row.completed_at_ms.is_some());\n\
                  if self.exists(&instance) && (!ended || self.has_pending_start(&instance)) {",
    },
    Mutant {
        name: "strays_that_are_held_back_are_settled_at_once",
        clause: "S17",
        file: "turn.rs",
        find: "message.instance == instance && message.visible_at_ms <= now;",
        replace: "{ let _ = now; message.instance == instance };",
    },
    Mutant {
        name: "the_newest_message_is_served_first",
        clause: "S18",
        file: "turn.rs",
        find: "let mut visible = self.messages.values().filter(",
        replace: "let mut visible = self.messages.values().rev().filter(",
    },
    Mutant {
        name: "a_custom_status_has_a_version_for_each_event",
        clause: "Api",
        file: "turn.rs",
        find: "row.custom_status_version += 1;",
        replace: "let is_update = |event: &&steadfast_core::Event| {\n\
                  matches!(event.kind, steadfast_core::EventKind::CustomStatusUpdated { .. })\n\
                  };\n\
                  row.custom_status_version += commit.events.iter().filter(is_update).count() as u64;",
    },
    Mutant {
        name: "a_turn_is_not_excused_after_the_next_fetch",
        clause: "S5",
        file: "turn.rs",
        find: "self.note_expired_turn(instance);",
        replace: "",
    },
    Mutant {
        name: "routed_turns_are_given_to_any_worker",
        clause: "S21",
        file: "turn.rs",
        find: "&& self.may_take_turn(worker, &message.instance, now)",
        replace: "",
    },
    Mutant {
        name: "a_route_outlives_its_execution",
        clause: "S21",
        file: "turn.rs",
        find: "self.routes.remove(&instance);",
        replace: "",
    },
    Mutant {
        name: "a_child_begins_for_a_former_life_of_its_parent",
        clause: "S17",
        file: "turn.rs",
        find: "if self.begins_for_former_life(&instance,",
        replace: "if false && self.begins_for_former_life(&instance,",
    },
];
