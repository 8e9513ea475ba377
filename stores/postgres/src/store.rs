//! The provider: opening it, and the store trait on top of the batches.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::{Object, Pool};
use steadfast_clock::{Clock, SystemClock};
use steadfast_core::{Event, SessionKey, SystemStats, TagFilter};
use steadfast_store::{
    Abandon, Committed, Envelope, InstancePage, InstanceQuery, InstanceState, InstanceWait, Interest,
    LeaseToken, NewWork, OldestWaiting, Outcome, Owner, ProviderAdmin, ProviderError, RenewSessions,
    SessionInfo, SessionRef, SessionsRenewed, SetAside, Started, Store, StoreClock, TurnCommit, TurnLease,
    TurnRequest, TurnState, WaitFor, Waited, Waiters, WorkLease, WorkRequest, WorkState,
};

use crate::link::connect::Connector;
use crate::link::db::Db;
use crate::link::error::{chain, unreached};
use crate::link::listen::Listener;
use crate::link::open::{OpenError, quoted};
use crate::link::options::{Plan, PostgresOptions};
use crate::merge::calls::{Calls, WorkAsk};
use crate::merge::lanes::{Lane, Lanes};
use crate::merge::undelivered::GivingBack;
use crate::schema::migrate::{Build, migrate, pending};
use crate::schema::migrations_pending::PendingMigrations;
use crate::verbs::history::{Append, Events};
use crate::verbs::message::{Letter, Start};
use crate::verbs::poll::{Look, Next};
use crate::verbs::turn::Prepared;
use crate::verbs::work::Finish;

/// Keeps everything in one schema of a Postgres database.
#[derive(Debug)]
pub struct PostgresProvider {
    pub(crate) db: Db,
    pub(crate) waiters: Arc<Waiters>,
    /// Waits; it does not tell what time it is in the store.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) poll_interval: Duration,
    /// The name of this process among those that listen.
    pub(crate) me: Arc<str>,
    calls: Calls,
    _listener: Option<Listener>,
}

/// The schema of a provider that names none.
const DEFAULT_SCHEMA: &str = "public";

impl PostgresProvider {
    /// Opens a database, `postgres://user:password@host:5432/database`, in its schema `public`.
    ///
    /// # Errors
    /// What is wrong with the URL, the server, the rights of the user or the schema.
    pub async fn new(database_url: &str) -> Result<Self, OpenError> {
        Self::new_with_schema(database_url, None).await
    }

    /// Opens a database in a schema, which is made if it is not there. Schemas are isolated from each other.
    ///
    /// # Errors
    /// What is wrong with the URL, the server, the rights of the user or the schema.
    pub async fn new_with_schema<'s>(
        database_url: &str,
        schema: impl Into<Option<&'s str>>,
    ) -> Result<Self, OpenError> {
        Self::new_with_options(database_url, schema, PostgresOptions::default()).await
    }

    /// Opens a database in a schema, with options.
    ///
    /// # Errors
    /// What is wrong with the URL, the options, the server, the rights of the user or the schema.
    pub async fn new_with_options<'s>(
        database_url: &str,
        schema: impl Into<Option<&'s str>>,
        options: PostgresOptions,
    ) -> Result<Self, OpenError> {
        let plan = Plan::try_from(options)?;
        let connector = Connector::new(database_url, &plan)?;
        let lanes = Lanes::divided(&connector, &plan)?;
        Self::open(lanes, Some(connector), schema.into(), plan).await
    }

    /// Opens a database in a schema, with a pool that exists already.
    ///
    /// How connections are made is the pool's affair: its URL, its TLS, its bounds and timeouts. No connection listens, because
    /// a pool keeps to itself how it connects; what other processes commit is noticed every `poll_interval`.
    ///
    /// # Errors
    /// What is wrong with the options, the server, the rights of the user or the schema.
    pub async fn with_pool<'s>(
        pool: Pool,
        schema: impl Into<Option<&'s str>>,
        options: PostgresOptions,
    ) -> Result<Self, OpenError> {
        Self::open(Lanes::shared(pool), None, schema.into(), Plan::try_from(options)?).await
    }

    /// Says what opening a schema with this build would do to it, and does nothing.
    ///
    /// # Errors
    /// As opening it would give.
    pub async fn pending_migrations<'s>(
        database_url: &str,
        schema: impl Into<Option<&'s str>>,
    ) -> Result<PendingMigrations, OpenError> {
        let schema = schema.into().unwrap_or(DEFAULT_SCHEMA);
        quoted(schema)?;
        let plan = Plan::try_from(PostgresOptions { max_connections: 1, ..PostgresOptions::default() })?;
        let connector = Connector::new(database_url, &plan)?;
        let mut connection = first(&connector.pool(&plan, 1)?, Some(&connector)).await?;
        pending(&mut connection, schema, &Build::this()).await
    }

    async fn open(
        lanes: Lanes,
        connector: Option<Connector>,
        schema: Option<&str>,
        plan: Plan,
    ) -> Result<Self, OpenError> {
        let schema = schema.unwrap_or(DEFAULT_SCHEMA);
        let quoted = quoted(schema)?;
        let mut connection = first(lanes.of(Lane::Other), connector.as_ref()).await?;
        migrate(&mut connection, schema, &Build::this(), plan.migration_timeout).await?;
        if let Some(connector) = &connector {
            connector.recognise(&connection).await.map_err(|error| OpenError::Connect {
                server: connector.server().to_owned(),
                why: chain(&error),
            })?;
        }
        drop(connection);
        let store_clock = plan.clock.clone().map(StoreClock::new);
        let db = Db::new(lanes, quoted, store_clock, plan.counts.clone())
            .bounded(plan.statement_timeout, connector.clone());
        let waiters = Arc::new(Waiters::default());
        let me: Arc<str> = uuid::Uuid::new_v4().to_string().into();
        let giving_back = GivingBack::new(db.clone(), Arc::clone(&waiters), Arc::clone(&me));
        let calls = Calls::new(&db, &waiters, &me, &giving_back, &plan);
        // Through a pooler a connection hears what others asked for.
        let listener = connector.filter(|connector| plan.listen && !connector.is_pooled()).map(|connector| {
            Listener::spawn(connector, schema, Arc::clone(&me), db.clone(), Arc::clone(&waiters))
        });
        Ok(Self {
            db,
            waiters,
            clock: plan.clock.unwrap_or_else(|| Arc::new(SystemClock)),
            poll_interval: plan.poll_interval,
            me,
            calls,
            _listener: listener,
        })
    }
}

