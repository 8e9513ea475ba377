//! Requests that wait at the same time become one call (L1).
//!
//! The first request is sent at once. While its call is under way, later requests gather; when it is
//! answered, they are sent together. No task waits for requests: one is spawned when the first request comes,
//! and ends when none is left.
//!
//! A request that can never succeed fails alone, and a request that meets a lock of another transaction, or
//! loses against it, waits alone: if a call for several requests is refused for one of these reasons, it was
//! rolled back, and each request is sent by itself.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};
use steadfast_store::{ProviderError, ProviderErrorKind};
use tokio::sync::oneshot;

use crate::link::db::LOCK_RETRY_PAUSE;
use crate::link::error::is_in_the_way;

/// The answers of a call, one for each request in order, or the error of the call.
pub(crate) type Answers<A> = Result<Vec<Result<A, ProviderError>>, ProviderError>;

/// Bounds a merged call: with more bytes merging gains nothing, and a message to the server must stay below a
/// gigabyte.
const MAX_CALL_BYTES: usize = 16 << 20;

/// Bounds the texts of one request: the server refuses a message of a gigabyte, and other bytes are sent
/// beside the texts.
const MAX_REQUEST_BYTES: usize = 900 << 20;

type MergedCall<Q, A> = Box<dyn Fn(Vec<Q>) -> Pin<Box<dyn Future<Output = Answers<A>> + Send>> + Send + Sync>;

/// Merges requests of one kind.
pub(crate) struct MergeQueue<Q, A> {
    shared: Arc<MergeShared<Q, A>>,
}

/// How requests of one kind are merged.
pub(crate) struct MergeRules<Q> {
    /// The operation of the contract, for errors.
    pub(crate) operation: &'static str,
    /// Bounds the requests of one call.
    pub(crate) max_requests: usize,
    /// Bounds the calls that are under way at a time.
    pub(crate) max_calls: usize,
    /// How long a request is repeated while it meets a lock of another transaction, or loses against it.
    pub(crate) patience: Duration,
    /// Counts the bytes of a request whose size is not bounded; 0 for a small one.
    pub(crate) weigh: fn(&Q) -> usize,
    /// Tells whether one call can serve both requests.
    pub(crate) alike: fn(&Q, &Q) -> bool,
}

struct MergeShared<Q, A> {
    rules: MergeRules<Q>,
    call: MergedCall<Q, A>,
    state: Mutex<MergeState<Q, A>>,
}

struct MergeState<Q, A> {
    waiting: VecDeque<MergeRequest<Q, A>>,
    /// How many calls are under way.
    calls: usize,
}

struct MergeRequest<Q, A> {
    ask: Q,
    bytes: usize,
    answer: oneshot::Sender<Result<A, ProviderError>>,
}

impl<Q: Clone + Send + 'static, A: Send + 'static> MergeQueue<Q, A> {
    pub(crate) fn new<F, Fut>(rules: MergeRules<Q>, call: F) -> Self
    where
        F: Fn(Vec<Q>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answers<A>> + Send + 'static,
    {
        let rules = MergeRules {
            max_requests: rules.max_requests.max(1),
            max_calls: rules.max_calls.max(1),
            ..rules
        };
        let call: MergedCall<Q, A> = Box::new(move |asked| Box::pin(call(asked)));
        let state = Mutex::new(MergeState { waiting: VecDeque::new(), calls: 0 });
        Self { shared: Arc::new(MergeShared { rules, call, state }) }
    }

    /// Sends a request, in one call with others that wait now. A request that meets a lock is repeated while
    /// patience lasts.
    ///
    /// # Cancel safety
    /// A request that was taken into a call has its effect even if this future is dropped; the answer is
    /// dropped.
    pub(crate) async fn ask(&self, ask: Q) -> Result<A, ProviderError> {
        let deadline = SystemClock.monotonic().saturating_add(self.shared.rules.patience);
        loop {
            let answered = self.enqueue(ask.clone())?;
            match answered.await.unwrap_or_else(|_| Err(self.shared.unanswered())) {
                Err(error) if is_in_the_way(&error) && SystemClock.monotonic() < deadline => {
                    SystemClock.sleep(LOCK_RETRY_PAUSE).await;
                }
                answer => return answer,
            }
        }
    }

    /// Puts a request into the queue, and starts a call unless enough are under way.
    fn enqueue(&self, ask: Q) -> Result<oneshot::Receiver<Result<A, ProviderError>>, ProviderError> {
        let bytes = (self.shared.rules.weigh)(&ask);
        if bytes > MAX_REQUEST_BYTES {
            let (size, most) = (bytes >> 20, MAX_REQUEST_BYTES >> 20);
            let text = format!(
                "{size} MiB at once are more than the database takes ({most} MiB); send less at a time"
            );
            return Err(ProviderError::new(ProviderErrorKind::Invalid, self.shared.rules.operation, text));
        }
        let (answer, answered) = oneshot::channel();
        let begin = {
            let mut state = self.shared.state();
            state.waiting.push_back(MergeRequest { ask, bytes, answer });
            let begin = state.calls < self.shared.rules.max_calls;
            state.calls += usize::from(begin);
            begin
        };
        if begin {
            tokio::spawn(serve(CallSlot(Some(Arc::clone(&self.shared)))));
        }
        Ok(answered)
    }
}

impl<Q, A> MergeShared<Q, A> {
    fn unanswered(&self) -> ProviderError {
        let text = "the call ended without an answer; what was asked may have happened or not";
        ProviderError::new(ProviderErrorKind::Unavailable, self.rules.operation, text)
    }

