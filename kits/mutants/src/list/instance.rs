/// The mutants of instances, their executions and their keys.
const INSTANCE: &[Mutant] = &[
    Mutant {
        name: "a_tail_repeats_the_last_known_event",
        clause: "S2",
        file: "execution.rs",
        find: "Bound::Excluded(known.unwrap_or(0))",
        replace: "Bound::Included(known.unwrap_or(0))",
    },
    Mutant {
        name: "a_repeated_event_replaces_the_first",
        clause: "S8",
        file: "execution.rs",
        find: "history.is_some_and(|events| events.contains_key(&id)) ||",
        replace: "",
    },
    Mutant {
        name: "executions_share_their_events",
        clause: "S10",
        file: "execution.rs",
        find: ".entry((instance.to_owned(), execution))",
        replace: ".entry((instance.to_owned(), execution.min(1)))",
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
        name: "a_page_repeats_the_last_instance_of_the_one_before",
        clause: "Api",
        file: "instance.rs",
        find: "row.order >= before",
        replace: "row.order > before",
    },
];
