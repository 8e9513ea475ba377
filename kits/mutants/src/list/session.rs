/// The mutants of sessions.
const SESSION: &[Mutant] = &[
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
        find: "held || (is_free &&",
        replace: "true || (is_free &&",
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
        name: "a_reopened_session_does_not_wait_for_its_former_owner",
        clause: "S13",
        file: "session.rs",
        find: " && !self.is_kept_from(key, &request.owner, now)",
        replace: "",
    },
    Mutant {
        name: "a_former_owner_that_has_detached_is_waited_for",
        clause: "S13",
        file: "session.rs",
        find: "self.end_closed(owner, claim);",
        replace: "",
    },
    Mutant {
        name: "a_reopened_session_waits_for_its_former_owner_for_ever",
        clause: "S13",
        file: "session/closed.rs",
        find: "claim.is_live(now) && !is_same_owner",
        replace: "!is_same_owner",
    },
    Mutant {
        name: "an_older_incarnation_goes_on",
        clause: "S13",
        file: "session.rs",
        find: "if given < *newest =>",
        replace: "if given < *newest && given == 0 =>",
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
        name: "an_owner_without_the_handler_keeps_its_session",
        clause: "S21",
        file: "session.rs",
        find: "|| !self.may_take_work(request.worker.as_ref(), row, now)",
        replace: "",
    },
];
