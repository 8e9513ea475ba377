//! The calls that are merged: one batch for each kind of request, and whom its answers wake.

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};
use steadfast_core::DispatcherCapabilityFilter;
use steadfast_store::{Abandon, Committed, ProviderError, Started, Waiters, Woken, WorkLease, WorkRequest};

use crate::link::db::{Db, HELD_PAUSE};
use crate::link::error::is_held;
use crate::link::options::Plan;
use crate::merge::lanes::{FETCHES, WRITES};
use crate::merge::queue::{Answers, Batch};
use crate::merge::undelivered::{GivingBack, Lease, Taken};
use crate::verbs::message::{Letter, Start, send_messages, start_instances};
use crate::verbs::notify::payload;
use crate::verbs::poll::{Look, Next};
use crate::verbs::turn::{Leased, Prepared};
use crate::verbs::work::{Finish, Unlease, WorkGroup};

/// Everything that can be asked together with others.
#[derive(Debug)]
pub(crate) struct Calls {
    turns: Batch<TurnAsk, Look<Taken<Leased>>>,
    commits: Batch<(String, Prepared), Committed>,
    turn_renewals: Batch<(String, Duration), ()>,
    turn_returns: Batch<(String, Abandon), ()>,
    work: Batch<WorkAsk, Look<Taken<WorkLease>>>,
    finishes: Batch<Finish, ()>,
    work_renewals: Batch<(String, Duration), ()>,
    work_returns: Batch<(String, Abandon), ()>,
    sends: Batch<Vec<Letter>, ()>,
    starts: Batch<Start, Started>,
    /// How long a caller waits for what another transaction holds.
    patience: Duration,
}

/// Asks for a turn.
#[derive(Debug, Clone)]
struct TurnAsk {
    lock_timeout: Duration,
    filter: Option<DispatcherCapabilityFilter>,
}

/// Asks for an activity.
#[derive(Debug, Clone)]
pub(crate) struct WorkAsk {
    group: WorkGroup,
    worker_id: String,
}

impl WorkAsk {
    pub(crate) fn of(request: &WorkRequest) -> Self {
        Self { group: WorkGroup::of(request), worker_id: request.worker_id.clone() }
    }
}

/// What every call needs.
#[derive(Debug, Clone)]
struct Caller {
    db: Db,
    waiters: Arc<Waiters>,
    me: Arc<str>,
    giving_back: Arc<GivingBack>,
}

impl Calls {
    pub(crate) fn new(
        db: &Db,
        waiters: &Arc<Waiters>,
        me: &Arc<str>,
        giving_back: &Arc<GivingBack>,
        plan: &Plan,
    ) -> Self {
        let max = plan.max_batch;
        let caller = Caller {
            db: db.clone().hurried(),
            waiters: Arc::clone(waiters),
            me: Arc::clone(me),
            giving_back: Arc::clone(giving_back),
        };
        // Each call has a caller of its own, because it outlives whoever asked.
        macro_rules! batch {
            ($operation:literal, $calls:expr, $method:ident, $weigh:expr) => {{
                let caller = caller.clone();
                Batch::new($operation, max, $calls, $weigh, move |asked| {
                    let caller = caller.clone();
                    async move { caller.$method(asked).await }
                })
            }};
        }
        Self {
            turns: batch!("fetch_turn", FETCHES, fetch_turns, |_| 0),
            commits: batch!("commit_turn", WRITES, commit_turns, |(_, prepared)| prepared.bytes()),
            turn_renewals: batch!("renew", WRITES, renew_turns, |_| 0),
            turn_returns: batch!("abandon", WRITES, abandon_turns, |_| 0),
            work: batch!("fetch_work", FETCHES, fetch_work, |_| 0),
            finishes: batch!("finish_work", WRITES, finish_work, Finish::bytes),
            work_renewals: batch!("renew", WRITES, renew_work, |_| 0),
            work_returns: batch!("abandon", WRITES, abandon_work, |_| 0),
            sends: batch!("send", WRITES, send, |letters| letters.iter().map(Letter::bytes).sum()),
            starts: batch!("start", WRITES, start, Start::bytes),
            patience: plan.statement_timeout,
        }
    }

    /// Asks until nobody holds what it needs, or the time is over.
    async fn patiently<T, Fut>(&self, ask: impl Fn() -> Fut) -> Result<T, ProviderError>
    where
        Fut: Future<Output = Result<T, ProviderError>>,
    {
        let deadline = SystemClock.monotonic().saturating_add(self.patience);
        loop {
            match ask().await {
                Err(error) if is_held(&error) && SystemClock.monotonic() < deadline => {
                    SystemClock.sleep(HELD_PAUSE).await;
                }
                answer => return answer,
            }
        }
    }

