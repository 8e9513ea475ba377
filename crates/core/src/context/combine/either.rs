//! The result of a select: which future answered first, with its value.

/// The value of the first of two futures that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Either2<A, B> {
    /// The first argument answered.
    First(A),
    /// The second argument answered.
    Second(B),
}

impl<A, B> Either2<A, B> {
    /// Tells whether the first argument answered.
    pub fn is_first(&self) -> bool {
        matches!(self, Self::First(_))
    }

    /// Tells whether the second argument answered.
    pub fn is_second(&self) -> bool {
        matches!(self, Self::Second(_))
    }

    /// Returns the index of the argument that answered, from 0.
    pub fn index(&self) -> usize {
        match self {
            Self::First(_) => 0,
            Self::Second(_) => 1,
        }
    }
}

impl<T> Either2<T, T> {
    /// Returns the index of the argument that answered, from 0, and its value.
    pub fn into_tuple(self) -> (usize, T) {
        match self {
            Self::First(value) => (0, value),
            Self::Second(value) => (1, value),
        }
    }
}

/// The value of the first of three futures that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Either3<A, B, C> {
    /// The first argument answered.
    First(A),
    /// The second argument answered.
    Second(B),
    /// The third argument answered.
    Third(C),
}

impl<A, B, C> Either3<A, B, C> {
    /// Returns the index of the argument that answered, from 0.
    pub fn index(&self) -> usize {
        match self {
            Self::First(_) => 0,
            Self::Second(_) => 1,
            Self::Third(_) => 2,
        }
    }
}

impl<T> Either3<T, T, T> {
    /// Returns the index of the argument that answered, from 0, and its value.
    pub fn into_tuple(self) -> (usize, T) {
        match self {
            Self::First(value) => (0, value),
            Self::Second(value) => (1, value),
            Self::Third(value) => (2, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_from_zero() {
        let first: Either2<u8, &str> = Either2::First(7);
        let second: Either2<u8, &str> = Either2::Second("x");
        assert_eq!((first.index(), first.is_first(), first.is_second()), (0, true, false));
        assert_eq!((second.index(), second.is_first(), second.is_second()), (1, false, true));
        assert_eq!(Either2::<u8, u8>::Second(9).into_tuple(), (1, 9));
        assert_eq!(Either3::<u8, u8, u8>::First(1).into_tuple(), (0, 1));
        assert_eq!(Either3::<u8, u8, u8>::Second(2).into_tuple(), (1, 2));
        assert_eq!(Either3::<u8, u8, u8>::Third(3).into_tuple(), (2, 3));
        assert_eq!(Either3::<u8, (), char>::Third('c').index(), 2);
    }

    #[test]
    fn debug_text_names_the_winner() {
        let winner: Either2<Result<u8, String>, ()> = Either2::First(Ok(1));
        assert_eq!(format!("{winner:?}"), "First(Ok(1))");
    }
}
