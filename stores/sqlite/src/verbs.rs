//! The operations of the store as functions over one transaction ([`Db`](crate::link::db::Db)), one file for
//! each subject: turns, work, sessions and so on.

pub(crate) mod admin;
mod dump;
pub(crate) mod history;
mod import;
mod inspect;
mod instance;
mod kv;
pub(crate) mod message;
mod poll;
mod session;
mod set_aside;
pub(crate) mod torn;
pub(crate) mod turn;
pub(crate) mod work;
pub(crate) mod worker;
