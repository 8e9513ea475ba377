//! A subscriber for applications without one of their own.

use tracing_subscriber::EnvFilter;

use super::{LogFormat, ObservabilityConfig};

/// Writes log lines to standard output for the rest of the process: those of orchestrations, activities and
/// the engine from `log_level` on (`info` by default, which has the claims, moves and losses of sessions),
/// and warnings of all other code. The environment variable `RUST_LOG` replaces this filter.
///
/// # Errors
/// If the process has a subscriber already, or the filter is not valid.
pub fn init_logging(config: &ObservabilityConfig) -> Result<(), String> {
    let lines = tracing_subscriber::fmt().with_env_filter(filter(config)?);
    let installed = match config.log_format {
        LogFormat::Json => lines.json().try_init(),
        LogFormat::Pretty => lines.pretty().try_init(),
        LogFormat::Compact => lines.compact().try_init(),
    };
    installed.map_err(|error| error.to_string())
}

fn filter(config: &ObservabilityConfig) -> Result<EnvFilter, String> {
    if let Ok(filter) = EnvFilter::try_from_default_env() {
        return Ok(filter);
    }
    EnvFilter::try_new(directives(&config.log_level)).map_err(|error| error.to_string())
}

fn directives(level: &str) -> String {
    format!("warn,steadfast={level}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects what a filter lets through, as `init_logging` installs it.
    fn shown(level: &str, log: impl FnOnce()) -> String {
        #[derive(Clone, Default)]
        struct Written(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
        impl std::io::Write for Written {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.lock().expect("no writer panics").extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let written = Written::default();
        let (filter, writer) = (EnvFilter::try_new(directives(level)).expect("a filter"), written.clone());
        let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(move || writer.clone());
        tracing::subscriber::with_default(lines.finish(), log);
        let bytes = written.0.lock().expect("no writer panics").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn the_level_is_for_handlers_and_the_engine_and_all_other_code_warns() {
        let log = || {
            tracing::debug!(target: "steadfast::orchestration", "a step");
            tracing::debug!(target: "hyper", "a frame");
            tracing::warn!(target: "hyper", "a reset");
        };
        let shown = shown("debug", log);
        assert!(
            shown.contains("a step") && shown.contains("a reset") && !shown.contains("a frame"),
            "{shown}"
        );
    }

    #[test]
    fn g36_the_default_level_shows_the_claims_moves_and_losses_of_sessions() {
        let level = ObservabilityConfig::default().log_level;
        let log = || {
            tracing::info!(target: "steadfast::runtime", "session claimed");
            tracing::info!(target: "steadfast::runtime", "session migrated");
            tracing::warn!(target: "steadfast::runtime", "session lost");
            tracing::debug!(target: "steadfast::runtime", "sessions renewed");
        };
        let shown = shown(&level, log);
        assert_eq!(shown.matches("session ").count(), 3, "{shown}");
    }
}
