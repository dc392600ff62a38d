//! The service's objects as structs, generic over the form of their texts: positions in the page,
//! as the scan finds them, or texts without escapes.

use std::borrow::Cow;
use std::fmt::Debug;
use std::marker::PhantomData;

use crate::decode::json::Joined;
use crate::decode::json::cursor::Span;
use crate::schema::schema;
use crate::timestamp::Timestamp;

/// The form of a row's texts.
pub trait Form: Debug + Clone + Default + PartialEq {
    type Text: Debug + Clone + PartialEq;
    /// What texts are read from.
    type Source: ?Sized;

    fn text<'a>(source: &'a Self::Source, text: &'a Self::Text) -> Cow<'a, str>;

    /// Appends it to other texts.
    fn append_to(texts: &mut Joined, source: &Self::Source, text: &Self::Text);
}

/// Positions in the text of the page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spans;

impl Form for Spans {
    type Text = Span;
    type Source = str;

    #[inline]
    fn text<'a>(page: &'a str, span: &'a Span) -> Cow<'a, str> {
        span.text(page)
    }

    #[inline(always)]
    fn append_to(texts: &mut Joined, page: &str, span: &Span) {
        span.append_to(texts, page);
    }
}

/// Texts without escapes, borrowed from the page unless they had some.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Texts<'a>(PhantomData<&'a str>);

impl<'t> Form for Texts<'t> {
    type Text = Cow<'t, str>;
    type Source = ();

    fn text<'a>(&(): &'a (), text: &'a Cow<'t, str>) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }

    fn append_to(texts: &mut Joined, &(): &(), text: &Cow<'t, str>) {
        texts.push(text);
    }
}

/// Fields without a typed counterpart: keys and the JSON of their values, in the original order.
/// They are fields that the interface does not name, and documented ones whose value has another
/// type. If a key occurs twice, the last one wins.
pub type Extra<F> = Vec<(<F as Form>::Text, <F as Form>::Text)>;

/// A kind of field; see `crate::schema`.
pub trait Kind {
    /// What a row holds of it.
    type Of<F: Form>;

    fn value<'v, 'a>(held: &'v Self::Of<Texts<'a>>) -> Value<'v, 'a>;
}

/// The value of any field.
#[derive(Debug)]
pub enum Value<'v, 'a> {
    Integer(Option<i64>),
    Text(Option<&'v str>),
    /// A text that other rows are likely to hold too.
    Label(Option<&'v str>),
    Boolean(Option<bool>),
    Timestamp(Option<Timestamp>),
    Attributes(Option<&'v [UserAttribute<Texts<'a>>]>),
    Sender(Option<&'v Sender<Texts<'a>>>),
}

macro_rules! kinds {
    ($($kind:ident: $of:ty, $held:ident => $value:expr;)*) => {
        pub mod kind {
            $(#[derive(Debug)] pub struct $kind;)*
        }

        $(impl Kind for kind::$kind {
            type Of<F: Form> = $of;

            fn value<'v, 'a>($held: &'v Self::Of<Texts<'a>>) -> Value<'v, 'a> {
                $value
            }
        })*
    };
}

kinds! {
    Id: i64, id => Value::Integer(Some(*id));
    Integer: Option<i64>, number => Value::Integer(*number);
    Text: Option<F::Text>, text => Value::Text(text.as_deref());
    Label: Option<F::Text>, text => Value::Label(text.as_deref());
    Category: Option<F::Text>, text => Value::Label(text.as_deref());
    Boolean: Option<bool>, truth => Value::Boolean(*truth);
    Timestamp: Option<Timestamp>, instant => Value::Timestamp(*instant);
    Attributes: Option<Vec<UserAttribute<F>>>, list => Value::Attributes(list.as_deref());
    Sender: Option<Sender<F>>, sender => Value::Sender(sender.as_ref());
}

/// The same row with its texts read.
pub trait Resolve<'a> {
    type Resolved;

    fn resolve(&self, page: &'a str) -> Self::Resolved;
}

macro_rules! rows {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $kind:ident $(of $($sender:ident)+)?,)* }
    )*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name<F: Form> {
            $(pub $field: <kind::$kind as Kind>::Of<F>,)*
            pub extra: Extra<F>,
        }

        impl<'a> $name<Texts<'a>> {
            /// The values in the order of the table.
            pub fn values(&self) -> [Value<'_, 'a>; [$(stringify!($field)),*].len()] {
                [$(kind::$kind::value(&self.$field)),*]
            }
        }

        impl<'a> Resolve<'a> for $name<Spans> {
            type Resolved = $name<Texts<'a>>;

            #[inline]
            fn resolve(&self, page: &'a str) -> Self::Resolved {
                $name {
                    $($field: self.$field.resolve(page),)*
                    extra: self.extra.resolve(page),
                }
            }
        }
    )* };
}
schema!(rows);

impl<'a> Resolve<'a> for Span {
    type Resolved = Cow<'a, str>;

    #[inline]
    fn resolve(&self, page: &'a str) -> Cow<'a, str> {
        self.text(page)
    }
}

macro_rules! texts_without {
    ($($type:ty),*) => { $(
        impl Resolve<'_> for $type {
            type Resolved = Self;

            fn resolve(&self, _: &str) -> Self {
                *self
            }
        }
    )* };
}
texts_without!(i64, bool, Timestamp);

impl<'a, T: Resolve<'a>> Resolve<'a> for Option<T> {
    type Resolved = Option<T::Resolved>;

    #[inline]
    fn resolve(&self, page: &'a str) -> Self::Resolved {
        self.as_ref().map(|value| value.resolve(page))
    }
}

impl<'a, T: Resolve<'a>> Resolve<'a> for Vec<T> {
    type Resolved = Vec<T::Resolved>;

    #[inline]
    fn resolve(&self, page: &'a str) -> Self::Resolved {
        self.iter().map(|item| item.resolve(page)).collect()
    }
}

impl<'a, T: Resolve<'a>> Resolve<'a> for (T, T) {
    type Resolved = (T::Resolved, T::Resolved);

    fn resolve(&self, page: &'a str) -> Self::Resolved {
        let (key, value) = self;
        (key.resolve(page), value.resolve(page))
    }
}
