//! A subscriber for applications without one of their own.

use tracing_subscriber::EnvFilter;

use super::{LogFormat, ObservabilityConfig};

/// Writes log lines to standard output for the rest of the process: those of orchestrations and activities
/// from `log_level` on, and warnings of all other code. The environment variable `RUST_LOG` replaces this
/// filter.
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
    format!("warn,steadfast::orchestration={level},steadfast::activity={level}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_for_what_handlers_log() {
        assert_eq!(directives("debug"), "warn,steadfast::orchestration=debug,steadfast::activity=debug");
        assert!(EnvFilter::try_new(directives("debug")).is_ok());
    }
}
