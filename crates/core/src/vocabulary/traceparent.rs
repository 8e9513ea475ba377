//! Trace context in the form of W3C: `00-{trace id}-{parent id}-{flags}`.
//!
//! The engine hands a trace context on and never makes one: the application, or its exporter, makes spans.

use std::fmt;

/// Bounds a trace context in bytes; one of a later version may have more fields than today's.
const MAX_BYTES: usize = 256;

/// The reasons why a text is not a valid `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTraceparent {
    /// The text has more than 256 bytes.
    #[error("it is longer than {MAX_BYTES} bytes")]
    TooLong,
    /// A field is missing.
    #[error("it has no {0}")]
    Missing(TraceField),
    /// A field does not have its fixed length, or has characters other than lower-case hexadecimal digits.
    #[error("its {0} is not {digits} lower-case hexadecimal digits", digits = .0.digits())]
    Malformed(TraceField),
    /// A field has the value that the standard reserves as invalid.
    #[error("its {0} has the value that is reserved as invalid")]
    Reserved(TraceField),
    /// The text has more fields than version 00 allows, whose last field is the flags.
    #[error("it goes on after its flags")]
    TooManyFields,
}

/// A field of a `traceparent`, for the error that says which field is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceField {
    /// The version of the format: 2 digits.
    Version,
    /// The id of the trace that the span belongs to: 32 digits.
    TraceId,
    /// The id of the span that caused this one: 16 digits.
    ParentId,
    /// The flags, of which one bit says whether the trace is sampled: 2 digits.
    Flags,
}

impl TraceField {
    const ALL: [Self; 4] = [Self::Version, Self::TraceId, Self::ParentId, Self::Flags];

    fn digits(self) -> usize {
        match self {
            Self::Version | Self::Flags => 2,
            Self::TraceId => 32,
            Self::ParentId => 16,
        }
    }

    fn check(self, text: &str) -> Result<(), InvalidTraceparent> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != self.digits() || !text.bytes().all(is_digit) {
            return Err(InvalidTraceparent::Malformed(self));
        }
        let reserved = match self {
            Self::Version => text == "ff",
            Self::TraceId | Self::ParentId => text.bytes().all(|byte| byte == b'0'),
            Self::Flags => false,
        };
        if reserved { Err(InvalidTraceparent::Reserved(self)) } else { Ok(()) }
    }
}

impl fmt::Display for TraceField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "version",
            Self::TraceId => "trace id",
            Self::ParentId => "parent id",
            Self::Flags => "flags",
        })
    }
}

/// Checks that a text is a W3C `traceparent`. Later versions may have more fields, as the standard asks.
///
/// # Errors
/// The first field that breaks the format.
pub fn check_traceparent(text: &str) -> Result<(), InvalidTraceparent> {
    if text.len() > MAX_BYTES {
        return Err(InvalidTraceparent::TooLong);
    }
    let mut parts = text.split('-');
    for field in TraceField::ALL {
        let part = parts.next().ok_or(InvalidTraceparent::Missing(field))?;
        field.check(part)?;
    }
    match parts.next() {
        Some(_) if text.starts_with("00-") => Err(InvalidTraceparent::TooManyFields),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn the_example_of_the_standard_is_one() {
        assert_eq!(check_traceparent(GOOD), Ok(()));
    }

    #[test]
    fn a_later_version_may_say_more_and_this_one_may_not() {
        assert_eq!(check_traceparent(&format!("{GOOD}-what").replacen("00", "01", 1)), Ok(()));
        assert_eq!(check_traceparent(&format!("{GOOD}-what")), Err(InvalidTraceparent::TooManyFields));
        let long = format!("{GOOD}-{}", "x".repeat(MAX_BYTES)).replacen("00", "01", 1);
        assert_eq!(check_traceparent(&long), Err(InvalidTraceparent::TooLong));
    }

    #[test]
    fn each_field_is_checked() {
        use InvalidTraceparent::{Malformed, Missing, Reserved};
        let cases = [
            ("", Malformed(TraceField::Version)),
            ("00", Missing(TraceField::TraceId)),
            ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Reserved(TraceField::Version)),
            ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", Malformed(TraceField::TraceId)),
            ("00-00000000000000000000000000000000-b7ad6b7169203331-01", Reserved(TraceField::TraceId)),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b71692033-01", Malformed(TraceField::ParentId)),
            ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", Reserved(TraceField::ParentId)),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", Missing(TraceField::Flags)),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1", Malformed(TraceField::Flags)),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-é", Malformed(TraceField::Flags)),
        ];
        for (text, wrong) in cases {
            assert_eq!(check_traceparent(text), Err(wrong), "{text}");
        }
    }

    #[test]
    fn the_text_names_the_field() {
        let texts = [
            InvalidTraceparent::Missing(TraceField::Flags).to_string(),
            InvalidTraceparent::Malformed(TraceField::TraceId).to_string(),
        ];
        assert_eq!(texts, ["it has no flags", "its trace id is not 32 lower-case hexadecimal digits"]);
    }
}
