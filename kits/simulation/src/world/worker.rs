//! The workers of a world: how their processes start and stop.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use steadfast::{SemverRange, TagFilter};
use steadfast_audit::{FaultKind, Life};
use steadfast_clock::SeededRandom;
use steadfast_testing::program::ast::names;

use super::{Act, CLOSING, RESTART, Running, World};
use crate::{
    code::{self, Place},
    engine::{OnMissingHandler, Runtime, RuntimeOptions},
    journal::Noted,
    process::Process,
    story::{INTRUDER, Tags, Worker},
    time::HostTime,
    wire::Wire,
};

impl World<'_> {
    /// Stops a worker, which is started again after a while.
    pub(super) fn stop(&mut self, number: usize, how: Stop, back: Duration) {
        let Some(seat) = self.seats.get_mut(number) else { return };
        let Some(Running { process, runtime, is_stopping, .. }) = &mut seat.running else { return };
        seat.restart = back;
        if std::mem::replace(is_stopping, true) {
            return;
        }
        let (life, runtime) = (process.life().clone(), Arc::clone(runtime));
        process.spawn(async move {
            let runtime = runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(runtime) = runtime {
                if how == Stop::Drain {
                    runtime.drain().await;
                }
                runtime.shutdown(Some(5_000)).await;
                // A store that runs in the process closes its file as the last of its tasks.
                for _ in 0..CLOSING {
                    tokio::task::yield_now().await;
                }
            }
            life.end();
        });
    }

    /// Starts the process of a worker, if it has none.
    pub(super) fn start(&mut self, number: usize) -> std::io::Result<()> {
        let Some(seat) = self.seats.get_mut(number) else { return Ok(()) };
        if seat.running.is_some() {
            return Ok(());
        }
        seat.starts += 1;
        if let Some(next) = seat.next.take() {
            seat.worker = next;
        }
        let (process, name) = (Process::new()?, format!("w{number}.{}", seat.starts));
        let store = match self.ground.open(&process, &name) {
            Ok(store) => store,
            Err(error) => {
                self.journal.note(Noted::World(format!("{name} cannot open the store: {error}")));
                process.life().end();
                self.later(RESTART, Act::Start(number));
                return Ok(());
            }
        };
        let wire = Wire::new(store, &name, process.life(), &seat.line, &self.time, &self.journal);
        let clock = HostTime(Arc::clone(&seat.host));
        let options = RuntimeOptions {
            worker_node_id: seat.worker.named.then(|| format!("node-{number}")),
            clock: Arc::new(clock.clone()),
            random: Arc::new(SeededRandom::new(code::hash_of(self.story.seed, &name))),
            ..options(&seat.worker)
        };
        let place = Place {
            process: name.clone(),
            life: process.life().clone(),
            clock: Arc::new(clock),
            journal: self.journal.clone(),
            seed: self.story.seed,
        };
        let activities = code::activities(&place, &seat.worker);
        let orchestrations = code::orchestrations(self.story, &seat.worker);
        let runtime: Arc<Mutex<Option<Arc<Runtime>>>> = Arc::default();
        let slot = Arc::clone(&runtime);
        process.spawn(async move {
            let runtime =
                Runtime::start_with_options(Arc::new(wire), activities, orchestrations, options).await;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(runtime);
        });
        self.journal.life(&name, Life::Started);
        // The line outlives a process, and its trouble is that of the next one.
        let now = self.time.now();
        for (kind, until) in [(FaultKind::Slow, seat.slow_until), (FaultKind::Cut, seat.cut_until)] {
            if until > now {
                self.journal.fault(kind, Some(&name), until - now);
            }
        }
        self.capacity.insert(name.clone(), seat.worker.sessions);
        let lacks = seat.worker.lacks.iter().copied().chain([INTRUDER]).map(str::to_owned);
        self.lacks.insert(name.clone(), lacks.collect());
        seat.running = Some(Running { name, seat: number, began: now, process, runtime, is_stopping: false });
        Ok(())
    }
}

/// How a worker is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It gives up its sessions first.
    Drain,
    ShutDown,
}

/// Returns the versions of engines before this one.
fn older_engines() -> SemverRange {
    let all = SemverRange::default_for_current_build();
    SemverRange::new(all.min.clone(), all.min)
}

/// Returns the options of a worker, without its name, its clock and its random numbers.
fn options(worker: &Worker) -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: worker.turns,
        worker_concurrency: worker.work,
        worker_tag_filter: match worker.tags {
            Tags::Any => TagFilter::Any,
            Tags::Plain => TagFilter::DefaultOnly,
            Tags::Tagged => TagFilter::Tags(names::TAGS.iter().map(|tag| (*tag).to_owned()).collect()),
        },
        max_sessions_per_runtime: worker.sessions,
        max_attached_sessions: worker.attached,
        max_warm_orchestrations: worker.warm,
        on_missing_handler: if worker.parks { OnMissingHandler::Park } else { OnMissingHandler::Fail },
        supported_replay_versions: worker.older_engine.then(older_engines),
        retain_finished_for: worker.retains,
        // Found out by a thread otherwise.
        build_id: Some("simulated".to_owned()),
        ..RuntimeOptions::default()
    }
}
