//! The metrics of a runtime, and log lines for an application without a subscriber of its own. A runtime
//! emits metrics through the crate `metrics` and log lines through `tracing`, and installs neither a recorder
//! nor a subscriber. The application chooses both, or calls `init_logging` for a subscriber.

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

/// Chooses how `init_logging` writes log lines. `LogFormat::default()` is [`Compact`](Self::Compact); a
/// default [`ObservabilityConfig`] chooses [`Pretty`](Self::Pretty).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object per line, for log collectors.
    Json,
    /// Several lines per event, for people.
    Pretty,
    /// One line per event.
    #[default]
    Compact,
}

/// Sets up the metrics of a runtime, and the log lines of `init_logging`.
#[derive(Debug, Clone)]
pub struct ObservabilityConfig {
    /// How `init_logging` writes log lines. Default: [`LogFormat::Pretty`].
    pub log_format: LogFormat,
    /// The least level of the log lines of orchestrations and activities that `init_logging` shows: `error`,
    /// `warn`, `info`, `debug` or `trace`. Default: `info`. Log lines of other code are shown from `warn` on.
    pub log_level: String,
    /// The name of the service, for an exporter of the application; the runtime does not use it. Default:
    /// `duroxide`.
    pub service_name: String,
    /// The version of the service, for an exporter of the application; the runtime does not use it. Default:
    /// `None`.
    pub service_version: Option<String>,
    /// How often the gauges are read from the store: running instances and the depths of the queues. Default:
    /// 60 s. Zero reads them at the start only.
    ///
    /// Shorter costs the store more queries over all rows; longer shows older values.
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

/// Gives access to the metrics of a runtime.
#[derive(Debug)]
pub struct ObservabilityHandle {
    metrics: Arc<MetricsProvider>,
}

impl ObservabilityHandle {
    /// Makes metrics that start at zero. Installs no subscriber.
    ///
    /// # Errors
    /// As [`MetricsProvider::new`].
    pub fn init(config: &ObservabilityConfig) -> Result<Self, String> {
        Ok(Self::with_metrics(MetricsProvider::new(config)?))
    }

    pub(crate) fn with_metrics(metrics: MetricsProvider) -> Self {
        Self { metrics: Arc::new(metrics) }
    }

    /// Returns the metrics. The application may record into them too.
    pub fn metrics_provider(&self) -> &Arc<MetricsProvider> {
        &self.metrics
    }

    /// Returns the counters so far.
    pub fn metrics_snapshot(&self) -> MetricsSnapshot {
        self.metrics.snapshot()
    }

    /// Does nothing; it is for compatibility. Clones of the metrics can still be read.
    ///
    /// # Cancel safety
    /// Nothing to cancel.
    ///
    /// # Errors
    /// No error today.
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
