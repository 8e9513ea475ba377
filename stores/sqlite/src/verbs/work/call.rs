//! Work with terms (S22): it stands where a build that knows no terms does not look.
//!
//! Work that is on no session has a session number that no session has; work on a session has a tag with a
//! mark in front, and so has the owner of its head. Routed work with terms stands where all routed work does,
//! and its route is of a kind that such a build does not look for.

/// The stored session number of work with terms that is on no session. No session has this number.
pub(crate) const WITHOUT_SESSION: i64 = 0;

/// The beginning of the stored tag of work with terms on a session.
pub(crate) const CALLED: &str = ">+";

/// The beginning of the stored owner of the head of such work.
pub(crate) const CALLED_HEADS: &str = "+";

/// Returns the stored tag of work with terms on a session.
pub(crate) fn called_tag(plain: &str) -> String {
    format!("{CALLED}{plain}")
}

/// Returns the plain stored tag of work that is not routed.
pub(crate) fn uncalled_tag(stored: &str) -> &str {
    stored.strip_prefix(CALLED).unwrap_or(stored)
}

/// Returns the stored session and tag of work that is not routed.
pub(crate) fn place_of(session: Option<i64>, plain: String, has_terms: bool) -> (Option<i64>, String) {
    match session {
        Some(session) if has_terms => (Some(session), called_tag(&plain)),
        None if has_terms => (Some(WITHOUT_SESSION), plain),
        session => (session, plain),
    }
}
