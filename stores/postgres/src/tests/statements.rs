//! The calls of functions: each fits the function that this build makes.

use super::{connect, server};
use crate::link::statement::DeclaredCall;
use crate::provider::PostgresProvider;
use crate::verbs;

/// Every declared call.
const CALLS: &[&[DeclaredCall]] = &[
    verbs::admin::CALLS,
    verbs::admin::age::CALLS,
    verbs::history::CALLS,
    verbs::inspect::CALLS,
    verbs::message::CALLS,
    verbs::notify::CALLS,
    verbs::session::CALLS,
    verbs::set_aside::CALLS,
    verbs::turn::CALLS,
    verbs::turn::columns::CALLS,
    verbs::work::CALLS,
    verbs::work::finish::CALLS,
    verbs::work::tries::CALLS,
    verbs::worker::CALLS,
    verbs::worker::excuse::CALLS,
    verbs::worker::refuse::CALLS,
];

#[tokio::test]
async fn every_call_can_be_prepared_and_has_the_types_of_its_function() {
    let schema = server().schema("calls");
    PostgresProvider::new_with_schema(server().url(), Some(schema.name())).await.unwrap();
    let client = connect(server().url()).await;
    for call in CALLS.iter().flat_map(|calls| calls.iter()) {
        let text = (call.text)().replace("{schema}", schema.name());
        // The server finds out the types by the names of the parameters.
        let prepared = client.prepare(&text).await;
        assert!(prepared.is_ok(), "{text}: {:?}", prepared.err());
        assert_eq!(prepared.unwrap().params(), (call.types)(), "{text}");
    }
}
