//! The cases, one file for each concept. Each function is named after the clause that it is about.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a case is a test: it panics with what it expected"
)]

mod admin;
mod clock;
mod cost;
mod durable;
mod excuse;
mod fair;
mod instance;
mod send;
mod session;
mod stray;
mod tag;
mod turn;
mod unreadable;
mod work;
mod worker;

use crate::Case;

pub(crate) const ALL: &[&[Case]] = &[
    cost::CASES,
    durable::CASES,
    admin::look::CASES,
    admin::delete::CASES,
    admin::asked_for::CASES,
    admin::bulk::CASES,
    admin::age::CASES,
    admin::gauge::CASES,
    admin::prune::CASES,
    instance::start::CASES,
    instance::state::CASES,
    instance::watch::CASES,
    instance::end::CASES,
    instance::list::CASES,
    send::CASES,
    instance::kv::CASES,
    clock::CASES,
    clock::sleep::CASES,
    fair::CASES,
    stray::CASES,
    unreadable::CASES,
    tag::CASES,
    turn::traceparent::CASES,
    work::CASES,
    work::withdrawn::CASES,
    work::tries::CASES,
    excuse::CASES,
    worker::row::CASES,
    worker::refuse::CASES,
    worker::route::CASES,
    worker::report::CASES,
    worker::end::CASES,
    worker::wake::CASES,
    worker::session::CASES,
    worker::cost::CASES,
    turn::CASES,
    turn::order::CASES,
    turn::life::CASES,
    turn::warm::CASES,
    turn::poll::CASES,
    turn::inspect::CASES,
    turn::inspect::oldest::CASES,
    turn::inspect::work::CASES,
    turn::version::CASES,
    turn::lease::CASES,
    instance::history::CASES,
    instance::execution::CASES,
    instance::custom_status::CASES,
    turn::commit::CASES,
    turn::abandon::CASES,
    session::activity::CASES,
    session::lease::claim::CASES,
    session::lease::cleanup::CASES,
    session::lease::dropped::CASES,
    session::compat::CASES,
    session::crowd::CASES,
    session::list::CASES,
    session::node::CASES,
    session::owned::CASES,
    session::lease::release::CASES,
    session::lease::renew::CASES,
    session::route::CASES,
    session::scope::CASES,
    session::serial::CASES,
    session::lease::untaken::CASES,
    session::inspect::CASES,
    session::poll::CASES,
    session::reopened::CASES,
    session::trail::CASES,
    session::watch::CASES,
];
