//! Waiting for several futures at once, in an order that every replay repeats.
//!
//! The futures are polled in the order in which they are given. A future that has nothing new is not polled,
//! so a fan-in of N costs a constant number of polls for each of them.

pub(crate) mod either;
mod wake_set;

use std::pin::Pin;
use std::task::{Context, Poll};

use super::OrchestrationContext;
use crate::{Either2, Either3};
use wake_set::WakeSet;

impl OrchestrationContext {
    /// Waits for all futures and returns their results in the given order.
    ///
    /// # Cancel safety
    /// Dropping the future drops the futures that have not answered, which cancels their operations.
    pub async fn join<T, F>(&self, futures: Vec<F>) -> Vec<T>
    where
        F: Future<Output = T>,
    {
        let mut set = WakeSet::new(futures);
        let mut results: Vec<Option<T>> = std::iter::repeat_with(|| None).take(set.len()).collect();
        std::future::poll_fn(|cx| {
            set.poll(cx, |index, result| {
                results[index] = Some(result);
                true
            });
            if set.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        results.into_iter().flatten().collect()
    }

    /// Waits for two futures and returns both results.
    ///
    /// # Cancel safety
    /// Dropping the future drops the futures that have not answered, which cancels their operations.
    pub async fn join2<T1, T2, F1, F2>(&self, f1: F1, f2: F2) -> (T1, T2)
    where
        F1: Future<Output = T1>,
        F2: Future<Output = T2>,
    {
        let (mut f1, mut f2) = (Slot::new(f1), Slot::new(f2));
        std::future::poll_fn(|cx| {
            f1.poll(cx);
            f2.poll(cx);
            match (&mut f1, &mut f2) {
                (Slot::Answered(r1), Slot::Answered(r2)) => match (r1.take(), r2.take()) {
                    (Some(r1), Some(r2)) => Poll::Ready((r1, r2)),
                    _ => Poll::Pending,
                },
                _ => Poll::Pending,
            }
        })
        .await
    }

    /// Waits for three futures and returns all results.
    ///
    /// # Cancel safety
    /// Dropping the future drops the futures that have not answered, which cancels their operations.
    pub async fn join3<T1, T2, T3, F1, F2, F3>(&self, f1: F1, f2: F2, f3: F3) -> (T1, T2, T3)
    where
        F1: Future<Output = T1>,
        F2: Future<Output = T2>,
        F3: Future<Output = T3>,
    {
        let (mut f1, mut f2, mut f3) = (Slot::new(f1), Slot::new(f2), Slot::new(f3));
        std::future::poll_fn(|cx| {
            f1.poll(cx);
            f2.poll(cx);
            f3.poll(cx);
            match (&mut f1, &mut f2, &mut f3) {
                (Slot::Answered(r1), Slot::Answered(r2), Slot::Answered(r3)) => {
                    match (r1.take(), r2.take(), r3.take()) {
                        (Some(r1), Some(r2), Some(r3)) => Poll::Ready((r1, r2, r3)),
                        _ => Poll::Pending,
                    }
                }
                _ => Poll::Pending,
            }
        })
        .await
    }

    /// Waits for all futures; the first error ends the wait and drops the rest.
    ///
    /// # Errors
    /// The first error, in the order of history.
    ///
    /// # Cancel safety
    /// Dropping the future drops the futures that have not answered, which cancels their operations.
    pub async fn try_join<T, E, F>(&self, futures: Vec<F>) -> Result<Vec<T>, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let mut set = WakeSet::new(futures);
        let mut results: Vec<Option<T>> = std::iter::repeat_with(|| None).take(set.len()).collect();
        std::future::poll_fn(|cx| {
            let mut failed = None;
            set.poll(cx, |index, result| match result {
                Ok(value) => {
                    results[index] = Some(value);
                    true
                }
                Err(error) => {
                    failed = Some(error);
                    false
                }
            });
            match failed {
                Some(error) => Poll::Ready(Err(error)),
                None if set.is_empty() => Poll::Ready(Ok(())),
                None => Poll::Pending,
            }
        })
        .await?;
        Ok(results.into_iter().flatten().collect())
    }

    /// Waits for two futures; the first error ends the wait and drops the other.
    ///
    /// # Errors
    /// The first error, in the order of history.
    ///
    /// # Cancel safety
    /// Dropping the future drops the futures that have not answered, which cancels their operations.
    pub async fn try_join2<T1, T2, E, F1, F2>(&self, f1: F1, f2: F2) -> Result<(T1, T2), E>
    where
        F1: Future<Output = Result<T1, E>>,
        F2: Future<Output = Result<T2, E>>,
    {
        let (mut f1, mut f2) = (Slot::new(f1), Slot::new(f2));
        std::future::poll_fn(|cx| {
            f1.poll(cx);
            if let Some(error) = f1.take_error() {
                return Poll::Ready(Err(error));
            }
            f2.poll(cx);
            if let Some(error) = f2.take_error() {
                return Poll::Ready(Err(error));
            }
            match (&mut f1, &mut f2) {
                (Slot::Answered(r1), Slot::Answered(r2)) => match (r1.take(), r2.take()) {
                    (Some(Ok(r1)), Some(Ok(r2))) => Poll::Ready(Ok((r1, r2))),
                    _ => Poll::Pending,
                },
                _ => Poll::Pending,
            }
        })
        .await
    }

    /// Waits for the first of two futures: the one whose answer comes first in history. If both have answers
    /// when the select is first polled, the first argument wins. The other future is dropped together with
    /// the returned one, which cancels its operation.
    pub fn select2<T1, T2, F1, F2>(&self, f1: F1, f2: F2) -> Select2<F1, F2>
    where
        F1: Future<Output = T1>,
        F2: Future<Output = T2>,
    {
        Select2 { f1: Box::pin(f1), f2: Box::pin(f2) }
    }

    /// Waits for the first of three futures; see [`select2`](Self::select2).
    pub fn select3<T1, T2, T3, F1, F2, F3>(&self, f1: F1, f2: F2, f3: F3) -> Select3<F1, F2, F3>
    where
        F1: Future<Output = T1>,
        F2: Future<Output = T2>,
        F3: Future<Output = T3>,
    {
        Select3 { f1: Box::pin(f1), f2: Box::pin(f2), f3: Box::pin(f3) }
    }

    /// Waits for the first of many futures, the one whose answer comes first in history, and returns its
    /// index and result. If several have answers when the select is first polled, the lowest index wins. The
    /// other futures are dropped. Never resolves for an empty list.
    ///
    /// # Cancel safety
    /// Dropping the future drops the futures that have not answered, which cancels their operations.
    pub async fn select<T, F>(&self, futures: Vec<F>) -> (usize, T)
    where
        F: Future<Output = T>,
    {
        let mut set = WakeSet::new(futures);
        std::future::poll_fn(|cx| {
            let mut first = None;
            set.poll(cx, |index, result| {
                first = Some((index, result));
                false
            });
            first.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Waits for the first of two futures. Made by [`OrchestrationContext::select2`].
#[must_use = "futures do nothing unless awaited"]
pub struct Select2<F1, F2> {
    f1: Pin<Box<F1>>,
    f2: Pin<Box<F2>>,
}

impl<F1: Future, F2: Future> Future for Select2<F1, F2> {
    type Output = Either2<F1::Output, F2::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(result) = self.f1.as_mut().poll(cx) {
            return Poll::Ready(Either2::First(result));
        }
        self.f2.as_mut().poll(cx).map(Either2::Second)
    }
}

/// Waits for the first of three futures. Made by [`OrchestrationContext::select3`].
#[must_use = "futures do nothing unless awaited"]
pub struct Select3<F1, F2, F3> {
    f1: Pin<Box<F1>>,
    f2: Pin<Box<F2>>,
    f3: Pin<Box<F3>>,
}

impl<F1: Future, F2: Future, F3: Future> Future for Select3<F1, F2, F3> {
    type Output = Either3<F1::Output, F2::Output, F3::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(result) = self.f1.as_mut().poll(cx) {
            return Poll::Ready(Either3::First(result));
        }
        if let Poll::Ready(result) = self.f2.as_mut().poll(cx) {
            return Poll::Ready(Either3::Second(result));
        }
        self.f3.as_mut().poll(cx).map(Either3::Third)
    }
}

/// A future of a join until it has answered, then its answer.
enum Slot<F: Future> {
    Waiting(Pin<Box<F>>),
    Answered(Option<F::Output>),
}

impl<F: Future> Slot<F> {
    fn new(future: F) -> Self {
        Self::Waiting(Box::pin(future))
    }

    fn poll(&mut self, cx: &mut Context<'_>) {
        if let Self::Waiting(future) = self
            && let Poll::Ready(result) = future.as_mut().poll(cx)
        {
            *self = Self::Answered(Some(result));
        }
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> Slot<F> {
    fn take_error(&mut self) -> Option<E> {
        let Self::Answered(result @ Some(Err(_))) = self else { return None };
        result.take().and_then(Result::err)
    }
}
