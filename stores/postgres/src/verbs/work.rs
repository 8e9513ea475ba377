//! Work: leasing activities to those who may run them, and taking their outcome back. Each call serves many requests.

use std::collections::HashSet;

use steadfast_core::{SessionKey, TagFilter, WorkItem, kind_of};
use steadfast_store::{
    Abandon, Attempt, Claim, ClaimedSession, LeaseToken, MAX_UNREADABLE_ATTEMPTS, NewWork, Outcome, Owner,
    ProviderError, ProviderErrorKind, SessionScope, UNREADABLE_RETRY, Woken, WorkLease, WorkRequest,
};
use tokio_postgres::Row;

use crate::link::db::{Db, Function, column, functions, millis, sql, time, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::params;
use crate::merge::lanes::Lane;
use crate::verbs::message::{check_work, text};
use crate::verbs::notify::payload;
use crate::verbs::session::{fenced, keys, scope_of, stored_scope};

pub(crate) const FUNCTIONS: &[Function] = functions![
    "work/enqueue_work",
    "work/queue_work",
    "work/lock_work",
    "work/withdraw_work",
    "work/sweep_work",
    "work/next_work_moment",
    "work/find_free_work",
    "work/lease_free_work",
    "work/find_session_work",
    "work/lease_session_work",
    "work/fetch_work_items",
    "work/finish_work_items",
    "work/renew_work_items",
    "work/give_work_back",
    "work/abandon_work_items",
    "work/unlease_work_items",
    "work/pass_over_work",
];

/// Bounds how often a fetch goes on behind activities that cannot be read; the next fetch goes on from there.
const MAX_PASSES: usize = 8;

/// What requests have in common that are served by one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkGroup {
    /// The tags as they are stored; `None` for all.
    tags: Option<Vec<String>>,
    lock_ms: i64,
    session: Option<SessionGroup>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SessionGroup {
    owner: Owner,
    lock_ms: i64,
    scope: SessionScope,
    leave_out: Vec<SessionKey>,
}

impl WorkGroup {
    pub(crate) fn of(request: &WorkRequest) -> Self {
        Self {
            tags: tags_of(&request.tags),
            lock_ms: millis(request.lock_timeout),
            session: request.session.as_ref().map(|session| SessionGroup {
                owner: session.owner.clone(),
                lock_ms: millis(session.lock_timeout),
                scope: session.scope.clone(),
                leave_out: session.leave_out.clone(),
            }),
        }
    }
}

/// What a fetch found.
#[derive(Debug, Default)]
pub(crate) struct FetchedWork {
    /// A lease for each worker, in the order in which they asked, as far as there was something.
    pub(crate) leases: Vec<Option<WorkLease>>,
    /// Somebody else had what was found: it is worth looking again at once.
    pub(crate) again: bool,
    /// When to look again otherwise.
    pub(crate) next: Option<i64>,
    /// The time of the store.
    pub(crate) now: i64,
    /// What the fetch made runnable: those who watch the sessions that it claimed were told.
    pub(crate) woken: Woken,
}

/// A lease whose caller is gone, and whether it made a claim.
#[derive(Debug)]
pub(crate) struct Unlease {
    pub(crate) token: String,
    pub(crate) claimed: bool,
}

impl Unlease {
    pub(crate) fn of(lease: &WorkLease) -> Self {
        Self { token: lease.token.as_str().to_owned(), claimed: made_a_claim(lease.session.as_ref()) }
    }
}

/// The end of an activity.
#[derive(Debug, Clone)]
pub(crate) struct Finish {
    token: String,
    completion: Option<Completion>,
}

#[derive(Debug, Clone)]
struct Completion {
    instance: String,
    text: String,
    traceparent: Option<String>,
}

impl Finish {
    pub(crate) fn bytes(&self) -> usize {
        self.completion.as_ref().map_or(0, |completion| completion.text.len())
    }

    pub(crate) fn new(lease: &LeaseToken, outcome: Outcome) -> Result<Self, ProviderError> {
        const OPERATION: &str = "finish_work";
        let completion = match outcome.completion {
            None => None,
            Some(message) if !is_completion(&message.item) => {
                let text = format!("{} completes no activity", kind_of(&message.item));
                return Err(ProviderError::new(ProviderErrorKind::Invalid, OPERATION, text));
            }
            Some(message) => {
                let text = serde_json::to_string(&message.item).map_err(|error| {
                    let text = format!("it cannot be written as JSON: {error}");
                    ProviderError::new(ProviderErrorKind::Invalid, OPERATION, text)
                })?;
                Some(Completion {
                    instance: message.item.instance().to_owned(),
                    text,
                    traceparent: message.traceparent,
                })
            }
        };
        Ok(Self { token: lease.as_str().to_owned(), completion })
    }
}

/// Answers, one for each request, and what the call made runnable.
pub(crate) type Told = (Vec<Result<(), ProviderError>>, Woken);

impl Db {
    /// Leases the oldest activities that requests of one group accept (S13, S14, S18). One that cannot be read is passed over,
    /// and the fetch goes on behind it (S15).
    pub(crate) async fn fetch_work(
        &self,
        group: &WorkGroup,
        worker_ids: &[String],
    ) -> Result<FetchedWork, ProviderError> {
        let mut fetched =
            FetchedWork { leases: worker_ids.iter().map(|_| None).collect(), ..FetchedWork::default() };
        for pass in 0..MAX_PASSES {
            let wanting: Vec<usize> =
                (0..worker_ids.len()).filter(|place| fetched.leases[*place].is_none()).collect();
            let workers: Vec<&str> = wanting.iter().map(|place| worker_ids[*place].as_str()).collect();
            let answered = match self.lease_work(group, &workers).await {
                Ok(answered) => answered,
                // What was leased before is leased: the rest is looked for when somebody asks again.
                Err(error) if pass > 0 => {
                    tracing::debug!(target: "steadfast::store", %error, "a fetch ended early");
                    fetched.again = true;
                    break;
                }
                Err(error) => return Err(error),
            };
            (fetched.again, fetched.next, fetched.now) = (answered.again, answered.next, answered.now);
            fetched.woken.turns += answered.told;
            let mut unreadable = false;
            for (place, leased) in answered.leases {
                match leased {
                    Leased::Readable(lease) => {
                        if let Some(seat) = wanting.get(place).and_then(|seat| fetched.leases.get_mut(*seat))
                        {
                            *seat = Some(*lease);
                        }
                    }
                    Leased::Unreadable { token, instance, reason, claimed } => {
                        unreadable = true;
                        if let Err(error) = self.pass_over_work(&token, instance, &reason, claimed).await {
                            tracing::debug!(target: "steadfast::store", %error, "unreadable work was not passed over");
                        }
                    }
                }
            }
            if !unreadable {
                break;
            }
            fetched.again = true;
        }
        Ok(fetched)
    }

    async fn lease_work(&self, group: &WorkGroup, workers: &[&str]) -> Result<Answered, ProviderError> {
        const OPERATION: &str = "fetch_work";
        let session = group.session.as_ref();
        let owner = session.map(|session| &session.owner);
        let (only, claim) = match session.map(|session| &session.scope) {
            Some(SessionScope::Only(serving)) => (serving.as_slice(), false),
            Some(SessionScope::Claim) => (&[][..], true),
            None => (&[][..], false),
        };
        let (only_scopes, only_sessions) = keys(only);
        let (out_scopes, out_sessions) = keys(session.map_or(&[], |session| &session.leave_out));
        let tags: Option<Vec<_>> =
            group.tags.as_ref().map(|tags| tags.iter().map(|tag| escape(tag)).collect());
        let worker_ids: Vec<_> = workers.iter().map(|worker| escape(worker)).collect();
        let rows = self
            .rows_of(
                Lane::FetchWork,
                OPERATION,
                sql!("work/fetch"),
                params![
                    i32::try_from(workers.len()).unwrap_or(i32::MAX),
                    tags,
                    worker_ids,
                    group.lock_ms,
                    owner.map(|owner| escape(&owner.id)),
                    owner.and_then(|owner| owner.incarnation).map(time),
                    session.map(|session| session.lock_ms),
                    claim,
                    only_scopes,
                    only_sessions,
                    out_scopes,
                    out_sessions,
                    self.now(),
                ],
            )
            .await?;
        let mut answered = Answered::default();
        for row in &rows {
            answered.now = column(OPERATION, row, "now_ms")?;
            let told: Option<i32> = column(OPERATION, row, "told")?;
            answered.told += told.and_then(|told| usize::try_from(told).ok()).unwrap_or(0);
            match column::<&str>(OPERATION, row, "kind")? {
                "lease" => {
                    let place: i32 = column(OPERATION, row, "place")?;
                    answered
                        .leases
                        .push((usize::try_from(place - 1).unwrap_or(0), read_lease(OPERATION, row)?));
                }
                "fenced" => {
                    let newest = column(OPERATION, row, "incarnation")?;
                    return Err(fenced(OPERATION, owner, newest));
                }
                _ => {
                    answered.again = column(OPERATION, row, "again")?;
                    answered.next = column(OPERATION, row, "next_ms")?;
                }
            }
        }
        Ok(answered)
    }

    /// Counts an unreadable activity, delays it, and in the end sets it aside (S15).
    async fn pass_over_work(
        &self,
        token: &str,
        instance: Option<String>,
        reason: &str,
        claimed: bool,
    ) -> Result<(), ProviderError> {
        const OPERATION: &str = "fetch_work";
        let max_attempts = i32::try_from(MAX_UNREADABLE_ATTEMPTS).unwrap_or(i32::MAX);
        if let Some(row) = self
            .one(
                OPERATION,
                sql!("work/pass_over"),
                params![
                    escape(token),
                    escape(reason),
                    millis(UNREADABLE_RETRY),
                    max_attempts,
                    claimed,
                    self.now()
                ],
            )
            .await?
        {
            let attempts: i32 = column(OPERATION, &row, "attempts")?;
            match column::<Option<i64>>(OPERATION, &row, "aside")? {
                None => {
                    tracing::debug!(target: "steadfast::store", instance, reason, attempts, "unreadable work passed over");
                }
                Some(id) => {
                    tracing::warn!(target: "steadfast::store", id, instance, reason, attempts, "unreadable work set aside");
                }
            }
        }
        Ok(())
    }

    /// Queues an activity that no turn asked for, and tells what that made runnable.
    pub(crate) async fn enqueue_work(&self, me: &str, work: &NewWork) -> Result<Woken, ProviderError> {
        const OPERATION: &str = "enqueue_work";
        check_work(OPERATION, &work.item)?;
        let WorkItem::ActivityExecute { instance, execution_id, id, tag, .. } = &work.item else {
            return Err(ProviderError::permanent(OPERATION, "only activities are work"));
        };
        let session = work.session_key();
        let stored = stored_tag(tag.as_deref());
        let woken = Woken { work: vec![(tag.clone(), session.is_some())], ..Woken::default() };
        let columns = params![
            text(OPERATION, &work.item)?,
            escape(instance),
            time(*execution_id),
            time(*id),
            escape(&stored),
            session.as_ref().map(|key| escape(stored_scope(key))),
            session.as_ref().map(|key| escape(&key.session_id)),
            work.traceparent.as_deref().map(escape),
            self.now(),
            payload(me, &woken),
            me,
        ];
        self.rows(OPERATION, sql!("work/enqueue"), columns).await?;
        Ok(woken)
    }

    /// Removes activities and sends their completions, each together (S11).
    pub(crate) async fn finish_work(&self, me: &str, ends: &[Finish]) -> Result<Told, ProviderError> {
        const OPERATION: &str = "finish_work";
        let sent: Vec<Option<&Completion>> = ends.iter().map(|end| end.completion.as_ref()).collect();
        let asked = Woken { turns: sent.iter().flatten().count(), ..Woken::default() };
        let tokens: Vec<&str> = ends.iter().map(|end| end.token.as_str()).collect();
        let instances: Vec<_> = sent.iter().map(|sent| sent.map(|sent| escape(&sent.instance))).collect();
        let items: Vec<_> = sent.iter().map(|sent| sent.map(|sent| sent.text.as_str())).collect();
        let traceparents: Vec<_> =
            sent.iter().map(|sent| sent.and_then(|sent| sent.traceparent.as_deref()).map(escape)).collect();
        let rows = self
            .rows_of(
                Lane::FinishWork,
                OPERATION,
                sql!("work/finish"),
                params![
                    stored_tokens(&tokens),
                    instances,
                    items,
                    traceparents,
                    self.now(),
                    payload(me, &asked),
                    escape(me)
                ],
            )
            .await?;
        let answers = judged(OPERATION, &rows, &tokens)?;
        let turns =
            answers.iter().zip(&sent).filter(|(answer, sent)| answer.is_ok() && sent.is_some()).count();
        let mut work = Vec::new();
        for row in &rows {
            if let Some(tag) = column::<Option<String>>(OPERATION, row, "next_tag")? {
                work.push((tag_of(tag), true));
            }
        }
        Ok((answers, Woken { turns, work, ..Woken::default() }))
    }

    /// Extends the leases of activities (S4).
    pub(crate) async fn renew_work(
        &self,
        renewals: &[(String, std::time::Duration)],
    ) -> Result<Vec<Result<(), ProviderError>>, ProviderError> {
        const OPERATION: &str = "renew";
        let tokens: Vec<&str> = renewals.iter().map(|(token, _)| token.as_str()).collect();
        let extend: Vec<i64> = renewals.iter().map(|(_, extend_for)| millis(*extend_for)).collect();
        let rows = self
            .rows(OPERATION, sql!("work/renew"), params![stored_tokens(&tokens), extend, self.now()])
            .await?;
        judged(OPERATION, &rows, &tokens)
    }

    /// Gives activities back (S6).
    pub(crate) async fn abandon_work(
        &self,
        me: &str,
        given: &[(String, Abandon)],
    ) -> Result<Told, ProviderError> {
        const OPERATION: &str = "abandon";
        let tokens: Vec<&str> = given.iter().map(|(token, _)| token.as_str()).collect();
        let delays: Vec<Option<i64>> = given.iter().map(|(_, how)| how.retry_after.map(millis)).collect();
        let uncounted: Vec<bool> = given.iter().map(|(_, how)| how.attempt == Attempt::Uncounted).collect();
        let told = payload(me, &any_work());
        let rows = self
            .rows(
                OPERATION,
                sql!("work/abandon"),
                params![stored_tokens(&tokens), delays, uncounted, self.now(), told, escape(me)],
            )
            .await?;
        let answers = judged(OPERATION, &rows, &tokens)?;
        let mut woken = Woken::default();
        for row in &rows {
            if column::<&str>(OPERATION, row, "code")? == "ok" {
                let tag: String = column(OPERATION, row, "tag")?;
                woken.work.push((tag_of(tag), column(OPERATION, row, "has_session")?));
            }
        }
        Ok((answers, woken))
    }

    /// Gives back what was leased for somebody who is gone: uncounted, and what was claimed for it (S5).
    pub(crate) async fn unlease_work(&self, me: &str, leases: &[Unlease]) -> Result<Woken, ProviderError> {
        let tokens: Vec<&str> = leases.iter().map(|lease| lease.token.as_str()).collect();
        let claimed: Vec<bool> = leases.iter().map(|lease| lease.claimed).collect();
        self.rows(
            "fetch_work",
            sql!("work/unlease"),
            params![stored_tokens(&tokens), claimed, self.now(), payload(me, &any_work()), escape(me)],
        )
        .await?;
        Ok(any_work())
    }
}

/// What one call leased, by the place of the worker that gets it.
#[derive(Debug, Default)]
struct Answered {
    leases: Vec<(usize, Leased)>,
    again: bool,
    next: Option<i64>,
    now: i64,
    told: usize,
}

/// A leased activity, or one that turned out to be unreadable.
#[derive(Debug)]
enum Leased {
    Readable(Box<WorkLease>),
    Unreadable { token: String, instance: Option<String>, reason: String, claimed: bool },
}

fn read_lease(operation: &'static str, row: &Row) -> Result<Leased, ProviderError> {
    let token: String = column(operation, row, "token")?;
    let session = read_attachment(operation, row)?;
    let item = match serde_json::from_str::<WorkItem>(column(operation, row, "item")?) {
        Ok(item) => item,
        Err(error) => {
            let instance: Option<String> = column(operation, row, "instance_id")?;
            let claimed = made_a_claim(session.as_ref());
            return Ok(Leased::Unreadable {
                token,
                instance: instance.map(unescape),
                reason: error.to_string(),
                claimed,
            });
        }
    };
    let attempt: i32 = column(operation, row, "attempt")?;
    let name = |name: &str| -> Result<String, ProviderError> {
        let known: Option<String> = column(operation, row, name)?;
        Ok(known.map_or_else(|| "unknown".to_owned(), unescape))
    };
    let traceparent: Option<String> = column(operation, row, "traceparent")?;
    Ok(Leased::Readable(Box::new(WorkLease {
        token: LeaseToken::Work(token),
        item,
        attempt: u32::try_from(attempt).unwrap_or(0),
        orchestration: name("orchestration")?,
        orchestration_version: name("version")?,
        traceparent: traceparent.map(unescape),
        session,
        waiting_since_ms: Some(unsigned(column(operation, row, "since")?)),
        now_ms: unsigned(column(operation, row, "now_ms")?),
    })))
}

fn read_attachment(operation: &'static str, row: &Row) -> Result<Option<ClaimedSession>, ProviderError> {
    let Some(session_id) = column::<Option<String>>(operation, row, "session_id")? else { return Ok(None) };
    // A fetch without an owner is given no activity of a session, so there is an epoch.
    let claim = match column::<&str>(operation, row, "claim")? {
        "new" => Claim::New,
        "taken" => Claim::Taken { from: unescape(column(operation, row, "claimed_from")?) },
        _ => Claim::Held,
    };
    let key = scope_of(column(operation, row, "session_scope")?, session_id);
    Ok(Some(ClaimedSession { key, epoch: unsigned(column(operation, row, "epoch")?), claim }))
}

fn made_a_claim(session: Option<&ClaimedSession>) -> bool {
    session.is_some_and(|session| matches!(session.claim, Claim::New | Claim::Taken { .. }))
}

/// Tokens as the database can hold them: one that somebody thought up may be any text.
fn stored_tokens<'t>(tokens: &[&'t str]) -> Vec<std::borrow::Cow<'t, str>> {
    tokens.iter().map(|token| escape(token)).collect()
}

