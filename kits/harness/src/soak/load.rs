//! The steady load: so many starts in a second, each measured from its start to its result.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use steadfast::{Client, OrchestrationStatus};
use steadfast_clock::{Clock, SystemClock};
use tokio::task::JoinSet;

use super::code;

/// How long a result may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How many seconds' worth of starts may be under way; beyond it starts are left out.
const BEHIND_SECONDS: usize = 20;
/// The most faults that are kept.
const FAULTS: usize = 10;

/// The load, and what came of it.
pub(super) struct Load {
    client: Client,
    rate: u32,
    seen: Mutex<Seen>,
}

/// What ended in one interval.
#[derive(Debug, Default)]
pub(super) struct Interval {
    /// From the start to the result, in milliseconds.
    pub(super) times_ms: Vec<f64>,
}

#[derive(Default)]
struct Seen {
    interval: Interval,
    ended: u64,
    left_out: u64,
    faults: Vec<String>,
}

impl Load {
    pub(super) fn new(client: Client, rate: u32) -> Self {
        Self { client, rate, seen: Mutex::default() }
    }

    /// Returns what ended since the last call.
    pub(super) fn take(&self) -> Interval {
        std::mem::take(&mut self.seen().interval)
    }

    /// Returns how many orchestrations have ended as they should.
    pub(super) fn ended(&self) -> u64 {
        self.seen().ended
    }

    /// Returns what did not end as it should.
    pub(super) fn faults(&self) -> Vec<String> {
        let seen = self.seen();
        let mut faults = seen.faults.clone();
        if seen.left_out > 0 {
            faults.push(format!("{} starts were left out: the rate is too high", seen.left_out));
        }
        faults
    }

    /// Starts orchestrations at the rate until a moment, and waits for the last of them.
    pub(super) async fn run(self: Arc<Self>, until: Duration) {
        let (mut tasks, most) = (JoinSet::new(), self.rate as usize * BEHIND_SECONDS);
        let step = Duration::from_secs(1) / self.rate;
        let mut next = SystemClock.monotonic();
        for number in 0.. {
            SystemClock.sleep_until(next).await;
            if SystemClock.monotonic() >= until {
                break;
            }
            next += step;
            while tasks.try_join_next().is_some() {}
            if tasks.len() >= most {
                self.seen().left_out += 1;
                continue;
            }
            let load = Arc::clone(&self);
            tasks.spawn(async move { load.one(number).await });
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Starts one, and waits for its result.
    async fn one(&self, number: u64) {
        let (kind, instance) = (code::kind(number), format!("s{number}"));
        let began = SystemClock.monotonic();
        let ended = async {
            let input = code::input(number);
            self.client.start_orchestration(&instance, kind, input.clone()).await?;
            if kind == code::LISTENS {
                self.client.enqueue_event(&instance, code::QUEUE, input.clone()).await?;
            }
            let status = self.client.wait_for_orchestration(&instance, PATIENCE).await?;
            Ok::<_, steadfast::ClientError>((input, status))
        };
        let ended = ended.await;
        let took = SystemClock.monotonic() - began;
        let mut seen = self.seen();
        match ended {
            Ok((input, OrchestrationStatus::Completed { output, .. })) if output == input => {
                seen.interval.times_ms.push(took.as_secs_f64() * 1_000.0);
                seen.ended += 1;
            }
            other => {
                if seen.faults.len() < FAULTS {
                    seen.faults.push(format!("{instance} ({kind}) ended with {other:?}"));
                }
            }
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
