//! Connection strings: URLs, and lists of `key=value`. A displayed one never holds a password.

use std::borrow::Cow;
use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::link::error::chain;
use crate::link::open::OpenError;
use crate::link::tls::{Roots, TlsMode};

/// A connection string, read.
#[derive(Debug)]
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) tls_mode: TlsMode,
    pub(crate) roots: Roots,
}

impl Address {
    /// Reads a connection string.
    pub(crate) fn parse(text: &str) -> Result<Self, OpenError> {
        Self::read(text).map_err(|why| OpenError::Url { url: shown(text), why })
    }

    fn read(text: &str) -> Result<Self, String> {
        let (rest, ours) = if is_url(text) { split_url(text)? } else { split_pairs(text)? };
        let mut config: Config = rest.parse().map_err(|error| chain(&error))?;
        if config.get_hosts().is_empty() {
            // A certificate may be issued for an address.
            for address in config.get_hostaddrs().to_vec() {
                config.host(address.to_string());
            }
        }
        if config.get_hosts().is_empty() {
            return Err("it names no host".to_owned());
        }
        let mut address = Self { config, tls_mode: TlsMode::default(), roots: Roots::Platform };
        for (key, value) in ours {
            match key.as_str() {
                "sslmode" => address.tls_mode = TlsMode::parse(&value)?,
                _ => address.roots = Roots::parse(&value),
            }
        }
        // As in libpq: a root certificate that is named is used.
        if address.tls_mode == TlsMode::Require && address.roots != Roots::Platform {
            address.tls_mode = TlsMode::VerifyCa;
        }
        // As in libpq: a Unix socket is not encrypted.
        #[cfg(unix)]
        if address.config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) {
            address.tls_mode = TlsMode::Disable;
        }
        address.config.ssl_mode(address.tls_mode.on_the_wire());
        Ok(address)
    }

    /// Returns the server, the database and the user, for messages.
    pub(crate) fn server(&self) -> String {
        server(&self.config)
    }
}

/// Returns the server, the database and the user of a configuration.
fn server(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
    let hosts: Vec<String> = (0..)
        .zip(config.get_hosts())
        .map(|(index, host)| match host {
            Host::Tcp(name) => format!("{name}:{}", port(index)),
            #[cfg(unix)]
            Host::Unix(path) => format!("{}:{}", path.display(), port(index)),
        })
        .collect();
    let database = config.get_dbname().map(|name| format!("/{name}")).unwrap_or_default();
    let user = config.get_user().map(|name| format!(" as user '{name}'")).unwrap_or_default();
    format!("{}{database}{user}", hosts.join(","))
}

fn is_url(text: &str) -> bool {
    scheme_of(text).is_some()
}

/// Splits a URL behind its scheme; `None` for a list of `key=value`, even if a password in it holds `://`.
fn scheme_of(text: &str) -> Option<(&str, &str)> {
    let is_scheme = |scheme: &str| {
        scheme.chars().all(|character| character.is_alphanumeric() || "+-._".contains(character))
    };
    text.split_once("://").filter(|(scheme, _)| is_scheme(scheme))
}

/// Tells whether this module reads an option, because the driver does not know it or only in part.
fn is_ours(key: &str) -> bool {
    matches!(key, "sslmode" | "sslrootcert")
}

/// A connection string for the driver, and our options.
type Split = (String, Vec<(String, String)>);

/// Takes our options out of a URL.
fn split_url(text: &str) -> Result<Split, String> {
    if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
        return Err("it begins with neither postgres:// nor postgresql://".to_owned());
    }
    let address = text.split('?').next().unwrap_or(text);
    if address.matches('@').count() > 1 {
        return Err(
            "it holds more than one @: in a password, write @ as %40, / as %2F, # as %23 and % as %25"
                .to_owned(),
        );
    }
    // The driver takes everything before the first @ for a user, options too.
    let hides_options = |at: usize| text[..at].split_once('?').is_some_and(|(_, rest)| rest.contains('='));
    if text.find('@').is_some_and(hides_options) {
        return Err("it holds an @ behind a ?: in an option, write @ as %40; in a password, write ? as %3F"
            .to_owned());
    }
    let host = text.find('@').map_or(0, |at| at + 1);
    let Some(mark) = text[host..].find('?').map(|mark| host + mark) else {
        return Ok((text.to_owned(), Vec::new()));
    };
    let (mut theirs, mut ours, mut keys) = (Vec::new(), Vec::new(), BTreeSet::new());
    let parts = parts_of(&text[..mark]);
    for pair in text[mark + 1..].split('&').filter(|pair| !pair.is_empty()) {
        let Some((key, value)) = pair.split_once('=') else {
            theirs.push(pair);
            continue;
        };
        // The driver decodes keys too.
        let key = decoded(key).ok_or("the key of an option is not UTF-8")?;
        is_named_once(&mut keys, &key)?;
        if let Some((_, place)) = parts.iter().find(|(part, _)| *part == key) {
            return Err(format!(
                "it names {key} twice, {place} and as the option {key}=: leave out one of them"
            ));
        }
        if is_ours(&key) {
            let value = decoded(value).ok_or_else(|| format!("the value of {key} is not UTF-8"))?;
            ours.push((key, value));
        } else {
            theirs.push(pair);
        }
    }
    let query = if theirs.is_empty() { String::new() } else { format!("?{}", theirs.join("&")) };
    Ok((format!("{}{query}", &text[..mark]), ours))
}

