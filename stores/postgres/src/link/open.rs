//! Opening a database: what can go wrong, said so that somebody can mend it.

/// Says why a database could not be opened. The database is left as it was.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The connection URL cannot be used.
    #[error(
        "'{url}' is no usable connection URL: {why}; expected postgres://user:password@host:5432/database"
    )]
    Url {
        /// Shows the URL without its password.
        url: String,
        /// Says what is wrong with it.
        why: String,
    },
    /// The schema name cannot be used.
    #[error("'{name}' is no usable schema name: {why}")]
    SchemaName {
        /// Holds the name.
        name: String,
        /// Says what is wrong with it.
        why: String,
    },
    /// An option cannot be used.
    #[error("option {option}: {why}")]
    Option {
        /// Names the option.
        option: &'static str,
        /// Says what is wrong with its value, and what to do.
        why: String,
    },
    /// The server cannot be reached, or does not let this user in.
    #[error("cannot connect to {server}: {why}")]
    Connect {
        /// Names host, port and database.
        server: String,
        /// Says what went wrong, and what to do.
        why: String,
    },
    /// The encryption of the connection cannot be set up.
    #[error("TLS: {why}")]
    Tls {
        /// Says what is wrong, and what to do.
        why: String,
    },
    /// The server is there and cannot be used.
    #[error("cannot use the server: {why}")]
    Server {
        /// Says why not, and what to do.
        why: String,
    },
    /// The database does not let this user do what is needed.
    #[error("schema '{schema}': {why}")]
    Refused {
        /// Names the schema.
        schema: String,
        /// Says what was refused, and what to do.
        why: String,
    },
    /// The schema holds tables or functions of somebody else.
    #[error("schema '{schema}' holds {found}, which Steadfast did not make: choose another schema")]
    Foreign {
        /// Names the schema.
        schema: String,
        /// Names what is there.
        found: String,
    },
    /// The schema was made by a newer build.
    #[error("schema '{schema}' is at version {found}, this build knows {known}: update the program")]
    TooNew {
        /// Names the schema.
        schema: String,
        /// Holds the version that was found.
        found: i64,
        /// Holds the newest version that this build knows.
        known: i64,
    },
    /// A migration that was applied is not the one that this build has.
    #[error(
        "schema '{schema}': migration {version} was applied in another form than this build has; run the build that made \
         the schema, or choose another schema"
    )]
    Changed {
        /// Names the schema.
        schema: String,
        /// Holds the version of the migration.
        version: i64,
    },
    /// A migration or a function failed.
    #[error("schema '{schema}': {step} failed, and nothing was changed: {why}")]
    Migration {
        /// Names the schema.
        schema: String,
        /// Names the migration or function.
        step: String,
        /// Says what went wrong.
        why: String,
    },
}

/// Bounds a name in Postgres: what is longer is cut off, and two names could become one.
const MAX_NAME_BYTES: usize = 63;

/// Says what a usable name looks like.
const USE_INSTEAD: &str = "use 1 to 63 bytes that do not begin with pg_, without ' $ % { }";

/// Letters that mean something inside the texts of functions, where the name stands too.
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
    if let Some(letter) = name.chars().find(|letter| NOT_IN_NAMES.contains(letter)) {
        return refuse(format!("it contains {letter}"));
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
