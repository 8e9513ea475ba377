//! Statements: a text, its parameters, and the Postgres type of each parameter.
//!
//! Statements are sent with the types of their parameters: where they cannot be prepared, one round trip is
//! enough.
//!
//! The text of a statement has a file of its own ([`sql!`]), or it is one call of a function of the database,
//! declared with [`calls!`]. A declaration names each parameter once: its field in Rust, without the `p_` in
//! front, is its name in SQL. Two arguments of one type cannot change places, because the call is written in
//! named notation. A worker of an older version calls by these names too, so a parameter keeps its name for
//! good.

use std::borrow::Cow;

use tokio_postgres::types::{ToSql, Type};

use crate::link::lanes::CallLane;

/// A text for the server with the values of its parameters.
pub(crate) struct Statement<'a> {
    /// `{schema}` stands for the schema of the store.
    pub(crate) text: &'static str,
    pub(crate) params: Vec<Param<'a>>,
    /// The connections that the statement may use.
    pub(crate) lane: CallLane,
}

impl<'a> Statement<'a> {
    /// A statement that has a file of its own, with the values of `$1`, `$2` and so on.
    pub(crate) fn of(text: &'static str, params: &[Param<'a>]) -> Self {
        Self { text, params: params.to_vec(), lane: CallLane::Other }
    }
}

/// A value that knows its Postgres type.
pub(crate) type Param<'a> = &'a dyn Typed;

/// A value as the driver takes it.
pub(crate) trait Typed: Sync {
    /// Returns the value for the driver.
    fn value(&self) -> &(dyn ToSql + Sync);
    /// Returns the Postgres type that the value is sent as.
    fn sql_type(&self) -> Type;
}

impl<T: SqlTyped + ToSql + Sync> Typed for T {
    fn value(&self) -> &(dyn ToSql + Sync) {
        self
    }

    fn sql_type(&self) -> Type {
        T::ONE
    }
}

/// Maps a Rust type to its Postgres type.
pub(crate) trait SqlTyped {
    /// The type of one value.
    const ONE: Type;
    /// The type of an array of values.
    const MANY: Type;
}

macro_rules! known {
    ($($rust:ty => $one:ident, $many:ident;)*) => {
        $(impl SqlTyped for $rust {
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

impl<T: SqlTyped> SqlTyped for Option<T> {
    const ONE: Type = T::ONE;
    const MANY: Type = T::MANY;
}

impl<T: SqlTyped> SqlTyped for Vec<T> {
    const ONE: Type = T::MANY;
    const MANY: Type = T::MANY;
}

/// Returns the text of a statement file.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $name, ".sql"))
    };
}
pub(crate) use sql;

/// Makes the parameters of a statement that has a file of its own.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$(&$value as $crate::link::statement::Param<'_>),*]
    };
}
pub(crate) use params;

/// Declares calls of functions of the database: `Name => function { parameter: Type, ... }` is a struct with
/// one field for each parameter, and [`Statement`]s are made of its values. `on` names the lane of a call
/// that has connections of its own.
///
/// A function in `FROM` gives one column of its own name if it returns a single value.
macro_rules! calls {
    ($(
        $(#[$doc:meta])*
        $name:ident $(<$life:lifetime>)? => $function:ident $(on $lane:ident)? {
            $($(#[$field_doc:meta])* $field:ident: $kind:ty),* $(,)?
        }
    )*) => {
        $(
            $(#[$doc])*
            pub(crate) struct $name $(<$life>)? {
                $($(#[$field_doc])* pub(crate) $field: $kind,)*
            }

            impl $(<$life>)? $name $(<$life>)? {
                fn text() -> &'static str {
                    static TEXT: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
                        $crate::link::statement::named_call(stringify!($function), &[$(stringify!($field)),*])
                    });
                    &TEXT
                }

                #[cfg(test)]
                fn types() -> Vec<tokio_postgres::types::Type> {
                    vec![$(<$kind as $crate::link::statement::SqlTyped>::ONE),*]
                }

                /// Makes the statement that calls the function.
                pub(crate) fn statement(&self) -> $crate::link::statement::Statement<'_> {
                    $crate::link::statement::Statement {
                        text: Self::text(),
                        params: vec![$(&self.$field as $crate::link::statement::Param<'_>),*],
                        lane: $crate::link::statement::lane!($($lane)?),
                    }
                }
            }
        )*

        /// The calls of this file, for the test that prepares each of them.
        #[cfg(test)]
        pub(crate) const CALLS: &[$crate::link::statement::DeclaredCall] = &[$(
            $crate::link::statement::DeclaredCall {
                text: $name::text,
                types: $name::types,
            }
        ),*];
    };
}
pub(crate) use calls;

macro_rules! lane {
    () => {
        $crate::link::lanes::CallLane::Other
    };
    ($lane:ident) => {
        $crate::link::lanes::CallLane::$lane
    };
}
pub(crate) use lane;

/// A declared call as the test of all statements sees it.
#[cfg(test)]
pub(crate) struct DeclaredCall {
    pub(crate) text: fn() -> &'static str,
    pub(crate) types: fn() -> Vec<Type>,
}

/// Writes a call in named notation.
pub(crate) fn named_call(function: &str, parameters: &[&str]) -> String {
    let named = |(number, parameter): (usize, &&str)| format!("p_{parameter} => ${number}");
    let arguments: Vec<String> = (1..).zip(parameters).map(named).collect();
    format!("SELECT * FROM {{schema}}.{function}({})", arguments.join(", "))
}

/// Pairs the parameters with their types, as the driver wants them.
pub(crate) fn typed<'a>(params: &[Param<'a>]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    params.iter().map(|param| (param.value(), param.sql_type())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_names_each_argument() {
        let text = named_call("doubled", &["number", "times"]);
        assert_eq!(text, "SELECT * FROM {schema}.doubled(p_number => $1, p_times => $2)");
        assert_eq!(named_call("everything", &[]), "SELECT * FROM {schema}.everything()");
    }
}
