//! The leases that this process holds, and whose fault it is if one of them is lost (G16, G38).
//!
//! Poison counts the deliveries that a process died of, or whose code kept the lease from being renewed. A
//! lease that is lost because the process was paused, because the store was away, or because other code held
//! the threads, is excused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_store::LeaseToken;

use super::pulse::Pulse;

/// The leases that this process holds now.
#[derive(Debug)]
pub(crate) struct HeldLeases {
    pulse: Pulse,
    /// As many as there are slots.
    leases: Mutex<HashMap<LeaseToken, HeldLease>>,
}

/// What a lease is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeasedRow {
    Turn { instance: String },
    Work { instance: String, execution_id: u64, id: u64 },
}

/// Whether the delivery of a lost lease counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The process was paused, the store was away, or other code held the threads.
    Excused,
    /// The process ran, and its code kept the lease from being renewed; or a turn took longer than
    /// `max_turn_time`.
    Counts,
}

#[derive(Debug)]
struct HeldLease {
    row: LeasedRow,
    lasts: Duration,
    /// The reading of the pulse when the lease was granted or renewed for the last time.
    proven: Option<Duration>,
    /// How long the process has run since then while its renewals waited for the store.
    away: Duration,
    /// How long its own code has held a thread since then. A poll that has not returned is not counted here.
    code: Duration,
    /// The reading of the pulse at the start of the poll that has not returned.
    runs_since: Option<Duration>,
    /// Decided once, when the loss is known for the first time.
    loss: Option<Loss>,
    /// The loss has been told to the store, or is owed to it.
    is_told: bool,
}

/// Where the time went since a lost lease was proven for the last time.
#[derive(Debug, Clone, Copy)]
struct LostTime {
    lasts: Duration,
    /// How long the process ran; `None` if that is not measured.
    lived: Option<Duration>,
    /// How much of that its renewals waited for the store.
    away: Duration,
    /// How much of that its own code held a thread.
    code: Duration,
}

impl LostTime {
    /// The one rule for turns and activities. A process that runs, and whose store answers, renews its leases
    /// at half their time at the latest. So if it ran for as long as the lease lasts and did not wait for the
    /// store, code kept the renewal from running; and if the code of this lease held a thread for as long, it
    /// was this code. An eighth is what the pulse may be wrong by; a pause adds at most another one to the
    /// half.
    fn judge(self) -> Loss {
        let Some(lived) = self.lived else { return Loss::Excused };
        let explained = self.lasts.saturating_sub(self.lasts / 8);
        let is_kept = lived.saturating_sub(self.away) >= explained;
        if is_kept && self.code >= explained { Loss::Counts } else { Loss::Excused }
    }
}

impl HeldLeases {
    pub(crate) fn new(pulse: Pulse) -> Self {
        Self { pulse, leases: Mutex::default() }
    }

