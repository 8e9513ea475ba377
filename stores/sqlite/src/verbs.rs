//! What the store does, one file for each word: functions over one transaction ([`Db`](crate::link::db::Db)).

mod admin;
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
pub(crate) mod turn;
pub(crate) mod work;
