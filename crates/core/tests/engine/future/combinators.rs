//! Durable futures inside other people's combinators, and our own.

use std::time::Duration;

use futures::future::{join_all, select_all, try_join_all};
use futures::stream::{FuturesUnordered, StreamExt};
use futures::{FutureExt, TryStreamExt};
use steadfast_core::{Either2, Either3, WorkItem};

use crate::support::*;

const SIZES: [u64; 4] = [1, 30, 31, 100];

/// Answers `n` activities in a scrambled order, a few in each turn.
fn answer_all(story: &mut Story, n: u64, per_turn: usize) -> String {
    story.turn([]);
    let ids: Vec<u64> = (0..n).map(|index| 2 + index * 7_919 % n).collect();
    for batch in ids.chunks(per_turn) {
        let turn = story.turn(batch.iter().map(|id| done(*id, &id.to_string())));
        if let steadfast_core::replay::Verdict::Completed { output } = turn.verdict {
            return output;
        }
    }
    panic!("still waits")
}

fn in_order(n: u64) -> String {
    (2..n + 2).map(|id| id.to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn join_all_of_any_size_gives_results_in_order() {
    for n in SIZES {
        let mut story = story(move |ctx, _| async move {
            let all = join_all((0..n).map(|_| ctx.schedule_activity("a", ""))).await;
            Ok(all.into_iter().collect::<Result<Vec<_>, _>>()?.join(" "))
        });
        assert_eq!(answer_all(&mut story, n, 7), in_order(n));
    }
}

#[test]
fn try_join_all_of_any_size_gives_results_in_order() {
    for n in SIZES {
        let mut story = story(move |ctx, _| async move {
            Ok(try_join_all((0..n).map(|_| ctx.schedule_activity("a", ""))).await?.join(" "))
        });
        assert_eq!(answer_all(&mut story, n, 7), in_order(n));
    }
}

#[test]
fn our_join_of_any_size_gives_results_in_order() {
    for n in SIZES {
        let mut story = story(move |ctx, _| async move {
            let all = ctx.join((0..n).map(|_| ctx.schedule_activity("a", "")).collect()).await;
            Ok(all.into_iter().collect::<Result<Vec<_>, _>>()?.join(" "))
        });
        assert_eq!(answer_all(&mut story, n, 7), in_order(n));
    }
}

#[test]
fn an_unordered_set_of_any_size_gives_results_in_the_order_of_history() {
    for n in SIZES {
        let mut story = story(move |ctx, _| async move {
            let set: FuturesUnordered<_> = (0..n).map(|_| ctx.schedule_activity("a", "")).collect();
            Ok(set.try_collect::<Vec<_>>().await?.join(" "))
        });
        let answered: Vec<_> = (0..n).map(|index| (2 + index * 7_919 % n).to_string()).collect();
        assert_eq!(answer_all(&mut story, n, 7), answered.join(" "));
    }
}

#[test]
fn select_all_of_any_size_gives_the_first_of_history_and_drops_the_rest() {
    for n in SIZES {
        let mut story = story(move |ctx, _| async move {
            let (result, index, rest) = select_all((0..n).map(|_| ctx.schedule_activity("a", ""))).await;
            drop(rest);
            Ok(format!("{index} {}", result?))
        });
        story.waits([]);
        let turn = story.turn([done(n + 1, "last")]);
        assert_eq!(
            turn.verdict,
            steadfast_core::replay::Verdict::Completed { output: format!("{} last", n - 1) }
        );
        assert_eq!(withdrawn(&turn).len() as u64, n - 1);
    }
}

#[test]
fn ten_thousand_children_fit_into_any_of_them() {
    const N: u64 = 10_000;
    let mut joined = story(move |ctx, _| async move {
        let all = join_all((0..N).map(|_| ctx.schedule_activity("a", ""))).await;
        Ok(all.into_iter().collect::<Result<Vec<_>, _>>()?.join(" "))
    });
    assert_eq!(answer_all(&mut joined, N, 5_000), in_order(N));
    let mut ours = story(move |ctx, _| async move {
        let all = ctx.try_join((0..N).map(|_| ctx.schedule_activity("a", "")).collect()).await?;
        Ok(all.join(" "))
    });
    assert_eq!(answer_all(&mut ours, N, 5_000), in_order(N));
    let mut unordered = story(move |ctx, _| async move {
        let set: FuturesUnordered<_> = (0..N).map(|_| ctx.schedule_activity("a", "")).collect();
        Ok(set.try_collect::<Vec<_>>().await?.len().to_string())
    });
    assert_eq!(answer_all(&mut unordered, N, 5_000), N.to_string());
}

#[test]
fn buffered_streams_keep_so_many_under_way() {
    let mut story = story(|ctx, _| async move {
        let ctx = &ctx;
        let calls = futures::stream::iter(0..5).map(|n| ctx.schedule_activity("a", n.to_string()));
        Ok(calls.buffer_unordered(2).try_collect::<Vec<_>>().await?.join(""))
    });
    assert_eq!(story.waits([]).effects.work.len(), 2);
    assert_eq!(story.waits([done(3, "1")]).effects.work.len(), 1);
    assert_eq!(story.waits([done(2, "0"), done(5, "2")]).effects.work.len(), 2);
    assert_eq!(story.output([done(8, "3"), done(9, "4")]), "10234");
}

#[test]
fn a_shared_future_answers_each_of_its_clones() {
    let mut story = story(|ctx, _| async move {
        let shared = ctx.schedule_activity("a", "").shared();
        let (a, b) = ctx.join2(shared.clone(), shared.clone()).await;
        Ok(format!("{}{}{}", a?, b?, shared.await?))
    });
    story.waits([]);
    assert_eq!(story.output([done(2, "r")]), "rrr");
}

#[test]
fn a_borrowed_future_survives_the_select_that_it_lost() {
    let mut story = story(|ctx, _| async move {
        let mut activity = ctx.schedule_activity("a", "");
        let mut ticks = 0;
        loop {
            match ctx.select2(&mut activity, ctx.schedule_timer(Duration::from_secs(1))).await {
                Either2::First(result) => return Ok(format!("{} after {ticks}", result?)),
                Either2::Second(()) => ticks += 1,
            }
        }
    });
    story.waits([]);
    assert_eq!(story.events([fired(3)])[1..], ["5 TimerCreated(3000)"]);
    assert_eq!(story.output([done(2, "r")]), "r after 1");
}

#[test]
fn a_select_takes_the_first_argument_when_both_have_answers() {
    let mut story = story(|ctx, _| async move {
        let (a, b) = (ctx.schedule_activity("a", ""), ctx.schedule_activity("b", ""));
        ctx.schedule_wait("go").await;
        Ok(format!("{:?}", ctx.select2(b, a).await))
    });
    story.waits([]);
    story.waits([done(2, "A"), done(3, "B")]);
    assert_eq!(story.output([raise("go", "")]), "First(Ok(\"B\"))");
}

#[test]
fn a_select_of_three_and_of_many_name_the_winner() {
    let mut three = story(|ctx, _| async move {
        let wait = |name: &str| ctx.schedule_wait(name);
        match ctx.select3(wait("a"), wait("b"), wait("c")).await {
            Either3::Third(data) => Ok(data),
            other => Ok(format!("{other:?}")),
        }
    });
    three.waits([]);
    assert_eq!(three.output([raise("c", "third")]), "third");
    let mut many = story(|ctx, _| async move {
        let all = ["a", "b", "c"].map(|name| ctx.schedule_wait(name)).into();
        Ok(format!("{:?}", ctx.select(all).await))
    });
    many.waits([]);
    let turn = many.turn([raise("b", "B")]);
    assert_eq!(
        lines(&turn.events)[1..],
        [
            "6 ExternalSubscribedCancelled(dropped_future) of 2",
            "7 ExternalSubscribedCancelled(dropped_future) of 4",
            "8 Completed((1, \"B\"))"
        ]
    );
}

#[test]
fn the_first_error_ends_a_try_join_and_drops_the_rest() {
    let mut many = story(|ctx, _| async move {
        let all = ["a", "b", "c"].map(|name| ctx.schedule_activity(name, "")).into();
        ctx.try_join(all).await.map(|all| all.concat())
    });
    many.waits([]);
    let turn = many.turn([failed(3, "broken"), failed(2, "later")]);
    assert_eq!(failure_of(&turn).display_message(), "broken");
    assert_eq!(withdrawn(&turn), [2, 4], "both were dropped unread, answered or not");
    let mut two = story(|ctx, _| async move {
        let (a, b) = (ctx.schedule_activity("a", ""), ctx.schedule_activity("b", ""));
        ctx.try_join2(a, b).await.map(|(a, b)| a + &b)
    });
    two.waits([]);
    assert_eq!(two.failure([failed(3, "broken")]), "broken");
}

#[test]
fn joins_of_two_and_three_mix_types() {
    let mut story = story(|ctx, _| async move {
        let typed = ctx.schedule_activity_typed::<_, u32>("a", &1);
        let (number, data, ()) =
            ctx.join3(typed, ctx.schedule_wait("w"), ctx.schedule_timer(Duration::ZERO)).await;
        Ok(format!("{} {data}", number? + 1))
    });
    story.waits([]);
    assert_eq!(story.output([fired(4), raise("w", "d"), done(2, "6")]), "7 d");
}

#[test]
fn nested_joins_and_selects_follow_history() {
    let mut story = story(|ctx, _| async move {
        let race = |a: &'static str, b: &'static str| {
            let ctx = ctx.clone();
            async move {
                let (a, b) = (ctx.schedule_activity(a, ""), ctx.schedule_activity(b, ""));
                ctx.select2(a, b).await.into_tuple().1
            }
        };
        let (left, right) = ctx.join2(race("a", "b"), race("c", "d")).await;
        Ok(left? + &right?)
    });
    story.waits([]);
    let turn = story.turn([done(5, "D"), done(2, "A"), done(3, "B"), done(4, "C")]);
    assert_eq!(turn.verdict, steadfast_core::replay::Verdict::Completed { output: "AD".into() });
}

#[test]
fn an_empty_join_is_ready_and_an_empty_select_never_is() {
    let mut joined = story(|ctx, _| async move {
        Ok(ctx.join(Vec::<std::future::Ready<()>>::new()).await.len().to_string())
    });
    assert_eq!(joined.output([]), "0");
    let mut selected =
        story(|ctx, _| async move { ctx.select(Vec::<std::future::Ready<Outcome>>::new()).await.1 });
    assert_eq!(selected.turn([]).verdict, steadfast_core::replay::Verdict::Waiting { stuck: true });
}

#[test]
fn the_select_of_futures_is_legal_over_durable_futures() {
    let mut story = story(|ctx, _| async move {
        let (a, b) = (ctx.schedule_activity("a", ""), ctx.schedule_activity("b", ""));
        match futures::future::select(a, b).await {
            futures::future::Either::Left((result, rest)) => Ok(result? + &rest.await?),
            futures::future::Either::Right((result, rest)) => Ok(result? + &rest.await?),
        }
    });
    story.waits([]);
    story.waits([done(3, "B")]);
    assert_eq!(story.output([done(2, "A")]), "BA");
}

#[test]
fn tags_can_be_set_on_a_whole_fan_out() {
    let mut story = story(|ctx, _| async move {
        let all: Vec<_> = (0..1_000).map(|_| ctx.schedule_activity("a", "")).collect();
        let tagged = all.into_iter().map(|activity| activity.with_tag("gpu")).collect();
        ctx.try_join(tagged).await.map(|all| all.len().to_string())
    });
    let turn = story.waits([]);
    assert!(
        turn.effects.work.iter().all(
            |work| matches!(&work.item, WorkItem::ActivityExecute { tag: Some(tag), .. } if tag == "gpu")
        )
    );
}
