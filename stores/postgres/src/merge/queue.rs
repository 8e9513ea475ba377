//! Requests that wait at the same time become one call (L1).
//!
//! The first request goes at once. While its call is under way, others gather; when it is answered, they go together. There is no
//! task that waits for requests: one is spawned when there are some, and ends when there are none.
//!
//! What can never succeed fails alone, and what somebody holds waits alone: when a call of several is refused for good, or for
//! something that another transaction holds, it was rolled back, and each is asked by itself.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_store::{ProviderError, ProviderErrorKind};
use tokio::sync::oneshot;

use crate::link::error::is_held;

/// The answers of a call, one for each request, or why there is none.
pub(crate) type Answers<A> = Result<Vec<Result<A, ProviderError>>, ProviderError>;

/// Beyond this, requests are not merged: nothing is gained, and one message to the server must stay below a gigabyte.
const MAX_CALL_BYTES: usize = 16 << 20;

/// What the server does not take in one message, with what goes beside the texts.
const MAX_REQUEST_BYTES: usize = 900 << 20;

type Call<Q, A> = Box<dyn Fn(Vec<Q>) -> Pin<Box<dyn Future<Output = Answers<A>> + Send>> + Send + Sync>;

/// Merges requests of one kind.
pub(crate) struct Batch<Q, A> {
    shared: Arc<Shared<Q, A>>,
}

struct Shared<Q, A> {
    operation: &'static str,
    call: Call<Q, A>,
    /// Counts the bytes of a request that can be many.
    weigh: fn(&Q) -> usize,
    max_batch: usize,
    max_calls: usize,
    state: Mutex<State<Q, A>>,
}

struct State<Q, A> {
    waiting: VecDeque<Request<Q, A>>,
    calls: usize,
}

struct Request<Q, A> {
    ask: Q,
    bytes: usize,
    answer: oneshot::Sender<Result<A, ProviderError>>,
}

impl<Q: Clone + Send + 'static, A: Send + 'static> Batch<Q, A> {
    /// `max_batch` bounds a call, `max_calls` how many are under way at a time.
    pub(crate) fn new<F, Fut>(
        operation: &'static str,
        max_batch: usize,
        max_calls: usize,
        weigh: fn(&Q) -> usize,
        call: F,
    ) -> Self
    where
        F: Fn(Vec<Q>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answers<A>> + Send + 'static,
    {
        let call: Call<Q, A> = Box::new(move |asked| Box::pin(call(asked)));
        let state = Mutex::new(State { waiting: VecDeque::new(), calls: 0 });
        Self {
            shared: Arc::new(Shared {
                operation,
                call,
                weigh,
                max_batch: max_batch.max(1),
                max_calls: max_calls.max(1),
                state,
            }),
        }
    }

    /// Asks, together with others who ask now.
    ///
    /// # Cancel safety
    /// A request that was taken into a call has its effect although nobody waits for the answer; the answer is dropped.
    pub(crate) async fn ask(&self, ask: Q) -> Result<A, ProviderError> {
        let bytes = (self.shared.weigh)(&ask);
        if bytes > MAX_REQUEST_BYTES {
            let (size, most) = (bytes >> 20, MAX_REQUEST_BYTES >> 20);
            let text = format!(
                "{size} MiB at once are more than the database takes ({most} MiB); send less at a time"
            );
            return Err(ProviderError::new(ProviderErrorKind::Invalid, self.shared.operation, text));
        }
        let (answer, answered) = oneshot::channel();
        let begin = {
            let mut state = self.shared.state();
            state.waiting.push_back(Request { ask, bytes, answer });
            let begin = state.calls < self.shared.max_calls;
            state.calls += usize::from(begin);
            begin
        };
        if begin {
            tokio::spawn(serve(Place(Some(Arc::clone(&self.shared)))));
        }
        answered.await.unwrap_or_else(|_| Err(self.shared.unanswered()))
    }
}

impl<Q, A> Shared<Q, A> {
    fn unanswered(&self) -> ProviderError {
        let text = "the call ended without an answer; what was asked may have happened or not";
        ProviderError::new(ProviderErrorKind::Unavailable, self.operation, text)
    }

