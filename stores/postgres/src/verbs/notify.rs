//! Notifications between processes (L2).
//!
//! One connection of a process listens. A notification says what became runnable, so that a process that
//! cannot use it runs no statement. It is a hint and may be lost: every waiter also polls from time to time.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_store::{ProviderError, Waiters, Woken};

use crate::link::db::Db;
use crate::link::statement::calls;
use crate::schema::functions::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions!["wake/notify"];

calls! {
    /// Sends a notification if another process listens.
    Notify<'a> => notify {
        notify: Option<String>,
        me: &'a str,
    }
}

/// Bounds a notification; Postgres refuses 8,000 bytes and more.
const MAX_PAYLOAD_BYTES: usize = 7_000;

/// The text of a notification.
#[derive(Debug, Serialize, Deserialize)]
struct Payload {
    /// The name of the process that sent it.
    from: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    turns: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    work: Vec<(Option<String>, bool)>,
    #[serde(default, skip_serializing_if = "is_false")]
    any_work: bool,
    /// The instances that changed, those that go on first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    instances: Vec<String>,
    /// How many of `instances` go on; the others ended. An older process does not read this field and takes
    /// all for changed. If it is missing, any of them may have ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    going_on: usize,
    /// Whether more became runnable than fits into a notification.
    #[serde(default, skip_serializing_if = "is_false")]
    all: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Writes the notification of the rows that a transaction makes runnable; `None` if there are no such rows.
pub(crate) fn payload(me: &str, woken: &Woken) -> Option<String> {
    if *woken == Woken::default() {
        return None;
    }
    if woken.any_turn {
        return Some(everything(me));
    }
    let Woken { turns, work, any_work, mut instances, ended, any_turn: _ } = woken.clone();
    let going_on = instances.len();
    instances.extend(ended);
    let whole = Payload { from: me.to_owned(), turns, work, any_work, instances, going_on, all: false };
    let text = serde_json::to_string(&whole).ok().filter(|text| text.len() <= MAX_PAYLOAD_BYTES);
    Some(text.unwrap_or_else(|| everything(me)))
}

/// Writes a notification that wakes every waiter: for a change that is not known, or too long for a
/// notification.
pub(crate) fn everything(me: &str) -> String {
    serde_json::json!({ "from": me, "all": true }).to_string()
}

/// Wakes the waiters that a notification of another process concerns. A notification that cannot be read
/// wakes all.
pub(crate) fn hear(me: &str, text: &str, waiters: &Arc<Waiters>) {
    match serde_json::from_str::<Payload>(text) {
        Ok(payload) if payload.from == me => {}
        Ok(Payload { turns, work, any_work, mut instances, going_on, all: false, .. }) => {
            let ended = instances.split_off(going_on.min(instances.len()));
            waiters.wake(&Woken { turns, any_turn: false, work, any_work, instances, ended });
        }
        Ok(_) | Err(_) => waiters.wake_all(),
    }
}

impl Db {
    /// Tells other processes what became runnable.
    pub(crate) async fn notify(&self, notify: Option<String>, me: &str) -> Result<(), ProviderError> {
        self.rows("notify", Notify { notify, me }.statement()).await.map(drop)
    }
}

/// How long a registration as a listener lasts. A process renews it after a third of that.
pub(crate) const LISTENS_FOR: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use steadfast_store::{Interest, Waiter};

    use super::*;

    #[test]
    fn nothing_runnable_is_no_notification() {
        assert_eq!(payload("me", &Woken::default()), None);
    }

    #[test]
    fn what_is_too_long_to_say_says_that() {
        let woken = Woken { instances: vec!["x".repeat(100); 100], ..Woken::default() };
        assert_eq!(payload("me", &woken).as_deref(), Some(r#"{"all":true,"from":"me"}"#));
    }

    #[test]
    fn a_notification_says_what_became_runnable() {
        let woken = Woken { turns: 2, work: vec![(Some("gpu".to_owned()), true)], ..Woken::default() };
        let text = payload("me", &woken).unwrap_or_default();
        assert_eq!(text, r#"{"from":"me","turns":2,"work":[["gpu",true]]}"#);
    }

    /// Tells which of three waiters a notification calls: for a change of `a`, for the end of `a`, for the
    /// end of `b`.
    fn called(text: &str) -> [bool; 3] {
        let waiters = Arc::new(Waiters::default());
        let wishes = [
            Interest::Instance("a".to_owned()),
            Interest::End("a".to_owned()),
            Interest::End("b".to_owned()),
        ];
        let seats = wishes.map(|wish| waiters.sit(wish));
        hear("me", text, &waiters);
        let is_called = |seat: &Waiter| {
            pin!(seat.called()).poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
        };
        seats.each_ref().map(is_called)
    }

    #[test]
    fn a_notification_tells_who_ended_from_who_goes_on() {
        let one = |id: &str| vec![id.to_owned()];
        let both = Woken { instances: one("a"), ended: one("b"), ..Woken::default() };
        let text = payload("other", &both).unwrap_or_default();
        assert_eq!(text, r#"{"from":"other","instances":["a","b"],"going_on":1}"#);
        assert_eq!(called(&text), [true, false, true]);
        let end = Woken { ended: one("a"), ..Woken::default() };
        assert_eq!(called(&payload("other", &end).unwrap_or_default()), [true, true, false]);
    }

    #[test]
    fn of_a_process_that_does_not_tell_any_instance_may_have_ended() {
        assert_eq!(called(r#"{"from":"other","instances":["a"]}"#), [true, true, false]);
        assert_eq!(called(r#"{"from":"other","instances":["a"],"going_on":7}"#), [true, false, false]);
    }

    #[test]
    fn a_process_that_does_not_know_of_ends_is_told_of_every_change() {
        /// What the previous version reads.
        #[derive(Deserialize)]
        struct Before {
            instances: Vec<String>,
        }
        let (instances, ended) = (vec!["a".to_owned()], vec!["b".to_owned()]);
        let text = payload("me", &Woken { instances, ended, ..Woken::default() }).unwrap_or_default();
        assert_eq!(
            serde_json::from_str::<Before>(&text).map(|before| before.instances).unwrap_or_default(),
            ["a", "b"]
        );
    }
}
