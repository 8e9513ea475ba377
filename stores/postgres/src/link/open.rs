//! The errors of opening a database, each with advice, and the check of schema names.

/// The reason why a database could not be opened. The database is unchanged. Each text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The connection URL cannot be used.
    #[error(
        "'{url}' is no usable connection URL: {why}; expected postgres://user:password@host:5432/database"
    )]
    Url {
        /// The URL without its password.
        url: String,
        /// Why the URL cannot be used, and what to use instead.
        why: String,
    },
    /// The schema name cannot be used.
    #[error("'{name}' is no usable schema name: {why}")]
    SchemaName {
        /// The name, with special characters escaped.
        name: String,
        /// Why the name cannot be used, and what to use instead.
        why: String,
    },
    /// An option cannot be used.
    #[error("option {option}: {why}")]
    Option {
        /// The name of the field of [`PostgresOptions`](crate::PostgresOptions).
        option: &'static str,
        /// Why the value cannot be used, and which values are in range.
        why: String,
    },
    /// The server cannot be reached, or does not let this user in.
    #[error("cannot connect to {server}: {why}")]
    Connect {
        /// The host, port, database and user of the connection.
        server: String,
        /// Why the connection failed, and what to do.
        why: String,
    },
    /// The encryption of the connection cannot be set up.
    #[error("TLS: {why}")]
    Tls {
        /// Why the encryption cannot be set up, and what to do.
        why: String,
    },
    /// The server answers and cannot be used: a standby, an old version, another encoding.
    #[error("cannot use the server: {why}")]
    Server {
        /// Why the server cannot be used, and what to do.
        why: String,
    },
    /// The role lacks a right that opening the schema needs.
    #[error("schema '{schema}': {why}")]
    Refused {
        /// The name of the schema that was to be opened.
        schema: String,
        /// Which right is missing, and what to do.
        why: String,
    },
    /// The schema holds tables or functions that this library did not make.
    #[error("schema '{schema}' holds {found}, which Steadfast did not make: choose another schema")]
    Foreign {
        /// The name of the schema that was to be opened.
        schema: String,
        /// The kind and name of the foreign object, as `table 'orders'`.
        found: String,
    },
    /// The schema was made by a newer build.
    #[error("schema '{schema}' is at version {found}, this build knows {known}: update the program")]
    TooNew {
        /// The name of the schema that was to be opened.
        schema: String,
        /// The version that the schema is at.
        found: i64,
        /// The newest version that this build knows.
        known: i64,
    },
    /// A migration that was applied is not the one that this build has.
    #[error(
        "schema '{schema}': migration {version} was applied in another form than this build has; run the \
         build that made the schema, or choose another schema"
    )]
    Changed {
        /// The name of the schema that was to be opened.
        schema: String,
        /// The number of the migration; the first is 1.
        version: i64,
    },
    /// A migration or a function failed.
    #[error("schema '{schema}': {step} failed, and nothing was changed: {why}")]
    Migration {
        /// The name of the schema that was to be opened.
        schema: String,
        /// The migration or function that failed.
        step: String,
        /// The error as the server reported it.
        why: String,
    },
}

/// Postgres cuts longer names off, and two names could become one.
const MAX_NAME_BYTES: usize = 63;

/// The advice in every refusal of a name.
const USE_INSTEAD: &str = "use 1 to 63 bytes that do not begin with pg_, without ' $ % { }";

/// Characters with a meaning inside the texts of functions, into which the name is written.
const NOT_IN_NAMES: [char; 5] = ['\'', '$', '%', '{', '}'];

/// Returns a schema name as SQL writes it.
pub(crate) fn quoted(name: &str) -> Result<String, OpenError> {
    let refuse = |why: String| {
        Err(OpenError::SchemaName {
            name: name.escape_debug().to_string(),
            why: format!("{why}; {USE_INSTEAD}"),
        })
    };
    if name.is_empty() {
        return refuse("it is empty".to_owned());
    }
    if name.len() > MAX_NAME_BYTES {
        return refuse(format!("it has {} bytes, and at most {MAX_NAME_BYTES} are allowed", name.len()));
    }
    if name.contains('\0') {
        return refuse("it contains U+0000".to_owned());
    }
    if let Some(character) = name.chars().find(|character| NOT_IN_NAMES.contains(character)) {
        return refuse(format!("it contains {character}"));
    }
    if name.starts_with("pg_") || name == "information_schema" {
        return refuse("it is reserved by Postgres".to_owned());
    }
    Ok(format!("\"{}\"", name.replace('"', "\"\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_cannot_be_a_schema_is_refused_with_the_reason() {
        let long = "x".repeat(64);
        for (name, why) in [
            ("", "it is empty"),
            (long.as_str(), "it has 64 bytes, and at most 63 are allowed"),
            ("a\0b", "it contains U+0000"),
            ("it's", "it contains '"),
            ("$function$", "it contains $"),
            ("pg_mine", "it is reserved by Postgres"),
            ("information_schema", "it is reserved by Postgres"),
        ] {
            let error = quoted(name).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(USE_INSTEAD), "{name:?}: {error}");
        }
    }

    #[test]
    fn a_strange_name_is_quoted() {
        assert_eq!(quoted("Ä \"x\"; --").unwrap(), "\"Ä \"\"x\"\"; --\"");
    }
}
