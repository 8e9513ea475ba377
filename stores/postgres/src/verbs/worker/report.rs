//! The stored form of a worker's report.

use semver::Version;
use serde::{Deserialize, Serialize};
use steadfast_core::{DispatcherCapabilityFilter, SemverRange, TagFilter};
use steadfast_store::rules::to_json;
use steadfast_store::{ListedHandler, ProviderError, WorkerId, WorkerProcess, WorkerReport, WorkerSlots};

/// A report without what has a column of its own. Fields that are missing have their defaults, so that
/// processes of two versions read each other's.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredReport {
    process: StoredProcess,
    orchestrations: Vec<StoredHandler>,
    activities: Vec<StoredHandler>,
    tags: StoredTags,
    serves_sessions: bool,
    /// The first and the last version of each range of engine versions; `None` for all.
    engines: Option<Vec<(String, String)>>,
    takes_unlisted: bool,
    turns: u64,
    turns_busy: u64,
    activity_slots: u64,
    activities_busy: u64,
    sessions: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredProcess {
    node: Option<String>,
    incarnation: Option<u64>,
    host: Option<String>,
    boot_id: Option<String>,
    pid_namespace: Option<String>,
    pid: u32,
    pid_started: Option<u64>,
    build_id: Option<String>,
    version: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredHandler {
    name: String,
    versions: Vec<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredTags {
    #[default]
    DefaultOnly,
    Tags(Vec<String>),
    DefaultAnd(Vec<String>),
    Any,
    None,
}

/// Writes a report as JSON.
pub(super) fn write_report(operation: &'static str, report: &WorkerReport) -> Result<String, ProviderError> {
    let handlers = |handlers: &[ListedHandler]| {
        let stored = |ListedHandler { name, versions }: &ListedHandler| StoredHandler {
            name: name.clone(),
            versions: versions.clone(),
        };
        handlers.iter().map(stored).collect()
    };
    let WorkerProcess {
        node,
        incarnation,
        host,
        boot_id,
        pid_namespace,
        pid,
        pid_started,
        build_id,
        version,
    } = report.process.clone();
    let process = StoredProcess {
        node,
        incarnation,
        host,
        boot_id,
        pid_namespace,
        pid,
        pid_started,
        build_id,
        version,
    };
    let WorkerSlots { turns, turns_busy, activities, activities_busy } = report.slots;
    let stored = StoredReport {
        process,
        orchestrations: handlers(&report.orchestrations),
        activities: handlers(&report.activities),
        tags: StoredTags::of(&report.tags),
        serves_sessions: report.serves_sessions,
        engines: report.engines.as_ref().map(write_engines),
        takes_unlisted: report.takes_unlisted,
        turns,
        turns_busy,
        activity_slots: activities,
        activities_busy,
        sessions: report.sessions,
    };
    to_json(operation, &stored)
}

/// Reads a report from its JSON and from the columns beside it.
pub(crate) fn read_report(
    text: &str,
    id: WorkerId,
    is_stopped: bool,
) -> Result<WorkerReport, serde_json::Error> {
    let stored: StoredReport = serde_json::from_str(text)?;
    let handlers = |handlers: Vec<StoredHandler>| {
        handlers
            .into_iter()
            .map(|StoredHandler { name, versions }| ListedHandler { name, versions })
            .collect()
    };
    let StoredProcess {
        node,
        incarnation,
        host,
        boot_id,
        pid_namespace,
        pid,
        pid_started,
        build_id,
        version,
    } = stored.process;
    let process = WorkerProcess {
        node,
        incarnation,
        host,
        boot_id,
        pid_namespace,
        pid,
        pid_started,
        build_id,
        version,
    };
    Ok(WorkerReport {
        id,
        process,
        orchestrations: handlers(stored.orchestrations),
        activities: handlers(stored.activities),
        tags: stored.tags.into_filter(),
        serves_sessions: stored.serves_sessions,
        engines: stored.engines.as_deref().map(read_engines),
        takes_unlisted: stored.takes_unlisted,
        slots: WorkerSlots {
            turns: stored.turns,
            turns_busy: stored.turns_busy,
            activities: stored.activity_slots,
            activities_busy: stored.activities_busy,
        },
        sessions: stored.sessions,
        is_stopped,
    })
}

fn write_engines(engines: &DispatcherCapabilityFilter) -> Vec<(String, String)> {
    let range = |range: &SemverRange| (range.min.to_string(), range.max.to_string());
    engines.supported_duroxide_versions.iter().map(range).collect()
}

/// Reads ranges of engine versions; one that cannot be read is left out.
fn read_engines(ranges: &[(String, String)]) -> DispatcherCapabilityFilter {
    let range = |(min, max): &(String, String)| {
        Some(SemverRange::new(Version::parse(min).ok()?, Version::parse(max).ok()?))
    };
    DispatcherCapabilityFilter { supported_duroxide_versions: ranges.iter().filter_map(range).collect() }
}

impl StoredTags {
    fn of(filter: &TagFilter) -> Self {
        let sorted = |tags: &std::collections::HashSet<String>| {
            let mut tags: Vec<String> = tags.iter().cloned().collect();
            tags.sort_unstable();
            tags
        };
        match filter {
            TagFilter::DefaultOnly => Self::DefaultOnly,
            TagFilter::Tags(tags) => Self::Tags(sorted(tags)),
            TagFilter::DefaultAnd(tags) => Self::DefaultAnd(sorted(tags)),
            TagFilter::Any => Self::Any,
            TagFilter::None => Self::None,
        }
    }

    fn into_filter(self) -> TagFilter {
        match self {
            Self::DefaultOnly => TagFilter::DefaultOnly,
            Self::Tags(tags) => TagFilter::Tags(tags.into_iter().collect()),
            Self::DefaultAnd(tags) => TagFilter::DefaultAnd(tags.into_iter().collect()),
            Self::Any => TagFilter::Any,
            Self::None => TagFilter::None,
        }
    }
}
