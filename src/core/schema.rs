//! The fields of the service's objects (interface 2.1 to 2.3), each written once.
//!
//! Structs, the scan, Arrow columns, the bindings' objects and the probe's list of documented fields
//! derive from these tables: a field has a name and a `Kind`, which says the rest. Every
//! object also has `extra`, the fields that are not in its table. A message's user is not in its
//! JSON but in the request's path: that is `user_id`, in columns and objects.

use std::iter;

/// Calls a macro with the tables. After `of` are the types of senders that have the field.
#[doc(hidden)]
#[macro_export]
macro_rules! schema_of_objects {
    ($then:ident) => {
        $then! {
            /// A visitor who uses the widget (interface 2.1).
            User {
                id: Id,
                name: Text,
                email: Text,
                reference: Text,
                created_at: Timestamp,
                updated_at: Timestamp,
                online_at: Timestamp,
                last_url: Text,
                user_attributes: Attributes,
            }

            /// A custom property that the widget's code set (interface 2.1).
            UserAttribute {
                name: Label,
                value: Text,
            }

            /// A message by a visitor or an operator (interface 2.2).
            Message {
                id: Id,
                body: Text,
                read_by_user: Boolean,
                read_by_operator: Boolean,
                created_at: Timestamp,
                file_url: Text,
                auto_invitation: Boolean,
                sender_type: Category,
                sender: Sender,
            }

            /// The sender of a message (interface 2.2), whatever its type.
            Sender {
                id: Integer of User Operator Other,
                name: Text of User,
                email: Text of User Operator,
                forename: Text of Operator,
                surname: Text of Operator,
                picture_thumb_url: Text of Operator,
            }
        }
    };
}
pub use schema_of_objects as schema;

/// Calls a macro with the whole numbers in the envelope of a page (interface 2.3).
macro_rules! envelope {
    ($then:ident) => {
        $then! { limit, offset, total }
    };
}
pub(crate) use envelope;

/// What a field holds in JSON, in an Arrow column and in an object. Any field except an `Id` may be
/// null, missing or of another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of 64 bits that every row has; `int64 not null`; `int`.
    Id,
    /// A whole number of 64 bits; `int64`; `int`.
    Integer,
    /// A string; `string`; `str`.
    Text,
    /// A string that many rows share; `string`; one `str` for many rows.
    Label,
    /// A string with few values; `dictionary<int32, string>`; one `str` for many rows.
    Category,
    /// `true` or `false`; `bool`; `bool`.
    Boolean,
    /// A string in ISO 8601; `timestamp[us, UTC]`; `datetime`.
    Timestamp,
    /// An array of `UserAttribute`; `list<struct>`; `tuple`.
    Attributes,
    /// A `Sender`; its columns with `sender_` before their names; the class of its type.
    Sender,
}

/// A field of a table.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    /// The types of senders that have it; empty outside `Sender`.
    senders: &'static [SenderType],
}

macro_rules! objects {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $kind:ident $(of $($sender:ident)+)?,)* }
    )*) => {
        /// An object that has a table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Object { $($(#[$doc])* $name,)* }

        impl Object {
            const ALL: &[Self] = &[$(Self::$name,)*];

            /// The fields, in the order of the table.
            pub const fn fields(self) -> &'static [Field] {
                match self {
                    $(Self::$name => &[$(Field {
                        name: stringify!($field),
                        kind: Kind::$kind,
                        senders: &[$($(SenderType::$sender,)+)?],
                    },)*],)*
                }
            }
        }
    };
}
schema!(objects);

macro_rules! numbers {
    ($($field:ident),*) => {
        /// The numbers in the envelope of a page.
        pub const ENVELOPE: &[&str] = &[$(stringify!($field),)*];
    };
}
envelope!(numbers);

/// The types of senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderType {
    User,
    Operator,
    /// Of an undocumented type, or without a whole number as id.
    Other,
}

impl SenderType {
    /// The type of a sender with this id, by the message's `sender_type`.
    pub fn of(sender_type: Option<&str>, id: Option<i64>) -> Self {
        match sender_type.filter(|_| id.is_some()) {
            Some(Self::USER) => Self::User,
            Some(Self::OPERATOR) => Self::Operator,
            _ => Self::Other,
        }
    }

    pub const USER: &str = "user";
    pub const OPERATOR: &str = "operator";

    /// Whether a sender of this type has the field.
    pub fn has(self, field: &Field) -> bool {
        field.senders.contains(&self)
    }

    /// The names of its fields.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let fields = Object::Sender.fields().iter();
        fields
            .filter(move |field| self.has(field))
            .map(|field| field.name)
    }

    /// Its fields as bits, by their index in the table.
    #[allow(clippy::indexing_slicing)] // in bounds, and evaluated at compile time
    pub const fn mask(self) -> u32 {
        let fields = Object::Sender.fields();
        let (mut mask, mut index) = (0, 0);
        while index < fields.len() {
            let (senders, mut sender) = (fields[index].senders, 0);
            while sender < senders.len() {
                if senders[sender] as u8 == self as u8 {
                    mask |= 1 << index;
                }
                sender += 1;
            }
            index += 1;
        }
        mask
    }
}

/// Every name in the tables, and the types of senders.
pub fn names() -> impl Iterator<Item = &'static str> {
    let fields = Object::ALL.iter().flat_map(|object| object.fields());
    fields
        .map(|field| field.name)
        .chain(ENVELOPE.iter().copied())
        .chain(iter::once(SenderType::USER))
        .chain(iter::once(SenderType::OPERATOR))
}
