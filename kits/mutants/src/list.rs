/// Every mutant.
pub const MUTANTS: &[Mutant] = &joined::<{ count(AREAS) }>(AREAS);

/// The mutants of each area of the store.
const AREAS: &[&[Mutant]] =
    &[TURN, WORK, SESSION, LEASE, WORKER, MESSAGE, INSTANCE, SET_ASIDE, INSPECT, ADMIN, POLL, STORE];

include!("list/turn.rs");
include!("list/work.rs");
include!("list/session.rs");
include!("list/lease.rs");
include!("list/worker.rs");
include!("list/message.rs");
include!("list/instance.rs");
include!("list/set_aside.rs");
include!("list/inspect.rs");
include!("list/admin.rs");
include!("list/poll.rs");
include!("list/store.rs");

const fn count(areas: &[&[Mutant]]) -> usize {
    let (mut area, mut count) = (0, 0);
    while area < areas.len() {
        count += areas[area].len();
        area += 1;
    }
    count
}

/// Makes one list of the areas.
const fn joined<const N: usize>(areas: &[&[Mutant]]) -> [Mutant; N] {
    const EMPTY: Mutant = Mutant { name: "", clause: "", file: "", find: "", replace: "" };
    let mut all = [EMPTY; N];
    let (mut area, mut place) = (0, 0);
    while area < areas.len() {
        let mut at = 0;
        while at < areas[area].len() {
            let Mutant { name, clause, file, find, replace } = &areas[area][at];
            all[place] = Mutant { name, clause, file, find, replace };
            at += 1;
            place += 1;
        }
        area += 1;
    }
    all
}
