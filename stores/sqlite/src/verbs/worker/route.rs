//! Routes: the handler that refused work needs, and who is given such work (S21).
//!
//! A routed row stands where a build that knows no routes does not look. A routed instance has the negative
//! number of its route in the place of its engine version; routed work without a session has it in the place
//! of its session; routed work on a session has a tag that no plain tag equals.

use rusqlite::params;
use steadfast_core::DispatcherCapabilityFilter;
use steadfast_store::rules::tag_of;
use steadfast_store::{NeededHandler, WorkRequest, WorkerId};

use super::{Requirement, stored_version, version_of};
use crate::link::db::{Db, sql};
use crate::link::error::DbResult;
use crate::verbs::work::Heads;
use crate::verbs::work::call::{CALLED, place_of, uncalled_tag};

/// The beginning of the stored tag of routed work on a session, and of the stored owner of its head. Plain
/// tags and owners are empty or begin with ':'.
pub(crate) const ROUTED: &str = ">";

/// The kinds of routes, by their stored numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteKind {
    Turn = 0,
    Work = 1,
    /// Work with terms: a build that knows none does not look for these routes.
    Call = 2,
}

impl RouteKind {
    /// Returns the kind of the routes of work.
    pub(super) fn of_work(has_terms: bool) -> Self {
        if has_terms { Self::Call } else { Self::Work }
    }
}

/// A route as it is stored.
pub(super) struct Route {
    pub(super) id: i64,
    kind: i64,
    pub(super) needed: NeededHandler,
    /// The engine version that the routed instances are pinned to; of work 1 if it is on a session, else 0.
    pub(super) pin: i64,
    /// The stored tag of the routed work.
    pub(super) tag: String,
}

impl Route {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let needed = NeededHandler { name: row.get(2)?, version: version_of(&row.get::<_, String>(3)?) };
        Ok(Self { id: row.get(0)?, kind: row.get(1)?, needed, pin: row.get(4)?, tag: row.get(5)? })
    }

    /// Tells whether the work of the route is on a session.
    pub(super) fn is_on_session(&self) -> bool {
        self.pin != 0
    }

    /// Returns what the work of the route requires of a worker.
    fn of_work(&self) -> Requirement<'_> {
        Requirement::Work { tag: tag_of(&self.tag), is_on_session: self.is_on_session() }
    }
}

/// Returns the stored tag of routed work on a session.
pub(super) fn routed_tag(route: i64) -> String {
    format!("{ROUTED}{route}")
}

/// Returns the session of work; without a session, routed work has the number of its route in that place, and
/// work with terms the number of no session.
pub(crate) fn session_of(stored: Option<i64>) -> Option<i64> {
    stored.filter(|session| *session > 0)
}

/// Tells whether work is routed.
pub(crate) fn is_routed(session: Option<i64>, tag: &str) -> bool {
    session.is_some_and(|session| session < 0) || is_routed_tag(tag)
}

/// Tells whether a stored tag is that of routed work on a session.
pub(crate) fn is_routed_tag(tag: &str) -> bool {
    tag.starts_with(ROUTED) && !tag.starts_with(CALLED)
}

/// The columns of an activity that decide who is given it.
pub(crate) struct WorkRoute {
    pub(crate) session: Option<i64>,
    pub(crate) tag: String,
    pub(crate) route: Option<i64>,
}

