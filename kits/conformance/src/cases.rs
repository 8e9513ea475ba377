//! The cases, one file for each concept. Each function is named after the clause that it is about.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a case is a test: it panics with what it expected"
)]

mod abandon;
mod admin;
mod clock;
mod commit;
mod cost;
mod custom_status;
mod durable;
mod execution;
mod fair;
mod history;
mod instance;
mod kv;
mod lease;
mod send;
mod session;
mod stray;
mod tag;
mod traceparent;
mod turn;
mod unreadable;
mod version;
mod wait;
mod waiting;
mod warm;
mod work;

use crate::Case;

pub(crate) const ALL: &[&[Case]] = &[
    cost::CASES,
    durable::CASES,
    admin::look::CASES,
    admin::delete::CASES,
    admin::bulk::CASES,
    admin::prune::CASES,
    instance::start::CASES,
    instance::state::CASES,
    instance::watch::CASES,
    instance::end::CASES,
    instance::list::CASES,
    send::CASES,
    kv::CASES,
    clock::CASES,
    fair::CASES,
    stray::CASES,
    unreadable::CASES,
    tag::CASES,
    traceparent::CASES,
    work::CASES,
    turn::CASES,
    warm::CASES,
    wait::CASES,
    waiting::CASES,
    version::CASES,
    lease::CASES,
    history::CASES,
    execution::CASES,
    custom_status::CASES,
    commit::CASES,
    abandon::CASES,
    session::activity::CASES,
    session::claim::CASES,
    session::cleanup::CASES,
    session::compat::CASES,
    session::crowd::CASES,
    session::list::CASES,
    session::node::CASES,
    session::owned::CASES,
    session::release::CASES,
    session::renew::CASES,
    session::route::CASES,
    session::scope::CASES,
    session::serial::CASES,
    session::untaken::CASES,
    session::waiting::CASES,
    session::wake::CASES,
    session::watch::CASES,
];
