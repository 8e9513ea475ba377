//! Random programs of bounded size.

use proptest::{
    collection::vec,
    option,
    prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof},
    sample::select,
    strategy::Union,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use super::{
    ast::{Block, Name, Operation, Own, Program, Retry, SessionName, Slot, Step, Text, Try, names},
    shrink::Shrinking,
};

/// The most statements at the top.
const OUTER: usize = 8;
/// The most statements in a nested block.
const INNER: usize = 3;
/// The most branches of a join or a race.
const BRANCHES: usize = 4;
/// How deep blocks nest.
const DEPTH: u32 = 3;
/// About how many statements a program has in total.
const STATEMENTS: u32 = 24;
/// The slots of a block.
const SLOTS: Slot = 3;

/// Which statements programs use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Palette {
    /// Statements that only our library has: owned sessions, `FuturesUnordered`.
    pub own: bool,
    /// Channels between branches, on which the published crate fails its own replay.
    pub channels: bool,
    /// Races between held futures, a newer one first, on which it does so too.
    pub races_of_held: bool,
    /// The retry helper, whose calls the journal does not see.
    pub retries: bool,
    /// Continue-as-new.
    pub continues: bool,
    /// Panics.
    pub panics: bool,
}

impl Palette {
    /// Everything that our library can do.
    pub const FULL: Self =
        Self { own: true, channels: true, races_of_held: true, retries: true, continues: true, panics: true };

    /// Everything that the published crate can do and replay.
    pub const PUBLISHED: Self = Self { own: false, channels: false, races_of_held: false, ..Self::FULL };
}

/// Makes random programs, which shrink by [`shorter`](super::shrink::shorter).
pub fn program(palette: Palette) -> impl Strategy<Value = Program> {
    Shrinking(vec(step(palette), 0..=OUTER).prop_map(|steps| Program { body: Block(steps) }))
}

/// Makes the runner whose programs are a function of the seed, for drivers that are not tests.
pub fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

fn step(palette: Palette) -> BoxedStrategy<Step> {
    simple(palette)
        .prop_recursive(DEPTH, STATEMENTS, 4, move |inner| {
            let block = prop_oneof![
                9 => vec(inner.clone(), 1..=INNER),
                1 => Just(Vec::new()),
            ];
            nested(palette, block.prop_map(Block).boxed())
        })
        .boxed()
}

fn simple(palette: Palette) -> BoxedStrategy<Step> {
    let mut choices: Vec<(u32, BoxedStrategy<Step>)> = vec![
        (24, operation().prop_map(Step::Await).boxed()),
        (14, hold().boxed()),
        (8, slot().prop_map(Step::Resume).boxed()),
        (4, slot().prop_map(Step::Drop).boxed()),
        (3, Just(Step::ResumeAll).boxed()),
        (6, (name(names::KEYS), text()).prop_map(|(key, value)| Step::SetValue { key, value }).boxed()),
        (2, name(names::KEYS).prop_map(Step::ClearValue).boxed()),
        (1, Just(Step::ClearValues).boxed()),
        (2, option::of(text()).prop_map(Step::Status).boxed()),
        (2, detach().boxed()),
        (1, Just(Step::Guid).boxed()),
        (1, Just(Step::Return).boxed()),
        (1, Just(Step::Fail).boxed()),
    ];
    if palette.races_of_held {
        choices.push((5, (slot(), slot()).prop_map(|(one, two)| Step::RaceSlots(one, two)).boxed()));
    }
    if palette.retries {
        choices.push((4, retry().prop_map(Step::Retry).boxed()));
    }
    if palette.continues {
        choices.push((2, text().prop_map(Step::ContinueAsNew).boxed()));
    }
    if palette.panics {
        choices.push((1, Just(Step::Panic).boxed()));
    }
    if palette.own {
        choices.push((14, own().prop_map(Step::Own).boxed()));
    }
    Union::new_weighted(choices).boxed()
}

fn nested(palette: Palette, block: BoxedStrategy<Block>) -> BoxedStrategy<Step> {
    let blocks = prop_oneof![
        9 => vec(block.clone(), 2..=BRANCHES),
        1 => vec(block.clone(), 0..=1),
    ]
    .boxed();
    let pair = (block.clone(), block.clone());
    let mut choices: Vec<(u32, BoxedStrategy<Step>)> = vec![
        (4, blocks.clone().prop_map(Step::Join).boxed()),
        (5, blocks.clone().prop_map(Step::Race).boxed()),
        (2, (slot(), block.clone()).prop_map(|(slot, against)| Step::RaceHeld { slot, against }).boxed()),
        (3, pair.clone().prop_map(|(then, otherwise)| Step::IfOdd { then, otherwise }).boxed()),
        (
            1,
            (name(names::KEYS), pair.clone())
                .prop_map(|(key, (then, otherwise))| Step::IfValue { key, then, otherwise })
                .boxed(),
        ),
        (1, (1..=3u8, block).prop_map(|(times, body)| Step::Repeat { times, body }).boxed()),
    ];
    if palette.channels {
        choices.push((
            3,
            (pair, any::<bool>())
                .prop_map(|((sender, receiver), receiver_first)| Step::Channel {
                    sender,
                    receiver,
                    receiver_first,
                })
                .boxed(),
        ));
    }
    if palette.own {
        choices.push((2, blocks.prop_map(|all| Step::Own(Own::Gather(all))).boxed()));
    }
    Union::new_weighted(choices).boxed()
}

