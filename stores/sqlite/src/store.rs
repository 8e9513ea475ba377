//! The provider: opening it, and the store trait on top of the writer and the readers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_core::{Event, SessionKey, SystemStats, TagFilter};
use steadfast_store::rules::{
    InstanceWait, UNKNOWN, check_completion, check_start, check_work, events_of, history_after, holds_run,
    started_by, to_json, unreadable_history,
};
use steadfast_store::{
    Abandon, Committed, DeleteInstanceResult, EndedTry, Envelope, Gauges, History, InstancePage,
    InstanceQuery, InstanceState, Interest, LeaseToken, NewWork, NodeRegistration, NodeStart, OldestWaiting,
    Outcome, Owner, ProviderAdmin, ProviderError, Refusal, Refused, ReleaseReason, RenewSessions,
    SessionInfo, SessionRef, SessionTrailEntry, SessionsRenewed, SetAside, Started, Store, TurnCommit,
    TurnLease, TurnRequest, TurnState, WaitFor, Waited, Waiters, WaitingStart, WorkLease, WorkRequest,
    WorkState, WorkerId, WorkerInfo, WorkerReport,
};

use crate::link::clock::FileClock;
use crate::link::connection::{Location, open_writer};
use crate::link::db::{Db, sql, time, unsigned};
use crate::link::error::{DbResult, is_damage};
use crate::link::look::Looks;
use crate::link::open::{OpenError, location_of};
use crate::link::options::SqliteOptions;
use crate::link::reader::Reader;
use crate::merge::alarm::Alarms;
use crate::merge::writer::{OpenFile, Wakes, Writer};
use crate::schema::migrate::migrate;
use crate::verbs::admin::retention::RetentionCursor;
use crate::verbs::message::{NewMessage, WorkTexts};
use crate::verbs::torn::mend::Mends;
use crate::verbs::turn::LeasedTurn;
use crate::verbs::turn::commit::PreparedCommit;
use crate::verbs::work::LeasedWork;
use crate::verbs::worker::PreparedReport;

/// Bounds how often the history of a lease is read that the disk does not return.
const READ_TRIES: u32 = 3;

/// A store in one SQLite file, or in memory.
///
/// Several processes of one machine may open the same file; a network file system is not supported by SQLite.
///
/// # Cancel safety
/// Each method is one transaction: a future that is dropped before it returned has had all of its effect or
/// none.
#[derive(Debug)]
pub struct SqliteProvider {
    /// Closed before the writer: the last connection of a file writes its log back and removes it, and one
    /// that only reads cannot.
    reader: Reader,
    pub(crate) writer: Writer,
    pub(crate) clock: FileClock,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) alarms: Arc<Alarms>,
    retention: Arc<RetentionCursor>,
    /// When this process last told that rows cannot be removed, by the time of the file.
    pub(crate) stuck_told: AtomicI64,
    /// Until when this process stores events in front of all others, because it has found the last leaf of
    /// the histories torn; by the time of the file.
    pub(crate) in_front_until: AtomicI64,
    pub(crate) looks: Looks,
    pub(crate) mends: Mends,
}

impl SqliteProvider {
    /// Opens a database: `sqlite:./app.db`, `sqlite:/path/app.db` or `sqlite::memory:`. A missing file is
    /// created.
    ///
    /// # Errors
    /// [`OpenError`] if the URL, the folder, the file or its schema is not valid; the database is left as it
    /// was.
    pub async fn new(database_url: &str, options: Option<SqliteOptions>) -> Result<Self, OpenError> {
        let options = options.unwrap_or_default();
        Self::open(location_of(database_url, options.vfs.as_deref())?, options)
    }

    /// Opens a new database in memory; it is lost when the store is dropped.
    ///
    /// # Errors
    /// Only when SQLite itself fails.
    pub async fn new_in_memory() -> Result<Self, OpenError> {
        Self::open(Location::Memory, SqliteOptions::default())
    }

