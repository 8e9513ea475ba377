//! Which connection a call takes.
//!
//! The server plans a function anew for each connection that calls it, which costs as much as some hundred
//! calls. So each of the four calls that every step needs has connections of its own, as many as can be under
//! way, and all other statements share the rest; reads cannot keep the work waiting either. With few
//! connections all statements share all of them.

use deadpool_postgres::Pool;

use crate::link::connect::Connector;
use crate::link::open::OpenError;
use crate::link::options::PostgresPlan;

/// Bounds the fetches of one kind that are under way. It is one, so that the leases of a dropped fetch are
/// abandoned before the next fetch looks.
pub(crate) const FETCHES: usize = 1;

/// Bounds the writes of one kind that are under way: while one is being made durable, the next can be
/// computed.
pub(crate) const WRITES: usize = 2;

/// A kind of call, by the connections it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallLane {
    FetchTurns,
    CommitTurns,
    FetchWork,
    FinishWork,
    /// Every other statement.
    Other,
}

/// The connections of a store, by kind of call.
#[derive(Debug, Clone)]
pub(crate) struct Lanes {
    shared: Pool,
    own: Option<OwnPools>,
}

/// The pools of the calls that have connections of their own.
#[derive(Debug, Clone)]
struct OwnPools {
    fetch_turns: Pool,
    commit_turns: Pool,
    fetch_work: Pool,
    finish_work: Pool,
}

impl Lanes {
    /// Lets all calls share one pool.
    pub(crate) fn shared(pool: Pool) -> Self {
        Self { shared: pool, own: None }
    }

    /// Divides the connections among the kinds of calls. No connection is made yet.
    pub(crate) fn divided(connector: &Connector, plan: &PostgresPlan) -> Result<Self, OpenError> {
        let owned = 2 * (FETCHES + WRITES);
        let pool = |size| connector.pool(plan, size);
        Ok(match plan.max_connections.checked_sub(owned) {
            None | Some(0) => Self::shared(pool(plan.max_connections)?),
            Some(others) => Self {
                shared: pool(others)?,
                own: Some(OwnPools {
                    fetch_turns: pool(FETCHES)?,
                    commit_turns: pool(WRITES)?,
                    fetch_work: pool(FETCHES)?,
                    finish_work: pool(WRITES)?,
                }),
            },
        })
    }

    /// Returns the connections for calls of a kind.
    pub(crate) fn of(&self, lane: CallLane) -> &Pool {
        match (&self.own, lane) {
            (None, _) | (_, CallLane::Other) => &self.shared,
            (Some(own), CallLane::FetchTurns) => &own.fetch_turns,
            (Some(own), CallLane::CommitTurns) => &own.commit_turns,
            (Some(own), CallLane::FetchWork) => &own.fetch_work,
            (Some(own), CallLane::FinishWork) => &own.finish_work,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::options::PostgresOptions;

    fn lanes(max_connections: usize) -> Lanes {
        let plan = PostgresPlan::try_from(PostgresOptions { max_connections, ..PostgresOptions::default() });
        let plan = plan.expect("a plan");
        let connector = Connector::new("postgres://nobody@127.0.0.1:1/none", &plan).expect("a connector");
        Lanes::divided(&connector, &plan).expect("lanes")
    }

    fn sizes(lanes: &Lanes) -> [usize; 5] {
        [
            CallLane::FetchTurns,
            CallLane::CommitTurns,
            CallLane::FetchWork,
            CallLane::FinishWork,
            CallLane::Other,
        ]
        .map(|lane| lanes.of(lane).status().max_size)
    }

    #[test]
    fn each_call_of_a_step_has_as_many_connections_as_can_be_under_way() {
        assert_eq!(sizes(&lanes(10)), [1, 2, 1, 2, 4]);
        assert_eq!(sizes(&lanes(7)), [1, 2, 1, 2, 1]);
    }

    #[test]
    fn few_connections_are_shared_by_all() {
        for few in [1, 6] {
            let lanes = lanes(few);
            assert_eq!(sizes(&lanes), [few; 5]);
            assert!(lanes.own.is_none());
        }
    }
}