    fn state(&self) -> MutexGuard<'_, MergeState<Q, A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the requests of the next call, without those whose callers were dropped. `None` if no request
    /// waits; then the slot of the call is free.
    fn take(&self) -> Option<Vec<MergeRequest<Q, A>>> {
        let mut state = self.state();
        state.waiting.retain(|request| !request.answer.is_closed());
        if state.waiting.is_empty() {
            state.calls -= 1;
            return None;
        }
        let mut bytes = 0_usize;
        let fits = |request: &&MergeRequest<Q, A>| {
            bytes = bytes.saturating_add(request.bytes);
            bytes <= MAX_CALL_BYTES
        };
        let most = self.rules.max_requests;
        let count = state.waiting.iter().take(most).take_while(fits).count().max(1);
        Some(state.waiting.drain(..count).collect())
    }

    /// Divides requests into groups that one call can serve, in the order in which they came.
    fn groups(&self, requests: Vec<MergeRequest<Q, A>>) -> Vec<Vec<MergeRequest<Q, A>>> {
        let mut groups: Vec<Vec<MergeRequest<Q, A>>> = Vec::new();
        for request in requests {
            match groups.iter_mut().find(|group| (self.rules.alike)(&group[0].ask, &request.ask)) {
                Some(group) => group.push(request),
                None => groups.push(vec![request]),
            }
        }
        groups
    }
}

/// Serves requests until none waits.
async fn serve<Q: Clone + Send + 'static, A: Send + 'static>(mut slot: CallSlot<Q, A>) {
    while let Some((shared, requests)) = slot.take() {
        for group in shared.groups(requests) {
            let (asked, callers): (Vec<Q>, Vec<_>) =
                group.into_iter().map(|request| (request.ask, request.answer)).unzip();
            let each = if asked.len() > 1 { asked.clone() } else { Vec::new() };
            let answers = match (shared.call)(asked).await {
                Ok(answers) => answers,
                Err(error) => shared.after_error(error, callers.len(), each).await,
            };
            for (caller, answer) in callers.into_iter().zip(answers) {
                // A dropped caller needs no answer; a lease that is dropped here is abandoned.
                drop(caller.send(answer));
            }
        }
    }
}

impl<Q: Clone + Send + 'static, A: Send + 'static> MergeShared<Q, A> {
    /// Answers requests whose merged call failed. An error that passes, such as a server that is away,
    /// concerns all of them; otherwise each is sent by itself.
    async fn after_error(
        &self,
        error: ProviderError,
        count: usize,
        each: Vec<Q>,
    ) -> Vec<Result<A, ProviderError>> {
        if count < 2 || (error.is_retryable() && !is_in_the_way(&error)) {
            return (0..count).map(|_| Err(error.clone())).collect();
        }
        let asked: Vec<_> = each.into_iter().map(|ask| tokio::spawn((self.call)(vec![ask]))).collect();
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
}

/// The right to make calls. It is free again when no request waits, and also when the task is dropped, as
/// with a runtime that ends.
struct CallSlot<Q, A>(Option<Arc<MergeShared<Q, A>>>);

impl<Q, A> CallSlot<Q, A> {
    #[allow(clippy::type_complexity, reason = "what is taken, and where from")]
    fn take(&mut self) -> Option<(Arc<MergeShared<Q, A>>, Vec<MergeRequest<Q, A>>)> {
        let shared = Arc::clone(self.0.as_ref()?);
        let taken = shared.take();
        if taken.is_none() {
            self.0 = None;
        }
        taken.map(|taken| (shared, taken))
    }
}

impl<Q, A> Drop for CallSlot<Q, A> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            let mut state = shared.state();
            state.calls -= 1;
            if state.calls == 0 {
                // No task is left that would serve the requests: their callers are told, and ask again.
                state.waiting.clear();
            }
        }
    }
}

