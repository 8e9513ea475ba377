//! Workers and routes (S21; G5, G40): work whose handler a worker lacks is left to the workers that have it.

pub(super) mod cost;
pub(super) mod end;
pub(super) mod refuse;
pub(super) mod report;
pub(super) mod route;
pub(super) mod row;
pub(super) mod session;
pub(super) mod wake;

use std::time::Duration;

use semver::Version;
use steadfast_core::{DispatcherCapabilityFilter, SemverRange, SessionKey, TagFilter, WorkItem};
use steadfast_store::{
    Abandon, Attempt, Cold, LeaseToken, ListedHandler, NeededHandler, NewWork, Owner, ProviderError, Refusal,
    Refused, SessionRequest, SessionScope, Store, TurnLease, TurnRequest, WORKER_LIVE_FOR, WorkLease,
    WorkRequest, WorkerId, WorkerProcess, WorkerReport, WorkerSlots,
};

use crate::bench::{Bench, LEASE, ok};

/// How long refused work is held back that no live worker lists.
const BACKOFF: Duration = Duration::from_secs(3_600);

/// Gives the cases of this clause their words: workers that report, ask and refuse.
struct Fleet<'a> {
    bench: &'a Bench,
    store: &'a dyn Store,
}

/// The words, on a store that has its full form.
fn fleet(bench: &Bench) -> Option<Fleet<'_>> {
    bench.store().map(|store| Fleet { bench, store })
}

/// The report of a worker that has no handlers, and leaves work alone that no live worker lists.
fn worker(id: &str) -> WorkerReport {
    WorkerReport {
        id: WorkerId(id.to_owned()),
        process: WorkerProcess::default(),
        orchestrations: Vec::new(),
        activities: Vec::new(),
        tags: TagFilter::DefaultOnly,
        serves_sessions: true,
        engines: None,
        takes_unlisted: false,
        slots: WorkerSlots::default(),
        sessions: 0,
        is_stopped: false,
    }
}

/// The report of a worker that has the handlers of the cases.
fn capable(id: &str) -> WorkerReport {
    WorkerReport {
        orchestrations: vec![listed("Orchestration", &["1.0.0"])],
        activities: vec![listed("Activity", &[])],
        ..worker(id)
    }
}

/// The report of a worker that has no handlers, and takes work that no live worker lists.
fn eager(id: &str) -> WorkerReport {
    WorkerReport { takes_unlisted: true, ..worker(id) }
}

/// The engine versions up to one.
fn engines_up_to(major: u64) -> DispatcherCapabilityFilter {
    let range = SemverRange::new(Version::new(0, 0, 0), Version::new(major, 0, 0));
    DispatcherCapabilityFilter { supported_duroxide_versions: vec![range] }
}

fn listed(name: &str, versions: &[&str]) -> ListedHandler {
    let versions = versions.iter().map(|version| (*version).to_owned()).collect();
    ListedHandler { name: name.to_owned(), versions }
}

fn needed(name: &str, version: Option<&str>) -> NeededHandler {
    NeededHandler { name: name.to_owned(), version: version.map(str::to_owned) }
}

/// Refuses as the compatible door does: counted and held back if no live worker lists the handler.
fn counting(handler: NeededHandler) -> Refusal {
    Refusal { handler, if_unlisted: Abandon { retry_after: Some(BACKOFF), attempt: Attempt::Counts } }
}

/// Refuses as a worker does that parks: uncounted and without a delay.
fn parking(handler: NeededHandler) -> Refusal {
    Refusal { handler, if_unlisted: Abandon { retry_after: None, attempt: Attempt::Uncounted } }
}

fn the_orchestration() -> NeededHandler {
    needed("Orchestration", Some("1.0.0"))
}

fn the_activity() -> NeededHandler {
    needed("Activity", None)
}

/// Asks for an activity of any tag and session, for the worker of that id.
fn asking(id: &str) -> WorkRequest {
    WorkRequest {
        worker_id: id.to_owned(),
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        tags: TagFilter::Any,
        session: Some(SessionRequest {
            owner: Owner::unnamed(id),
            lock_timeout: LEASE,
            scope: SessionScope::Claim,
            leave_out: Vec::new(),
        }),
        worker: Some(WorkerId(id.to_owned())),
    }
}

impl Fleet<'_> {
    async fn report(&self, report: WorkerReport) {
        ok(self.store.report_worker(&report).await);
    }

    async fn turn(&self, id: &str) -> Option<TurnLease> {
        self.turn_as(Some(&WorkerId(id.to_owned()))).await
    }

    async fn turn_as(&self, worker: Option<&WorkerId>) -> Option<TurnLease> {
        let request = TurnRequest {
            lock_timeout: LEASE,
            poll_timeout: Duration::ZERO,
            filter: None,
            warm: &Cold,
            worker,
        };
        ok(self.store.fetch_turn(request).await)
    }

    /// Leases an instance for a worker; there must be one.
    async fn turned(&self, id: &str) -> TurnLease {
        self.turn(id).await.unwrap_or_else(|| panic!("{id} should be given an instance"))
    }

    async fn work(&self, id: &str) -> Option<WorkLease> {
        ok(self.store.fetch_work(asking(id)).await)
    }

    /// Leases an activity for a worker; there must be one.
    async fn worked(&self, id: &str) -> WorkLease {
        self.work(id).await.unwrap_or_else(|| panic!("{id} should be given an activity"))
    }

    async fn refuse(&self, token: &LeaseToken, refusal: Refusal) -> Refused {
        ok(self.try_refuse(token, refusal).await)
    }

    async fn try_refuse(&self, token: &LeaseToken, refusal: Refusal) -> Result<Refused, ProviderError> {
        self.store.refuse(token, refusal).await
    }

    /// Makes a worker lease the instance that is next, and refuse it for lack of the orchestration.
    async fn refuse_turn(&self, id: &str) -> Refused {
        let lease = self.turned(id).await;
        self.refuse(&lease.token, counting(the_orchestration())).await
    }

    /// Makes a worker lease the activity that is next, and refuse it for lack of the handler.
    async fn refuse_work(&self, id: &str) -> Refused {
        let lease = self.worked(id).await;
        self.refuse(&lease.token, counting(the_activity())).await
    }

    async fn queue(&self, item: WorkItem, session: Option<SessionKey>) {
        ok(self.store.enqueue_work(NewWork { session, ..item.into() }).await);
    }

    /// Lets so much time pass that no worker is live that does not report again.
    fn silence(&self) {
        self.bench.advance(WORKER_LIVE_FOR);
    }
}
