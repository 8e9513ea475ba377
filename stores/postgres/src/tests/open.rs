//! The forms in which a schema is named.

use super::{connect, server};
use crate::link::open::OpenError;
use crate::provider::PostgresProvider;

#[tokio::test]
async fn a_schema_is_named_by_a_string_by_a_text_or_not_at_all() {
    let schema = server().schema("named");
    let string: String = schema.name().to_owned();
    PostgresProvider::new_with_schema(server().url(), Some(&string)).await.unwrap();
    PostgresProvider::new_with_schema(server().url(), Some(string.as_str())).await.unwrap();
    let client = connect(server().url()).await;
    let made = "SELECT count(*) FROM pg_namespace WHERE nspname = $1";
    let made: i64 = client.query_one(made, &[&string]).await.unwrap().get(0);
    assert_eq!(made, 1);
    // The schema `public` is shared by all tests, so it is not opened: the server is not there.
    let opened = PostgresProvider::new_with_schema("postgres://nobody@127.0.0.1:1/none", None).await;
    assert!(matches!(opened, Err(OpenError::Connect { .. })), "{opened:?}");
    let opened = PostgresProvider::new_with_schema("postgres://nobody@127.0.0.1:1/none", Some("x")).await;
    assert!(matches!(opened, Err(OpenError::Connect { .. })), "{opened:?}");
}
