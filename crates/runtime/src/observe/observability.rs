//! What a runtime tells about itself: counts, and log lines for an application that wants them on its
//! terminal.
//!
//! Nothing here is installed by itself. A runtime counts, and emits through the facade of the crate
//! `metrics`; it logs through `tracing`. The application chooses the recorder and the subscriber, or calls
//! `init_logging`.

mod catalogue;
#[cfg(feature = "logging")]
mod logging;
mod metrics;

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "logging")]
pub use logging::init_logging;
pub(crate) use metrics::{Affinity, Counter};
pub use metrics::{MetricsProvider, MetricsSnapshot};

/// Says how log lines are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// Several lines each, for people.
    Pretty,
    /// One line each.
    #[default]
    Compact,
}

/// Says what a runtime tells about itself, and how.
#[derive(Debug, Clone)]
pub struct ObservabilityConfig {
    /// Says how `init_logging` writes.
    pub log_format: LogFormat,
    /// Says from which level on `init_logging` shows what orchestrations and activities log.
    pub log_level: String,
    /// Names the service.
    pub service_name: String,
    /// Names the version of the service.
    pub service_version: Option<String>,
    /// Spaces the looks at the store for what cannot be counted in passing.
    pub gauge_poll_interval: Duration,
}

impl Default for ObservabilityConfig {
    fn default() -> Self {
        Self {
            log_format: LogFormat::Pretty,
            log_level: "info".to_owned(),
            // The name that dashboards of the compatible crate look for.
            service_name: "duroxide".to_owned(),
            service_version: None,
            gauge_poll_interval: Duration::from_secs(60),
        }
    }
}

/// Holds what a runtime tells about itself.
#[derive(Debug)]
pub struct ObservabilityHandle {
    metrics: Arc<MetricsProvider>,
}

impl ObservabilityHandle {
    /// Begins to count. Logging is left alone.
    ///
    /// # Errors
    /// As [`MetricsProvider::new`].
    pub fn init(config: &ObservabilityConfig) -> Result<Self, String> {
        Ok(Self::over(MetricsProvider::new(config)?))
    }

    pub(crate) fn over(metrics: MetricsProvider) -> Self {
        Self { metrics: Arc::new(metrics) }
    }

    /// Returns what counts.
    pub fn metrics_provider(&self) -> &Arc<MetricsProvider> {
        &self.metrics
    }

    /// Returns the counts so far.
    pub fn metrics_snapshot(&self) -> MetricsSnapshot {
        self.metrics.snapshot()
    }

    /// Ends the counting; counts that others hold can still be read.
    ///
    /// # Errors
    /// None today.
    pub async fn shutdown(self) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_compact_and_a_config_is_pretty_by_default() {
        assert_eq!(LogFormat::default(), LogFormat::Compact);
        assert_eq!(ObservabilityConfig::default().log_format, LogFormat::Pretty);
    }
}