    /// Opens a database in memory with options.
    ///
    /// # Errors
    /// Only when SQLite itself fails.
    pub async fn new_in_memory_with_options(options: Option<SqliteOptions>) -> Result<Self, OpenError> {
        Self::open(Location::Memory, options.unwrap_or_default())
    }

    fn open(place: Location, options: SqliteOptions) -> Result<Self, OpenError> {
        Self::open_at(&place, options).map_err(|error| error.at(&place))
    }

    fn open_at(place: &Location, options: SqliteOptions) -> Result<Self, OpenError> {
        let mut connection = open_writer(place, &options)?;
        migrate(&mut connection, place)?;
        let (clock, presence) = FileClock::open(&mut connection, place, &options)?;
        let waiters = Arc::new(Waiters::default());
        let reader = Reader::open(place, &options, clock.clone())?;
        let alarms = Arc::new(Alarms::default());
        let wakes = Wakes { waiters: Arc::clone(&waiters), alarms: Arc::clone(&alarms) };
        let looks = Looks::of(place, &options);
        let file = OpenFile { connection, place, presence, looks: looks.clone() };
        let writer = Writer::spawn(file, &options, clock.clone(), wakes)?;
        Ok(Self {
            writer,
            reader,
            clock,
            waiters,
            alarms,
            retention: Arc::default(),
            stuck_told: AtomicI64::new(0),
            in_front_until: AtomicI64::new(i64::MIN),
            looks,
            mends: Mends::default(),
        })
    }

    /// Writes the write-ahead log back into the file and empties it.
    ///
    /// # Errors
    /// `Busy` if a reader keeps the log from being emptied; commits are safe either way.
    pub async fn checkpoint(&self) -> Result<(), ProviderError> {
        self.writer.outside("checkpoint", crate::link::connection::checkpoint).await
    }

