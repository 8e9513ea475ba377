/// The mutants of leases.
const LEASE: &[Mutant] = &[
    Mutant {
        name: "the_time_stands_still_while_the_machine_sleeps",
        clause: "S16",
        file: "lease/sleep.rs",
        find: "millis(slept).saturating_sub(state.slept_ms)",
        replace: "millis(slept).saturating_sub(u64::MAX)",
    },
    Mutant {
        name: "leases_of_turns_and_work_end_while_the_machine_sleeps",
        clause: "S16",
        file: "lease/sleep.rs",
        find: "lock.until_ms = lock.until_ms.saturating_add(by_ms);",
        replace: "_ = lock;",
    },
    Mutant {
        name: "sessions_end_while_the_machine_sleeps",
        clause: "S16",
        file: "lease/sleep.rs",
        find: "session.locked_until_ms = session.locked_until_ms.saturating_add(by_ms);",
        replace: "",
    },
    Mutant {
        name: "a_session_is_idle_while_the_machine_sleeps",
        clause: "S16",
        file: "lease/sleep.rs",
        find: "session.last_activity_at_ms = session.last_activity_at_ms.saturating_add(by_ms);",
        replace: "",
    },
    Mutant {
        name: "a_sleep_brings_ended_leases_back",
        clause: "S16",
        file: "lease/sleep.rs",
        find: "turns.chain(work).filter(|lock| lock.is_live(now))",
        replace: "turns.chain(work)",
    },
    Mutant {
        name: "a_sleep_is_counted_again_and_again",
        clause: "S16",
        file: "lease/sleep.rs",
        find: "millis(slept).saturating_sub(state.slept_ms)",
        replace: "millis(slept)",
    },
    Mutant {
        name: "workers_are_gone_after_a_sleep",
        clause: "S16",
        file: "lease/sleep.rs",
        find: "worker.outlive(now, by_ms);",
        replace: "_ = worker;",
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
];
