//! The service's objects as structs, whose texts are positions in the text that they were read from.

use std::borrow::Cow;

use crate::decode::json::cursor::Span;
use crate::schema::schema;
use crate::timestamp::Timestamp;

/// Fields without a typed counterpart: keys and the JSON of their values, in the original order.
/// They are fields that the interface does not name, and documented ones whose value has another
/// type. If a key occurs twice, the last one wins.
pub type Extra = Vec<(Span, Span)>;

/// The value of any field.
#[derive(Debug)]
pub enum Value<'a> {
    Integer(Option<i64>),
    Text(Option<Cow<'a, str>>),
    /// A text that other rows are likely to hold too.
    Label(Option<Cow<'a, str>>),
    Boolean(Option<bool>),
    Timestamp(Option<Timestamp>),
    Attributes(Option<&'a [UserAttribute]>),
    Sender(Option<&'a Sender>),
}

/// A kind of field; see `crate::schema`.
pub trait Kind {
    /// What a row holds of it.
    type Of;

    fn value<'a>(held: &'a Self::Of, text: &'a str) -> Value<'a>;
}

macro_rules! kinds {
    ($($kind:ident: $of:ty, |$held:ident, $text:ident| $value:expr;)*) => {
        pub mod kind {
            $(#[derive(Debug)] pub struct $kind;)*
        }

        $(impl Kind for kind::$kind {
            type Of = $of;

            #[inline]
            fn value<'a>($held: &'a $of, $text: &'a str) -> Value<'a> {
                $value
            }
        })*
    };
}

kinds! {
    Id: i64, |id, _text| Value::Integer(Some(*id));
    Integer: Option<i64>, |number, _text| Value::Integer(*number);
    Text: Option<Span>, |span, text| Value::Text(span.map(|span| span.text(text)));
    Label: Option<Span>, |span, text| Value::Label(span.map(|span| span.text(text)));
    Category: Option<Span>, |span, text| Value::Label(span.map(|span| span.text(text)));
    Boolean: Option<bool>, |truth, _text| Value::Boolean(*truth);
    Timestamp: Option<Timestamp>, |instant, _text| Value::Timestamp(*instant);
    Attributes: Option<Vec<UserAttribute>>, |list, _text| Value::Attributes(list.as_deref());
    Sender: Option<Sender>, |sender, _text| Value::Sender(sender.as_ref());
}

macro_rules! rows {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $kind:ident $(of $($sender:ident)+)?,)* }
    )*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name {
            $(pub $field: <kind::$kind as Kind>::Of,)*
            pub extra: Extra,
        }

        impl $name {
            /// The values in the order of the table; `text` is what the row was read from.
            pub fn values<'a>(
                &'a self,
                text: &'a str,
            ) -> [Value<'a>; [$(stringify!($field)),*].len()] {
                [$(kind::$kind::value(&self.$field, text)),*]
            }
        }
    )* };
}
schema!(rows);
