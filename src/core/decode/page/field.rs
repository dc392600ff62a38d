//! The fields of each object, numbered.

use crate::schema::schema;

macro_rules! objects {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $kind:ident $(of $($sender:ident)+)?,)* }
    )*) => { $(
        #[derive(Debug, Clone, Copy)]
        #[allow(non_camel_case_types)]
        pub enum $name { $($field,)* }
    )* };
}
schema!(objects);