    fn state(&self) -> MutexGuard<'_, State<Q, A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what waits, as far as somebody still waits for it; `None` when there is nothing, and then this server is gone.
    fn take(&self) -> Option<Vec<Request<Q, A>>> {
        let mut state = self.state();
        state.waiting.retain(|request| !request.answer.is_closed());
        if state.waiting.is_empty() {
            state.calls -= 1;
            return None;
        }
        let mut bytes = 0_usize;
        let fits = |request: &&Request<Q, A>| {
            bytes = bytes.saturating_add(request.bytes);
            bytes <= MAX_CALL_BYTES
        };
        let count = state.waiting.iter().take(self.max_batch).take_while(fits).count().max(1);
        Some(state.waiting.drain(..count).collect())
    }
}

async fn serve<Q: Clone + Send + 'static, A: Send + 'static>(mut place: Place<Q, A>) {
    while let Some((shared, requests)) = place.take() {
        let (asked, waiting): (Vec<Q>, Vec<_>) =
            requests.into_iter().map(|request| (request.ask, request.answer)).unzip();
        let answers = shared.answers(asked).await;
        for (waiting, answer) in waiting.into_iter().zip(answers) {
            // Who is gone needs no answer; a lease that is dropped here gives itself back.
            drop(waiting.send(answer));
        }
    }
}

impl<Q: Clone + Send + 'static, A: Send + 'static> Shared<Q, A> {
    /// Answers each request. What passes, as a server that is away, concerns all of them.
    async fn answers(&self, asked: Vec<Q>) -> Vec<Result<A, ProviderError>> {
        let (count, each) = (asked.len(), if asked.len() > 1 { asked.clone() } else { Vec::new() });
        match (self.call)(asked).await {
            Ok(answers) => answers,
            Err(error) if count > 1 && (!error.is_retryable() || is_held(&error)) => {
                let asked: Vec<_> =
                    each.into_iter().map(|ask| tokio::spawn((self.call)(vec![ask]))).collect();
                let mut answers = Vec::with_capacity(count);
                for answer in asked {
                    answers.push(match answer.await {
                        Ok(Ok(one)) => one.into_iter().next().unwrap_or_else(|| Err(self.unanswered())),
                        Ok(Err(error)) => Err(error),
                        Err(_) => Err(self.unanswered()),
                    });
                }
                answers
            }
            Err(error) => (0..count).map(|_| Err(error.clone())).collect(),
        }
    }
}

/// The place of one who serves. It is free again when there is nothing left to do, and also when the one who serves is dropped,
/// as with a runtime that ends.
struct Place<Q, A>(Option<Arc<Shared<Q, A>>>);

impl<Q, A> Place<Q, A> {
    #[allow(clippy::type_complexity, reason = "what is taken, and where from")]
    fn take(&mut self) -> Option<(Arc<Shared<Q, A>>, Vec<Request<Q, A>>)> {
        let shared = Arc::clone(self.0.as_ref()?);
        let taken = shared.take();
        if taken.is_none() {
            self.0 = None;
        }
        taken.map(|taken| (shared, taken))
    }
}

impl<Q, A> Drop for Place<Q, A> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            let mut state = shared.state();
            state.calls -= 1;
            if state.calls == 0 {
                // Nobody is left to ask for those who wait: they are told, and ask again.
                state.waiting.clear();
            }
        }
    }
}

