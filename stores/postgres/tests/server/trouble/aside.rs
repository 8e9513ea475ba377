//! Rows that were set aside come back as they were (G20), whether their texts can be read or not.

use crate::{connect, execute, number, open, server};

/// Sets an unreadable start and an unreadable activity of an owned session aside, and puts both back.
const THERE_AND_BACK: &str = r#"
    SELECT {name}.start_instances('{a}', '{broken}', '{NULL}', '{trace}', '{}', '{}', '{}', '{}', '{}', '{}',
        NULL);
    SELECT {name}.pass_over_messages(t.token, t.ids, '{why}', 1000, 1, NULL)
        FROM {name}.fetch_turns(NULL, 30000, 1) AS t WHERE t.kind = 'turn';
    SELECT {name}.lock_lines('{a}', '{S}');
    SELECT {name}.queue_work('{broken}', '{a}', '{3}', '{4}', '{:gpu}', '{a}', '{S}', '{trace}',
        {name}.now_ms(NULL), '{terms}', '{6}', '{2}', '{closed}', '{77}');
    SELECT {name}.pass_over_work(w.token, 'why', 1000, 1, true)
        FROM {name}.fetch_work_items(1, '{:gpu}', '{w}', 30000, 'node', NULL, 30000, true, p_terms => true)
            AS w
        WHERE w.kind = 'lease';
    SELECT {name}.retry_message_set_aside(s.id, s.instance_id, false)
        FROM {name}.set_aside AS s WHERE s.queue = 0;
    SELECT {name}.retry_work_set_aside(s.id, 'x', 0, 0, '', NULL)
        FROM {name}.set_aside AS s WHERE s.queue = 1"#;

/// Counts the rows that are as they were.
const AS_THEY_WERE: &str = "
    SELECT (SELECT count(*) FROM {name}.orchestrator_queue
            WHERE instance_id = 'a' AND starts AND traceparent = 'trace' AND work_item = 'broken')
        + (SELECT count(*) FROM {name}.worker_queue
            WHERE instance_id = 'a' AND execution_id = 3 AND activity_id = 4 AND tag = ':gpu'
              AND session_scope = 'a' AND session_id = 'S' AND traceparent = 'trace'
              AND call = 'terms' AND deliveries = 7 AND tries = 2 AND last_error = 'closed'
              AND first_fetched = 77 AND attempt_count = 0)";

#[tokio::test]
async fn g20_a_start_and_an_activity_of_an_owned_session_come_back_as_they_were() {
    let schema = server().schema("aside");
    open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    execute(&client, THERE_AND_BACK, schema.name()).await;
    assert_eq!(number(&client, AS_THEY_WERE, schema.name()).await, 2);
    assert_eq!(number(&client, "SELECT count(*) FROM {name}.set_aside", schema.name()).await, 0);
}
