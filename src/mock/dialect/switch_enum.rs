//! Switches with named values.

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
            #[cfg(test)]
            pub const ALL: &'static [Self] = &[Self::$first, $(Self::$value),+];
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(match self {
                    Self::$first => $first_word,
                    $(Self::$value => $word),+
                })
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, String> {
                match word {
                    $first_word => Ok(Self::$first),
                    $($word => Ok(Self::$value),)+
                    _ => Err(format!(
                        "{word:?} is none of {}",
                        Self::WORDS.join(", ")
                    )),
                }
            }
        }
    };
}

pub(super) use switch_enum;
