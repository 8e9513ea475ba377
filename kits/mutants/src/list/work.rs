/// The mutants of work.
const WORK: &[Mutant] = &[
    Mutant {
        name: "an_expired_work_token_still_holds",
        clause: "S4",
        file: "work.rs",
        find: "Some((place, row)) if row.is_leased(now) => Ok",
        replace: "Some((place, _)) => Ok",
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
        name: "a_serial_session_forgets_its_order",
        clause: "S13",
        file: "work.rs",
        find: "ahead.next().is_none() && !running",
        replace: "{ let _ = &mut ahead; !running }",
    },
    Mutant {
        name: "the_tag_filter_is_ignored",
        clause: "S14",
        file: "work.rs",
        find: "&& request.tags.matches(row.tag.as_deref())",
        replace: "",
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
        name: "work_is_not_excused_after_the_next_fetch",
        clause: "S5",
        file: "work.rs",
        find: "row.note_expired();",
        replace: "",
    },
    Mutant {
        name: "abandoned_work_is_excused",
        clause: "S5",
        file: "work.rs",
        find: "held.is_settled = true;",
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
        name: "a_report_ends_the_delay_of_a_worker_with_the_handler",
        clause: "S21",
        file: "work.rs",
        find: "row.is_refused = false;",
        replace: "",
    },
];
