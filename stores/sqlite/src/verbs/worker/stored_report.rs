//! The stored forms of a worker's report, as JSON.

use std::collections::BTreeSet;

use semver::Version;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use steadfast_core::{DispatcherCapabilityFilter, SemverRange, TagFilter};
use steadfast_store::rules::to_json;
use steadfast_store::{
    ListedHandler, NeededHandler, ProviderError, WorkerProcess, WorkerReport, WorkerSlots,
};

use super::HandlerKind;

/// The part of a report that only people read.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredReport {
    node: Option<String>,
    incarnation: Option<u64>,
    host: Option<String>,
    boot_id: Option<String>,
    pid_namespace: Option<String>,
    pid: u32,
    pid_started: Option<u64>,
    build_id: Option<String>,
    version: String,
    turns: u64,
    turns_busy: u64,
    activities: u64,
    activities_busy: u64,
    pub(super) sessions: u64,
}

impl StoredReport {
    pub(super) fn of(report: &WorkerReport) -> Self {
        let (process, slots) = (report.process.clone(), report.slots);
        Self {
            node: process.node,
            incarnation: process.incarnation,
            host: process.host,
            boot_id: process.boot_id,
            pid_namespace: process.pid_namespace,
            pid: process.pid,
            pid_started: process.pid_started,
            build_id: process.build_id,
            version: process.version,
            turns: slots.turns,
            turns_busy: slots.turns_busy,
            activities: slots.activities,
            activities_busy: slots.activities_busy,
            sessions: report.sessions,
        }
    }

    pub(super) fn to_text(&self) -> Result<String, ProviderError> {
        to_json("report_worker", self)
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        read(text)
    }

    pub(super) fn slots(&self) -> WorkerSlots {
        WorkerSlots {
            turns: self.turns,
            turns_busy: self.turns_busy,
            activities: self.activities,
            activities_busy: self.activities_busy,
        }
    }

    pub(super) fn process(self) -> WorkerProcess {
        WorkerProcess {
            node: self.node,
            incarnation: self.incarnation,
            host: self.host,
            boot_id: self.boot_id,
            pid_namespace: self.pid_namespace,
            pid: self.pid,
            pid_started: self.pid_started,
            build_id: self.build_id,
            version: self.version,
        }
    }
}

/// The handlers of a worker: names with their versions.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredHandlers {
    orchestrations: Vec<(String, Vec<String>)>,
    activities: Vec<(String, Vec<String>)>,
}

impl StoredHandlers {
    pub(super) fn of(report: &WorkerReport) -> Self {
        let stored = |handlers: &[ListedHandler]| {
            handlers.iter().map(|handler| (handler.name.clone(), handler.versions.clone())).collect()
        };
        Self { orchestrations: stored(&report.orchestrations), activities: stored(&report.activities) }
    }

    pub(super) fn to_text(&self) -> Result<String, ProviderError> {
        to_json("report_worker", self)
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        read(text)
    }

    pub(super) fn has(&self, kind: HandlerKind, needed: &NeededHandler) -> bool {
        let handlers = match kind {
            HandlerKind::Orchestration => &self.orchestrations,
            HandlerKind::Activity => &self.activities,
        };
        handlers.iter().any(|(name, versions)| {
            *name == needed.name && needed.version.as_ref().is_none_or(|version| versions.contains(version))
        })
    }

    /// Returns the orchestrations and the activities.
    pub(super) fn lists(self) -> (Vec<ListedHandler>, Vec<ListedHandler>) {
        let listed = |stored: Vec<(String, Vec<String>)>| {
            stored.into_iter().map(|(name, versions)| ListedHandler { name, versions }).collect()
        };
        (listed(self.orchestrations), listed(self.activities))
    }
}

/// What a worker accepts beside its handlers.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredAccepts {
    pub(super) tags: StoredTags,
    pub(super) serves_sessions: bool,
    /// The first and the last version of each range of engine versions; `None` for all.
    engines: Option<Vec<(String, String)>>,
}

impl StoredAccepts {
    pub(super) fn of(report: &WorkerReport) -> Self {
        let range = |range: &SemverRange| (range.min.to_string(), range.max.to_string());
        let ranges = |engines: &DispatcherCapabilityFilter| {
            engines.supported_duroxide_versions.iter().map(range).collect()
        };
        Self {
            tags: StoredTags::of(&report.tags),
            serves_sessions: report.serves_sessions,
            engines: report.engines.as_ref().map(ranges),
        }
    }

    pub(super) fn to_text(&self) -> Result<String, ProviderError> {
        to_json("report_worker", self)
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        read(text)
    }

    /// Returns the engine versions; a range that cannot be read is left out.
    pub(super) fn engines(&self) -> Option<DispatcherCapabilityFilter> {
        let range = |(min, max): &(String, String)| {
            Some(SemverRange::new(Version::parse(min).ok()?, Version::parse(max).ok()?))
        };
        let ranges = |ranges: &Vec<_>| ranges.iter().filter_map(range).collect();
        let supported = self.engines.as_ref().map(ranges);
        supported
            .map(|supported_duroxide_versions| DispatcherCapabilityFilter { supported_duroxide_versions })
    }
}

/// The tags that a worker accepts, in order, so that the same tags have the same text.
#[derive(Serialize, Deserialize)]
pub(super) enum StoredTags {
    DefaultOnly,
    Tags(BTreeSet<String>),
    DefaultAnd(BTreeSet<String>),
    Any,
    None,
}

impl StoredTags {
    pub(super) fn of(filter: &TagFilter) -> Self {
        match filter {
            TagFilter::DefaultOnly => Self::DefaultOnly,
            TagFilter::Tags(tags) => Self::Tags(tags.iter().cloned().collect()),
            TagFilter::DefaultAnd(tags) => Self::DefaultAnd(tags.iter().cloned().collect()),
            TagFilter::Any => Self::Any,
            TagFilter::None => Self::None,
        }
    }

    pub(super) fn filter(self) -> TagFilter {
        match self {
            Self::DefaultOnly => TagFilter::DefaultOnly,
            Self::Tags(tags) => TagFilter::Tags(tags.into_iter().collect()),
            Self::DefaultAnd(tags) => TagFilter::DefaultAnd(tags.into_iter().collect()),
            Self::Any => TagFilter::Any,
            Self::None => TagFilter::None,
        }
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}