    pub(crate) fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// Enters a lease that was granted just now. It stays until the returned guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>, token: &LeaseToken, row: LeasedRow, lasts: Duration) -> HeldEntry {
        let proven = self.pulse.lived();
        let lease = HeldLease {
            row,
            lasts,
            proven,
            away: Duration::ZERO,
            code: Duration::ZERO,
            runs_since: None,
            loss: None,
            is_told: false,
        };
        self.lock().insert(token.clone(), lease);
        HeldEntry { all: Arc::clone(self), token: token.clone() }
    }

    /// Notes that a lease was renewed by a request that was sent when the pulse read `asked`.
    pub(crate) fn renewed(&self, token: &LeaseToken, asked: Option<Duration>) {
        let lived = self.pulse.lived();
        let mut leases = self.lock();
        let Some(lease) = leases.get_mut(token) else { return };
        lease.proven = asked;
        lease.away = Duration::ZERO;
        lease.code = Duration::ZERO;
        lease.runs_since = lease.runs_since.and(lived);
    }

    /// Notes that the code of a lease holds a thread until the returned guard is dropped.
    pub(crate) fn run_code<'a>(&'a self, token: &'a LeaseToken) -> CodeOnThread<'a> {
        if let Some(lived) = self.pulse.lived()
            && let Some(lease) = self.lock().get_mut(token)
        {
            lease.runs_since = Some(lived);
        }
        CodeOnThread { all: self, token }
    }

    /// Notes that the renewal of a lease waited for the store for this time.
    pub(crate) fn waited(&self, token: &LeaseToken, time: Duration) {
        if let Some(lease) = self.lock().get_mut(token) {
            lease.away = lease.away.saturating_add(time);
        }
    }

    /// Charges a lease: whatever becomes of it, its delivery counts.
    pub(crate) fn charge(&self, token: &LeaseToken) {
        if let Some(lease) = self.lock().get_mut(token) {
            lease.loss = Some(Loss::Counts);
        }
    }

    /// Tells whether the delivery of a lease counts whatever becomes of it.
    pub(crate) fn is_charged(&self, token: &LeaseToken) -> bool {
        self.lock().get(token).is_some_and(|lease| lease.loss == Some(Loss::Counts))
    }

    /// Notes that a lease is lost, and decides whether its delivery counts. What was decided first stays.
    pub(crate) fn lose(&self, token: &LeaseToken) -> Loss {
        let lived = self.pulse.lived();
        let mut leases = self.lock();
        let Some(lease) = leases.get_mut(token) else { return Loss::Excused };
        if let Some(decided) = lease.loss {
            return decided;
        }
        let loss = lease_time(lease, lived).judge();
        lease.loss = Some(loss);
        if loss == Loss::Counts {
            tracing::warn!(
                target: "steadfast::runtime",
                row = ?lease.row,
                "a lease was lost although the process ran and the store answered, so its delivery counts; \
                 does code of the application block the threads of tokio?"
            );
        }
        loss
    }

    /// Tells whether the delivery of a lease would count if it were lost now.
    pub(crate) fn if_lost(&self, token: &LeaseToken) -> Loss {
        let lived = self.pulse.lived();
        let leases = self.lock();
        let Some(lease) = leases.get(token) else { return Loss::Excused };
        lease.loss.unwrap_or_else(|| lease_time(lease, lived).judge())
    }

    /// Returns what a lease is of, while it is held.
    pub(crate) fn row(&self, token: &LeaseToken) -> Option<LeasedRow> {
        self.lock().get(token).map(|lease| lease.row.clone())
    }

    /// Notes that the loss of a lease is told to the store from here on. Returns what it is of, the first
    /// time.
    pub(crate) fn tell(&self, token: &LeaseToken) -> Told {
        let mut leases = self.lock();
        let Some(lease) = leases.get_mut(token) else { return Told::Unknown };
        if std::mem::replace(&mut lease.is_told, true) {
            Told::Before
        } else {
            Told::First(lease.row.clone())
        }
    }

    /// Returns the earlier leases of a row whose loss was not told to the store. That the row was leased
    /// again shows that they are lost, unless their holders ended them just now.
    pub(crate) fn earlier_on(&self, row: &LeasedRow, other_than: &LeaseToken) -> Vec<LeaseToken> {
        let leases = self.lock();
        let others = leases
            .iter()
            .filter(|(token, lease)| lease.row == *row && !lease.is_told && *token != other_than);
        let mut tokens: Vec<LeaseToken> = others.map(|(token, _)| token.clone()).collect();
        // The order of a hash map differs from run to run.
        tokens.sort_unstable();
        tokens
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LeaseToken, HeldLease>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the store has been told of a loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// It is told for the first time; of this row.
    First(LeasedRow),
    /// It was told, or the call is owed.
    Before,
    /// The lease is not held here any more.
    Unknown,
}

fn lease_time(lease: &HeldLease, lived: Option<Duration>) -> LostTime {
    let since = |before: Option<Duration>| lived.zip(before).map(|(now, before)| now.saturating_sub(before));
    let code = lease.code.saturating_add(since(lease.runs_since).unwrap_or_default());
    LostTime { lasts: lease.lasts, lived: since(lease.proven), away: lease.away, code }
}

/// Code of a lease that holds a thread.
pub(crate) struct CodeOnThread<'a> {
    all: &'a HeldLeases,
    token: &'a LeaseToken,
}

impl Drop for CodeOnThread<'_> {
    fn drop(&mut self) {
        let lived = self.all.pulse.lived();
        if let Some(lease) = self.all.lock().get_mut(self.token)
            && let Some((now, began)) = lived.zip(lease.runs_since.take())
        {
            lease.code = lease.code.saturating_add(now.saturating_sub(began));
        }
    }
}

/// Keeps a lease among those that are held until it is dropped.
pub(crate) struct HeldEntry {
    all: Arc<HeldLeases>,
    token: LeaseToken,
}

impl Drop for HeldEntry {
    fn drop(&mut self) {
        self.all.lock().remove(&self.token);
    }
}

#[cfg(test)]
mod tests {
    use steadfast_clock::VirtualClock;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Judges the loss of a lease of eight seconds whose code held a thread all the time.
    fn loss(lived: Option<u64>, away: u32) -> Loss {
        let lived = lived.map(Duration::from_secs);
        LostTime { lasts: 8 * SECOND, lived, away: away * SECOND, code: lived.unwrap_or_default() }.judge()
    }

