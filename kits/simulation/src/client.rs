//! What clients do in a world.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use steadfast::{
    Client, ClientError, OrchestrationStatus, SessionKey,
    providers::{Provider, PruneOptions},
};
use steadfast_audit::{Fact, Told};
use steadfast_clock::Clock;
use steadfast_testing::program::ast::{Name, names};

use crate::{
    code,
    journal::{Journal, Noted},
    story::Target,
};

/// What a client works with.
#[derive(Clone)]
pub struct Desk {
    /// The client itself.
    pub client: Client,
    /// The store below it.
    pub provider: Arc<dyn Provider>,
    /// The clock of its host.
    pub clock: Arc<dyn Clock>,
    /// Where answers are noted.
    pub journal: Journal,
}

/// Starts an instance with an input.
pub fn start(desk: &Desk, number: usize, input: String) -> impl Future<Output = ()> + Send + 'static + use<> {
    let desk = desk.clone();
    async move {
        let id = Target::Instance(number).id();
        desk.ask(Told::Started(id.clone()));
        let answer = desk.client.start_orchestration(id.as_str(), code::orchestration(number), input).await;
        desk.tell(answer, Told::Started(id));
    }
}

/// Asks an instance to cancel.
pub fn cancel(desk: &Desk, target: Target) -> impl Future<Output = ()> + Send + 'static + use<> {
    let desk = desk.clone();
    async move {
        desk.ask(Told::Cancelled(target.id()));
        let answer = desk.client.cancel_instance(target.id(), desk.unlike("not wanted")).await;
        desk.tell(answer, Told::Cancelled(target.id()));
    }
}

/// Terminates an instance.
pub fn terminate(desk: &Desk, target: Target) -> impl Future<Output = ()> + Send + 'static + use<> {
    let desk = desk.clone();
    async move {
        desk.ask(Told::Terminated(target.id()));
        let answer = desk.client.terminate_instance(&target.id(), &desk.unlike("enough")).await;
        desk.tell(answer, Told::Terminated(target.id()));
    }
}

/// Deletes an instance by force, with its children.
pub fn delete(desk: &Desk, target: Target) -> impl Future<Output = ()> + Send + 'static + use<> {
    let desk = desk.clone();
    async move {
        desk.ask(Told::Deleted(target.id()));
        let answer = desk.client.delete_instance(&target.id(), true).await;
        desk.tell(answer.map(|_| ()), Told::Deleted(target.id()));
    }
}

/// Deletes an instance by force and starts it again.
pub fn start_anew(
    desk: &Desk,
    number: usize,
    input: String,
) -> impl Future<Output = ()> + Send + 'static + use<> {
    let desk = desk.clone();
    async move {
        delete(&desk, Target::Instance(number)).await;
        start(&desk, number, input).await;
    }
}

/// Raises an event.
pub fn raise(desk: &Desk, target: Target, name: Name) -> impl Future<Output = ()> + Send + 'static + use<> {
    let desk = desk.clone();
    async move { desk.raise(&target.id(), name).await }
}

/// Sends a message.
pub fn enqueue(desk: &Desk, target: Target, name: Name) -> impl Future<Output = ()> + Send + 'static + use<> {
    let desk = desk.clone();
    async move { desk.enqueue(&target.id(), name).await }
}

/// Releases a session: a shared one, or one of an instance.
pub fn release(
    desk: &Desk,
    of: Option<Target>,
    session: Name,
) -> impl Future<Output = ()> + Send + 'static + use<> {
    let desk = desk.clone();
    async move {
        let key = match of {
            Some(target) => SessionKey::owned(target.id(), session),
            None => SessionKey::shared(session),
        };
        // There may be no such session.
        let _answer = desk.client.release_session(&key).await;
    }
}