/// Lists the options that stand in front of the `?` of a URL, each with its place there.
fn parts_of(address: &str) -> Vec<(&'static str, &'static str)> {
    let rest = scheme_of(address).map_or(address, |(_, rest)| rest);
    let (credentials, rest) = rest.split_once('@').unwrap_or(("", rest));
    let (hosts, database) = rest.split_once('/').unwrap_or((rest, ""));
    let user = credentials.split(':').next().unwrap_or_default();
    // An address of IPv6 stands in brackets, and its colons are no ports.
    let has_port = |host: &str| host.rsplit(']').next().is_some_and(|end| end.contains(':'));
    let parts = [
        ("user", "before the @", !user.is_empty()),
        ("password", "before the @", credentials.contains(':')),
        ("host", "behind the //", hosts.split(',').any(|host| !host.is_empty() && !host.starts_with(':'))),
        ("port", "behind the host", hosts.split(',').any(has_port)),
        ("dbname", "behind the /", !database.is_empty()),
    ];
    parts.into_iter().filter(|(.., is_there)| *is_there).map(|(part, place, _)| (part, place)).collect()
}

/// Decodes a key or a value of a URL. `None` if that is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}

/// Notes a key, and refuses one that is there already: one of its two values would be lost.
fn is_named_once(keys: &mut BTreeSet<String>, key: &str) -> Result<(), String> {
    if keys.insert(key.to_owned()) { Ok(()) } else { Err(format!("it names {key} twice")) }
}

/// Takes our options out of a list of `key=value`.
fn split_pairs(text: &str) -> Result<Split, String> {
    let pairs = pairs(text)?;
    let mut keys = BTreeSet::new();
    pairs.iter().try_for_each(|(key, _)| is_named_once(&mut keys, key))?;
    let (ours, theirs): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(key, _)| is_ours(key));
    let quote = |value: &str| value.replace('\\', "\\\\").replace('\'', "\\'");
    let theirs: Vec<String> = theirs.iter().map(|(key, value)| format!("{key}='{}'", quote(value))).collect();
    Ok((theirs.join(" "), ours))
}

/// Reads `key=value` pairs. A value may be in single quotes, and a backslash escapes the next character.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or("it is neither a URL nor a list of key=value")?;
        // The driver ends at such a value, and does not read what follows.
        if key.trim().is_empty() {
            return Err("a value has no key in front of its =".to_owned());
        }
        let mut value = String::new();
        let mut characters = after.trim_start().chars();
        let is_quoted = characters.as_str().starts_with('\'');
        if is_quoted {
            characters.next();
        }
        loop {
            match characters.next() {
                Some('\\') => value.extend(characters.next()),
                Some('\'') if is_quoted => break,
                Some(character) if !is_quoted && character.is_whitespace() => break,
                Some(character) => value.push(character),
                None if is_quoted => return Err(format!("the quote of {} does not end", key.trim())),
                None => break,
            }
        }
        pairs.push((key.trim().to_owned(), value));
        rest = characters.as_str().trim_start();
    }
    Ok(pairs)
}

const HIDDEN: &str = "***";

/// Returns a connection string for display. Whatever may be a password is hidden, even if the string is not
/// valid.
pub(crate) fn shown(text: &str) -> String {
    if let Some((scheme, rest)) = scheme_of(text) {
        return format!("{scheme}://{}", shown_rest(rest));
    }
    let shown = |(key, value): &(String, String)| match key.as_str() {
        "host" | "hostaddr" | "port" | "dbname" | "user" | "sslmode" | "sslrootcert" => {
            format!("{key}={value}")
        }
        _ => format!("{key}={HIDDEN}"),
    };
    match pairs(text) {
        Ok(pairs) => pairs.iter().map(shown).collect::<Vec<_>>().join(" "),
        Err(_) => HIDDEN.to_owned(),
    }
}