    pub(crate) async fn fetch_turn(
        &self,
        lock_timeout: Duration,
        filter: Option<DispatcherCapabilityFilter>,
    ) -> Result<Look<Taken<Leased>>, ProviderError> {
        self.turns.ask(TurnAsk { lock_timeout, filter }).await
    }

    pub(crate) async fn commit_turn(
        &self,
        token: String,
        prepared: Prepared,
    ) -> Result<Committed, ProviderError> {
        self.patiently(|| self.commits.ask((token.clone(), prepared.clone()))).await
    }

    pub(crate) async fn renew_turn(&self, token: String, extend_for: Duration) -> Result<(), ProviderError> {
        self.patiently(|| self.turn_renewals.ask((token.clone(), extend_for))).await
    }

    pub(crate) async fn abandon_turn(&self, token: String, how: Abandon) -> Result<(), ProviderError> {
        self.patiently(|| self.turn_returns.ask((token.clone(), how))).await
    }

    pub(crate) async fn fetch_work(&self, ask: WorkAsk) -> Result<Look<Taken<WorkLease>>, ProviderError> {
        self.work.ask(ask).await
    }

    pub(crate) async fn finish_work(&self, finish: Finish) -> Result<(), ProviderError> {
        self.patiently(|| self.finishes.ask(finish.clone())).await
    }

    pub(crate) async fn renew_work(&self, token: String, extend_for: Duration) -> Result<(), ProviderError> {
        self.patiently(|| self.work_renewals.ask((token.clone(), extend_for))).await
    }

    pub(crate) async fn abandon_work(&self, token: String, how: Abandon) -> Result<(), ProviderError> {
        self.patiently(|| self.work_returns.ask((token.clone(), how))).await
    }

    pub(crate) async fn send(&self, letters: Vec<Letter>) -> Result<(), ProviderError> {
        self.patiently(|| self.sends.ask(letters.clone())).await
    }

    pub(crate) async fn start(&self, start: Start) -> Result<Started, ProviderError> {
        self.patiently(|| self.starts.ask(start.clone())).await
    }
}