/// What became of requests that named a lease, by their places.
fn judged(
    operation: &'static str,
    rows: &[Row],
    tokens: &[&str],
) -> Result<Vec<Result<(), ProviderError>>, ProviderError> {
    let judge = |(row, token): (&Row, &&str)| {
        Ok(match column::<&str>(operation, row, "code")? {
            "ok" => Ok(()),
            "ended" => Err(ProviderError::lease_lost(operation, "the lease of the activity has ended")),
            _ => Err(ProviderError::lease_lost(operation, format!("'{token}' holds nothing"))),
        })
    };
    rows.iter().zip(tokens).map(judge).collect()
}

fn any_work() -> Woken {
    Woken { any_work: true, ..Woken::default() }
}

fn is_completion(item: &WorkItem) -> bool {
    matches!(item, WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. })
}

/// The tags that a filter accepts, as they are stored; `None` for all.
pub(crate) fn tags_of(filter: &TagFilter) -> Option<Vec<String>> {
    let named = |tags: &HashSet<String>| -> Vec<String> {
        let mut tags: Vec<String> = tags.iter().map(|tag| stored_tag(Some(tag))).collect();
        tags.sort_unstable();
        tags
    };
    match filter {
        TagFilter::Any => None,
        TagFilter::None => Some(Vec::new()),
        TagFilter::DefaultOnly => Some(vec![stored_tag(None)]),
        TagFilter::Tags(tags) => Some(named(tags)),
        TagFilter::DefaultAnd(tags) => Some(std::iter::once(stored_tag(None)).chain(named(tags)).collect()),
    }
}

/// Tags as they are stored: no tag is none of the tags that anybody can give.
pub(crate) fn stored_tag(tag: Option<&str>) -> String {
    tag.map_or_else(String::new, |tag| format!(":{tag}"))
}

/// The tag that is stored so.
pub(crate) fn tag_of(stored: String) -> Option<String> {
    unescape(stored).strip_prefix(':').map(str::to_owned)
}