/// Returns what follows the scheme of a URL, for display. A password may hold any character, so everything
/// between the first `:` and the last `@` is hidden.
fn shown_rest(rest: &str) -> String {
    let (before, after) = match rest.rsplit_once('@') {
        Some((credentials, after)) => (credentials.split_once(':').map(|(user, _)| user), after),
        None => (Some(""), rest),
    };
    let credentials = match before {
        Some("") if !rest.contains('@') => String::new(),
        Some(user) => format!("{user}:{HIDDEN}@"),
        None => format!("{}@", rest.rsplit_once('@').map_or("", |(user, _)| user)),
    };
    let (address, query) = match after.split_once('?') {
        Some((address, query)) => (address, format!("?{}", shown_query(query))),
        None => (after, String::new()),
    };
    // Without an `@`, what looks like a port may be a password whose host is missing.
    let port = address.split_once(':').map(|(_, port)| port.split(['/', ',']).next().unwrap_or_default());
    let is_port = port.is_none_or(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    let address = match address.split_once(':') {
        Some((host, _)) if !is_port && !address.starts_with('[') => format!("{host}:{HIDDEN}"),
        _ => address.to_owned(),
    };
    format!("{credentials}{address}{query}")
}

fn shown_query(query: &str) -> String {
    let shown = |pair: &str| match pair.split_once('=') {
        Some((key, _)) if is_ours(key) => pair.to_owned(),
        Some((key, _)) => format!("{key}={HIDDEN}"),
        None => HIDDEN.to_owned(),
    };
    query.split('&').map(shown).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn why(text: &str) -> String {
        Address::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn urls_and_lists_say_the_same() {
        let texts = [
            "postgres://me:pw@db.example:6432/orders?sslmode=verify-full&sslrootcert=%2Fetc%2Fmy%20ca.pem",
            "postgresql://me:pw@db.example:6432/orders?sslrootcert=/etc/my%20ca.pem&sslmode=verify-full",
            "host=db.example port=6432 user=me password=pw dbname=orders sslmode=verify-full \
             sslrootcert='/etc/my ca.pem'",
            "user = me  password='pw' host='db.example' port=6432 dbname=orders sslmode=verify-full \
             sslrootcert=/etc/my\\ ca.pem",
        ];
        for text in texts {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.server(), "db.example:6432/orders as user 'me'", "{text}");
            assert_eq!(address.config.get_password(), Some(&b"pw"[..]), "{text}");
            assert_eq!(address.tls_mode, TlsMode::VerifyFull, "{text}");
            assert_eq!(address.roots, Roots::File(PathBuf::from("/etc/my ca.pem")), "{text}");
        }
    }

    #[test]
    fn a_password_of_a_list_may_look_like_a_url() {
        let address = Address::parse("host=h user=me password=a://b").unwrap();
        assert_eq!(address.config.get_password(), Some(&b"a://b"[..]));
    }

    #[test]
    fn an_address_by_number_is_a_host() {
        let address = Address::parse("hostaddr=10.0.0.1 user=me sslmode=verify-full").unwrap();
        assert_eq!(address.server(), "10.0.0.1:5432 as user 'me'");
        assert_eq!(address.config.get_hosts().len(), 1);
    }

    #[test]
    #[cfg(unix)]
    fn a_socket_of_this_machine_is_not_encrypted() {
        let address = Address::parse("host=/run/postgresql user=me sslmode=require").unwrap();
        assert_eq!(address.tls_mode, TlsMode::Disable);
    }

    #[test]
    fn without_sslmode_encryption_is_preferred() {
        assert_eq!(Address::parse("postgres://h/d").unwrap().tls_mode, TlsMode::Prefer);
    }

    #[test]
    fn an_at_sign_in_an_option_takes_no_option_out_of_sight() {
        let text = "postgres://h/d?sslmode=require&application_name=a@b";
        assert!(why(text).contains("write @ as %40"), "{}", why(text));
        let text = "postgres://h/d?sslmode=require&application_name=a%40b";
        assert_eq!(Address::parse(text).unwrap().tls_mode, TlsMode::Require);
        let text = "postgres://me:p?w@h/d?sslmode=require";
        assert_eq!(Address::parse(text).unwrap().tls_mode, TlsMode::Require);
    }

    #[test]
    fn g71_an_option_whose_key_is_encoded_is_read_like_any_other() {
        for (text, mode) in [
            ("postgres://h/d?%73slmode=require", TlsMode::Require),
            ("postgres://h/d?ssl%6Dode=verify%2Dfull", TlsMode::VerifyFull),
            ("postgres://h/d?%61pplication_name=a&sslmode=disable", TlsMode::Disable),
            ("postgres://h/d?sslmode=require&%73slrootcert=ca.pem", TlsMode::VerifyCa),
        ] {
            assert_eq!(Address::parse(text).unwrap().tls_mode, mode, "{text}");
        }
        let address = Address::parse("postgres://h/d?%61pplication_name=a%20b").unwrap();
        assert_eq!(address.config.get_application_name(), Some("a b"));
    }

    #[test]
    fn g71_an_option_that_is_named_twice_is_refused_because_one_would_be_lost() {
        for (text, said) in [
            ("postgres://h/d?sslmode=require&sslmode=disable", "it names sslmode twice"),
            ("postgres://h/d?sslmode=require&%73slmode=disable", "it names sslmode twice"),
            ("postgres://h/d?application_name=a&application_name=b", "it names application_name twice"),
            ("host=h user=me sslmode=require sslmode=disable", "it names sslmode twice"),
            ("host=h user=me user=you", "it names user twice"),
            ("postgres://me@h/d?user=you", "it names user twice, before the @ and as the option user="),
            ("postgres://me:a@h/d?password=b", "it names password twice, before the @ and as the option"),
            ("postgres://h/d?host=i", "it names host twice, behind the // and as the option host="),
            ("postgres://h:1/d?port=2", "it names port twice, behind the host and as the option port="),
            ("postgres://[::1]:1/d?port=2", "it names port twice, behind the host and as the option port="),
            ("postgres://me@h/d?dbname=e", "it names dbname twice, behind the / and as the option dbname="),
            ("postgres://h/d?%63olour=red", "colour"),
            ("postgres://h/d?ssl%ffmode=require", "the key of an option is not UTF-8"),
            ("postgres://h/d?sslmode =require", "sslmode "),
        ] {
            assert!(why(text).contains(said), "{text:?}: {}", why(text));
        }
    }

    #[test]
    fn require_with_a_root_certificate_checks_it() {
        let address = Address::parse("postgres://h/d?sslmode=require&sslrootcert=ca.pem").unwrap();
        assert_eq!(address.tls_mode, TlsMode::VerifyCa);
    }

    #[test]
    fn an_unknown_sslmode_is_named_with_those_that_are_known() {
        assert_eq!(
            why("postgres://h/d?sslmode=allow"),
            "'postgres://h/d?sslmode=allow' is no usable connection URL: sslmode 'allow' is not known, use \
             disable, prefer, require, verify-ca or verify-full; expected \
             postgres://user:password@host:5432/database"
        );
    }

    #[test]
    fn what_is_wrong_with_a_string_is_said() {
        for (text, said) in [
            ("mysql://h/d", "it begins with neither postgres:// nor postgresql://"),
            ("nonsense", "it is neither a URL nor a list of key=value"),
            ("", "it names no host"),
            ("postgres:///d", "it names no host"),
            ("postgres://me:p@ss/w@h/d", "write @ as %40"),
            ("postgres://h:port/d", "port"),
            ("postgres://h/d?colour=red", "colour"),
            ("host='h", "the quote of host does not end"),
            ("host=h = sslmode=require", "a value has no key"),
        ] {
            assert!(why(text).contains(said), "{text:?}: {}", why(text));
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for text in [
            "postgres://me:secret@h/d?sslmode=allow",
            "mysql://me:secret@h/d",
            "postgres://me:se:cret@secret@h/d?sslmode=allow",
            "postgres://me:a/secret@h:x/d",
            "postgres://me:secret",
            "postgres://me:secret/d",
            "postgres://h/d?password=secret&sslmode=allow",
            "postgres://h/d?passwort=secret",
            "postgres://me:pa?secret",
            "postgres://me:p@secret/w@h/d",
            "host=h password=secret sslmode=allow",
            "host=h password=secret://x sslmode=allow",
            "host=h password=x://secret sslmode=allow",
            "host=h password='secret",
            "host=h password = 'a secret' colour=red",
            "secret",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{text}: {error}");
            assert!(!format!("{error:?}").contains("secret"), "{text}: {error:?}");
        }
        let address = Address::parse("postgres://me:secret@h/d").unwrap();
        assert!(!format!("{address:?}").contains("secret"), "{address:?}");
        assert!(!address.server().contains("secret"));
    }

    #[test]
    fn what_is_no_password_is_shown() {
        assert_eq!(shown("postgres://me:pw@h:1/d?sslmode=x"), "postgres://me:***@h:1/d?sslmode=x");
        assert_eq!(shown("postgres://me@[::1]:1/d"), "postgres://me@[::1]:1/d");
        assert_eq!(shown("postgres://h:1,i:2/d"), "postgres://h:1,i:2/d");
        assert_eq!(shown("host=h port=1 password=pw"), "host=h port=1 password=***");
    }
}
