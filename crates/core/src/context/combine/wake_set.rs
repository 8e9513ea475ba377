//! Many futures polled as one: a wake names the future that is to be polled, and the others are not polled.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The futures of a join or select, by index.
pub(crate) struct WakeSet<F> {
    futures: Vec<Option<Member<F>>>,
    left: usize,
    ready: Arc<Ready>,
}

struct Member<F> {
    future: Pin<Box<F>>,
    waker: Waker,
}

impl<F: Future> WakeSet<F> {
    pub(crate) fn new(futures: Vec<F>) -> Self {
        let ready = Arc::new(Ready::default());
        ready.lock().woken = (0..futures.len()).collect();
        let member = |(index, future)| {
            let waker = Waker::from(Arc::new(MemberWaker { index, ready: Arc::clone(&ready) }));
            Some(Member { future: Box::pin(future), waker })
        };
        let futures: Vec<_> = futures.into_iter().enumerate().map(member).collect();
        Self { left: futures.len(), futures, ready }
    }

    pub(crate) fn len(&self) -> usize {
        self.futures.len()
    }

    /// Have all futures answered?
    pub(crate) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Polls the futures that were woken, by rising index, and hands each answer to `answered` until that
    /// returns false. A future is dropped as soon as it has answered. A future that is woken during this pass
    /// by one with a higher index waits for the next pass, as it would if every future were polled every
    /// time.
    pub(crate) fn poll(&mut self, cx: &Context<'_>, mut answered: impl FnMut(usize, F::Output) -> bool) {
        self.ready.set_parent(cx.waker());
        let mut from = 0;
        while let Some(index) = self.ready.take_from(from) {
            from = index + 1;
            let Some(slot) = self.futures.get_mut(index) else { continue };
            let Some(member) = slot else { continue };
            let polled = member.future.as_mut().poll(&mut Context::from_waker(&member.waker));
            if let Poll::Ready(result) = polled {
                *slot = None;
                self.left -= 1;
                if !answered(index, result) {
                    return;
                }
            }
        }
    }
}

/// The futures that are to be polled, and the waker of the task that polls the set.
#[derive(Default)]
struct Ready {
    state: Mutex<ReadyState>,
}

#[derive(Default)]
struct ReadyState {
    woken: BTreeSet<usize>,
    parent: Option<Waker>,
}

impl Ready {
    fn lock(&self) -> std::sync::MutexGuard<'_, ReadyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the waker; an older one is dropped outside the lock, since that may run foreign code.
    fn set_parent(&self, waker: &Waker) {
        let mut state = self.lock();
        let stale = match &state.parent {
            Some(kept) if kept.will_wake(waker) => None,
            _ => state.parent.replace(waker.clone()),
        };
        drop(state);
        drop(stale);
    }

    fn take_from(&self, from: usize) -> Option<usize> {
        let mut state = self.lock();
        let index = *state.woken.range(from..).next()?;
        state.woken.remove(&index);
        Some(index)
    }
}

struct MemberWaker {
    index: usize,
    ready: Arc<Ready>,
}

impl Wake for MemberWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let parent = {
            let mut state = self.ready.lock();
            state.woken.insert(self.index);
            state.parent.clone()
        };
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::rc::Rc;

    use super::*;

    type Log = Rc<RefCell<Vec<usize>>>;
    type Wakers = Rc<RefCell<Vec<Option<Waker>>>>;

    /// Futures that note each poll and keep their waker; number `ready` is ready at its second poll.
    fn noting(count: usize, ready: usize) -> (WakeSet<impl Future<Output = usize>>, Log, Wakers) {
        let log = Log::default();
        let wakers: Wakers = Rc::new(RefCell::new(vec![None; count]));
        let child = |index: usize| {
            let (log, wakers) = (Rc::clone(&log), Rc::clone(&wakers));
            poll_fn(move |cx| {
                log.borrow_mut().push(index);
                let seen = wakers.borrow_mut()[index].replace(cx.waker().clone());
                if index == ready && seen.is_some() { Poll::Ready(index) } else { Poll::Pending }
            })
        };
        (WakeSet::new((0..count).map(child).collect()), log, wakers)
    }

    fn wake(wakers: &Wakers, index: usize) {
        if let Some(waker) = wakers.borrow()[index].as_ref() {
            waker.wake_by_ref();
        }
    }

    fn pass(set: &mut WakeSet<impl Future<Output = usize>>) -> Vec<usize> {
        let mut answers = Vec::new();
        set.poll(&Context::from_waker(Waker::noop()), |index, _| {
            answers.push(index);
            true
        });
        answers
    }

    #[test]
    fn every_future_is_polled_first_and_then_only_those_that_were_woken() {
        let (mut set, log, wakers) = noting(4, 2);
        assert_eq!(pass(&mut set), Vec::<usize>::new());
        assert_eq!(log.take(), [0, 1, 2, 3]);
        wake(&wakers, 3);
        wake(&wakers, 2);
        assert_eq!(pass(&mut set), [2]);
        assert_eq!(log.take(), [2, 3], "by rising index, whoever was woken first");
        assert_eq!(pass(&mut set), Vec::<usize>::new());
        assert_eq!(log.take(), Vec::<usize>::new());
    }

    #[test]
    fn a_future_that_has_answered_is_dropped() {
        let (mut set, log, wakers) = noting(1, 0);
        pass(&mut set);
        wake(&wakers, 0);
        assert_eq!(pass(&mut set), [0]);
        assert!(set.is_empty());
        log.take();
        wake(&wakers, 0);
        pass(&mut set);
        assert_eq!(log.take(), Vec::<usize>::new());
    }

    #[test]
    fn a_pass_that_is_ended_early_leaves_the_rest_woken() {
        let (mut set, log, wakers) = noting(3, 0);
        pass(&mut set);
        log.take();
        wake(&wakers, 0);
        wake(&wakers, 2);
        set.poll(&Context::from_waker(Waker::noop()), |_, _| false);
        assert_eq!(log.take(), [0]);
        pass(&mut set);
        assert_eq!(log.take(), [2]);
    }
}
