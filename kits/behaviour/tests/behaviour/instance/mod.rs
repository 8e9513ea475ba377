//! Instances as an operator sees them: lists, descriptions, explanations, deletion.

mod delete;
mod explain;
mod explain_session;
mod inspect;