#[async_trait]
impl Store for PostgresProvider {
    fn name(&self) -> &str {
        "postgres"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn admin(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    fn supports_owned_sessions(&self) -> bool {
        true
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<TurnLease>, ProviderError> {
        let fetch = || self.calls.fetch_turn(request.lock_timeout, request.filter.cloned());
        let Some(taken) = self.until(request.poll_timeout, Interest::Turn, fetch).await? else {
            return Ok(None);
        };
        let (leased, receipt) = taken.open();
        let lease = self.db.complete(leased, request.warm).await?;
        receipt.keep();
        Ok(Some(lease))
    }

    async fn commit_turn(&self, lease: &LeaseToken, commit: TurnCommit) -> Result<Committed, ProviderError> {
        self.calls.commit_turn(lease.as_str().to_owned(), Prepared::new(commit)?).await
    }

    async fn fetch_work(&self, request: WorkRequest) -> Result<Option<WorkLease>, ProviderError> {
        if request.tags == TagFilter::None {
            return Ok(None);
        }
        let interest = Interest::Work { tags: request.tags.clone(), sessions: request.session.is_some() };
        let ask = WorkAsk::of(&request);
        let fetch = || self.calls.fetch_work(ask.clone());
        let taken = self.until(request.poll_timeout, interest, fetch).await?;
        Ok(taken.map(|taken| {
            let (lease, receipt) = taken.open();
            receipt.keep();
            lease
        }))
    }

    async fn finish_work(&self, lease: &LeaseToken, outcome: Outcome) -> Result<(), ProviderError> {
        self.calls.finish_work(Finish::new(lease, outcome)?).await
    }

    async fn renew(&self, lease: &LeaseToken, extend_for: Duration) -> Result<(), ProviderError> {
        match lease {
            LeaseToken::Turn(token) => self.calls.renew_turn(token.clone(), extend_for).await,
            LeaseToken::Work(token) => self.calls.renew_work(token.clone(), extend_for).await,
        }
    }

    async fn abandon(&self, lease: &LeaseToken, how: Abandon) -> Result<(), ProviderError> {
        match lease {
            LeaseToken::Turn(token) => self.calls.abandon_turn(token.clone(), how).await,
            LeaseToken::Work(token) => self.calls.abandon_work(token.clone(), how).await,
        }
    }

    async fn register_node(&self, node_id: &str) -> Result<u64, ProviderError> {
        self.db.register_node(node_id).await
    }

    async fn renew_sessions(&self, request: RenewSessions) -> Result<SessionsRenewed, ProviderError> {
        let (renewed, woken) = self.db.renew_sessions(&self.me, &request).await?;
        self.waiters.wake(&woken);
        Ok(renewed)
    }

    async fn release_sessions(
        &self,
        owner: &Owner,
        sessions: &[SessionRef],
    ) -> Result<Vec<SessionRef>, ProviderError> {
        let (released, woken) = self.db.release_sessions(&self.me, owner, sessions).await?;
        self.waiters.wake(&woken);
        Ok(released)
    }

    async fn cleanup_sessions(&self) -> Result<usize, ProviderError> {
        self.db.cleanup_sessions().await
    }

    async fn sessions(&self, after: Option<&SessionKey>) -> Result<Vec<SessionInfo>, ProviderError> {
        self.db.sessions(after).await
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<SessionInfo>, ProviderError> {
        self.db.session(key).await
    }

    async fn start(&self, start: Envelope, also: Vec<Envelope>) -> Result<Started, ProviderError> {
        self.calls.start(Start::new(start, also)?).await
    }

    async fn send(&self, messages: Vec<Envelope>) -> Result<(), ProviderError> {
        let letters = messages.into_iter().map(|sent| Letter::new("send", sent)).collect::<Result<_, _>>()?;
        self.calls.send(letters).await
    }

    async fn enqueue_work(&self, work: NewWork) -> Result<(), ProviderError> {
        let woken = self.db.enqueue_work(&self.me, &work).await?;
        self.waiters.wake(&woken);
        Ok(())
    }

    async fn wait(&self, what: WaitFor<'_>, timeout: Duration) -> Result<Waited, ProviderError> {
        let found = match what {
            WaitFor::Turn => self.until(timeout, Interest::Turn, || self.look_for_turns()).await?,
            WaitFor::Work => self.until(timeout, Interest::AnyWork, || self.look_for_work()).await?,
            WaitFor::Instance { instance, seen } => {
                return self.watch(InstanceWait::for_change(instance, seen), timeout).await;
            }
            WaitFor::End { instance } => return self.watch(InstanceWait::for_end(instance), timeout).await,
        };
        Ok(if found.is_some() { Waited::Woken } else { Waited::TimedOut })
    }

    async fn state(&self, instance: &str) -> Result<Option<InstanceState>, ProviderError> {
        self.db.state(instance).await
    }

    async fn instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        self.db.instances(query).await
    }

    async fn read_history(
        &self,
        instance: &str,
        execution_id: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError> {
        self.db.read_history(instance, execution_id).await
    }

    async fn append_history(
        &self,
        instance: &str,
        execution_id: u64,
        events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        let events = Events::new("append_history", &events)?;
        let append = Append { instance: instance.to_owned(), execution: execution_id, events };
        self.db.append_events(vec![append]).await?.into_iter().collect()
    }

    async fn kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        self.db.kv_value(instance, key).await
    }

    async fn kv_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        self.db.kv_values(instance).await
    }

    async fn stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.db.stats(instance).await
    }

    async fn set_aside(&self, after: Option<u64>) -> Result<Vec<SetAside>, ProviderError> {
        self.db.set_aside(after).await
    }

    async fn retry_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        let woken = self.db.retry_set_aside(id, &self.me).await?;
        self.waiters.wake(&woken);
        Ok(())
    }

