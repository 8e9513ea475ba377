//! A shutdown while an activity or a hook holds its thread: the runtime returns at its limit (G14).
//!
//! Real threads and real time, because that is what they hold.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use steadfast::providers::Provider;
use steadfast::runtime::registry::ActivityRegistry;
use steadfast::runtime::{DetachReason, Runtime, RuntimeOptions, Session, SessionHooks};
use steadfast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use steadfast_behaviour::{Line, Lines, SOON};
use steadfast_memory::MemoryStore;

/// Holds the thread of whoever waits for it, until it is dropped.
struct Held {
    let_go: Mutex<mpsc::Receiver<()>>,
}

impl Held {
    /// Returns the value, and what keeps it held while it lives.
    fn new() -> (Arc<Self>, mpsc::Sender<()>) {
        let (hold, let_go) = mpsc::channel();
        (Arc::new(Self { let_go: Mutex::new(let_go) }), hold)
    }

    fn hold_the_thread(&self) {
        // The error that ends the wait is the drop of the other side.
        let ended = self.let_go.lock().expect("no holder panics").recv();
        assert!(ended.is_err(), "no value is ever sent");
    }
}

#[derive(Debug)]
struct Blocks(Arc<Held>);

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Held")
    }
}

#[async_trait]
impl SessionHooks for Blocks {
    async fn on_detach(&self, _: &Session, _: DetachReason) {
        self.0.hold_the_thread();
    }
}

fn flows() -> OrchestrationRegistry {
    let flows = OrchestrationRegistry::builder().register(
        "Call",
        |ctx: OrchestrationContext, activity: String| async move {
            ctx.schedule_activity_on_session(activity, "", "chat").await
        },
    );
    flows.build()
}

/// Runs an activity on threads of their own, stops the runtime from another thread with a limit of 100 ms,
/// and returns the log lines of that thread. Panics if the runtime does not return.
fn stops(
    threads: usize,
    acts: ActivityRegistry,
    hooks: Option<Blocks>,
    begun: &mpsc::Receiver<()>,
) -> Vec<Line> {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let tokio = tokio.expect("threads");
    let store: Arc<dyn Provider> = Arc::new(MemoryStore::new());
    let session_hooks = hooks.map(|hooks| Arc::new(hooks) as Arc<dyn SessionHooks>);
    let session_hook_timeout = Duration::from_millis(100);
    let options = RuntimeOptions { session_hooks, session_hook_timeout, ..RuntimeOptions::default() };
    let runtime = tokio.block_on(async {
        let runtime = Runtime::start_with_options(Arc::clone(&store), acts, flows(), options).await;
        Client::new(store).start_orchestration("a", "Call", "Block").await.expect("starts");
        runtime
    });
    begun.recv_timeout(SOON).expect("it runs");
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let (lines, _guard) = Lines::collect();
        futures::executor::block_on(runtime.shutdown(Some(100)));
        done.send(lines.all()).expect("the test waits");
    });
    let lines = is_done.recv_timeout(SOON / 4).expect("the shutdown returns although a thread is held");
    tokio.shutdown_background();
    lines
}

/// Registers `Block`, which says that it begins and then runs `then` on its thread.
fn blocking(then: impl Fn() + Clone + Send + Sync + 'static) -> (ActivityRegistry, mpsc::Receiver<()>) {
    let (begins, begun) = mpsc::channel();
    let begins = Mutex::new(begins);
    let acts = ActivityRegistry::builder().register("Block", move |_: ActivityContext, _: String| {
        begins.lock().expect("no holder panics").send(()).expect("the test listens");
        let then = then.clone();
        async move {
            then();
            Ok(String::new())
        }
    });
    (acts.build(), begun)
}

#[test]
fn g14_a_shutdown_returns_at_its_limit_and_names_the_activity_that_holds_its_thread() {
    // With one thread no other task of the runtime can run.
    for threads in [1, 2, 4] {
        let (held, hold) = Held::new();
        let (acts, begun) = blocking(move || held.hold_the_thread());
        let lines = stops(threads, acts, None, &begun);
        let named: Vec<&Line> = lines.iter().filter(|line| line.says("still runs")).collect();
        let [line] = named[..] else { panic!("{threads} threads: {lines:?}") };
        assert_eq!((line.level.as_str(), line.field("left")), ("WARN", "Block (a)"));
        drop(hold);
    }
}

#[test]
fn g14_a_shutdown_returns_although_a_hook_holds_its_thread() {
    let (held, hold) = Held::new();
    let (acts, begun) = blocking(|| {});
    let lines = stops(3, acts, Some(Blocks(held)), &begun);
    let named: Vec<&Line> = lines.iter().filter(|line| line.says("still runs")).collect();
    let [line] = named[..] else { panic!("{lines:?}") };
    assert_eq!(line.field("left"), "on_detach (chat)");
    drop(hold);
}

#[test]
fn g14_a_shutdown_that_leaves_nothing_behind_names_nothing() {
    let (acts, begun) = blocking(|| {});
    let lines = stops(2, acts, None, &begun);
    assert!(!lines.iter().any(|line| line.says("still runs")), "{lines:?}");
}