    #[test]
    fn a_lease_whose_own_code_did_not_hold_a_thread_for_as_long_is_excused() {
        let lost =
            |code| LostTime { lasts: 8 * SECOND, lived: Some(60 * SECOND), away: Duration::ZERO, code };
        assert_eq!(lost(Duration::ZERO).judge(), Loss::Excused, "other code held the threads");
        assert_eq!(lost(6 * SECOND).judge(), Loss::Excused);
        assert_eq!(lost(7 * SECOND).judge(), Loss::Counts);
    }

    #[test]
    fn the_time_of_code_is_what_it_held_since_the_last_renewal() {
        let clock = Arc::new(steadfast_clock::SystemClock);
        let held = Arc::new(HeldLeases::new(Pulse::start(clock, SECOND)));
        let token = LeaseToken::Work("1".to_owned());
        let row = LeasedRow::Turn { instance: "a".to_owned() };
        let _entry = held.enter(&token, row, SECOND);
        let code = |held: &HeldLeases| lease_time(&held.lock()[&token], held.pulse.lived()).code;
        let running = held.run_code(&token);
        while code(&held) < SECOND / 100 {
            std::thread::yield_now();
        }
        drop(running);
        let before = code(&held);
        assert!(before >= SECOND / 100);
        let now = held.pulse.lived();
        while held.pulse.lived_since(now) < Some(SECOND / 50) {
            std::thread::yield_now();
        }
        assert_eq!(code(&held), before, "it holds no thread");
        held.renewed(&token, held.pulse.lived());
        assert_eq!(code(&held), Duration::ZERO);
    }

    #[test]
    fn a_process_that_did_not_run_for_as_long_as_the_lease_is_excused() {
        // Four seconds until the renewal is due, and one for the pause.
        assert_eq!(loss(Some(5), 0), Loss::Excused);
        assert_eq!(loss(Some(0), 0), Loss::Excused, "the clock of the store jumped");
    }

    #[test]
    fn a_process_that_ran_and_did_not_renew_is_not() {
        assert_eq!(loss(Some(8), 0), Loss::Counts);
        assert_eq!(loss(Some(3_600), 0), Loss::Counts);
    }

    #[test]
    fn the_time_for_which_the_store_was_away_is_excused_and_no_more_than_that() {
        assert_eq!(loss(Some(3_600), 3_596), Loss::Excused);
        assert_eq!(loss(Some(3_600), 3_590), Loss::Counts, "its code took ten seconds of it");
        assert_eq!(loss(Some(1), 60), Loss::Excused);
    }

    #[test]
    fn what_is_not_measured_is_excused() {
        assert_eq!(loss(None, 0), Loss::Excused);
    }

    #[test]
    fn a_charged_lease_counts_and_what_is_decided_first_stays() {
        let held = Arc::new(HeldLeases::new(Pulse::start(Arc::new(VirtualClock::new(0)), SECOND)));
        let row = LeasedRow::Turn { instance: "a".to_owned() };
        let (charged, lost) = (LeaseToken::Turn("1".to_owned()), LeaseToken::Turn("2".to_owned()));
        let _entries = [&charged, &lost].map(|token| held.enter(token, row.clone(), SECOND));
        held.charge(&charged);
        assert_eq!((held.lose(&charged), held.lose(&lost)), (Loss::Counts, Loss::Excused));
        held.charge(&lost);
        assert!(held.is_charged(&lost), "a turn may turn out to have taken too long when it returns");
    }

    #[test]
    fn the_earlier_leases_of_a_row_are_told_once_and_leave_with_their_holders() {
        let held = Arc::new(HeldLeases::new(Pulse::start(Arc::new(VirtualClock::new(0)), SECOND)));
        let [row, other] = ["a", "b"].map(|instance| LeasedRow::Turn { instance: instance.to_owned() });
        let (old, new) = (LeaseToken::Turn("1".to_owned()), LeaseToken::Turn("2".to_owned()));
        let holder = held.enter(&old, row.clone(), SECOND);
        let _next = held.enter(&new, row.clone(), SECOND);
        assert_eq!((held.earlier_on(&row, &new), held.earlier_on(&other, &new)), (vec![old.clone()], vec![]));
        assert_eq!(held.tell(&old), Told::First(row.clone()));
        assert_eq!((held.tell(&old), held.earlier_on(&row, &new)), (Told::Before, vec![]));
        drop(holder);
        assert_eq!(held.tell(&old), Told::Unknown);
    }
}
