//! A count that rises, and calls that wait until it has risen.
//!
//! The calls are woken in the order in which they began to wait. The `watch` channel of tokio draws lots
//! between them, so a run on it would not follow from a seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// A count that only rises. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rises(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    now: AtomicU64,
    risen: Notify,
}

/// A count as one call has seen it last.
#[derive(Debug)]
pub(crate) struct SeenRises {
    count: Arc<Count>,
    seen: u64,
}

impl Rises {
    /// Lets the count rise, and wakes the calls that wait for it.
    pub(crate) fn rise(&self) {
        self.0.now.fetch_add(1, Ordering::SeqCst);
        self.0.risen.notify_waiters();
    }

    /// Looks at the count now.
    pub(crate) fn look(&self) -> SeenRises {
        SeenRises { count: Arc::clone(&self.0), seen: self.0.now.load(Ordering::SeqCst) }
    }
}

impl SeenRises {
    /// Waits until the count has risen since the last look, and looks.
    ///
    /// # Cancel safety
    /// A rise is not lost when the future is dropped: the next call returns at once.
    pub(crate) async fn risen(&mut self) {
        loop {
            // It hears what is told from here on, also before it is awaited.
            let risen = self.count.risen.notified();
            let now = self.count.now.load(Ordering::SeqCst);
            if now != self.seen {
                self.seen = now;
                return;
            }
            risen.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_rise_before_the_wait_is_seen_once() {
        let rises = Rises::default();
        let mut seen = rises.look();
        assert!(seen.risen().now_or_never().is_none());
        rises.rise();
        rises.rise();
        assert!(seen.risen().now_or_never().is_some());
        assert!(seen.risen().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_rise_wakes_the_calls_in_the_order_in_which_they_wait() {
        let (rises, order) = (Rises::default(), Arc::new(std::sync::Mutex::new(Vec::new())));
        let tasks: Vec<_> = (0..20)
            .map(|number| {
                let (mut seen, order) = (rises.look(), Arc::clone(&order));
                tokio::spawn(async move {
                    seen.risen().await;
                    order.lock().unwrap().push(number);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        rises.rise();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }
}
