//! Answers in a form that two stores can be compared by: what a store may choose is replaced by what it
//! means.

use std::collections::BTreeMap;

use steadfast_core::{KvEntry, WorkItem};
use steadfast_store::{
    Claim, ClaimedSession, History, ProviderError, RunId, SessionInfo, SessionRef, TurnLease, WorkLease,
};

/// Numbers that a store chooses, by the order in which they were first seen.
#[derive(Debug, Default)]
pub(super) struct Labels {
    runs: Vec<RunId>,
    epochs: Vec<u64>,
    highest_epoch: u64,
}

impl Labels {
    pub(super) fn run(&mut self, run: Option<RunId>) -> String {
        run.map_or_else(|| "no run".to_owned(), |run| format!("run {}", label(&mut self.runs, run)))
    }

    /// An epoch by its order; 0 is before the first and stays.
    pub(super) fn epoch(&mut self, epoch: u64) -> usize {
        if epoch == 0 { 0 } else { label(&mut self.epochs, epoch) }
    }

    pub(super) fn attachment(&mut self, session: &SessionRef) -> String {
        format!("{}#{}", key(&session.key), self.epoch(session.epoch))
    }

    pub(super) fn attachments(&mut self, sessions: &[SessionRef]) -> String {
        let all: Vec<_> = sessions.iter().map(|session| self.attachment(session)).collect();
        format!("[{}]", all.join(", "))
    }

    /// How a fetch came to serve a session. Whose it was before is left out: a store may have forgotten.
    fn claim(&mut self, attachment: &ClaimedSession) -> String {
        let label = self.epoch(attachment.epoch);
        let how = match attachment.claim {
            Claim::Held => "held",
            Claim::New | Claim::Taken { .. } if attachment.epoch > self.highest_epoch => "attached",
            Claim::New | Claim::Taken { .. } => "attached with an epoch that did not rise",
        };
        self.highest_epoch = self.highest_epoch.max(attachment.epoch);
        format!("{}#{label} {how}", key(&attachment.key))
    }

    pub(super) fn turn(&mut self, lease: &TurnLease) -> String {
        let history = match &lease.history {
            History::Whole(events) => format!("whole history {events:?}"),
            History::Tail { after, events } => format!("history after {after} {events:?}"),
            History::Unreadable(_) | History::Damaged(_) => "unreadable history".to_owned(),
        };
        let messages: Vec<_> =
            lease.messages.iter().map(|message| (self.item(&message.item), &message.traceparent)).collect();
        let kv: BTreeMap<&String, &KvEntry> = lease.kv.iter().collect();
        format!(
            "'{}' ({} {}) execution {} {}, last event {}, attempt {}, at {}, \
             messages {messages:?}, kv {kv:?}, \
             {history}",
            lease.instance,
            lease.name,
            lease.version,
            lease.execution_id,
            self.run(lease.run),
            lease.last_event_id,
            lease.attempt,
            lease.now_ms,
        )
    }

    pub(super) fn work(&mut self, lease: &WorkLease) -> String {
        let session = lease.session.as_ref().map(|attachment| self.claim(attachment));
        format!(
            "{:?} of {} {}, attempt {}, delivery {}, {:?}, {:?}, at {}, session {session:?}, trace {:?}",
            lease.item,
            lease.orchestration,
            lease.orchestration_version,
            lease.attempt,
            lease.delivery,
            lease.call,
            lease.tries,
            lease.now_ms,
            lease.traceparent,
        )
    }

    fn item(&mut self, item: &WorkItem) -> String {
        match item {
            WorkItem::SessionMigrated { instance, execution_id, session_id, epoch, to, .. } => {
                let epoch = self.epoch(*epoch);
                format!("'{instance}' ({execution_id}) is told: '{session_id}'#{epoch} moved to '{to}'")
            }
            item => format!("{item:?}"),
        }
    }

    /// A session, or nothing for one that a store may forget: shared, ended, without work.
    pub(super) fn session(&mut self, session: &SessionInfo, now: u64) -> Option<String> {
        let live = session.locked_until_ms > now;
        let forgettable = session.key.instance.is_none() && !live;
        if forgettable && (session.queued == 0 || session.epoch == 0) {
            return None;
        }
        Some(format!(
            "{}#{} of {:?}, leased until {}, last activity {}, queued {}, idle after {:?}, {:?}",
            key(&session.key),
            self.epoch(session.epoch),
            session.owner.as_ref().map(|owner| &owner.id),
            if live { session.locked_until_ms } else { 0 },
            session.last_activity_at_ms,
            session.queued,
            session.idle_timeout_ms,
            session.concurrency,
        ))
    }
}

fn label<T: PartialEq>(seen: &mut Vec<T>, value: T) -> usize {
    seen.iter().position(|known| *known == value).unwrap_or_else(|| {
        seen.push(value);
        seen.len() - 1
    }) + 1
}

fn key(key: &steadfast_core::SessionKey) -> String {
    match &key.instance {
        Some(instance) => format!("'{}' of '{instance}'", key.session_id),
        None => format!("'{}'", key.session_id),
    }
}

/// An answer without what it brought, or the kind of the error: its text is for people.
pub(super) fn said<T>(result: Result<T, ProviderError>, tell: impl FnOnce(T) -> String) -> String {
    match result {
        Ok(answer) => tell(answer),
        Err(error) => format!("{:?}{}", error.kind, if error.is_retryable() { ", retryable" } else { "" }),
    }
}

/// An answer that can be compared as it is.
pub(super) fn plain<T: std::fmt::Debug>(result: Result<T, ProviderError>) -> String {
    said(result, |answer| format!("{answer:?}"))
}

/// An answer that is only there or not.
pub(super) fn done(result: Result<(), ProviderError>) -> String {
    said(result, |()| "done".to_owned())
}
