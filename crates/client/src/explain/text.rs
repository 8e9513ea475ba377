//! An explanation as a text for people.

use std::fmt;

use steadfast_core::{Policy, SessionKey};
use steadfast_store::{
    ExecutionState, InstanceState, SessionInfo, TurnState, WaitingStart, WorkPhase, WorkState,
};

use super::{Explanation, Place, SessionObstacle, Waiting, WaitingActivity};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = Now(self.now_ms);
        match &self.state {
            None => {
                write!(f, "{}: not begun", self.instance)?;
                if let Some(start) = &self.start {
                    write!(f, " ({})", StartText(start))?;
                }
            }
            Some(state) => {
                let InstanceState { orchestration, version, execution_id, status, .. } = state;
                write!(
                    f,
                    "{}: {} ({orchestration} {version}, execution {execution_id})",
                    self.instance,
                    StatusText(status)
                )?;
            }
        }
        // Messages to an instance that has ended, such as those of its timers, change nothing.
        if let Some(turn) = self.turn.as_ref().filter(|_| !self.has_ended()) {
            turn_text(f, turn, now)?;
        }
        if self.no_worker_is_live {
            write!(f, "\nno worker is live")?;
        }
        if let Some(needed) = &self.unregistered {
            let version = needed.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
            write!(f, "\nnot registered: no live worker has orchestration '{}'{version}", needed.name)?;
        }
        if self.stuck {
            write!(f, "\nstuck: it waits for nothing that could ever be answered; cancel it")?;
        }
        for wait in &self.waiting {
            write!(f, "\nwaits for ")?;
            wait_text(f, wait, now)?;
        }
        if self.more > 0 {
            write!(f, "\nand for {} more", self.more)?;
        }
        for session in &self.sessions {
            write!(f, "\nhas session '{}' open", session.id)?;
            owner_text(f, session.info.as_ref(), now)?;
        }
        Ok(())
    }
}

fn turn_text(f: &mut fmt::Formatter<'_>, turn: &TurnState, now: Now) -> fmt::Result {
    if let Some(until) = turn.leased_until_ms {
        write!(f, "\na turn with {} is leased, {}", messages(turn.leased), now.until(until))?;
    }
    if let Some(oldest) = turn.oldest_ms {
        let waits = if turn.waiting == 1 { "waits" } else { "wait" };
        write!(f, "\n{} {waits} for a turn, {}", messages(turn.waiting), now.since(oldest))?;
    }
    if turn.delayed > 0 {
        write!(f, "\n{} not due yet", messages(turn.delayed))?;
    }
    Ok(())
}

fn wait_text(f: &mut fmt::Formatter<'_>, wait: &Waiting, now: Now) -> fmt::Result {
    match wait {
        Waiting::Activity(activity) => activity_text(f, activity, now),
        Waiting::Timer { event_id, fire_at_ms, .. } => {
            write!(f, "a timer (event {event_id}), {}", now.due(*fire_at_ms))
        }
        Waiting::Event { event_id, asked_at_ms, name } => {
            write!(f, "event '{name}' (event {event_id}), {}", now.since(*asked_at_ms))
        }
        Waiting::Queue { event_id, asked_at_ms, name } => {
            write!(f, "a message to queue '{name}' (event {event_id}), {}", now.since(*asked_at_ms))
        }
        Waiting::Child { event_id, asked_at_ms, name, instance, status } => {
            write!(f, "child '{instance}' ({name}, event {event_id}), {}: ", now.since(*asked_at_ms))?;
            match status {
                Some(status) => write!(f, "{}", StatusText(status)),
                None => write!(f, "not begun"),
            }
        }
        Waiting::SessionMove { session } => write!(f, "the next move of {}", SessionName(session)),
    }
}

fn activity_text(f: &mut fmt::Formatter<'_>, activity: &WaitingActivity, now: Now) -> fmt::Result {
    let WaitingActivity { event_id, queued_at_ms, name, tag, session, session_info, .. } = activity;
    let WaitingActivity { place, is_unregistered, obstacle, .. } = activity;
    write!(f, "activity '{name}' (event {event_id}), queued {}", now.ago(*queued_at_ms))?;
    match (place, obstacle) {
        (Place::Queued(WorkState { phase: WorkPhase::Waiting { since_ms }, .. }), Some(obstacle)) => {
            obstacle_text(f, obstacle, *since_ms, now)?;
        }
        _ => place_text(f, place, tag.as_deref(), now)?,
    }
    if *is_unregistered {
        let with_tag = tag.as_ref().map(|tag| format!(" for tag '{tag}'")).unwrap_or_default();
        write!(f, "; not registered: no live worker has activity '{name}'{with_tag}")?;
    }
    match session {
        Some(key) => session_text(f, key, session_info.as_ref(), now),
        None => Ok(()),
    }
}

