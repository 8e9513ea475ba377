//! Places that an index or a head names as ready, and that cannot be leased: the row is torn, or the head is
//! stale. A fetch that meets the same place again and again must end.

use std::collections::HashMap;
use std::hash::Hash;

use steadfast_store::Queue;

use super::look::{RowLook, look_at};
use crate::link::db::{Db, sql};
use crate::link::error::{DbResult, Fault, TornRows, damaged};

/// Bounds how often one fetch comes to the same place. Each time something is done about it: its head is
/// corrected, its text restored, its instance made to wait.
const MOST_VISITS: u32 = 8;

/// The places that a fetch has come to and not leased.
#[derive(Debug)]
pub(crate) struct Visits<P> {
    operation: &'static str,
    visits: HashMap<P, u32>,
}

impl<P: Eq + Hash> Visits<P> {
    pub(crate) fn of(operation: &'static str) -> Self {
        Self { operation, visits: HashMap::new() }
    }

    /// Counts a visit. Fails if there were so many that nothing the fetch does changes the place: the file is
    /// damaged.
    pub(crate) fn count(&mut self, place: P) -> DbResult<()> {
        let visits = self.visits.entry(place).or_default();
        *visits += 1;
        if *visits > MOST_VISITS { Err(damaged(self.operation).into()) } else { Ok(()) }
    }
}

impl Db<'_> {
    /// Goes past a place that is named as that of a ready activity and has none: fails with the row if it is
    /// torn, else corrects the heads that name it.
    pub(crate) fn pass_over_lost_work(&self, row: i64) -> DbResult<()> {
        match look_at(self.beside()?, Queue::Worker, row)? {
            RowLook::Torn(reason) => {
                let key = self.maybe(sql!("torn/work/key"), [row])?;
                Err(Fault::Torn(TornRows(vec![self.torn_row(Queue::Worker, row, key, reason)?])))
            }
            RowLook::Unreturned(error) => Err(error.into()),
            RowLook::Whole | RowLook::Absent => {
                let heads = self.all(sql!("torn/work/heads"), [row], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
                })?;
                heads.iter().try_for_each(|(session, tag)| self.refresh_head(*session, tag))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use steadfast_store::ProviderErrorKind;

    use super::*;

    #[test]
    fn a_place_that_does_not_change_ends_a_fetch() {
        let mut visits = Visits::of("fetch_work");
        let told = (0..=MOST_VISITS).map(|_| visits.count(1)).collect::<Vec<_>>();
        let (last, before) = told.split_last().expect("there are visits");
        assert!(before.iter().all(Result::is_ok));
        assert!(matches!(last, Err(Fault::Refused(error)) if error.kind == ProviderErrorKind::Corrupt));
        assert!(visits.count(2).is_ok(), "another place is another matter");
    }
}