impl Db<'_> {
    /// Returns where an activity belongs if its plain tag is this one. One that is routed stays so, by the
    /// same handler. `None` if there is no such activity.
    pub(crate) fn place_with_tag(
        &self,
        seq: i64,
        tag: String,
        has_terms: bool,
    ) -> DbResult<Option<WorkRoute>> {
        let place = self.one(sql!("route/work/place"), [seq], |row| {
            Ok(WorkRoute { session: row.get(0)?, tag: row.get(1)?, route: row.get(2)? })
        })?;
        let Some(place) = place else { return Ok(None) };
        let Some(id) = place.route else {
            let (session, tag) = place_of(session_of(place.session), tag, has_terms);
            return Ok(Some(WorkRoute { session, tag, route: None }));
        };
        let kind = RouteKind::of_work(has_terms);
        let is_other = |route: &Route| route.tag != tag || route.kind != kind as i64;
        let Some(former) = self.route(id)?.filter(is_other) else { return Ok(Some(place)) };
        let route = self.route_number(kind, &former.needed, former.pin, &tag)?;
        let (session, tag) = match session_of(place.session) {
            Some(session) => (session, routed_tag(route)),
            None => (-route, tag),
        };
        Ok(Some(WorkRoute { session: Some(session), tag, route: Some(route) }))
    }

    pub(super) fn route(&self, id: i64) -> DbResult<Option<Route>> {
        self.one(sql!("route/show"), [id], Route::read)
    }

    pub(super) fn routes_of_turns(&self) -> DbResult<Vec<Route>> {
        self.all(sql!("route/page"), [RouteKind::Turn as i64, RouteKind::Turn as i64], Route::read)
    }

    /// Returns the routes of work, without terms and with them.
    pub(super) fn routes_of_work(&self) -> DbResult<Vec<Route>> {
        self.all(sql!("route/page"), [RouteKind::Work as i64, RouteKind::Call as i64], Route::read)
    }

    pub(super) fn route_number(
        &self,
        kind: RouteKind,
        needed: &NeededHandler,
        pin: i64,
        tag: &str,
    ) -> DbResult<i64> {
        let version = stored_version(needed.version.as_deref());
        self.number(sql!("route/number"), params![kind as i64, needed.name, version, pin, tag])
    }

    /// Tells whether the worker that asks is given the instances of a route.
    pub(crate) fn takes_routed_turn(
        &self,
        route: i64,
        filter: Option<&DispatcherCapabilityFilter>,
        asks: Option<&WorkerId>,
    ) -> DbResult<bool> {
        let Some(route) = self.route(route)? else { return Ok(true) };
        let required = Requirement::Turn { pinned: self.pinned_version(route.pin)? };
        Ok(self.is_compatible(route.pin, filter)? && self.takes(asks, &route.needed, &required)?)
    }

    /// Returns the oldest routed activity that the request accepts and that is older than `oldest`: a few
    /// lookups for each route, whatever is queued (S20).
    pub(crate) fn oldest_routed_work(
        &self,
        request: &WorkRequest,
        oldest: Option<i64>,
    ) -> DbResult<Option<i64>> {
        let mut oldest = oldest;
        for route in self.routes_of_work()? {
            if !request.tags.matches(tag_of(&route.tag)) {
                continue;
            }
            let found = match &request.session {
                _ if !route.is_on_session() => {
                    self.maybe(sql!("session/head/first_of_tag"), params![-route.id, route.tag])?
                }
                Some(session) => self.oldest_of_sessions(session, &Heads::Routed(routed_tag(route.id)))?,
                None => None,
            };
            let is_older = found.is_some_and(|found| oldest.is_none_or(|oldest| found < oldest));
            if is_older && self.takes(request.worker.as_ref(), &route.needed, &route.of_work())? {
                oldest = found;
            }
        }
        Ok(oldest)
    }

    /// Tells whether a worker takes routed work on a session, by the stored tag of the work.
    pub(crate) fn takes_routed_tag(&self, stored: &str, asks: Option<&WorkerId>) -> DbResult<bool> {
        let Some(route) = self.route_of_tag(stored)? else { return Ok(true) };
        self.takes(asks, &route.needed, &route.of_work())
    }

    /// Returns the plain stored tag of a stored tag.
    pub(crate) fn plain_tag(&self, stored: String) -> DbResult<String> {
        Ok(match self.route_of_tag(&stored)? {
            Some(route) => route.tag,
            None => uncalled_tag(&stored).to_owned(),
        })
    }

    fn route_of_tag(&self, stored: &str) -> DbResult<Option<Route>> {
        let routed = Some(stored).filter(|stored| is_routed_tag(stored));
        let id = routed.and_then(|stored| stored.strip_prefix(ROUTED)?.parse::<i64>().ok());
        id.map_or(Ok(None), |id| self.route(id))
    }

    /// Adds the route of the turn before to an instance whose execution goes on: its code is the same.
    pub(crate) fn keep_route(&self, key: i64, pin_before: i64) -> DbResult<()> {
        let Some(route) = self.route(-pin_before)? else { return Ok(()) };
        let pin = self.number(sql!("route/turn/pin"), [key])?;
        let id = self.route_number(RouteKind::Turn, &route.needed, pin, "")?;
        self.run(sql!("route/turn/put"), params![key, -id, 0])?;
        Ok(())
    }

    /// Lets any worker have an instance, because a message is visible that needs no code, or because the
    /// instance does not exist. Messages that a refusal delays become visible: they may be the start that the
    /// message must not overtake.
    pub(crate) fn end_route(&self, key: i64) -> DbResult<()> {
        let pin = self.number(sql!("route/turn/pin"), [key])?;
        if pin < 0 {
            self.run(sql!("route/turn/put"), params![key, self.plain_pin(pin)?, 0])?;
            self.run(sql!("route/turn/release_messages"), params![key, self.now])?;
            self.touch_turn(key, self.now)?;
        }
        Ok(())
    }

    /// Returns the engine version that an instance is pinned to, routed or not.
    pub(super) fn plain_pin(&self, pin: i64) -> DbResult<i64> {
        match pin {
            0.. => Ok(pin),
            _ => Ok(self.route(-pin)?.map_or(0, |route| route.pin)),
        }
    }
}
