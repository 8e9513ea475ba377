//! How typed values become payload strings.
//!
//! The compatible codec writes a string as itself, so that typed and untyped code understand each other.
//! The price is that a string which happens to be JSON may come back as something else: `"\"a\""` as
//! `"a"`, and `Some("null")` as `None`. The strict pair quotes every string and changes none.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

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
/// The text of serde's error if `T` can be read from neither.
pub fn decode<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text)
        .or_else(|_| serde_json::from_value(Value::String(text.to_owned())))
        .map_err(|error| error.to_string())
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
