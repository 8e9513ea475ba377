//! What only our library has: owned sessions, policies and `FuturesUnordered`.
//!
//! The peer has a file of the same name that refuses these statements.

use std::time::Duration;

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use steadfast_core::{ENGINE_SESSION_PREFIX, Policy, SessionConcurrency, SessionOptions};

use super::{
    api::{Either2, EventKind, WorkItem},
    ast::{Block, Own, SessionName, Try},
    interpret::{Flow, Scope, told},
    journal::Call,
};

/// Runs one of the statements.
pub(super) fn run<'a>(scope: &'a mut Scope, own: &'a Own) -> BoxFuture<'a, Flow> {
    Box::pin(async move {
        scope.answer = match own {
            Own::OpenSession => scope.open_session().await,
            Own::OpenSessionWithId(id) => scope.open_session_with_id(id).await,
            Own::OpenSessionWith { id, serial, idle_millis } => {
                scope.open_session_with(id, *serial, *idle_millis).await
            }
            Own::CloseSession(session) => scope.close_session(*session).await,
            Own::AwaitMigration { session, millis } => scope.await_migration(*session, *millis).await,
            Own::OnSession { name, input, session } => {
                let (input, session) = (scope.text(*input), scope.session(*session));
                scope.journal.note(Call::Activity {
                    name: (*name).to_owned(),
                    input: input.clone(),
                    session: Some(session.clone()),
                    tag: None,
                });
                told(scope.ctx.schedule_activity(*name, input).on_session(session).await)
            }
            Own::Try(tried) => scope.try_activity(tried).await,
            Own::Gather(branches) => scope.gather(branches).await,
        };
        Flow::Next
    })
}

/// Gives the call that an event of our own kinds records.
pub(super) fn call_recorded_in(kind: EventKind) -> Option<Call> {
    match kind {
        // The program does not choose this id, so it cannot tell it.
        EventKind::SessionOpened { session_id, .. } if session_id.starts_with(ENGINE_SESSION_PREFIX) => {
            Some(Call::OpenSession { id: None, is_serial: false, idle_millis: None })
        }
        EventKind::SessionOpened { session_id, idle_timeout_ms: idle_millis, concurrency } => {
            let is_serial = concurrency == Some(SessionConcurrency::Serial);
            Some(Call::OpenSession { id: Some(session_id), is_serial, idle_millis })
        }
        EventKind::SessionClosed { session_id } => Some(Call::CloseSession { id: session_id }),
        _ => None,
    }
}

/// Changes the compared field of an event of our own kinds.
pub(super) fn change_field(kind: &mut EventKind, text: &str) {
    if let EventKind::SessionOpened { session_id, .. } | EventKind::SessionClosed { session_id } = kind {
        *session_id = text.to_owned();
    }
}

/// Says whether an item starts the next execution of its instance.
pub(super) fn is_successor(item: &WorkItem) -> bool {
    matches!(item, WorkItem::ContinueAsNew { .. } | WorkItem::ContinueAsNewWithSessions { .. })
}

impl Scope {
    async fn open_session(&mut self) -> String {
        self.journal.note(Call::OpenSession { id: None, is_serial: false, idle_millis: None });
        let opened = self.ctx.open_session().await;
        self.opened = opened.clone().ok();
        told(opened)
    }

    async fn open_session_with_id(&mut self, id: &str) -> String {
        let id_given = Some(id.to_owned());
        self.journal.note(Call::OpenSession { id: id_given, is_serial: false, idle_millis: None });
        told(self.ctx.open_session_with_id(id).await)
    }

    async fn open_session_with(&mut self, id: &str, serial: bool, idle_millis: Option<u64>) -> String {
        self.journal.note(Call::OpenSession { id: Some(id.to_owned()), is_serial: serial, idle_millis });
        let mut options = SessionOptions::default().with_id(id);
        if serial {
            options = options.with_concurrency(SessionConcurrency::Serial);
        }
        if let Some(millis) = idle_millis {
            options = options.with_idle_timeout(Duration::from_millis(millis));
        }
        told(self.ctx.open_session_with(options).await)
    }

    async fn await_migration(&mut self, session: SessionName, millis: u64) -> String {
        let id = self.session(session);
        let moved = self.ctx.wait_for_session_migration(&id);
        self.journal.note(Call::Timer);
        let timer = self.ctx.schedule_timer(Duration::from_millis(millis));
        match self.ctx.select2(moved, timer).await {
            // The number of the attachment would differ between two runs of one story.
            Either2::First(_) => "moved".to_owned(),
            Either2::Second(()) => "stayed".to_owned(),
        }
    }

    async fn close_session(&mut self, session: SessionName) -> String {
        let id = self.session(session);
        self.journal.note(Call::CloseSession { id: id.clone() });
        told(self.ctx.close_session(&id).await.map(|()| String::new()))
    }

    fn session(&self, session: SessionName) -> String {
        match session {
            SessionName::Id(id) => id.to_owned(),
            // Nothing opened: a shared session of this name.
            SessionName::Opened => self.opened.clone().unwrap_or_else(|| "unopened".to_owned()),
        }
    }

    async fn try_activity(&mut self, tried: &Try) -> String {
        let Try { name, input, tries, pause_millis, timeout_millis, total_millis, session } = tried;
        let (input, session) = (self.text(*input), session.map(|session| self.session(session)));
        self.journal.note(Call::Activity {
            name: (*name).to_owned(),
            input: input.clone(),
            session: session.clone(),
            tag: None,
        });
        let pause = Duration::from_millis(*pause_millis);
        let mut policy = Policy::tries(u32::from(*tries)).backoff(pause..pause * 4);
        if let Some(millis) = timeout_millis {
            policy = policy.timeout(Duration::from_millis(*millis));
        }
        if let Some(millis) = total_millis {
            policy = policy.total(Duration::from_millis(*millis));
        }
        let call = self.ctx.schedule_activity(*name, input).retry(policy);
        told(match session {
            Some(session) => call.on_session(session).await,
            None => call.await,
        })
    }

    async fn gather(&mut self, branches: &[Block]) -> String {
        let mut all: FuturesUnordered<_> = branches.iter().map(|block| self.branch(block)).collect();
        let mut answers = Vec::with_capacity(branches.len());
        while let Some(answer) = all.next().await {
            answers.push(answer);
        }
        answers.join(",")
    }
}
