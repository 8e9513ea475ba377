//! The functions of the database, each made from a file of its own.

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
    crate::verbs::admin::age::FUNCTIONS,
    crate::schema::compat::FUNCTIONS,
];

impl Function {
    /// Returns its name in the database: the last part of the name of its file.
    pub(crate) fn short(&self) -> &'static str {
        self.name.rsplit('/').next().unwrap_or(self.name)
    }

    /// Returns the statement that creates it, with the shared settings. It still holds the placeholders
    /// `{schema}` and `{channel}`.
    ///
    /// A function that is called from outside has settings of its own (`{planner}`, or `{patient}` without
    /// the limit of waits for locks; those of the compatible crate at least know where names are). What it
    /// calls runs under its settings.
    pub(crate) fn sql(&self) -> String {
        let planner = settings(sql!("schema/settings/planner"));
        let locks = settings(sql!("schema/settings/locks"));
        let text = self.text.replace("{planner}", &format!("{planner}\n{locks}"));
        let text = text.replace("{patient}", &planner);
        if text.contains("search_path") || text.contains("IMMUTABLE") || !self.is_called() {
            return text;
        }
        let names = settings(sql!("schema/settings/names"));
        text.replacen("AS $function$", &format!("\n{names}\nAS $function$"), 1)
    }

    /// Tells whether programs call it: the functions of the compatible crate, and those without a caller
    /// that has settings.
    fn is_called(&self) -> bool {
        self.name.starts_with("compat/") || self.name.starts_with("wake/")
    }
}

/// Returns the settings of a file without its comments.
fn settings(file: &str) -> String {
    file.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n")
}
