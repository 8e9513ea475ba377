//! What a store is asked to do, one file for each word of the contract: which function of the database
//! answers it, with which arguments, and how its rows are read.

pub(crate) mod admin;
pub(crate) mod backend;
pub(crate) mod history;
pub(crate) mod inspect;
pub(crate) mod instance;
pub(crate) mod kv;
pub(crate) mod message;
pub(crate) mod notify;
pub(crate) mod poll;
pub(crate) mod session;
pub(crate) mod set_aside;
pub(crate) mod turn;
pub(crate) mod within;
pub(crate) mod work;
pub(crate) mod worker;
