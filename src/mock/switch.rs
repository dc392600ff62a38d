//! Switches that are set by text: with named values, or with numbers.

use std::fmt;
use std::str::FromStr;

/// A whole number from 1 to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpTo<const MOST: u64>(u64);

impl<const MOST: u64> UpTo<MOST> {
    /// The number, or the nearest that is valid.
    pub const fn new(number: u64) -> Self {
        Self(if number == 0 {
            1
        } else if number > MOST {
            MOST
        } else {
            number
        })
    }

    pub const fn get(self) -> u64 {
        self.0
    }
}

impl<const MOST: u64> fmt::Display for UpTo<MOST> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl<const MOST: u64> FromStr for UpTo<MOST> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text
            .parse()
            .ok()
            .filter(|number| (1..=MOST).contains(number));
        let refuse = || format!("must be a whole number from 1 to {MOST}, not {text:?}");
        number.map(Self).ok_or_else(refuse)
    }
}

/// A switch with named values.
macro_rules! switch_enum {
    ($(#[$about:meta])* $name:ident {
        $(#[$on_first:meta])* $first:ident = $first_word:literal,
        $($(#[$on:meta])* $value:ident = $word:literal),+ $(,)?
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            $(#[$on_first])*
            #[default]
            $first,
            $($(#[$on])* $value),+
        }

        impl $name {
            /// The values in words.
            pub const WORDS: &'static [&'static str] = &[$first_word, $($word),+];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(match self {
                    Self::$first => $first_word,
                    $(Self::$value => $word),+
                })
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, String> {
                match word {
                    $first_word => Ok(Self::$first),
                    $($word => Ok(Self::$value),)+
                    _ => Err(format!(
                        "{word:?} is not one of {}",
                        Self::WORDS.join(", ")
                    )),
                }
            }
        }
    };
}

pub(super) use switch_enum;