    async fn drop_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        self.db.drop_set_aside(id).await
    }

    async fn turn_of(&self, instance: &str) -> Result<Option<TurnState>, ProviderError> {
        self.db.turn_of(instance).await
    }

    async fn work_of(&self, instance: &str, execution_id: u64) -> Result<Vec<WorkState>, ProviderError> {
        self.db.work_of(instance, execution_id).await
    }

    async fn oldest_waiting(&self) -> Result<OldestWaiting, ProviderError> {
        self.db.oldest_waiting().await
    }
}

impl PostgresProvider {
    async fn look_for_turns(&self) -> Result<Look<()>, ProviderError> {
        let (ready, next, now) = self.db.look_for_turns().await?;
        Ok(if ready { Look::Found(()) } else { Look::Nothing(Next::at(next, now)) })
    }

    async fn look_for_work(&self) -> Result<Look<()>, ProviderError> {
        let look = self.db.has_work().await?;
        Ok(match look {
            look if look.found => Look::Found(()),
            look if look.again => Look::Nothing(Next::Soon),
            look => Look::Nothing(Next::at(look.next, look.now)),
        })
    }
}

/// Makes the first connection, whose failure says what is wrong.
async fn first(pool: &Pool, connector: Option<&Connector>) -> Result<Object, OpenError> {
    let server = connector.map_or("the server of the pool", Connector::server);
    pool.get().await.map_err(|error| OpenError::Connect { server: server.to_owned(), why: unreached(&error) })
}
