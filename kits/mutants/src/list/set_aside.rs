/// The mutants of rows that are set aside.
const SET_ASIDE: &[Mutant] = &[
    Mutant {
        name: "a_message_that_cannot_be_read_keeps_the_mark_of_a_refusal",
        clause: "S21",
        file: "set_aside.rs",
        find: "self.messages.remove(&place) else { continue };\n            \
               row.attempts += 1;\n            \
               row.visible_at_ms = after(now, Some(UNREADABLE_RETRY));\n            \
               row.is_refused = false;",
        replace: "self.messages.remove(&place) else { continue };\n\
                  row.attempts += 1;\n\
                  row.visible_at_ms = after(now, Some(UNREADABLE_RETRY));",
    },
    Mutant {
        name: "work_that_cannot_be_read_keeps_the_mark_of_a_refusal",
        clause: "S21",
        file: "set_aside.rs",
        find: "self.work.remove(&place) else { continue };\n            \
               row.attempts += 1;\n            \
               row.visible_at_ms = after(now, Some(UNREADABLE_RETRY));\n            \
               row.is_refused = false;",
        replace: "self.work.remove(&place) else { continue };\n\
                  row.attempts += 1;\n\
                  row.visible_at_ms = after(now, Some(UNREADABLE_RETRY));",
    },
    Mutant {
        name: "an_unreadable_message_vanishes_in_the_end",
        clause: "S15",
        file: "set_aside.rs",
        find: "self.put_aside(AsideRow::Message(Box::new(row)), now);",
        replace: "drop(row);",
    },
    Mutant {
        name: "unreadable_work_is_never_set_aside",
        clause: "S15",
        file: "set_aside.rs",
        find: "self.put_aside(AsideRow::Work(Box::new(row)), now);",
        replace: "self.work.insert(place, row);",
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
];
