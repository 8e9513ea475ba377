//! What a role must be allowed to do (G22).

use steadfast_store::Store;

use crate::{CREATE_ROLE, as_user, connect, execute, open, refused, says, server};

/// Lets a role read a schema, and call its functions, as everybody may.
const READ_ONLY: &str = "
    GRANT USAGE ON SCHEMA {name} TO {name};
    GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {name}";

#[tokio::test]
async fn g22_a_role_that_can_only_read_is_refused_with_the_rights_that_it_lacks() {
    let schema = server().schema("read_only");
    let client = connect(server().url()).await;
    execute(&client, CREATE_ROLE, schema.name()).await;
    open(server().url(), schema.name()).await.unwrap();
    execute(&client, READ_ONLY, schema.name()).await;
    let url = as_user(server().url(), schema.name(), schema.name());
    let said = refused(&url, schema.name()).await;
    says(&said, &[schema.name(), "lacks", "DELETE on table", "grant it"]);
    execute(&client, "GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {name}", schema.name())
        .await;
    says(&refused(&url, schema.name()).await, &["lacks USAGE on sequence numbers"]);
    execute(
        &client,
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA {name} TO {name};
         REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {name} FROM PUBLIC",
        schema.name(),
    )
    .await;
    says(&refused(&url, schema.name()).await, &["EXECUTE on function"]);
    execute(&client, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {name} TO {name}", schema.name()).await;
    let store = open(&url, schema.name()).await.unwrap();
    store.start(crate::start_of("a").into(), Vec::new()).await.unwrap();
    drop(store);
    execute(&client, "DROP OWNED BY {name}; DROP ROLE {name}", schema.name()).await;
}

#[tokio::test]
async fn g22_a_schema_that_is_dropped_meanwhile_says_so_and_may_be_tried_again() {
    let schema = server().schema("dropped_meanwhile");
    let store = open(server().url(), schema.name()).await.unwrap();
    execute(&connect(server().url()).await, "DROP SCHEMA {name} CASCADE", schema.name()).await;
    let error = store.start(crate::start_of("a").into(), Vec::new()).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    says(&error.to_string(), &["the schema was dropped or changed", "open it again"]);
    open(server().url(), schema.name()).await.unwrap();
    store.start(crate::start_of("a").into(), Vec::new()).await.unwrap();
}
