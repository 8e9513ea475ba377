//! The functions of the database, each made from a file of its own.

use std::sync::LazyLock;

use crate::link::statement::sql;

/// A function of the database.
pub(crate) struct Function {
    /// The path of its file below `sql/functions`, without the ending.
    pub(crate) name: &'static str,
    /// The text of its file.
    pub(crate) text: &'static str,
}

/// Names functions by their files; each file makes the function of its name.
macro_rules! functions {
    ($($name:literal),* $(,)?) => {
        &[$($crate::schema::functions::Function {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/functions/", $name, ".sql")),
        }),*]
    };
}
pub(crate) use functions;

/// The functions of this build, by area. A function in the language SQL is checked when it is made, so it
/// comes after those that it calls.
pub(crate) const FUNCTIONS: &[&[Function]] = &[
    crate::verbs::notify::FUNCTIONS,
    crate::verbs::worker::FUNCTIONS,
    crate::schema::floor::FUNCTIONS,
    crate::verbs::turn::FUNCTIONS,
    crate::verbs::message::FUNCTIONS,
    crate::verbs::history::FUNCTIONS,
    crate::verbs::kv::FUNCTIONS,
    crate::verbs::instance::FUNCTIONS,
    crate::verbs::work::FUNCTIONS,
    crate::verbs::session::FUNCTIONS,
    crate::verbs::inspect::FUNCTIONS,
    crate::verbs::set_aside::FUNCTIONS,
    crate::verbs::admin::FUNCTIONS,
    crate::schema::compat::FUNCTIONS,
];

impl Function {
    /// Returns its name in the database: the last part of the name of its file.
    pub(crate) fn short(&self) -> &'static str {
        self.name.rsplit('/').next().unwrap_or(self.name)
    }

    /// Returns the statement that creates it, with the shared planner settings. It still holds the
    /// placeholders `{schema}` and `{channel}`.
    pub(crate) fn sql(&self) -> String {
        self.text.replace("{planner}", &PLANNER)
    }
}

/// The planner settings of functions: their file without its comments.
static PLANNER: LazyLock<String> = LazyLock::new(|| {
    let settings = sql!("schema/settings/planner").lines().filter(|line| !line.starts_with("--"));
    settings.collect::<Vec<_>>().join("\n")
});