    pub(crate) async fn read<R, F>(&self, operation: &'static str, look: F) -> Result<R, ProviderError>
    where
        R: Send + 'static,
        F: FnOnce(&Db<'_>) -> DbResult<R> + Send + 'static,
    {
        self.reader.read(&self.writer, operation, look).await
    }

    /// Reads what a lease brings. A read that the disk fails is tried again, in case that passes.
    async fn read_of_lease<R, F>(&self, look: F) -> Result<R, ProviderError>
    where
        R: Send + 'static,
        F: Fn(&Db<'_>) -> DbResult<R> + Clone + Send + 'static,
    {
        let mut tries = 1;
        loop {
            match self.read("fetch_turn", look.clone()).await {
                Err(error) if tries < READ_TRIES && error.is_retryable() && is_damage(&error) => tries += 1,
                read => return read,
            }
        }
    }

    /// Tells whether the disk returns the file at all: a connection that has read nothing yet reads its first
    /// page.
    async fn can_read(&self) -> bool {
        let look = |connection: &rusqlite::Connection| {
            Ok(connection.query_row(sql!("schema/newest"), [], |row| row.get::<_, Option<i64>>(0))?)
        };
        self.looks.look("fetch_turn", look).await.is_ok()
    }

    /// Completes a lease: reads the events that the caller does not hold and the key-value state, on a
    /// reading connection. The lease keeps both from changing meanwhile.
    async fn complete(
        &self,
        leased: &LeasedTurn,
        request: TurnRequest<'_>,
    ) -> Result<TurnLease, ProviderError> {
        let held = request.warm.held(&leased.instance);
        let held = held.filter(|held| holds_run(held, leased.run, leased.last_event_id));
        let known = held.map(|held| held.last_event_id);
        let (key, execution) = (leased.key, leased.execution);
        let read = match known {
            // The caller holds all events: nothing is read.
            Some(known) if known == leased.last_event_id => Ok(Default::default()),
            Some(known) => {
                let look = move |db: &Db<'_>| Ok((db.event_texts(key, execution, known)?, HashMap::new()));
                self.read_of_lease(look).await
            }
            None => {
                let look = move |db: &Db<'_>| Ok((db.event_texts(key, execution, 0)?, db.kv_snapshot(key)?));
                self.read_of_lease(look).await
            }
        };
        let (history, kv) = match read {
            Ok((texts, kv)) => (history_after(events_of(&texts), known), kv),
            // The lease is kept and counted: it is not the next one's turn to meet the same page.
            Err(error) if is_damage(&error) && (!error.is_retryable() || self.can_read().await) => {
                let reason = format!("the database cannot read it: {}", error.message);
                (History::Damaged(reason), HashMap::new())
            }
            Err(error) => return Err(error),
        };
        let named = match &leased.named {
            Some(named) => Some(named.clone()),
            None => self.read("fetch_turn", move |db| db.started_as(key, execution)).await?,
        };
        let (name, version) = named.unwrap_or_else(|| started_by(&leased.messages));
        Ok(TurnLease {
            token: leased.lease_token(),
            instance: leased.instance.clone(),
            name,
            version,
            execution_id: unsigned(execution),
            run: leased.run,
            last_event_id: leased.last_event_id,
            history,
            messages: leased.messages.clone(),
            rival_starts: leased.rival_starts.clone(),
            attempt: leased.attempt,
            kv,
            now_ms: unsigned(leased.now),
        })
    }
}

#[async_trait]
impl Store for SqliteProvider {
    fn name(&self) -> &str {
        "sqlite"
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
        let lock_timeout = request.lock_timeout;
        let fetch = |leaves_rows| {
            let (filter, worker) = (request.filter.cloned(), request.worker.cloned());
            self.writer.take("fetch_turn", move |db| {
                db.leaves_rows.set(leaves_rows);
                db.fetch_turn(lock_timeout, filter.as_ref(), worker.as_ref())
            })
        };
        let Some(taken) =
            self.until(request.poll_timeout, (Interest::Turn, request.worker.cloned()), fetch).await?
        else {
            return Ok(None);
        };
        let Some(leased) = taken.get().and_then(|fetched| fetched.lease.as_ref()) else { return Ok(None) };
        let lease = self.complete(leased, request).await?;
        taken.keep();
        Ok(Some(lease))
    }

    async fn commit_turn(&self, lease: &LeaseToken, commit: TurnCommit) -> Result<Committed, ProviderError> {
        let committed = Arc::new((lease.as_str().to_owned(), PreparedCommit::new(commit)?));
        let commit = move |db: &Db<'_>| db.commit_turn(&committed.0, &committed.1);
        self.write_past_torn("commit_turn", commit).await
    }

    async fn fetch_work(&self, request: WorkRequest) -> Result<Option<WorkLease>, ProviderError> {
        if request.tags == TagFilter::None {
            return Ok(None);
        }
        let interest = Interest::Work { tags: request.tags.clone(), sessions: request.session.is_some() };
        let request = Arc::new(request);
        let fetch = |leaves_rows| {
            let request = Arc::clone(&request);
            self.writer.take("fetch_work", move |db| {
                db.leaves_rows.set(leaves_rows);
                db.fetch_work(&request)
            })
        };
        let taken = self.until(request.poll_timeout, (interest, request.worker.clone()), fetch).await?;
        Ok(taken.and_then(|taken| taken.keep()).and_then(|fetched| fetched.lease).map(work_lease))
    }

    async fn finish_work(&self, lease: &LeaseToken, outcome: Outcome) -> Result<(), ProviderError> {
        let completion = check_completion(&outcome).and_then(|()| {
            let envelope = outcome.completion.map(|message| Envelope { message, delay: None });
            envelope.map(|envelope| NewMessage::new("finish_work", envelope)).transpose()
        });
        let finished = Arc::new((lease.as_str().to_owned(), completion));
        let finish = move |db: &Db<'_>| db.finish_work(&finished.0, &finished.1);
        self.write_past_torn("finish_work", finish).await
    }

    async fn renew(&self, lease: &LeaseToken, extend_for: Duration) -> Result<(), ProviderError> {
        let lease = lease.clone();
        let renew = move |db: &Db<'_>| match &lease {
            LeaseToken::Turn(token) => db.renew_turn(token, extend_for),
            LeaseToken::Work(token) => db.renew_work(token, extend_for),
        };
        self.write_past_torn("renew", renew).await
    }

    async fn abandon(&self, lease: &LeaseToken, how: Abandon) -> Result<(), ProviderError> {
        let lease = lease.clone();
        let abandon = move |db: &Db<'_>| match &lease {
            LeaseToken::Turn(token) => db.abandon_turn(token, how),
            LeaseToken::Work(token) => db.abandon_work(token, how),
        };
        self.write_past_torn("abandon", abandon).await
    }

    fn keeps_tries(&self) -> bool {
        true
    }

    async fn end_try(&self, lease: &LeaseToken, ended: EndedTry) -> Result<(), ProviderError> {
        let ended = Arc::new((lease.clone(), ended));
        self.write_past_torn("end_try", move |db| db.end_try(&ended.0, &ended.1)).await
    }

    async fn excuse(&self, lease: &LeaseToken) -> Result<bool, ProviderError> {
        let lease = lease.clone();
        self.write_past_torn("excuse", move |db| db.excuse(&lease)).await
    }

    async fn refuse(&self, lease: &LeaseToken, refusal: Refusal) -> Result<Refused, ProviderError> {
        let refused = Arc::new((lease.clone(), refusal));
        self.write_past_torn("refuse", move |db| db.refuse(&refused.0, &refused.1)).await
    }

    async fn report_worker(&self, report: &WorkerReport) -> Result<(), ProviderError> {
        let prepared = Arc::new(PreparedReport::new(report)?);
        let written = Arc::clone(&prepared);
        self.write_past_torn("report_worker", move |db| db.report_worker(&written)).await?;
        if report.is_stopped {
            return Ok(());
        }
        loop {
            let prepared = Arc::clone(&prepared);
            let end = move |db: &Db<'_>| db.end_refusals(&prepared.report);
            if !self.write_past_torn("report_worker", end).await? {
                return Ok(());
            }
        }
    }

    async fn workers(&self, after: Option<&WorkerId>) -> Result<Vec<WorkerInfo>, ProviderError> {
        let after = after.cloned();
        self.read("workers", move |db| db.workers(after.as_ref())).await
    }

    async fn register_node(&self, start: &NodeStart) -> Result<NodeRegistration, ProviderError> {
        let start = start.clone();
        self.writer.write("register_node", move |db| db.register_node(&start)).await
    }

    async fn renew_sessions(&self, request: RenewSessions) -> Result<SessionsRenewed, ProviderError> {
        let request = Arc::new(request);
        self.write_past_torn("renew_sessions", move |db| db.renew_sessions(&request)).await
    }

    async fn release_sessions(
        &self,
        owner: &Owner,
        sessions: &[SessionRef],
    ) -> Result<Vec<SessionRef>, ProviderError> {
        self.release_sessions_because(owner, sessions, ReleaseReason::Unstated).await
    }

    async fn release_sessions_because(
        &self,
        owner: &Owner,
        sessions: &[SessionRef],
        reason: ReleaseReason,
    ) -> Result<Vec<SessionRef>, ProviderError> {
        let (owner, sessions) = (owner.clone(), sessions.to_vec());
        let release = move |db: &Db<'_>| db.release_sessions(&owner, &sessions, reason);
        self.write_past_torn("release_sessions", release).await
    }

    async fn cleanup_sessions(&self) -> Result<usize, ProviderError> {
        self.write_past_torn("cleanup_sessions", |db| db.cleanup_sessions()).await
    }

    async fn sessions(&self, after: Option<&SessionKey>) -> Result<Vec<SessionInfo>, ProviderError> {
        let after = after.cloned();
        self.read("sessions", move |db| db.sessions(after.as_ref())).await
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<SessionInfo>, ProviderError> {
        let key = key.clone();
        self.read("session", move |db| db.session(&key)).await
    }

    async fn session_trail(&self, key: &SessionKey) -> Result<Vec<SessionTrailEntry>, ProviderError> {
        let key = key.clone();
        self.read("session_trail", move |db| db.session_trail(&key)).await
    }

    async fn cleanup_session_trails(&self, retention: Duration) -> Result<usize, ProviderError> {
        let clean_up = move |db: &Db<'_>| db.cleanup_session_trails(retention);
        self.write_past_torn("cleanup_session_trails", clean_up).await
    }

    async fn start(&self, start: Envelope, also: Vec<Envelope>) -> Result<Started, ProviderError> {
        check_start(&start.message.item)?;
        let sent = Arc::new((NewMessage::new("start", start)?, NewMessage::all("start", also)?));
        self.write_past_torn("start", move |db| db.start(&sent.0, &sent.1)).await
    }

    async fn send(&self, messages: Vec<Envelope>) -> Result<(), ProviderError> {
        let messages = Arc::new(NewMessage::all("send", messages)?);
        self.write_past_torn("send", move |db| db.send(&messages)).await
    }

    async fn enqueue_work(&self, work: NewWork) -> Result<(), ProviderError> {
        check_work("enqueue_work", &work.item)?;
        let queued = Arc::new((WorkTexts::of("enqueue_work", &work)?, work));
        self.write_past_torn("enqueue_work", move |db| db.insert_work(&queued.1, &queued.0)).await
    }

    async fn wait(&self, what: WaitFor<'_>, timeout: Duration) -> Result<Waited, ProviderError> {
        match what {
            WaitFor::Turn => self.look_until(Interest::Turn, |db| db.has_turn(), timeout).await,
            WaitFor::Work => self.look_until(Interest::AnyWork, |db| db.has_work(), timeout).await,
            WaitFor::Instance { instance, seen } => {
                self.watch(InstanceWait::for_change(instance, seen), timeout).await
            }
            WaitFor::End { instance } => self.watch(InstanceWait::for_end(instance), timeout).await,
        }
    }

    async fn state(&self, instance: &str) -> Result<Option<InstanceState>, ProviderError> {
        let instance = instance.to_owned();
        self.read("state", move |db| db.state(&instance)).await
    }

    async fn instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        let query = query.clone();
        self.read("instances", move |db| db.instances(&query)).await
    }

    async fn read_history(
        &self,
        instance: &str,
        execution_id: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError> {
        let name = instance.to_owned();
        let look = move |db: &Db<'_>| match db.maybe(sql!("instance/key"), [&name])? {
            None => Ok(Vec::new()),
            Some(key) => {
                let execution = execution_id.map_or_else(|| db.latest_execution(key), |id| Ok(time(id)))?;
                db.event_texts(key, execution, 0)
            }
        };
        let texts = self.read("read_history", look).await?;
        events_of(&texts).map_err(|error| unreadable_history(instance, error))
    }

    async fn append_history(
        &self,
        instance: &str,
        execution_id: u64,
        events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        const OPERATION: &str = "append_history";
        let texts = events.iter().map(|event| to_json(OPERATION, event)).collect::<Result<Vec<_>, _>>()?;
        let appended = Arc::new((instance.to_owned(), events, texts));
        let append = move |db: &Db<'_>| {
            let (instance, events, texts) = &*appended;
            let key = db.key_of(instance)?;
            db.append(OPERATION, key, instance, execution_id, events, texts)
        };
        self.write_past_torn(OPERATION, append).await
    }

