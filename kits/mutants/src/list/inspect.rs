/// The mutants of looks at what waits.
const INSPECT: &[Mutant] = &[
    Mutant {
        name: "leased_messages_are_told_to_wait",
        clause: "S2",
        file: "inspect.rs",
        find: "if self.is_message_leased(message, now) {",
        replace: "if false {",
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
        name: "a_dropped_timer_is_told",
        clause: "S9",
        file: "inspect.rs",
        find: "turns.delayed += u64::from(!message.is_dropped);",
        replace: "turns.delayed += 1;",
    },
];