impl<Q, A> std::fmt::Debug for Batch<Q, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("operation", &self.shared.operation).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::Semaphore;

    use super::*;

    fn echo(gate: Arc<Semaphore>, sizes: Arc<Mutex<Vec<usize>>>) -> Batch<u32, u32> {
        Batch::new(
            "echo",
            3,
            1,
            |n| usize::try_from(*n).map_or(0, |n| n << 10),
            move |asked: Vec<u32>| {
                let (gate, sizes) = (Arc::clone(&gate), Arc::clone(&sizes));
                async move {
                    sizes.lock().unwrap_or_else(PoisonError::into_inner).push(asked.len());
                    drop(gate.acquire().await);
                    Ok(asked
                        .into_iter()
                        .map(|n| if n == 13 { Err("unlucky".into()) } else { Ok(n) })
                        .collect())
                }
            },
        )
    }

    #[tokio::test]
    async fn what_waits_together_goes_together_up_to_the_bound() {
        let (gate, sizes) = (Arc::new(Semaphore::new(0)), Arc::default());
        let batch = Arc::new(echo(Arc::clone(&gate), Arc::clone(&sizes)));
        let asked: Vec<_> = (0..6)
            .map(|n| {
                let batch = Arc::clone(&batch);
                tokio::spawn(async move { batch.ask(n).await })
            })
            .collect();
        while sizes.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            tokio::task::yield_now().await;
        }
        gate.add_permits(100);
        for (n, asked) in (0..).zip(asked) {
            assert_eq!(asked.await.ok(), Some(Ok(n)));
        }
        let sizes = sizes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        assert_eq!(sizes.iter().sum::<usize>(), 6);
        assert!(sizes.len() <= 4 && sizes.iter().all(|size| *size <= 3), "{sizes:?}");
    }

    #[tokio::test]
    async fn one_that_fails_fails_alone() {
        let batch = echo(Arc::new(Semaphore::new(100)), Arc::default());
        let (one, other) = tokio::join!(batch.ask(13), batch.ask(2));
        assert!(one.is_err());
        assert_eq!(other, Ok(2));
    }

    #[tokio::test]
    async fn one_that_went_away_is_not_asked_for() {
        let (gate, sizes) = (Arc::new(Semaphore::new(0)), Arc::default());
        let batch = Arc::new(echo(Arc::clone(&gate), Arc::clone(&sizes)));
        let first = {
            let batch = Arc::clone(&batch);
            tokio::spawn(async move { batch.ask(1).await })
        };
        while sizes.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(tokio::time::timeout(Duration::from_millis(1), batch.ask(2)).await.is_err());
        gate.add_permits(100);
        assert_eq!(first.await.ok(), Some(Ok(1)));
        assert_eq!(batch.ask(3).await, Ok(3));
        assert_eq!(*sizes.lock().unwrap_or_else(PoisonError::into_inner), [1, 1]);
    }

    #[test]
    fn a_call_that_is_dropped_with_its_runtime_leaves_its_place() {
        let (gate, sizes) = (Arc::new(Semaphore::new(0)), Arc::<Mutex<Vec<usize>>>::default());
        let batch = Arc::new(echo(Arc::clone(&gate), Arc::clone(&sizes)));
        let run = || tokio::runtime::Builder::new_current_thread().enable_time().build();
        let first = run().expect("a runtime");
        let asking = Arc::clone(&batch);
        first.block_on(async {
            assert!(tokio::time::timeout(Duration::from_millis(5), asking.ask(1)).await.is_err());
        });
        drop(first);
        gate.add_permits(100);
        let answer = run().expect("a runtime").block_on(batch.ask(2));
        assert_eq!(answer, Ok(2));
    }

    /// Refuses a call that holds a 13, as a server refuses a statement.
    fn strict(sizes: Arc<Mutex<Vec<usize>>>, kind: ProviderErrorKind) -> Batch<u32, u32> {
        Batch::new(
            "strict",
            10,
            1,
            |_| 0,
            move |asked: Vec<u32>| {
                sizes.lock().unwrap_or_else(PoisonError::into_inner).push(asked.len());
                async move {
                    // Others come meanwhile.
                    tokio::task::yield_now().await;
                    match asked.contains(&13) {
                        true => Err(ProviderError::new(kind, "strict", "unlucky")),
                        false => Ok(asked.into_iter().map(Ok).collect()),
                    }
                }
            },
        )
    }

    async fn four(batch: &Batch<u32, u32>) -> [Result<u32, ProviderError>; 4] {
        tokio::join!(batch.ask(1), batch.ask(2), batch.ask(13), batch.ask(3)).into()
    }

    #[tokio::test]
    async fn s3_one_that_can_never_succeed_fails_alone_although_it_was_merged_with_others() {
        let sizes = Arc::default();
        let answers = four(&strict(Arc::clone(&sizes), ProviderErrorKind::Invalid)).await;
        assert_eq!(answers.each_ref().map(Result::is_ok), [true, true, false, true]);
        assert_eq!(*sizes.lock().unwrap_or_else(PoisonError::into_inner), [4, 1, 1, 1, 1]);
    }

    #[tokio::test]
    async fn what_passes_is_told_to_all_who_were_merged() {
        let sizes = Arc::default();
        let answers = four(&strict(Arc::clone(&sizes), ProviderErrorKind::Unavailable)).await;
        assert_eq!(answers.each_ref().map(Result::is_ok), [false; 4]);
        assert_eq!(*sizes.lock().unwrap_or_else(PoisonError::into_inner), [4]);
    }

    #[tokio::test]
    async fn a_call_is_bounded_in_bytes_too() {
        let (gate, sizes) = (Arc::new(Semaphore::new(0)), Arc::default());
        let batch = Arc::new(echo(Arc::clone(&gate), Arc::clone(&sizes)));
        // In KiB: the third is too much beside the second, and the last is much by itself.
        let asked: Vec<_> = [1, 9 << 10, 9 << 10, 20 << 10]
            .map(|n| {
                let batch = Arc::clone(&batch);
                tokio::spawn(async move { batch.ask(n).await })
            })
            .into();
        while sizes.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            tokio::task::yield_now().await;
        }
        gate.add_permits(100);
        for asked in asked {
            assert!(asked.await.is_ok_and(|answer| answer.is_ok()));
        }
        assert_eq!(*sizes.lock().unwrap_or_else(PoisonError::into_inner), [2, 1, 1]);
    }

    #[tokio::test]
    async fn what_no_message_can_hold_is_refused_with_its_size() {
        let batch = echo(Arc::new(Semaphore::new(100)), Arc::default());
        let error = batch.ask(1 << 20).await.expect_err("a gigabyte is too much");
        assert_eq!(error.kind, ProviderErrorKind::Invalid);
        assert!(error.message.contains("1024 MiB"), "{error}");
    }

    #[test]
    fn who_waits_behind_a_call_that_is_dropped_with_its_runtime_is_told() {
        let (gate, sizes) = (Arc::new(Semaphore::new(0)), Arc::<Mutex<Vec<usize>>>::default());
        let batch = Arc::new(echo(gate, sizes));
        let run = || tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let (first, second) = (run(), run());
        first.block_on(async {
            assert!(tokio::time::timeout(Duration::from_millis(5), batch.ask(1)).await.is_err());
        });
        let behind = second.spawn({
            let batch = Arc::clone(&batch);
            async move { batch.ask(2).await }
        });
        second.block_on(tokio::task::yield_now());
        drop(first);
        let answer = second.block_on(behind).expect("it returns");
        assert_eq!(answer.map_err(|error| error.kind), Err(ProviderErrorKind::Unavailable));
    }
}
