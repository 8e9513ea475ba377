//! Log lines and metrics of a turn.

use steadfast_core::replay::{AnsweredChild, Identity, Notice, Start, Turn, Verdict};
use steadfast_core::{ErrorDetails, WorkItem};

use super::process::TurnProcess;

impl TurnProcess {
    /// Logs the notices that the engine made during the turn.
    pub(super) fn report(&self, identity: &Identity, turn: &Turn) {
        let instance = identity.instance.as_str();
        for notice in &turn.notices {
            match notice {
                Notice::Ignored { message, why } => {
                    tracing::debug!(target: "steadfast::runtime", instance, message, why, "message ignored");
                }
                Notice::EarlyEvent { name } => {
                    tracing::warn!(
                        target: "steadfast::runtime",
                        instance,
                        %name,
                        "event raised while nobody waits for it; not delivered"
                    );
                }
                Notice::CarryForwardDropped { name, data } => {
                    tracing::warn!(
                        target: "steadfast::runtime",
                        instance,
                        %name,
                        %data,
                        "Dropping carry-forward event beyond limit"
                    );
                }
                Notice::InvalidPinnedVersion { version, error } => {
                    tracing::warn!(
                        target: "steadfast::runtime",
                        instance,
                        %version,
                        %error,
                        "Invalid pinned version; replaying with this engine"
                    );
                }
                Notice::Stuck => {
                    self.shared.metrics().record_stuck();
                    tracing::warn!(
                        target: "steadfast::runtime",
                        instance,
                        "the orchestration waits for nothing that could answer it"
                    );
                }
                Notice::LongHistory { events } => {
                    tracing::warn!(
                        target: "steadfast::runtime",
                        instance,
                        events,
                        "the history is long; continue-as-new keeps it short"
                    );
                }
            }
        }
    }

    /// Counts an execution that began, ended or continued as new in a committed turn. A turn is committed
    /// once, so it is counted once (F23).
    pub(super) fn count(&self, identity: &Identity, verdict: &Verdict, start: Option<&Start>, events: u64) {
        let (standing, now_ms) = (&self.standing, self.now_ms);
        let metrics = self.shared.metrics();
        let Identity { execution_id, name, version, .. } = identity;
        if start.is_some() {
            let initiated_by = if *execution_id > 1 { "continueAsNew" } else { "client" };
            metrics.record_orchestration_start(name, version, initiated_by);
        }
        let began = standing.started.as_ref().map_or(now_ms, |started| started.at_ms);
        let seconds = now_ms.saturating_sub(began) as f64 / 1_000.0;
        let ended = |status| metrics.record_end(name, version, status, seconds, standing.turns, events);
        match verdict {
            Verdict::Waiting { .. } | Verdict::Ended => {}
            Verdict::Completed { .. } => {
                metrics.record_orchestration_completion(
                    name,
                    version,
                    "success",
                    seconds,
                    standing.turns,
                    events,
                );
            }
            Verdict::ContinuedAsNew { .. } => {
                metrics.record_continue_as_new(name, *execution_id);
                ended("continuedAsNew");
            }
            Verdict::Failed { details } => {
                let (error_type, category) = match details {
                    ErrorDetails::Application { .. } => ("app_error", "application"),
                    ErrorDetails::Infrastructure { .. } => ("infrastructure_error", "infrastructure"),
                    ErrorDetails::Configuration { .. } => ("config_error", "configuration"),
                    ErrorDetails::Poison { .. } => ("poison", "poison"),
                };
                metrics.record_orchestration_failure(name, version, error_type, category);
                if matches!(details, ErrorDetails::Poison { .. }) {
                    metrics.record_orchestration_poison();
                }
                ended("failed");
            }
        }
    }

    /// Counts the children that a committed turn started, and records how long the children took that
    /// answered.
    pub(super) fn count_children(&self, identity: &Identity, children: &TurnChildren) {
        let (metrics, parent) = (self.shared.metrics(), identity.name.as_str());
        for child in &children.started {
            metrics.record_suborchestration_call(parent, child, "started");
        }
        for child in &children.answered {
            let outcome = if child.succeeded { "success" } else { "failed" };
            let seconds = child.took_ms as f64 / 1_000.0;
            metrics.record_suborchestration_duration(parent, &child.name, seconds, outcome);
        }
    }
}

/// The children that a turn started, and those that answered in it.
pub(super) struct TurnChildren {
    /// The names of their orchestrations.
    started: Vec<String>,
    answered: Vec<AnsweredChild>,
}

impl TurnChildren {
    pub(super) fn of(turn: &Turn) -> Self {
        let name = |message: &WorkItem| match message {
            WorkItem::StartOrchestration { orchestration, parent_instance: Some(_), .. } => {
                Some(orchestration.clone())
            }
            _ => None,
        };
        let started = turn.effects.messages.iter().filter_map(name).collect();
        Self { started, answered: turn.answered.clone() }
    }
}