    async fn kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        let (instance, key) = (instance.to_owned(), key.to_owned());
        self.read("kv_value", move |db| db.kv_value(&instance, &key)).await
    }

    async fn kv_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        let instance = instance.to_owned();
        self.read("kv_values", move |db| db.kv_values(&instance)).await
    }

    async fn stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        let instance = instance.to_owned();
        self.read("stats", move |db| db.stats(&instance)).await
    }

    async fn set_aside(&self, after: Option<u64>) -> Result<Vec<SetAside>, ProviderError> {
        self.read("set_aside", move |db| db.set_aside(after)).await
    }

    async fn retry_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        self.write_past_torn("retry_set_aside", move |db| db.retry_set_aside(id)).await
    }

    async fn drop_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        self.writer.write("drop_set_aside", move |db| db.drop_set_aside(id)).await
    }

    async fn delete_ended(
        &self,
        ended_for: Duration,
        limit: u32,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let mut walk = self.retention.begin();
        loop {
            let (cursor, before) = (Arc::clone(&self.retention), self.retention.left_out());
            let delete = move |db: &Db<'_>| db.delete_ended(ended_for, limit, &cursor, walk);
            match self.write_past_torn("delete_ended", delete).await {
                // It met an instance that cannot be deleted, and leaves that out from here on.
                Err(_) if self.retention.left_out() > before => {}
                Err(error) => return Err(error),
                Ok((deleted, next)) => {
                    walk = next;
                    // A caller takes a call that deletes nothing for the end (S16), so it looks at all.
                    if limit == 0 || deleted.instances_deleted > 0 || walk.has_seen_all() {
                        self.retention.end(&walk);
                        return Ok(deleted);
                    }
                }
            }
        }
    }

    async fn gauges(&self) -> Result<Gauges, ProviderError> {
        self.read("gauges", |db| db.gauges()).await
    }

    async fn turn_of(&self, instance: &str) -> Result<Option<TurnState>, ProviderError> {
        let instance = instance.to_owned();
        self.read("turn_of", move |db| db.turn_of(&instance)).await
    }

    async fn start_of(&self, instance: &str) -> Result<Option<WaitingStart>, ProviderError> {
        let instance = instance.to_owned();
        self.read("start_of", move |db| db.start_of(&instance)).await
    }

    async fn work_of(&self, instance: &str, execution_id: u64) -> Result<Vec<WorkState>, ProviderError> {
        let instance = instance.to_owned();
        self.read("work_of", move |db| db.work_of(&instance, execution_id)).await
    }

    async fn oldest_waiting(&self) -> Result<OldestWaiting, ProviderError> {
        self.write_past_torn("oldest_waiting", |db| db.oldest_waiting()).await
    }
}

impl Db<'_> {
    fn has_turn(&self) -> DbResult<bool> {
        self.sweep_turns()?;
        let found = self.number(sql!("turn/ready/any"), [])? == 1;
        if !found {
            self.note_next_turn(self.end_silence()?)?;
        }
        Ok(found)
    }

    fn has_work(&self) -> DbResult<bool> {
        self.sweep_work()?;
        let found = self.number(sql!("work/ready/any"), [])? == 1;
        if !found {
            self.note_next_work(self.end_silence()?)?;
        }
        Ok(found)
    }
}

fn work_lease(leased: LeasedWork) -> WorkLease {
    let unknown = || (UNKNOWN.to_owned(), UNKNOWN.to_owned());
    let (orchestration, orchestration_version) = leased.orchestration.unwrap_or_else(unknown);
    WorkLease {
        token: LeaseToken::Work(leased.token),
        item: leased.item,
        attempt: leased.attempt,
        delivery: leased.delivery,
        call: leased.call,
        tries: leased.tries,
        orchestration,
        orchestration_version,
        traceparent: leased.traceparent,
        session: leased.session,
        waiting_since_ms: Some(unsigned(leased.since)),
        now_ms: unsigned(leased.now),
    }
}
