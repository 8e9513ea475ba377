//! What the store reads beside rows, given texts that it did not write. `kits/testing/tests/readers` lists
//! all readers.

use std::sync::Arc;

use proptest::prelude::*;
use steadfast_store::{Waiters, WorkerId};
use tokio_postgres::config::Host;

use crate::link::escape::{escape, unescape};
use crate::link::tls::TlsMode;
use crate::link::url::{Address, shown};
use crate::verbs::notify::hear;
use crate::verbs::worker::report::read_report;

/// Connection strings of parts that hold what must be escaped, or does not belong there.
fn connection_string() -> impl Strategy<Value = String> {
    let part = || "[a-c@?&=:/%#' \\\\0-9\u{0}é]{0,8}";
    let url = (part(), part(), part(), part(), part()).prop_map(|(user, password, host, key, value)| {
        format!("postgres://{user}:{password}@h{host}/d?{key}={value}&sslmode=require")
    });
    let bare =
        (part(), part()).prop_map(|(host, value)| format!("postgres://h{host}?sslmode=require&a={value}"));
    let pairs = (part(), part(), part())
        .prop_map(|(host, key, value)| format!("host=h{host} sslmode=require {key}={value}"));
    prop_oneof![url, bare, pairs, any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_connection_string_is_refused_or_keeps_its_encryption(text in connection_string()) {
        match Address::parse(&text) {
            Ok(address) if text.contains("sslmode=require") => {
                let is_socket = |host: &Host| matches!(host, Host::Unix(_));
                let is_local = address.config.get_hosts().iter().all(is_socket);
                let asked_again = text.matches("sslmode").count() > 1;
                let encrypted = !matches!(address.tls_mode, TlsMode::Disable | TlsMode::Prefer);
                // A value of a list may hold everything, `sslmode=require` too.
                let is_quoted = text.contains('\'') || text.contains('\\');
                prop_assert!(encrypted || is_local || asked_again || is_quoted, "{address:?}");
            }
            Ok(_) => {}
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn a_password_is_shown_in_no_connection_string(
        user in "[a-c?&=/%#]{0,6}", rest in "[a-c@?&=:/%#0-9]{0,12}",
    ) {
        let text = format!("postgres://{user}:geheim@{rest}");
        prop_assert!(!shown(&text).contains("geheim"), "{}", shown(&text));
        if let Err(error) = Address::parse(&text) {
            prop_assert!(!error.to_string().contains("geheim"), "{error}");
        }
    }

    #[test]
    fn any_text_comes_back_as_it_was_escaped(text in "[\u{0}-\u{3}a01]{0,30}|\\PC{0,30}") {
        let stored = escape(&text).into_owned();
        prop_assert!(!stored.contains('\0'));
        prop_assert_eq!(unescape(stored), text);
    }

    #[test]
    fn any_stored_text_can_be_read_back(text in any::<String>()) {
        unescape(text);
    }

    #[test]
    fn any_notification_wakes_and_any_report_is_read_or_refused(
        text in prop_oneof![any::<String>(), "[\\[\\]{}\":,a-z0-9_-]{0,80}", notification()],
    ) {
        hear("me", &text, &Arc::new(Waiters::default()));
        if let Err(error) = read_report(&text, WorkerId("w".to_owned()), false) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

/// Notifications with numbers that no sender would give.
fn notification() -> impl Strategy<Value = String> {
    let number = prop_oneof![Just("18446744073709551615".to_owned()), Just("-1".to_owned()), "[0-9]{1,3}"];
    (number.clone(), number, any::<bool>()).prop_map(|(turns, going_on, all)| {
        format!(r#"{{"from":"b","turns":{turns},"instances":["a"],"going_on":{going_on},"all":{all}}}"#)
    })
}
