//! A panic of an activity: what history records of it (2.13, G33).

use steadfast::{ActivityContext, EventKind};
use steadfast_behaviour::{activities, on_every_store, orchestrations};

use crate::workbench::call;

/// The line in [`out_of_cheese`] that panics.
const LINE: u32 = line!() + 3;

async fn out_of_cheese(_: ActivityContext, _: String) -> Result<String, String> {
    panic!("out of cheese");
}

/// Panics with a payload that another panic left.
async fn passes_on(_: ActivityContext, _: String) -> Result<String, String> {
    let caught = std::panic::catch_unwind(|| panic!("somewhere else"));
    drop(caught);
    std::panic::resume_unwind(Box::new("passed on"));
}

on_every_store! {
    async fn g33_a_panic_is_recorded_with_its_message_and_place_and_reads_the_same_in_every_run(stage) {
        let acts = activities().register("Panic", out_of_cheese);
        stage.run(acts, orchestrations().register("Call", call)).await;
        let place = format!("{}:{LINE}:5", file!());
        for instance in ["a", "b", "c"] {
            let details = stage.ends_after(instance, "Call", "Panic").await.expect_err("fails");
            let text = details.display_message();
            assert_eq!(text, format!("activity panicked at {place}: out of cheese"));
            let recorded = stage.history(instance).await.into_iter().find_map(|event| match event.kind {
                EventKind::ActivityFailed { details } => Some(details.display_message()),
                _ => None,
            });
            assert_eq!(recorded, Some(text));
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g33_a_panic_whose_place_is_unknown_has_the_place_of_no_other(stage) {
        let acts = activities()
            .register("Pass", passes_on)
            .register("Number", |_: ActivityContext, _: String| async { std::panic::panic_any(7) });
        stage.run(acts, orchestrations().register("Call", call)).await;
        let passed = stage.ends_after("a", "Call", "Pass").await.expect_err("fails").display_message();
        assert_eq!(passed, "activity panicked: passed on");
        let number = stage.ends_after("b", "Call", "Number").await.expect_err("fails").display_message();
        assert!(number.starts_with(&format!("activity panicked at {}:", file!())), "{number}");
        stage.stop().await;
    }
}