/// Tells why an activity waits that a worker could take but for its session.
fn obstacle_text(
    f: &mut fmt::Formatter<'_>,
    obstacle: &SessionObstacle,
    since_ms: u64,
    now: Now,
) -> fmt::Result {
    let since = now.since(since_ms);
    match obstacle {
        SessionObstacle::NoWorkerTakesSessions => write!(
            f,
            "; nobody has taken it, {since}: no live worker that has it takes work of sessions (their \
             max_sessions_per_runtime is 0, or they are drained)"
        ),
        SessionObstacle::Behind { event_id } => {
            write!(f, "; it waits, {since}, behind the activity of event {event_id}: its session is serial")
        }
        SessionObstacle::OwnerIsGone { owner, until_ms } => write!(
            f,
            "; it waits, {since}: {owner}, which owns its session, has stopped or reports no more, and its \
             lease lasts {} (client.release_session ends it)",
            now.until(*until_ms)
        ),
    }
}

fn place_text(f: &mut fmt::Formatter<'_>, place: &Place, tag: Option<&str>, now: Now) -> fmt::Result {
    let work = match place {
        Place::Unknown => return write!(f, "; the store cannot tell who runs it"),
        Place::NotQueued => {
            return write!(
                f,
                "; in no queue: its answer is on the way, or it could not be read and was set aside"
            );
        }
        Place::Queued(work) => work,
    };
    let deliveries = match work.deliveries {
        1 => "1 delivery".to_owned(),
        deliveries => format!("{deliveries} deliveries"),
    };
    match &work.phase {
        WorkPhase::Leased { worker_id, until_ms } => {
            let worker = if worker_id.is_empty() { "a worker without a name" } else { worker_id };
            write!(f, "; run by {worker} (delivery {}), leased {}", work.deliveries, now.until(*until_ms))?;
        }
        WorkPhase::Delayed { until_ms } => {
            write!(f, "; held back after {deliveries}, {}", now.until(*until_ms))?;
        }
        WorkPhase::Waiting { since_ms } => {
            write!(f, "; nobody has taken it, {} ({deliveries})", now.since(*since_ms))?;
            match tag {
                Some(tag) => write!(f, "; only a worker with tag '{tag}' may")?,
                None => write!(f, "; a worker that takes untagged work may")?,
            }
        }
    }
    tries_text(f, work)?;
    if work.name.is_none() { write!(f, "; what is stored of it cannot be read") } else { Ok(()) }
}

/// Tells which try of a call is under way or comes next, and how the last one failed.
fn tries_text(f: &mut fmt::Formatter<'_>, work: &WorkState) -> fmt::Result {
    let call = work.call.as_deref();
    let policy = call.and_then(|call| call.policy.as_ref());
    let ended = work.tries.ended.saturating_add(call.map_or(0, |call| call.tried_before));
    if policy.is_none() && ended == 0 {
        return Ok(());
    }
    write!(f, "; try {}", ended.saturating_add(1))?;
    if let Some(max) = policy.and_then(Policy::max) {
        write!(f, " of {max}")?;
    }
    match &work.tries.last_error {
        Some(error) => write!(f, ", the last one failed: {error}"),
        None => Ok(()),
    }
}

fn session_text(
    f: &mut fmt::Formatter<'_>,
    key: &SessionKey,
    info: Option<&SessionInfo>,
    now: Now,
) -> fmt::Result {
    write!(f, "; on {}", SessionName(key))?;
    owner_text(f, info, now)
}

fn owner_text(f: &mut fmt::Formatter<'_>, info: Option<&SessionInfo>, now: Now) -> fmt::Result {
    match info.and_then(|info| info.owner.as_ref().map(|owner| (owner, info.locked_until_ms))) {
        Some((owner, until)) if until > now.0 => write!(f, ", held by {}, {}", owner.id, now.until(until)),
        Some((owner, until)) => write!(f, ", held by nobody; last by {}, {}", owner.id, now.until(until)),
        None => Ok(()),
    }
}

