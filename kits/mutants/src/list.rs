/// Every mutant.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "leased_instances_are_leased_again",
        clause: "S1",
        file: "turn.rs",
        find: "self.turns.get(instance).is_some_and(|lock| lock.is_live(now))",
        replace: "{ let _ = (instance, now); false }",
    },
    Mutant {
        name: "a_lease_outlives_its_last_moment",
        clause: "S1",
        file: "state.rs",
        find: "self.until_ms > now",
        replace: "self.until_ms >= now",
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
        name: "a_tail_repeats_the_last_known_event",
        clause: "S2",
        file: "execution.rs",
        find: "Bound::Excluded(known.unwrap_or(0))",
        replace: "Bound::Included(known.unwrap_or(0))",
    },
    Mutant {
        name: "messages_do_not_wait_for_a_delayed_start",
        clause: "S2",
        file: "turn.rs",
        find: "!self.waits_for_its_start(&message.instance, now)",
        replace: "true",
    },
    Mutant {
        name: "the_life_of_a_parent_does_not_matter",
        clause: "S17",
        file: "message/life.rs",
        find: "bearer.order == life",
        replace: "{ let _ = (life, bearer); true }",
    },
    Mutant {
        name: "the_start_of_a_child_goes_with_its_parent",
        clause: "S17",
        file: "message/life.rs",
        find: "row.starts && !self.has_history(bearer) && !self.has_queued_start(bearer)",
        replace: "false",
    },
    Mutant {
        name: "a_parent_that_is_about_to_start_gets_the_children_of_the_former",
        clause: "S17",
        file: "message/life.rs",
        find: "!self.has_queued_start(bearer)",
        replace: "row.starts",
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
        name: "messages_are_sent_until_one_is_bad",
        clause: "S3",
        file: "message.rs",
        find: "check_message(\"send\", &envelope.message.item)?;",
        replace: "let is_good = |sent: &&Envelope| check_message(\"send\", &sent.message.item).is_ok();\n\
                  if let Err(error) = check_message(\"send\", &envelope.message.item) {\n\
                  for sent in messages.iter().take_while(is_good) {\n\
                  self.push_message(sent.message.clone(), now);\n\
                  }\n\
                  return Err(error);\n\
                  }",
    },
    Mutant {
        name: "an_expired_turn_token_still_holds",
        clause: "S4",
        file: "turn.rs",
        find: "Some((instance, lock)) if lock.is_live(now) => Ok",
        replace: "Some((instance, _)) => Ok",
    },
    Mutant {
        name: "an_expired_work_token_still_holds",
        clause: "S4",
        file: "work.rs",
        find: "Some((place, row)) if row.is_leased(now) => Ok",
        replace: "Some((place, _)) => Ok",
    },
    Mutant {
        name: "a_deleted_instance_keeps_its_lease",
        clause: "S4",
        file: "admin.rs",
        find: "self.turns.retain(|id, _| !named.contains(id.as_str()));",
        replace: "",
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
        name: "a_dropped_fetch_leaves_its_lease",
        clause: "S5",
        file: "poll.rs",
        find: "return Ok(result);",
        replace: "tokio::task::yield_now().await;\nreturn Ok(result);",
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
        name: "a_late_message_is_stamped_with_the_lease",
        clause: "S7",
        file: "message.rs",
        find: "self.messages.insert(place, row);",
        replace: "let token = self.turns.get(&row.instance).map(|lock| lock.token.clone());\n\
                  self.messages.insert(place, MessageRow { token, ..row });",
    },
    Mutant {
        name: "a_repeated_event_replaces_the_first",
        clause: "S8",
        file: "execution.rs",
        find: "history.is_some_and(|events| events.contains_key(&id)) ||",
        replace: "",
    },
    Mutant {
        name: "a_timer_is_visible_at_once",
        clause: "S9",
        file: "turn.rs",
        find: "fires_at_ms(&message.item).unwrap_or(now)",
        replace: "fires_at_ms(&message.item).unwrap_or(now).min(now)",
    },
    Mutant {
        name: "a_waiting_fetch_sleeps_past_a_timer",
        clause: "S9",
        file: "poll.rs",
        find: "messages.chain(turns).chain(work)",
        replace: "turns.chain(work)",
    },
    Mutant {
        name: "executions_share_their_events",
        clause: "S10",
        file: "execution.rs",
        find: ".entry((instance.to_owned(), execution))",
        replace: ".entry((instance.to_owned(), execution.min(1)))",
    },
    Mutant {
        name: "completed_work_stays_in_the_queue",
        clause: "S11",
        file: "work.rs",
        find: "self.work.remove(&place);",
        replace: "self.work.get_mut(&place).map(|row| row.lock = None);",
    },
    Mutant {
        name: "a_completion_goes_only_to_a_known_instance",
        clause: "S11",
        file: "work.rs",
        find: "self.push_message(completion, now);",
        replace: "if self.exists(completion.item.instance()) {\nself.push_message(completion, now);\n}",
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
        name: "an_expired_session_is_never_claimed",
        clause: "S13",
        file: "session.rs",
        find: "!session.is_live(now) ||",
        replace: "",
    },
    Mutant {
        name: "a_live_session_is_claimed_by_any_process",
        clause: "S13",
        file: "session.rs",
        find: "held || session.is_none_or(",
        replace: "true || session.is_none_or(",
    },
    Mutant {
        name: "epochs_are_counted_by_session",
        clause: "S13",
        file: "session.rs",
        find: "let epoch = self.next();",
        replace: "let epoch = self.sessions.get(&key).map_or(0, |session| session.epoch) + 1;",
    },
    Mutant {
        name: "a_renewal_revives_an_expired_session",
        clause: "S13",
        file: "session.rs",
        find: ".filter(|(_, session)| session.is_held_by(&request.owner, now))",
        replace: ".filter(|(_, session)| session.is_held_by(&request.owner, 0))",
    },
    Mutant {
        name: "a_session_with_a_running_activity_goes_idle",
        clause: "S13",
        file: "session.rs",
        find: "<= now) && !self.is_running(key, now)",
        replace: "<= now)",
    },
    Mutant {
        name: "untaken_work_never_moves_on",
        clause: "S13",
        file: "session.rs",
        find: "if untaken {",
        replace: "if untaken && now == 0 {",
    },
    Mutant {
        name: "a_release_ignores_the_epoch",
        clause: "S13",
        file: "session.rs",
        find: "&& session.epoch == claim.epoch",
        replace: "",
    },
    Mutant {
        name: "an_older_incarnation_goes_on",
        clause: "S13",
        file: "session.rs",
        find: "if given < *newest =>",
        replace: "if given < *newest && given == 0 =>",
    },
    Mutant {
        name: "a_serial_session_forgets_its_order",
        clause: "S13",
        file: "work.rs",
        find: "ahead.next().is_none() && !running",
        replace: "{ let _ = &mut ahead; !running }",
    },
    Mutant {
        name: "watchers_are_not_told",
        clause: "S13",
        file: "session.rs",
        find: "self.push_message(message.into(), now);",
        replace: "drop(message);",
    },
    Mutant {
        name: "continue_as_new_closes_the_sessions",
        clause: "S13",
        file: "session.rs",
        find: "for key in &commit.watched {",
        replace: "if commit.metadata.status.as_deref() == Some(\"ContinuedAsNew\") {\n\
                  self.close_sessions_of(instance, now);\n\
                  }\n\
                  for key in &commit.watched {",
    },
    Mutant {
        name: "the_tag_filter_is_ignored",
        clause: "S14",
        file: "work.rs",
        find: "&& request.tags.matches(row.tag.as_deref())",
        replace: "",
    },
    Mutant {
        name: "a_change_wakes_only_one",
        clause: "S14",
        file: "lib.rs",
        find: "self.changed.notify_waiters();",
        replace: "self.changed.notify_one();",
    },
    Mutant {
        name: "an_unreadable_message_vanishes_in_the_end",
        clause: "S15",
        file: "set_aside.rs",
        find: "self.put_aside(AsideRow::Message(row), now);",
        replace: "drop(row);",
    },
    Mutant {
        name: "unreadable_work_is_never_set_aside",
        clause: "S15",
        file: "set_aside.rs",
        find: "self.put_aside(AsideRow::Work(row), now);",
        replace: "self.work.insert(place, row);",
    },
    Mutant {
        name: "unreadable_work_fails_the_fetch",
        clause: "S15",
        file: "work.rs",
        find: "self.pass_over_unreadable_work(request, now);",
        replace: "if self.work.values().any(|row| !row.is_readable() && row.is_waiting(now)) {\n\
                  let kind = steadfast_store::ProviderErrorKind::Corrupt;\n\
                  return Err(ProviderError::new(kind, \"fetch_work\", \"a row cannot be read\"));\n\
                  }",
    },
    Mutant {
        name: "unreadable_messages_are_counted_without_a_pause",
        clause: "S15",
        file: "set_aside.rs",
        find: "self.messages.remove(&place) else { continue };\n            \
               row.attempts += 1;\n            \
               row.visible_at_ms = after(now, Some(UNREADABLE_RETRY));",
        replace: "self.messages.remove(&place) else { continue };\nrow.attempts += 1;",
    },
    Mutant {
        name: "unreadable_history_is_shown_as_empty",
        clause: "S15",
        file: "execution.rs",
        find: "history_after(readable(rows), known)",
        replace: "match readable(rows) {\n\
                  Ok(events) => history_after(Ok::<_, String>(events), known),\n\
                  Err(_) => History::Whole(Vec::new()),\n\
                  }",
    },
    Mutant {
        name: "leases_follow_the_wall_clock",
        clause: "S16",
        file: "lib.rs",
        find: "self.opened_at_ms.saturating_add(millis(elapsed))",
        replace: "{ let _ = elapsed; self.clock.now_ms() }",
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
        name: "a_pending_start_is_started_again",
        clause: "Api",
        file: "message.rs",
        find: "self.exists(start.message.item.instance())",
        replace: "self.instances.contains_key(start.message.item.instance())",
    },
    Mutant {
        name: "a_parent_is_deleted_without_its_children",
        clause: "Api",
        file: "admin.rs",
        find: ".find(|child| !ids.contains(child))",
        replace: ".find(|child| child.is_empty())",
    },
    Mutant {
        name: "an_instance_between_two_executions_counts_as_ended",
        clause: "Api",
        file: "admin.rs",
        find: "|| self.has_pending_start(instance)",
        replace: "",
    },
    Mutant {
        name: "pruning_removes_what_runs",
        clause: "Api",
        file: "admin.rs",
        find: "row.is_running() || !old",
        replace: "!old",
    },
    Mutant {
        name: "the_snapshot_shows_the_current_execution",
        clause: "Api",
        file: "instance/kv.rs",
        find: "self.committed.iter().map(|(key, entry)| (key.clone(), entry.clone())).collect()",
        replace: "{\n\
                  let set = self.overlay.iter().filter_map(|(key, set)| set.as_ref().map(|entry| (key, \
                  entry)));\n\
                  self.committed.iter().chain(set).map(|(key, entry)| (key.clone(), \
                  entry.clone())).collect()\n\
                  }",
    },
    Mutant {
        name: "clearing_all_spares_what_earlier_executions_left",
        clause: "Api",
        file: "instance/kv.rs",
        find: "self.committed.keys().chain(self.overlay.keys()).cloned()",
        replace: "self.overlay.keys().cloned()",
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
        name: "a_wait_misses_a_deletion",
        clause: "Api",
        file: "poll.rs",
        find: "Ok(wait.saw(found))",
        replace: "if found.is_none()\n\
                  && matches!(wait.interest(), steadfast_store::Interest::Instance(_))\n\
                  {\n\
                  return Ok(None);\n\
                  }\n\
                  Ok(wait.saw(found))",
    },
    Mutant {
        name: "the_end_of_an_instance_wakes_no_waiting_call",
        clause: "Api",
        file: "store.rs",
        find: "self.change(|state, now| state.commit_turn(lease.as_str(), commit, now))",
        replace: "if commit.ends_instance() {\n\
                  let now = self.now_ms();\n\
                  return self.read().commit_turn(lease.as_str(), commit, now);\n\
                  }\n\
                  self.change(|state, now| state.commit_turn(lease.as_str(), commit, now))",
    },
    Mutant {
        name: "a_wait_for_the_end_ends_with_any_commit",
        clause: "Api",
        file: "poll.rs",
        find: "Ok(wait.saw(found))",
        replace: "if found.is_some()\n\
                  && matches!(wait.interest(), steadfast_store::Interest::End(_))\n\
                  {\n\
                  return Ok(Some(Waited::Seen(found.map(Box::new))));\n\
                  }\n\
                  Ok(wait.saw(found))",
    },
    Mutant {
        name: "a_wait_for_the_end_ends_between_two_executions",
        clause: "Api",
        file: "poll.rs",
        find: "Ok(wait.saw(found))",
        replace: "if found.as_ref().is_some_and(|state| state.status.label() == \"ContinuedAsNew\")\n\
                  && matches!(wait.interest(), steadfast_store::Interest::End(_))\n\
                  {\n\
                  return Ok(Some(Waited::Seen(found.map(Box::new))));\n\
                  }\n\
                  Ok(wait.saw(found))",
    },
    Mutant {
        name: "a_wait_for_the_end_takes_a_failure_for_no_end",
        clause: "Api",
        file: "poll.rs",
        find: "Ok(wait.saw(found))",
        replace: "if found.as_ref().is_some_and(|state| state.status.label() == \"Failed\")\n\
                  && matches!(wait.interest(), steadfast_store::Interest::End(_))\n\
                  {\n\
                  return Ok(None);\n\
                  }\n\
                  Ok(wait.saw(found))",
    },
    Mutant {
        name: "a_wait_for_the_end_outlasts_the_instance",
        clause: "Api",
        file: "poll.rs",
        find: "Ok(wait.saw(found))",
        replace: "if found.is_none()\n\
                  && matches!(wait.interest(), steadfast_store::Interest::End(_))\n\
                  {\n\
                  return Ok(None);\n\
                  }\n\
                  Ok(wait.saw(found))",
    },
    Mutant {
        name: "a_wait_for_the_end_does_not_wait_for_the_beginning",
        clause: "Api",
        file: "poll.rs",
        find: "Ok(wait.saw(found))",
        replace: "if found.is_none()\n\
                  && matches!(wait.interest(), steadfast_store::Interest::End(_))\n\
                  {\n\
                  return Ok(Some(Waited::Seen(found.map(Box::new))));\n\
                  }\n\
                  Ok(wait.saw(found))",
    },
    Mutant {
        name: "a_page_repeats_the_last_instance_of_the_one_before",
        clause: "Api",
        file: "instance.rs",
        find: "row.order >= before",
        replace: "row.order > before",
    },
    Mutant {
        name: "leased_messages_are_told_to_wait",
        clause: "S2",
        file: "inspect.rs",
        find: "if self.is_message_leased(message, now) {",
        replace: "if false {",
    },
    Mutant {
        name: "the_worker_of_an_activity_is_not_told",
        clause: "S5",
        file: "work.rs",
        find: "request.worker_id.clone()",
        replace: "String::new()",
    },
    Mutant {
        name: "a_leased_activity_forgets_that_it_was_abandoned",
        clause: "S5",
        file: "work.rs",
        find: "row.waiting_since()",
        replace: "row.visible_at_ms",
    },
    Mutant {
        name: "a_leased_activity_waited_for_no_time",
        clause: "S5",
        file: "work.rs",
        find: "waiting_since_ms: Some(waiting_since)",
        replace: "waiting_since_ms: Some({ let _ = waiting_since; now })",
    },
    Mutant {
        name: "messages_that_are_held_back_are_told_to_wait",
        clause: "S9",
        file: "inspect.rs",
        find: "message.visible_at_ms > now {",
        replace: "false {",
    },
    Mutant {
        name: "the_longest_wait_counts_the_time_of_leases",
        clause: "S18",
        file: "inspect.rs",
        find: "oldest.max(self.free_since(instance))",
        replace: "{ let _ = instance; oldest }",
    },
    Mutant {
        name: "a_leased_instance_is_told_to_wait",
        clause: "S18",
        file: "inspect.rs",
        find: "&& !self.is_leased(&message.instance, now)",
        replace: "",
    },
    Mutant {
        name: "what_cannot_be_taken_from_a_serial_session_is_told_to_wait",
        clause: "S13",
        file: "inspect.rs",
        find: "&& self.is_its_turn(**place, row, now)",
        replace: "&& { let _ = place; true }",
    },
    Mutant {
        name: "a_turn_is_not_excused_after_the_next_fetch",
        clause: "S5",
        file: "turn.rs",
        find: "self.note_expired_turn(instance);",
        replace: "",
    },
    Mutant {
        name: "work_is_not_excused_after_the_next_fetch",
        clause: "S5",
        file: "work.rs",
        find: "row.note_expired();",
        replace: "",
    },
    Mutant {
        name: "a_live_turn_is_excused",
        clause: "S5",
        file: "lease.rs",
        find: "lock.token == token && !lock.is_live(now)",
        replace: "lock.token == token",
    },
    Mutant {
        name: "live_work_is_excused",
        clause: "S5",
        file: "lease.rs",
        find: "held.lock.token == token && !held.lock.is_live(now)",
        replace: "held.lock.token == token",
    },
    Mutant {
        name: "work_is_excused_as_often_as_it_is_asked_for",
        clause: "S5",
        file: "lease.rs",
        find: "self.expired.remove(place);\n        \
               self.attempts = self.attempts.saturating_sub(1);\n        \
               true",
        replace: "let _ = place;\nself.attempts = self.attempts.saturating_sub(1);\ntrue",
    },
    Mutant {
        name: "a_turn_is_excused_as_often_as_it_is_asked_for",
        clause: "S5",
        file: "lease.rs",
        find: "self.expired.remove(place);\n        \
               self.attempts = self.attempts.saturating_sub(1);\n        \
               Some(())",
        replace: "let _ = place;\nself.attempts = self.attempts.saturating_sub(1);\nSome(())",
    },
    Mutant {
        name: "abandoned_work_is_excused",
        clause: "S5",
        file: "work.rs",
        find: "held.is_settled = true;",
        replace: "",
    },
    Mutant {
        name: "an_excused_turn_waits_since_its_excuse",
        clause: "S5",
        file: "lease.rs",
        find: "self.end_turn(&instance, ended);",
        replace: "{ let _ = ended; self.end_turn(&instance, now); }",
    },
    Mutant {
        name: "withdrawn_work_is_told_as_lost",
        clause: "S12",
        file: "lease.rs",
        find: "self.withdrawn.insert(held.lock.token.clone(), known_until);",
        replace: "let _ = known_until;",
    },
    Mutant {
        name: "work_of_an_expired_lease_is_told_as_withdrawn",
        clause: "S12",
        file: "lease.rs",
        find: "row.lock.as_ref().filter(|held| held.lock.is_live(now))",
        replace: "row.lock.as_ref()",
    },
    Mutant {
        name: "withdrawn_work_is_forgotten_with_its_lease",
        clause: "S12",
        file: "lease.rs",
        find: "after(held.lock.until_ms, Some(WITHDRAWN_KNOWN_FOR))",
        replace: "held.lock.until_ms",
    },
    Mutant {
        name: "deletion_by_age_follows_the_wall_clock",
        clause: "S16",
        file: "store.rs",
        find: "Ok(self.change(|state, now| state.delete_ended(ended_for, limit, now)))",
        replace: "Ok(self.change(|state, _| state.delete_ended(ended_for, limit, self.clock.now_ms())))",
    },
    Mutant {
        name: "deletion_by_age_is_a_moment_late",
        clause: "S16",
        file: "admin.rs",
        find: "*at <= latest",
        replace: "*at < latest",
    },
    Mutant {
        name: "deletion_by_age_takes_the_newest_end_first",
        clause: "S16",
        file: "admin.rs",
        find: "roots.sort();",
        replace: "roots.sort();\nroots.reverse();",
    },
    Mutant {
        name: "deletion_by_age_is_boundless",
        clause: "S16",
        file: "admin.rs",
        find: "roots.truncate(limit as usize);",
        replace: "",
    },
    Mutant {
        name: "gauges_leave_leased_messages_out",
        clause: "Api",
        file: "admin.rs",
        find: "messages: self.messages.len() as u64",
        replace: "messages: self.messages.values().filter(|row| row.token.is_none()).count() as u64",
    },
    Mutant {
        name: "a_refused_turn_is_counted_although_a_live_worker_lists_it",
        clause: "S21",
        file: "worker/route.rs",
        find: "self.abandon_turn(token, if is_listed { ROUTED } else { refusal.if_unlisted }, now)?;",
        replace: "self.abandon_turn(token, refusal.if_unlisted, now)?;",
    },
    Mutant {
        name: "a_termination_waits_for_the_delay_of_a_refused_start",
        clause: "S21",
        file: "worker/route.rs",
        find: "if message.instance == *instance && message.is_refused {",
        replace: "if message.instance == *instance && message.is_refused && false {",
    },
    Mutant {
        name: "refused_work_is_counted_although_a_live_worker_lists_it",
        clause: "S21",
        file: "worker/route.rs",
        find: "self.abandon_work(token, if is_listed { ROUTED } else { refusal.if_unlisted }, now)?;",
        replace: "self.abandon_work(token, refusal.if_unlisted, now)?;",
    },
    Mutant {
        name: "routed_turns_are_given_to_any_worker",
        clause: "S21",
        file: "turn.rs",
        find: "&& self.may_take_turn(worker, &message.instance, now)",
        replace: "",
    },
    Mutant {
        name: "routed_work_is_given_to_any_worker",
        clause: "S21",
        file: "work.rs",
        find: "&& self.may_take_work(request.worker.as_ref(), row, now)",
        replace: "",
    },
    Mutant {
        name: "work_that_no_worker_lists_is_not_routed",
        clause: "S21",
        file: "worker/route.rs",
        find: "row.route = Some(refusal.handler);",
        replace: "row.route = is_listed.then_some(refusal.handler);",
    },
    Mutant {
        name: "silent_workers_list_their_handlers",
        clause: "S21",
        file: "worker/route.rs",
        find: "row.is_live(now) && lists(&row.report)",
        replace: "{ let _ = now; lists(&row.report) }",
    },
    Mutant {
        name: "listed_work_is_taken_by_who_takes_unlisted_work",
        clause: "S21",
        file: "worker/route.rs",
        find: "row.report.takes_unlisted && !self.is_listed(now, lists)",
        replace: "row.report.takes_unlisted",
    },
    Mutant {
        name: "work_that_no_worker_lists_is_given_to_who_parks_it",
        clause: "S21",
        file: "worker/route.rs",
        find: "row.report.takes_unlisted && !self.is_listed(now, lists)",
        replace: "!self.is_listed(now, lists)",
    },
    Mutant {
        name: "a_caller_without_a_row_is_given_no_routed_work",
        clause: "S21",
        file: "worker/route.rs",
        find: "else { return true };",
        replace: "else { return false };",
    },
    Mutant {
        name: "a_report_makes_nothing_runnable",
        clause: "S21",
        file: "worker.rs",
        find: "self.free_refused(report, now);",
        replace: "",
    },
    Mutant {
        name: "a_stopped_worker_makes_work_runnable",
        clause: "S21",
        file: "worker.rs",
        find: "if !report.is_stopped {",
        replace: "if true {",
    },
    Mutant {
        name: "a_report_makes_turns_of_all_handlers_runnable",
        clause: "S21",
        file: "worker/route.rs",
        find: "lists_orchestration(worker, needed, self.pinned(instance))",
        replace: "{ let _ = (instance, needed); true }",
    },
    Mutant {
        name: "a_report_makes_work_of_all_handlers_runnable",
        clause: "S21",
        file: "worker/route.rs",
        find: "row.route.as_ref().is_some_and(|needed| row.is_listed_by(worker, needed))",
        replace: "row.route.is_some()",
    },
    Mutant {
        name: "a_report_makes_timers_run_early",
        clause: "S21",
        file: "worker/route.rs",
        find: "self.messages.values_mut().filter(|message| message.is_refused)",
        replace: "self.messages.values_mut()",
    },
    Mutant {
        name: "a_report_ends_the_delay_of_a_worker_with_the_handler",
        clause: "S21",
        file: "work.rs",
        find: "row.is_refused = false;",
        replace: "",
    },
    Mutant {
        name: "a_termination_waits_for_the_code",
        clause: "S21",
        file: "worker/route.rs",
        find: "self.routes.remove(instance);",
        replace: "",
    },
    Mutant {
        name: "a_termination_ends_the_route_before_it_is_visible",
        clause: "S21",
        file: "worker/route.rs",
        find: "self.visible_at_ms <= now && matches!",
        replace: "now > 0 && matches!",
    },
    Mutant {
        name: "work_of_a_session_is_left_to_workers_without_sessions",
        clause: "S21",
        file: "worker/route.rs",
        find: "self.tag.as_deref(), self.session.is_some())",
        replace: "self.tag.as_deref(), false)",
    },
    Mutant {
        name: "a_turn_is_left_to_workers_of_other_engine_versions",
        clause: "S21",
        file: "worker/route.rs",
        find: "let pinned = self.pinned(&instance);",
        replace: "let pinned = None;",
    },
    Mutant {
        name: "a_dropped_timer_is_told",
        clause: "S9",
        file: "inspect.rs",
        find: "turns.delayed += u64::from(!message.is_dropped);",
        replace: "turns.delayed += 1;",
    },
    Mutant {
        name: "a_route_outlives_its_execution",
        clause: "S21",
        file: "turn.rs",
        find: "self.routes.remove(&instance);",
        replace: "",
    },
    Mutant {
        name: "a_route_outlives_its_instance",
        clause: "S21",
        file: "admin.rs",
        find: "self.routes.retain(|id, _| !named.contains(id.as_str()));",
        replace: "",
    },
    Mutant {
        name: "an_owner_without_the_handler_keeps_its_session",
        clause: "S21",
        file: "session.rs",
        find: "|| !self.may_take_work(request.worker.as_ref(), row, now)",
        replace: "",
    },
    Mutant {
        name: "a_worker_is_new_with_each_report",
        clause: "S21",
        file: "worker.rs",
        find: ".map_or(now, |row| row.since_ms)",
        replace: ".map_or(now, |_| now)",
    },
    Mutant {
        name: "the_rows_of_workers_are_kept_for_ever",
        clause: "S21",
        file: "worker.rs",
        find: "self.workers.retain(|_, row| row.seen_and(WORKER_KEPT_FOR) > now);",
        replace: "",
    },
];
