/// The mutants of messages.
const MESSAGE: &[Mutant] = &[
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
        name: "a_deletion_takes_the_starts_of_other_parents_along",
        clause: "S17",
        file: "message/life.rs",
        find: "row.life.is_some_and(|life| lives.contains(&life))",
        replace: "row.life.is_some_and(|life| lives.contains(&life)) && false",
    },
    Mutant {
        name: "a_deletion_leaves_the_starts_of_parents_that_are_deleted_too",
        clause: "S17",
        file: "message/life.rs",
        find: "filter(|(id, _)| !deleted.contains(id.as_str()))",
        replace: "filter(|(id, _)| !id.is_empty())",
    },
    Mutant {
        name: "a_deletion_leaves_the_starts_of_former_parents",
        clause: "S17",
        file: "message/life.rs",
        find: "row.life.is_some_and(|life| lives.contains(&life))",
        replace: "row.life.is_some()",
    },
    Mutant {
        name: "a_deletion_leaves_the_starts_of_parents_that_have_ended",
        clause: "S17",
        file: "message/life.rs",
        find: "others.filter(|(id, _)| !has_ended(id.as_str()))",
        replace: "others.filter(|(id, _)| { let _ = has_ended(id.as_str()); true })",
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
        name: "a_late_message_is_stamped_with_the_lease",
        clause: "S7",
        file: "message.rs",
        find: "self.messages.insert(place, row);",
        replace: "let token = self.turns.get(&row.instance).map(|lock| lock.token.clone());\n\
                  self.messages.insert(place, MessageRow { token, ..row });",
    },
    Mutant {
        name: "a_pending_start_is_started_again",
        clause: "Api",
        file: "message.rs",
        find: "self.exists(start.message.item.instance())",
        replace: "self.instances.contains_key(start.message.item.instance())",
    },
];
