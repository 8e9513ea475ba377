/// The mutants of waiting fetches.
const POLL: &[Mutant] = &[
    Mutant {
        name: "a_dropped_fetch_leaves_its_lease",
        clause: "S5",
        file: "poll.rs",
        find: "return Ok(result);",
        replace: "tokio::task::yield_now().await;\nreturn Ok(result);",
    },
    Mutant {
        name: "a_waiting_fetch_sleeps_past_a_timer",
        clause: "S9",
        file: "poll.rs",
        find: "messages.chain(turns).chain(work)",
        replace: "turns.chain(work)",
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
];
