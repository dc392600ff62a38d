//! The fields of each object, as enums and as the keys that the scan expects.

use crate::core::decode::json::cursor::Opening;
use crate::core::decode::json::fields::Key;
use crate::core::schema::{envelope, schema};

macro_rules! keys {
    ($name:ident: $($field:ident)*) => {
        #[derive(Debug, Clone, Copy)]
        #[allow(non_camel_case_types)]
        pub enum $name { $($field,)* }

        impl $name {
            pub const COUNT: usize = [$(stringify!($field)),*].len();

            pub const KEYS: [Key<Self>; Self::COUNT] = [$(Key {
                field: Self::$field,
                name: stringify!($field),
                opening: Opening::new(concat!("\"", stringify!($field), "\":")),
            },)*];
        }
    };
}

macro_rules! objects {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $kind:ident $(of $($sender:ident)+)?,)* }
    )*) => {
        $(keys! { $name: $($field)* })*
    };
}
schema!(objects);

macro_rules! numbers {
    ($($field:ident),*) => { keys! { Envelope: $($field)* } };
}
envelope!(numbers);
