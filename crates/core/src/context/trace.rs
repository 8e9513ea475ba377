//! Log lines of an orchestration. No line is written while the code only repeats earlier turns.

use super::OrchestrationContext;

macro_rules! emit {
    ($level:ident, $identity:expr, $message:expr $(, $field:ident = $value:expr)*) => {
        tracing::event!(
            target: "steadfast::orchestration",
            tracing::Level::$level,
            instance_id = %$identity.instance,
            execution_id = $identity.execution_id,
            orchestration_name = %$identity.name,
            orchestration_version = %$identity.version,
            $($field = $value,)*
            "{}",
            $message
        )
    };
}

impl OrchestrationContext {
    /// Logs at level INFO, unless the code is replaying.
    pub fn trace_info(&self, message: impl Into<String>) {
        self.trace("INFO", message);
    }

    /// Logs at level WARN, unless the code is replaying.
    pub fn trace_warn(&self, message: impl Into<String>) {
        self.trace("WARN", message);
    }

    /// Logs at level ERROR, unless the code is replaying.
    pub fn trace_error(&self, message: impl Into<String>) {
        self.trace("ERROR", message);
    }

    /// Logs at level DEBUG, unless the code is replaying.
    pub fn trace_debug(&self, message: impl Into<String>) {
        self.trace("DEBUG", message);
    }

    /// Logs at a level given by name, in upper or lower case. Any other name is logged at TRACE, with the
    /// name in the field `level`.
    pub fn trace(&self, level: impl Into<String>, message: impl Into<String>) {
        let identity = {
            let ledger = self.scope.lock();
            if ledger.replaying {
                return;
            }
            ledger.identity.clone()
        };
        let (level, message) = (level.into(), message.into());
        match level.to_ascii_uppercase().as_str() {
            "ERROR" => emit!(ERROR, identity, message),
            "WARN" => emit!(WARN, identity, message),
            "INFO" => emit!(INFO, identity, message),
            "DEBUG" => emit!(DEBUG, identity, message),
            "TRACE" => emit!(TRACE, identity, message),
            _ => emit!(TRACE, identity, message, level = level.as_str()),
        }
    }
}