/// Makes one durable operation.
pub fn operation() -> BoxedStrategy<Operation> {
    let activity = (
        name(names::ACTIVITIES),
        text(),
        option::weighted(0.1, name(names::TAGS)),
        option::weighted(0.1, name(names::SESSIONS)),
    );
    let child = (name(names::CHILDREN), text(), option::weighted(0.3, name(names::CHILD_IDS)));
    Union::new_weighted(vec![
        (
            8,
            activity
                .prop_map(|(name, input, tag, session)| Operation::Activity { name, input, tag, session })
                .boxed(),
        ),
        (3, select(&[0, 50, 1000][..]).prop_map(|millis| Operation::Timer { millis }).boxed()),
        (3, name(names::EVENTS).prop_map(Operation::Wait).boxed()),
        (4, name(names::QUEUES).prop_map(Operation::Dequeue).boxed()),
        (3, child.prop_map(|(name, input, id)| Operation::Child { name, input, id }).boxed()),
        (
            1,
            (name(names::STRANGERS), name(names::KEYS))
                .prop_map(|(instance, key)| Operation::ValueOf { instance, key })
                .boxed(),
        ),
    ])
    .boxed()
}

fn hold() -> impl Strategy<Value = Step> {
    (slot(), operation()).prop_map(|(slot, operation)| Step::Hold { slot, operation })
}

fn detach() -> impl Strategy<Value = Step> {
    (name(names::CHILDREN), name(names::STRANGERS), text()).prop_map(|(name, instance, input)| Step::Detach {
        name,
        instance,
        input,
    })
}

fn retry() -> impl Strategy<Value = Retry> {
    let timing = (1..=3u8, select(&[0, 10][..]), option::weighted(0.4, Just(100)));
    (name(names::ACTIVITIES), text(), timing, option::weighted(0.2, name(names::SESSIONS))).prop_map(
        |(name, input, (attempts, pause_millis, timeout_millis), session)| Retry {
            name,
            input,
            attempts,
            pause_millis,
            timeout_millis,
            session,
        },
    )
}

fn own() -> impl Strategy<Value = Own> {
    let on_session = (name(names::ACTIVITIES), text(), session());
    Union::new_weighted(vec![
        (3, name(names::SESSIONS).prop_map(Own::OpenSessionWithId).boxed()),
        (2, Just(Own::OpenSession).boxed()),
        (2, open_with().boxed()),
        (2, session().prop_map(Own::CloseSession).boxed()),
        (1, migration().boxed()),
        (3, on_session.prop_map(|(name, input, session)| Own::OnSession { name, input, session }).boxed()),
        (6, tried().prop_map(Own::Try).boxed()),
    ])
}

fn tried() -> impl Strategy<Value = Try> {
    let times = (option::weighted(0.4, select(&[30, 2_000][..])), option::weighted(0.2, Just(3_000)));
    let policy = (1..=4_u8, select(&[0, 10, 900][..]), times);
    (name(names::ACTIVITIES), text(), policy, option::weighted(0.3, session())).prop_map(
        |(name, input, (tries, pause_millis, (timeout_millis, total_millis)), session)| Try {
            name,
            input,
            tries,
            pause_millis,
            timeout_millis,
            total_millis,
            session,
        },
    )
}

fn open_with() -> impl Strategy<Value = Own> {
    let idle = option::weighted(0.3, Just(20_000));
    (name(names::SESSIONS), any::<bool>(), idle).prop_map(|(id, serial, idle_millis)| Own::OpenSessionWith {
        id,
        serial,
        idle_millis,
    })
}

fn migration() -> impl Strategy<Value = Own> {
    (session(), select(&[50, 4_000][..]))
        .prop_map(|(session, millis)| Own::AwaitMigration { session, millis })
}

fn session() -> impl Strategy<Value = SessionName> {
    Union::new_weighted(vec![
        (2, name(names::SESSIONS).prop_map(SessionName::Id).boxed()),
        (1, Just(SessionName::Opened).boxed()),
    ])
}

fn slot() -> impl Strategy<Value = Slot> + Clone {
    0..SLOTS
}

fn name(names: &'static [Name]) -> impl Strategy<Value = Name> + Clone {
    select(names)
}

fn text() -> impl Strategy<Value = Text> + Clone {
    prop_oneof![3 => name(names::TEXTS).prop_map(Text::Fixed), 2 => Just(Text::Answer)]
}

#[cfg(test)]
mod tests {
    use proptest::strategy::ValueTree;

    use super::*;

    #[test]
    fn programs_are_a_function_of_the_seed() -> Result<(), proptest::test_runner::Reason> {
        let programs = program(Palette::FULL);
        let make = |seed| programs.new_tree(&mut runner(seed)).map(|tree| tree.current());
        let first = make(1)?;
        assert_eq!(make(1)?, first);
        let others = (2..20).map(make).collect::<Result<Vec<_>, _>>()?;
        assert!(others.iter().any(|other| *other != first));
        Ok(())
    }
}
