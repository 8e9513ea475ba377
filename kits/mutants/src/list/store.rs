/// The mutants of the store as a whole.
const STORE: &[Mutant] = &[
    Mutant {
        name: "a_lease_outlives_its_last_moment",
        clause: "S1",
        file: "state.rs",
        find: "self.until_ms > now",
        replace: "self.until_ms >= now",
    },
    Mutant {
        name: "a_change_wakes_only_one",
        clause: "S14",
        file: "lib.rs",
        find: "self.changed.notify_waiters();",
        replace: "self.changed.notify_one();",
    },
    Mutant {
        name: "leases_follow_the_wall_clock",
        clause: "S16",
        file: "lib.rs",
        find: "self.opened_at_ms.saturating_add(millis(awake))",
        replace: "{ let _ = awake; self.clock.now_ms().saturating_sub(state.slept_ms) }",
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
        name: "deletion_by_age_follows_the_wall_clock",
        clause: "S16",
        file: "store.rs",
        find: "Ok(self.change(|state, now| state.delete_ended(ended_for, limit, now)))",
        replace: "Ok(self.change(|state, _| state.delete_ended(ended_for, limit, self.clock.now_ms())))",
    },
];
