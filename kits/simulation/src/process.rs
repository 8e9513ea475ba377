//! A process of the world: a tokio runtime of one thread that the world runs when it likes, and kills.

use std::{
    fmt::{self, Debug, Formatter},
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use tokio::runtime::{Builder, Runtime};

/// Whether a process lives. Clones share it. What a dead process does has no effect on the world.
#[derive(Clone, Debug, Default)]
pub struct Life(Arc<LifeState>);

#[derive(Default)]
struct LifeState {
    has_ended: AtomicBool,
    then: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

impl Life {
    /// Ends the life. The code of the process may run on until its next await: it must not be heard.
    pub fn end(&self) {
        self.0.has_ended.store(true, Ordering::Relaxed);
        let then = std::mem::take(&mut *self.0.then.lock().unwrap_or_else(PoisonError::into_inner));
        then.into_iter().for_each(|act| act());
    }

    /// Tells whether the process is dead.
    pub fn has_ended(&self) -> bool {
        self.0.has_ended.load(Ordering::Relaxed)
    }

    /// Does something at the moment when the life ends.
    pub fn then(&self, act: impl FnOnce() + Send + 'static) {
        self.0.then.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(act));
    }
}

impl Debug for LifeState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("LifeState").field("has_ended", &self.has_ended).finish_non_exhaustive()
    }
}

/// The tasks of one process. Dropping it drops every task at the await where it stands.
#[derive(Debug)]
pub struct Process {
    tokio: Runtime,
    idle: Arc<Idle>,
    life: Life,
}

/// Tells the world that all tasks of a process wait.
#[derive(Debug, Default)]
struct Idle {
    reached: AtomicBool,
    world: Mutex<Option<Waker>>,
}

impl Process {
    /// Makes a process without tasks.
    ///
    /// # Errors
    ///
    /// What the operating system says if it has no descriptors left for the runtime.
    pub fn new() -> std::io::Result<Self> {
        let idle = Arc::new(Idle::default());
        let parking = Arc::clone(&idle);
        let tokio = Builder::new_current_thread().on_thread_park(move || parking.reach()).build()?;
        Ok(Self { tokio, idle, life: Life::default() })
    }

    /// Returns the life of the process.
    pub fn life(&self) -> &Life {
        &self.life
    }

    /// Starts a task.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.tokio.spawn(task));
    }

    /// Lets a future of the process run as far as it goes without waiting, outside its tasks. `None` if it
    /// waits.
    pub fn now<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let _inside = self.tokio.enter();
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    /// Tells whether a task was woken since the process last ran.
    ///
    /// All wake-ups come from outside of the process while it does not run, so they are in the queue that
    /// tokio keeps for those.
    pub fn is_ready(&self) -> bool {
        self.tokio.metrics().global_queue_depth() > 0
    }

    /// Runs the tasks until all of them wait.
    pub fn run(&self) {
        self.idle.reached.store(false, Ordering::Relaxed);
        self.tokio.block_on(poll_fn(|cx| {
            if self.idle.reached.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            *self.idle.world.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
            Poll::Pending
        }));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.life.end();
    }
}

impl Idle {
    fn reach(&self) {
        self.reached.store(true, Ordering::Relaxed);
        if let Some(world) = self.world.lock().unwrap_or_else(PoisonError::into_inner).take() {
            world.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicUsize, time::Duration};

    use super::*;
    use crate::time::WorldTime;

    #[test]
    fn a_process_runs_until_all_its_tasks_wait() -> std::io::Result<()> {
        let (process, time) = (Process::new()?, WorldTime::default());
        let done = Arc::new(AtomicUsize::new(0));
        for seconds in 1..=2 {
            let (done, time) = (Arc::clone(&done), time.clone());
            process.spawn(async move {
                tokio::task::yield_now().await;
                done.fetch_add(1, Ordering::Relaxed);
                time.until(Duration::from_secs(seconds)).await;
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        assert!(process.is_ready());
        process.run();
        assert_eq!(done.load(Ordering::Relaxed), 2);
        assert!(!process.is_ready());
        assert!(time.ring_one(Duration::from_secs(1)));
        assert!(process.is_ready());
        process.run();
        assert_eq!(done.load(Ordering::Relaxed), 3);
        Ok(())
    }

    #[test]
    fn a_dropped_process_drops_its_tasks_where_they_wait() -> std::io::Result<()> {
        let (process, time) = (Process::new()?, WorldTime::default());
        let life = process.life().clone();
        let alive = Arc::new(());
        let (held, waiting) = (Arc::clone(&alive), time.clone());
        process.spawn(async move {
            waiting.until(Duration::from_secs(1)).await;
            drop(held);
        });
        process.run();
        assert_eq!(Arc::strong_count(&alive), 2);
        drop(process);
        assert_eq!((Arc::strong_count(&alive), time.next()), (1, None));
        assert!(life.has_ended());
        Ok(())
    }
}