impl<Q, A> std::fmt::Debug for MergeQueue<Q, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MergeQueue").field("operation", &self.shared.rules.operation).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    fn rules(operation: &'static str, max_requests: usize, weigh: fn(&u32) -> usize) -> MergeRules<u32> {
        let patience = Duration::ZERO;
        MergeRules { operation, max_requests, max_calls: 1, patience, weigh, alike: |_, _| true }
    }

    fn echo(gate: Arc<Semaphore>, sizes: Arc<Mutex<Vec<usize>>>) -> MergeQueue<u32, u32> {
        let rules = rules("echo", 3, |n| usize::try_from(*n).map_or(0, |n| n << 10));
        MergeQueue::new(rules, move |asked: Vec<u32>| {
            let (gate, sizes) = (Arc::clone(&gate), Arc::clone(&sizes));
            async move {
                sizes.lock().unwrap_or_else(PoisonError::into_inner).push(asked.len());
                drop(gate.acquire().await);
                Ok(asked.into_iter().map(|n| if n == 13 { Err("unlucky".into()) } else { Ok(n) }).collect())
            }
        })
    }

    #[tokio::test]
    async fn requests_that_differ_are_served_by_calls_of_their_own() {
        let sizes = Arc::<Mutex<Vec<usize>>>::default();
        let counted = Arc::clone(&sizes);
        let odd_or_even = MergeRules { alike: |one, other| one % 2 == other % 2, ..rules("odd", 10, |_| 0) };
        let queue = MergeQueue::new(odd_or_even, move |asked: Vec<u32>| {
            counted.lock().unwrap_or_else(PoisonError::into_inner).push(asked.len());
            async move { Ok(asked.into_iter().map(Ok).collect()) }
        });
        let answers = tokio::join!(queue.ask(1), queue.ask(2), queue.ask(3));
        assert_eq!(answers, (Ok(1), Ok(2), Ok(3)));
        assert_eq!(*sizes.lock().unwrap_or_else(PoisonError::into_inner), [2, 1]);
    }

    #[tokio::test]
    async fn requests_that_wait_together_are_sent_together_up_to_the_bound() {
        let (gate, sizes) = (Arc::new(Semaphore::new(0)), Arc::default());
        let queue = Arc::new(echo(Arc::clone(&gate), Arc::clone(&sizes)));
        let asked: Vec<_> = (0..6)
            .map(|n| {
                let queue = Arc::clone(&queue);
                tokio::spawn(async move { queue.ask(n).await })
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
    async fn a_request_that_fails_fails_alone() {
        let queue = echo(Arc::new(Semaphore::new(100)), Arc::default());
        let (one, other) = tokio::join!(queue.ask(13), queue.ask(2));
        assert!(one.is_err());
        assert_eq!(other, Ok(2));
    }

    #[tokio::test]
    async fn a_request_whose_caller_was_dropped_is_not_sent() {
        let (gate, sizes) = (Arc::new(Semaphore::new(0)), Arc::default());
        let queue = Arc::new(echo(Arc::clone(&gate), Arc::clone(&sizes)));
        let first = {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move { queue.ask(1).await })
        };
        while sizes.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(tokio::time::timeout(Duration::from_millis(1), queue.ask(2)).await.is_err());
        gate.add_permits(100);
        assert_eq!(first.await.ok(), Some(Ok(1)));
        assert_eq!(queue.ask(3).await, Ok(3));
        assert_eq!(*sizes.lock().unwrap_or_else(PoisonError::into_inner), [1, 1]);
    }

    #[test]
    fn a_call_that_is_dropped_with_its_runtime_frees_its_slot() {
        let (gate, sizes) = (Arc::new(Semaphore::new(0)), Arc::<Mutex<Vec<usize>>>::default());
        let queue = Arc::new(echo(Arc::clone(&gate), Arc::clone(&sizes)));
        let run = || tokio::runtime::Builder::new_current_thread().enable_time().build();
        let first = run().expect("a runtime");
        let asking = Arc::clone(&queue);
        first.block_on(async {
            assert!(tokio::time::timeout(Duration::from_millis(5), asking.ask(1)).await.is_err());
        });
        drop(first);
        gate.add_permits(100);
        let answer = run().expect("a runtime").block_on(queue.ask(2));
        assert_eq!(answer, Ok(2));
    }

    /// Refuses a call that holds a 13, as a server refuses a statement.
    fn strict(sizes: Arc<Mutex<Vec<usize>>>, kind: ProviderErrorKind) -> MergeQueue<u32, u32> {
        MergeQueue::new(rules("strict", 10, |_| 0), move |asked: Vec<u32>| {
            sizes.lock().unwrap_or_else(PoisonError::into_inner).push(asked.len());
            async move {
                // Other requests come meanwhile.
                tokio::task::yield_now().await;
                match asked.contains(&13) {
                    true => Err(ProviderError::new(kind, "strict", "unlucky")),
                    false => Ok(asked.into_iter().map(Ok).collect()),
                }
            }
        })
    }

    async fn four(queue: &MergeQueue<u32, u32>) -> [Result<u32, ProviderError>; 4] {
        tokio::join!(queue.ask(1), queue.ask(2), queue.ask(13), queue.ask(3)).into()
    }

    #[tokio::test]
    async fn a_merged_request_that_can_never_succeed_fails_alone() {
        let sizes = Arc::default();
        let answers = four(&strict(Arc::clone(&sizes), ProviderErrorKind::Invalid)).await;
        assert_eq!(answers.each_ref().map(Result::is_ok), [true, true, false, true]);
        assert_eq!(*sizes.lock().unwrap_or_else(PoisonError::into_inner), [4, 1, 1, 1, 1]);
    }

    #[tokio::test]
    async fn an_error_that_passes_is_given_to_all_merged_requests() {
        let sizes = Arc::default();
        let answers = four(&strict(Arc::clone(&sizes), ProviderErrorKind::Unavailable)).await;
        assert_eq!(answers.each_ref().map(Result::is_ok), [false; 4]);
        assert_eq!(*sizes.lock().unwrap_or_else(PoisonError::into_inner), [4]);
    }

    #[tokio::test]
    async fn a_call_is_bounded_in_bytes_too() {
        let (gate, sizes) = (Arc::new(Semaphore::new(0)), Arc::default());
        let queue = Arc::new(echo(Arc::clone(&gate), Arc::clone(&sizes)));
        // In KiB: the third is too much beside the second, and the last is much by itself.
        let asked: Vec<_> = [1, 9 << 10, 9 << 10, 20 << 10]
            .map(|n| {
                let queue = Arc::clone(&queue);
                tokio::spawn(async move { queue.ask(n).await })
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
    async fn a_request_that_no_message_can_hold_is_refused_with_its_size() {
        let queue = echo(Arc::new(Semaphore::new(100)), Arc::default());
        let error = queue.ask(1 << 20).await.expect_err("a gigabyte is too much");
        assert_eq!(error.kind, ProviderErrorKind::Invalid);
        assert!(error.message.contains("1024 MiB"), "{error}");
    }

    #[test]
    fn a_request_behind_a_call_that_is_dropped_with_its_runtime_gets_an_error() {
        let (gate, sizes) = (Arc::new(Semaphore::new(0)), Arc::<Mutex<Vec<usize>>>::default());
        let queue = Arc::new(echo(gate, sizes));
        let run = || tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let (first, second) = (run(), run());
        first.block_on(async {
            assert!(tokio::time::timeout(Duration::from_millis(5), queue.ask(1)).await.is_err());
        });
        let behind = second.spawn({
            let queue = Arc::clone(&queue);
            async move { queue.ask(2).await }
        });
        second.block_on(tokio::task::yield_now());
        drop(first);
        let answer = second.block_on(behind).expect("it returns");
        assert_eq!(answer.map_err(|error| error.kind), Err(ProviderErrorKind::Unavailable));
    }
}