impl Caller {
    async fn fetch_turns(&self, asked: Vec<TurnAsk>) -> Answers<Look<Taken<Leased>>> {
        self.giving_back.settle().await;
        let alike = |one: &TurnAsk, other: &TurnAsk| {
            one.lock_timeout == other.lock_timeout && one.filter == other.filter
        };
        let mut answers: Vec<_> = asked.iter().map(|_| None).collect();
        for places in groups(&asked, alike) {
            let TurnAsk { lock_timeout, filter } = &asked[places[0]];
            let fetched = match self.db.fetch_turns(*lock_timeout, places.len(), filter.as_ref()).await {
                Ok(fetched) => fetched,
                Err(error) => {
                    places.iter().for_each(|place| answers[*place] = Some(Err(error.clone())));
                    continue;
                }
            };
            let next = if fetched.again { Next::Soon } else { Next::at(fetched.next, fetched.now) };
            let mut leases = fetched.leases.into_iter();
            for place in places {
                answers[place] = Some(Ok(leases.next().map_or(Look::Nothing(next), |leased| {
                    let lease = Lease::Turn(leased.token.clone());
                    Look::Found(Taken::new(leased, lease, &self.giving_back))
                })));
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    async fn commit_turns(&self, asked: Vec<(String, Prepared)>) -> Answers<Committed> {
        let mut woken = Woken::default();
        asked.iter().for_each(|(_, prepared)| woken.absorb(prepared.woken()));
        let ends: Vec<bool> = asked.iter().map(|(_, prepared)| prepared.ends_instance()).collect();
        let notify = payload(&self.me, &woken);
        let answers = self.told(self.db.commit_turns(asked, notify, &self.me).await, &woken)?;
        let ready = answers.iter().flatten().filter(|committed| committed.ready).count();
        woken.turns += ready;
        // The answers name also what no event named, and only what was committed.
        (woken.instances, woken.ended) = (Vec::new(), Vec::new());
        for (answer, ends) in answers.iter().zip(ends) {
            let changed = if ends { &mut woken.ended } else { &mut woken.instances };
            changed.extend(answer.iter().map(|committed| committed.instance.clone()));
        }
        self.waiters.wake(&woken);
        if ready > 0 {
            self.tell(Woken { turns: ready, ..Woken::default() });
        }
        Ok(answers.into_iter().map(|answer| answer.map(|committed| committed.committed)).collect())
    }

    /// Wakes those whom it concerns also when nobody knows whether it happened.
    fn told<T>(&self, answered: Result<T, ProviderError>, woken: &Woken) -> Result<T, ProviderError> {
        answered.inspect_err(|error| {
            if error.is_retryable() {
                self.waiters.wake(woken);
            }
        })
    }

    /// Tells other processes what turned out to be runnable. A hint: nobody waits for it, and it may fail.
    fn tell(&self, woken: Woken) {
        let caller = self.clone();
        tokio::spawn(async move {
            if let Err(error) = caller.db.notify(payload(&caller.me, &woken), &caller.me).await {
                tracing::debug!(target: "steadfast::store", %error, "others could not be told; they will look by themselves");
            }
        });
    }

    async fn renew_turns(&self, asked: Vec<(String, Duration)>) -> Answers<()> {
        self.db.renew_turns(asked).await
    }

    async fn abandon_turns(&self, asked: Vec<(String, Abandon)>) -> Answers<()> {
        let woken = Woken { turns: asked.len(), ..Woken::default() };
        let given = self.db.abandon_turns(asked, payload(&self.me, &woken), &self.me).await;
        let answers = self.told(given, &woken)?;
        self.waiters.wake(&woken);
        Ok(answers)
    }

    async fn fetch_work(&self, asked: Vec<WorkAsk>) -> Answers<Look<Taken<WorkLease>>> {
        self.giving_back.settle().await;
        let mut answers: Vec<_> = asked.iter().map(|_| None).collect();
        for places in groups(&asked, |one, other| one.group == other.group) {
            let workers: Vec<String> = places.iter().map(|place| asked[*place].worker_id.clone()).collect();
            let fetched = match self.db.fetch_work(&asked[places[0]].group, &workers).await {
                Ok(fetched) => fetched,
                Err(error) => {
                    places.iter().for_each(|place| answers[*place] = Some(Err(error.clone())));
                    continue;
                }
            };
            if fetched.woken != Woken::default() {
                self.waiters.wake(&fetched.woken);
                self.tell(fetched.woken.clone());
            }
            let next = if fetched.again { Next::Soon } else { Next::at(fetched.next, fetched.now) };
            for (place, leased) in places.into_iter().zip(fetched.leases) {
                answers[place] = Some(Ok(leased.map_or(Look::Nothing(next), |leased| {
                    let lease = Lease::Work(Unlease::of(&leased));
                    Look::Found(Taken::new(leased, lease, &self.giving_back))
                })));
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    async fn finish_work(&self, asked: Vec<Finish>) -> Answers<()> {
        let asked_for = Woken { turns: asked.len(), any_work: true, ..Woken::default() };
        let (answers, woken) = self.told(self.db.finish_work(&self.me, &asked).await, &asked_for)?;
        self.waiters.wake(&woken);
        Ok(answers)
    }

    async fn renew_work(&self, asked: Vec<(String, Duration)>) -> Answers<()> {
        self.db.renew_work(&asked).await
    }

    async fn abandon_work(&self, asked: Vec<(String, Abandon)>) -> Answers<()> {
        let given_back = Woken { any_work: true, ..Woken::default() };
        let (answers, woken) = self.told(self.db.abandon_work(&self.me, &asked).await, &given_back)?;
        self.waiters.wake(&woken);
        Ok(answers)
    }

    async fn send(&self, asked: Vec<Vec<Letter>>) -> Answers<()> {
        let woken = Woken { turns: asked.iter().map(Vec::len).sum(), ..Woken::default() };
        let sent = send_messages(&self.db, asked, payload(&self.me, &woken), Some(&self.me)).await;
        let answers = self.told(sent, &woken)?;
        self.waiters.wake(&woken);
        Ok(answers)
    }

    async fn start(&self, asked: Vec<Start>) -> Answers<Started> {
        let woken = Woken { turns: asked.iter().map(Start::count).sum(), ..Woken::default() };
        let started = start_instances(&self.db, asked, payload(&self.me, &woken), Some(&self.me)).await;
        let answers = self.told(started, &woken)?;
        self.waiters.wake(&woken);
        Ok(answers)
    }
}

/// Divides requests into those that are alike, each by its place, in the order in which they came.
fn groups<T>(asked: &[T], alike: impl Fn(&T, &T) -> bool) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (place, ask) in asked.iter().enumerate() {
        match groups.iter_mut().find(|group| alike(&asked[group[0]], ask)) {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    groups
}
