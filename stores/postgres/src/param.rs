//! Parameters of statements, each with its Postgres type.
//!
//! Statements are sent with the types of their parameters, in one round trip and without a name, so that they also work through
//! a pooler that gives every transaction another connection.

use std::borrow::Cow;

use tokio_postgres::types::{ToSql, Type};

/// A value and its type.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// Knows the Postgres type of a Rust type.
pub(crate) trait Typed: ToSql + Sync {
    /// The type of one value.
    const TYPE: Type;
    /// The type of many.
    const ARRAY: Type;
}

macro_rules! typed {
    ($($rust:ty => $one:ident, $many:ident;)*) => {
        $(impl Typed for $rust {
            const TYPE: Type = Type::$one;
            const ARRAY: Type = Type::$many;
        })*
    };
}

typed! {
    i64 => INT8, INT8_ARRAY;
    i32 => INT4, INT4_ARRAY;
    i16 => INT2, INT2_ARRAY;
    bool => BOOL, BOOL_ARRAY;
    String => TEXT, TEXT_ARRAY;
    &str => TEXT, TEXT_ARRAY;
    Cow<'_, str> => TEXT, TEXT_ARRAY;
}

impl<T: Typed> Typed for Option<T> {
    const TYPE: Type = T::TYPE;
    const ARRAY: Type = T::ARRAY;
}

impl<T: Typed> Typed for Vec<T> {
    const TYPE: Type = T::ARRAY;
    const ARRAY: Type = T::ARRAY;
}

/// Pairs a value with its type.
pub(crate) fn typed<T: Typed>(value: &T) -> Param<'_> {
    (value, T::TYPE)
}

/// Makes the parameters of a statement.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::param::typed(&$value)),*]
    };
}
pub(crate) use params;
