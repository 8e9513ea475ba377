//! Parameters of statements, each with its Postgres type.
//!
//! Statements are sent with the types of their parameters: where they cannot be prepared, one round trip is enough.

use std::borrow::Cow;

use tokio_postgres::types::{ToSql, Type};

/// A value that knows its type.
pub(crate) type Param<'a> = &'a dyn Typed;

/// A value as the driver takes it.
pub(crate) trait Typed: Sync {
    /// The value.
    fn value(&self) -> &(dyn ToSql + Sync);
    /// Its type.
    fn sql_type(&self) -> Type;
}

impl<T: Known + ToSql + Sync> Typed for T {
    fn value(&self) -> &(dyn ToSql + Sync) {
        self
    }

    fn sql_type(&self) -> Type {
        T::ONE
    }
}

/// Knows the Postgres type of a Rust type.
pub(crate) trait Known {
    /// The type of one value.
    const ONE: Type;
    /// The type of many.
    const MANY: Type;
}

macro_rules! known {
    ($($rust:ty => $one:ident, $many:ident;)*) => {
        $(impl Known for $rust {
            const ONE: Type = Type::$one;
            const MANY: Type = Type::$many;
        })*
    };
}

known! {
    i64 => INT8, INT8_ARRAY;
    i32 => INT4, INT4_ARRAY;
    i16 => INT2, INT2_ARRAY;
    bool => BOOL, BOOL_ARRAY;
    String => TEXT, TEXT_ARRAY;
    &str => TEXT, TEXT_ARRAY;
    Cow<'_, str> => TEXT, TEXT_ARRAY;
}

impl<T: Known> Known for Option<T> {
    const ONE: Type = T::ONE;
    const MANY: Type = T::MANY;
}

impl<T: Known> Known for Vec<T> {
    const ONE: Type = T::MANY;
    const MANY: Type = T::MANY;
}

/// Makes the parameters of a statement.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$(&$value as $crate::link::statement::Param<'_>),*]
    };
}
pub(crate) use params;

/// Pairs the parameters with their types, as the driver wants them.
pub(crate) fn typed<'a>(params: &[Param<'a>]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    params.iter().map(|param| (param.value(), param.sql_type())).collect()
}