fn messages(count: u64) -> String {
    counted(count, "message")
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

struct StartText<'a>(&'a WaitingStart);

impl fmt::Display for StartText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WaitingStart { orchestration, version } = self.0;
        f.write_str(orchestration)?;
        version.iter().try_for_each(|version| write!(f, " {version}"))
    }
}

struct StatusText<'a>(&'a ExecutionState);

impl fmt::Display for StatusText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ExecutionState::Running => f.write_str("running"),
            ExecutionState::Completed(_) => f.write_str("completed"),
            ExecutionState::Failed(details) => write!(f, "failed: {}", details.display_message()),
            ExecutionState::ContinuedAsNew => f.write_str("about to go on in its next execution"),
        }
    }
}

struct SessionName<'a>(&'a SessionKey);

impl fmt::Display for SessionName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.instance {
            Some(instance) => write!(f, "session '{}' of '{instance}'", self.0.session_id),
            None => write!(f, "shared session '{}'", self.0.session_id),
        }
    }
}

/// The time of an explanation. Other times are written relative to it.
#[derive(Clone, Copy)]
struct Now(u64);

impl Now {
    fn ago(self, at: u64) -> String {
        format!("{} ago", span(self.0.saturating_sub(at)))
    }

    fn since(self, at: u64) -> String {
        format!("for {}", span(self.0.saturating_sub(at)))
    }

    fn until(self, at: u64) -> String {
        if at > self.0 {
            format!("for another {}", span(at - self.0))
        } else {
            format!("until {}", self.ago(at))
        }
    }

    fn due(self, at: u64) -> String {
        if at > self.0 { format!("due in {}", span(at - self.0)) } else { format!("due {}", self.ago(at)) }
    }
}

/// Writes a length of time in its two largest units: `3 d 4 h`, `90 ms`.
fn span(ms: u64) -> String {
    const UNITS: [(u64, &str); 5] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms")];
    let parts = UNITS.iter().scan(ms, |left, (length, unit)| {
        let whole = *left / length;
        *left %= length;
        Some((whole, unit))
    });
    let mut shown: Vec<String> = parts
        .skip_while(|(whole, _)| *whole == 0)
        .take(2)
        .filter(|(whole, _)| *whole > 0)
        .map(|(whole, unit)| format!("{whole} {unit}"))
        .collect();
    if shown.is_empty() {
        shown.push("0 ms".to_owned());
    }
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use steadfast_store::Tries;

    use super::*;

    fn told(phase: WorkPhase) -> Explanation {
        let work = WorkState {
            activity_id: 2,
            name: Some("Pay".to_owned()),
            tag: None,
            session: None,
            attempts: 0,
            deliveries: 0,
            call: None,
            tries: Tries::default(),
            phase,
        };
        let activity = WaitingActivity {
            event_id: 2,
            queued_at_ms: 1_000,
            name: "Pay".to_owned(),
            tag: None,
            session: None,
            session_info: None,
            place: Place::Queued(work),
            is_unregistered: false,
            obstacle: None,
        };
        Explanation {
            instance: "a".to_owned(),
            state: None,
            turn: None,
            start: None,
            no_worker_is_live: false,
            unregistered: None,
            waiting: vec![Waiting::Activity(Box::new(activity))],
            more: 0,
            sessions: Vec::new(),
            stuck: false,
            now_ms: 6_000,
        }
    }

    #[test]
    fn g31_that_no_worker_is_live_is_a_line_of_its_own_before_what_waits() {
        let told = Explanation { no_worker_is_live: true, ..told(WorkPhase::Waiting { since_ms: 1_000 }) };
        assert_eq!(
            told.to_string(),
            "a: not begun\nno worker is live\nwaits for activity 'Pay' (event 2), queued 5 s ago; \
             nobody has taken it, for 5 s (0 deliveries); a worker that takes untagged work may"
        );
    }

    #[test]
    fn a_length_of_time_is_told_in_its_two_largest_units() {
        let spans = [0, 90, 1_000, 61_001, 3_600_000, 86_400_000 + 5, 90_061_001].map(span);
        assert_eq!(spans, ["0 ms", "90 ms", "1 s", "1 min 1 s", "1 h", "1 d", "1 d 1 h"]);
    }
}