/// Removes the old executions of an instance.
pub fn prune(desk: &Desk, target: Target) -> impl Future<Output = ()> + Send + 'static + use<> {
    let desk = desk.clone();
    async move {
        desk.ask(Told::Pruned(target.id()));
        let answer = desk.client.prune_executions(&target.id(), PruneOptions::default()).await;
        desk.tell(answer.map(|_| ()), Told::Pruned(target.id()));
    }
}

/// Lists what there is, and asks for an explanation of an instance. It only looks: what it is told depends on
/// the line, and nothing must come of it.
pub fn inspect(desk: &Desk, target: Target) -> impl Future<Output = ()> + Send + 'static + use<> {
    let desk = desk.clone();
    async move {
        let (client, id) = (&desk.client, target.id());
        let explained = client.explain(&id).await.is_ok();
        let listed = client.list_all_instances().await.map_or(0, |all| all.len());
        let executions = client.list_executions(&id).await.map_or(0, |all| all.len());
        let tree = client.get_instance_tree(&id).await.map_or(0, |tree| tree.size());
        let sessions = client.list_sessions(None).await.map_or(0, |all| all.len());
        let info = client.get_instance_info(&id).await.is_ok();
        let depths = client.get_queue_depths().await.is_ok();
        let seen = [listed, executions, tree, sessions];
        let text = format!("the desk sees {seen:?} of {id}: {explained}, {info}, {depths}");
        desk.journal.note(Noted::World(text));
    }
}

/// A task that tells when it has found what it waits for.
pub struct Watch<F> {
    /// Runs on a client.
    pub task: F,
    /// True when all instances have ended.
    pub flag: Arc<AtomicBool>,
}

/// How long a client waits between two rounds of messages.
const ROUND: Duration = Duration::from_secs(20);

/// Sends every instance that waits what it may wait for, again and again, until all have ended.
pub fn nudge(desk: &Desk, _from: Duration) -> Watch<impl Future<Output = ()> + Send + 'static + use<>> {
    let flag = Arc::new(AtomicBool::new(false));
    let (desk, ended) = (desk.clone(), Arc::clone(&flag));
    let task = async move {
        loop {
            desk.clock.sleep(ROUND).await;
            if desk.nudge_all().await {
                ended.store(true, Ordering::Relaxed);
                return;
            }
        }
    };
    Watch { task, flag }
}

impl Desk {
    /// Makes a text that no other message has, so that the auditor can tell messages apart.
    fn unlike(&self, text: &str) -> String {
        format!("{text}@{:?}", self.clock.monotonic())
    }

    fn ask(&self, told: Told) {
        self.journal.fact(Fact::Asked(told));
    }

    fn tell(&self, answer: Result<(), ClientError>, told: Told) {
        if answer.is_ok() {
            self.journal.fact(Fact::Told(told));
        }
    }

    async fn raise(&self, instance: &str, name: Name) {
        let data = self.unlike(name);
        let told = Told::Raised(instance.to_owned(), name.to_owned(), data.clone());
        self.ask(told.clone());
        let answer = self.client.raise_event(instance, name, data).await;
        self.tell(answer, told);
    }

    async fn enqueue(&self, instance: &str, name: Name) {
        let data = self.unlike(name);
        let told = Told::Enqueued(instance.to_owned(), name.to_owned(), data.clone());
        self.ask(told.clone());
        let answer = self.client.enqueue_event(instance, name, data).await;
        self.tell(answer, told);
    }

    /// Sends messages to the instances that run. Returns whether all have ended.
    async fn nudge_all(&self) -> bool {
        let Ok(all) = self.client.list_all_instances().await else { return false };
        let mut ended = true;
        for instance in all {
            let status = self.client.get_orchestration_status(&instance).await;
            if matches!(
                status,
                Ok(OrchestrationStatus::Completed { .. } | OrchestrationStatus::Failed { .. })
            ) {
                continue;
            }
            ended = false;
            for name in names::EVENTS {
                self.raise(&instance, name).await;
            }
            for name in names::QUEUES {
                self.enqueue(&instance, name).await;
            }
        }
        ended
    }
}
