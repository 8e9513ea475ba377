//! How typed values become payload strings.
//!
//! The compatible codec writes a string as itself, so that typed and untyped code understand each other.
//! The price is that a string which happens to be JSON may come back as something else: `"\"a\""` as
//! `"a"`, and `Some("null")` as `None`. The strict pair quotes every string and changes none.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;

/// Writes a value as JSON, except that a string is written without quotes.
///
/// # Errors
///
/// The text of serde's error if the value cannot be written as JSON.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<String, String> {
    let value = serde_json::to_value(value).map_err(|error| error.to_string())?;
    if let Value::String(text) = value { Ok(text) } else { Ok(value.to_string()) }
}

/// Reads a text that [`encode`] wrote: as JSON, or else as the contents of a string.
///
/// # Errors
///
/// The text of serde's error if `T` can be read from neither: about the JSON value if the text is JSON, else
/// about the string.
pub fn decode<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let of_json = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    serde_json::from_value(Value::String(text.to_owned())).map_err(|of_string| match of_json.classify() {
        Category::Data => of_json.to_string(),
        Category::Io | Category::Syntax | Category::Eof => of_string.to_string(),
    })
}

/// Reads a text as [`decode`] does. `what` names the value in an error, such as `input of activity 'Charge'`.
///
/// # Errors
///
/// A text that says what could not be read, as which type and why, and how the value begins.
pub fn decode_named<T: DeserializeOwned>(what: impl fmt::Display, text: &str) -> Result<T, String> {
    decode(text).map_err(|error| {
        let (as_type, error, begins) = (short_name::<T>(), beginning(&error), beginning(text));
        format!("{what} cannot be read as {as_type}: {error}; it begins with {begins:?}")
    })
}

/// Writes a value as [`encode`] does. `what` names the value in an error.
///
/// # Errors
///
/// A text that says what could not be written, of which type it is, and why.
pub fn encode_named<T: Serialize>(what: impl fmt::Display, value: &T) -> Result<String, String> {
    encode(value).map_err(|error| format!("{what} cannot be written, a {}: {error}", short_name::<T>()))
}

/// Bounds how much of a value and of serde's text, which quotes values, is shown in an error, in characters.
const SHOWN: usize = 120;

fn beginning(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Returns the name of a type without the modules that it is in: `Vec<Order>`.
fn short_name<T: ?Sized>() -> String {
    let mut short = String::new();
    for part in std::any::type_name::<T>().split_inclusive(|letter: char| !is_of_path(letter)) {
        short.push_str(part.rsplit("::").next().unwrap_or(part));
    }
    short
}

fn is_of_path(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == ':'
}

/// Writes a value as JSON, strings included.
///
/// # Errors
///
/// The text of serde's error if the value cannot be written as JSON.
pub fn encode_json<T: Serialize + ?Sized>(value: &T) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

/// Reads a text that [`encode_json`] wrote.
///
/// # Errors
///
/// The text of serde's error if the text is not JSON, or not a `T`.
pub fn decode_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Order {
        total: u32,
        id: String,
    }

    fn order() -> Order {
        Order { total: 5, id: "a".to_owned() }
    }

    #[test]
    fn an_error_names_the_place_the_type_and_a_bounded_beginning_of_the_value() {
        let error = |text: &str| decode_named::<Vec<Order>>("input of activity 'Pack'", text).unwrap_err();
        assert_eq!(
            error("5"),
            "input of activity 'Pack' cannot be read as Vec<Order>: invalid type: integer `5`, \
             expected a sequence at line 1 column 1; it begins with \"5\""
        );
        assert!(error("five").contains("invalid type: string \"five\", expected a sequence;"));
        let long = error(&"é".repeat(1_000_000));
        assert!(long.chars().count() < 400, "{} characters", long.chars().count());
        assert_eq!(short_name::<Option<(Order, &str)>>(), "Option<(Order, &str)>");
    }

    #[test]
    fn a_string_is_written_without_quotes_and_read_back() {
        assert_eq!(encode("hello"), Ok("hello".to_owned()));
        assert_eq!(decode("hello"), Ok("hello".to_owned()));
        assert_eq!(decode("5"), Ok("5".to_owned()));
    }

    #[test]
    fn keys_are_written_in_alphabetical_order() {
        assert_eq!(encode(&order()), Ok(r#"{"id":"a","total":5}"#.to_owned()));
        assert_eq!(decode(r#"{"total":5,"id":"a"}"#), Ok(order()));
    }

    #[test]
    fn unit_is_written_as_null() {
        assert_eq!(encode(&()), Ok("null".to_owned()));
        assert_eq!(decode("null"), Ok(()));
    }

    #[test]
    fn a_unit_variant_is_read_from_its_bare_name() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        enum Size {
            Small,
        }
        assert_eq!(encode(&Size::Small), Ok("Small".to_owned()));
        assert_eq!(decode("Small"), Ok(Size::Small));
    }

    #[test]
    fn what_is_neither_json_nor_text_is_an_error() {
        assert!(decode::<u32>("five").is_err());
        assert!(decode_json::<String>("hello").is_err());
    }

    #[test]
    fn the_compatible_codec_changes_a_string_that_is_a_json_string() {
        assert_eq!(decode(&encode("\"a\"").unwrap()), Ok("a".to_owned()));
    }

    proptest! {
        #[test]
        fn the_strict_codec_changes_no_string(
            text in prop_oneof![any::<String>(), Just("\"a\"".to_owned()), Just("null".to_owned())],
        ) {
            prop_assert_eq!(decode_json(&encode_json(&text).unwrap()), Ok(text.clone()));
            prop_assert_eq!(decode_json(&encode_json(&Some(&text)).unwrap()), Ok(Some(text)));
        }

        #[test]
        fn the_compatible_codec_keeps_everything_but_strings(values: Vec<(String, Option<i64>, bool)>) {
            prop_assert_eq!(decode(&encode(&values).unwrap()), Ok(values));
        }
    }
}
