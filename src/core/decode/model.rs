//! Users and messages with their texts, and how serde_json reads them: tolerant of what the
//! interface leaves open. Any field except `id` may be null or missing, and unknown fields are
//! preserved in `extra`.

use std::borrow::Cow;
use std::fmt;
use std::mem;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::decode::json::{self, Fault, Whole};
use crate::decode::rows::{self, Texts};
use crate::error::Misfit;
use crate::schema::{Object, SenderType, schema};
use crate::timestamp::Timestamp;

pub type User<'a> = rows::User<Texts<'a>>;
pub type UserAttribute<'a> = rows::UserAttribute<Texts<'a>>;
pub type Message<'a> = rows::Message<Texts<'a>>;
pub type Sender<'a> = rows::Sender<Texts<'a>>;

/// Fields without a typed counterpart; see `rows::Extra`.
pub type Unknown<'a> = rows::Extra<Texts<'a>>;

/// A JSON object as sent.
pub type Extra = Map<String, Value>;

/// A type that a row's JSON is decoded to; the caller has checked that it is JSON.
pub trait Record<'a>: Sized {
    fn read(json: &'a str) -> Result<Self, Fault>;
}

impl<'a> Record<'a> for User<'a> {
    fn read(json: &'a str) -> Result<Self, Fault> {
        Ok(Self::of(&identified(json)?, |_| true))
    }
}

impl<'a> Record<'a> for Message<'a> {
    fn read(json: &'a str) -> Result<Self, Fault> {
        Ok(Self::of(&identified(json)?, |_| true))
    }
}

/// The JSON object as sent.
impl<'a> Record<'a> for Extra {
    fn read(json: &'a str) -> Result<Self, Fault> {
        json::parse(json).map_err(|fault| fault.of(Misfit::Envelope))
    }
}

/// The members of a row, which must have an id; if it has none, the fault points at that.
fn identified(json: &str) -> Result<Members<'_>, Fault> {
    let members: Members<'_> = json::parse(json)?;
    let fault = match members.last("id") {
        Some(id) if whole(id).is_some() => return Ok(members),
        None | Some("null") => Fault::new("$.id", "the id is null or missing", json),
        Some(id) => Fault::new("$.id", "the id is not a 64-bit integer", id),
    };
    Err(fault.of(Misfit::Field))
}

/// A whole number of 64 bits.
pub(super) fn whole(json: &str) -> Option<i64> {
    let Whole(number) = serde_json::from_str(json).ok()?;
    Some(number)
}

/// The members of an object, not decoded yet.
pub(super) struct Members<'a>(pub(super) Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Members<'a> {
    /// The JSON of a member; if a key occurs twice, the last one wins.
    pub fn last(&self, key: &str) -> Option<&'a str> {
        let mut members = self.0.iter().rev();
        let (_, json) = members.find(|(name, _)| name == key)?;
        Some(json)
    }

    /// The type of the sender with this id, in a message of these members.
    fn sender_type(&self, id: Option<i64>) -> SenderType {
        let sender_type = self.last("sender_type").and_then(|json| {
            let text: Cow<'_, str> = serde_json::from_str(json).ok()?;
            Some(text)
        });
        SenderType::of(sender_type.as_deref(), id)
    }
}

/// The id of the user who sent a message; `None` if an operator or another sender did.
pub fn sending_user(message: &str) -> Option<i64> {
    let message: Members<'_> = serde_json::from_str(message).ok()?;
    let sender: Members<'_> = serde_json::from_str(message.last("sender")?).ok()?;
    let id = sender.last("id").and_then(whole);
    id.filter(|_| message.sender_type(id) == SenderType::User)
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    members.push((key, map.next_value::<&RawValue>()?.get()));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

/// A key, borrowed unless it has escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a key")
            }

            fn visit_borrowed_str<E: de::Error>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E: de::Error>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}

macro_rules! readings {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $kind:ident $(of $($sender:ident)+)?,)* }
    )*) => { $(
        impl<'a> $name<'a> {
            /// Reads an object's members, of which those that are not `documented` go to `extra`.
            fn of(members: &Members<'a>, documented: impl Fn(&str) -> bool) -> Self {
                #[derive(Default)]
                struct Seen {
                    $($field: bool,)*
                }
                let (mut row, mut seen) = (Self::default(), Seen::default());
                // From the last to the first, because of two members with one key the last one wins.
                for (key, json) in members.0.iter().rev() {
                    match key.as_ref() {
                        $(name @ stringify!($field) if documented(name) => {
                            if !mem::replace(&mut seen.$field, true) {
                                let (value, odd) = Read::read(json, members);
                                row.$field = value;
                                row.extra.extend(odd.map(|json| (key.clone(), json)));
                            }
                        })*
                        _ => row.extra.push((key.clone(), Cow::Borrowed(json))),
                    }
                }
                row.extra.reverse();
                row
            }
        }
    )* };
}
schema!(readings);

/// The value of a field, and the part of it whose type is not the field's.
type Sorted<'a, T> = (T, Option<Cow<'a, str>>);

/// A value that a field holds.
trait Read<'a>: Sized {
    /// `members` are those of the object with the field.
    fn read(json: &'a str, members: &Members<'a>) -> Sorted<'a, Self>;
}

/// An id, which `identified` has checked.
impl<'a> Read<'a> for i64 {
    fn read(json: &'a str, _: &Members<'a>) -> Sorted<'a, Self> {
        (whole(json).unwrap_or_default(), None)
    }
}

impl<'a> Read<'a> for Option<i64> {
    fn read(json: &'a str, _: &Members<'a>) -> Sorted<'a, Self> {
        let (number, odd) = typed::<Whole>(json);
        (number.map(|Whole(number)| number), odd)
    }
}

macro_rules! plainly_read {
    ($($type:ty),*) => { $(
        impl<'a> Read<'a> for Option<$type> {
            fn read(json: &'a str, _: &Members<'a>) -> Sorted<'a, Self> {
                typed(json)
            }
        }
    )* };
}
plainly_read!(Cow<'a, str>, bool, Timestamp);

fn typed<'a, T: Deserialize<'a>>(json: &'a str) -> Sorted<'a, Option<T>> {
    match serde_json::from_str(json) {
        Ok(value) => (value, None),
        Err(_) => (None, Some(Cow::Borrowed(json))),
    }
}

impl<'a> Read<'a> for Option<Vec<UserAttribute<'a>>> {
    /// Elements that are not objects are returned as a separate array.
    fn read(json: &'a str, _: &Members<'a>) -> Sorted<'a, Self> {
        let elements = match typed::<Vec<&RawValue>>(json) {
            (None, odd) => return (None, odd),
            (Some(elements), _) => elements,
        };
        let mut attributes = Vec::with_capacity(elements.len());
        let mut strays = Vec::new();
        for element in elements {
            match serde_json::from_str(element.get()) {
                Ok(members) => attributes.push(UserAttribute::of(&members, |_| true)),
                Err(_) => strays.push(element.get()),
            }
        }
        let strays = (!strays.is_empty()).then(|| format!("[{}]", strays.join(",")));
        (Some(attributes), strays.map(Cow::Owned))
    }
}

impl<'a> Read<'a> for Option<Sender<'a>> {
    fn read(json: &'a str, message: &Members<'a>) -> Sorted<'a, Self> {
        let (members, odd) = typed::<Members<'_>>(json);
        let sender = members.map(|members| {
            let sender_type = message.sender_type(members.last("id").and_then(whole));
            let named = |name: &str| sender_type.names().any(|known| known == name);
            Sender::of(&members, named)
        });
        (sender, odd)
    }
}

impl User<'_> {
    /// How many values of documented fields have another type.
    pub fn odd_values(&self) -> u64 {
        let attributes = self.user_attributes.iter().flatten();
        let inner: u64 = attributes
            .map(|attribute| odd(names_of(Object::UserAttribute), &attribute.extra))
            .sum();
        // Each element that is no attribute counts; they are in one array.
        let mut extra = self.extra.iter();
        let strays =
            extra.find(|(key, _)| self.user_attributes.is_some() && key == "user_attributes");
        let strays = strays.map_or(0, |(_, json)| {
            let strays = serde_json::from_str::<Vec<&RawValue>>(json);
            strays.map_or(0, |strays| strays.len() as u64 - 1)
        });
        odd(names_of(Object::User), &self.extra) + strays + inner
    }
}

impl Message<'_> {
    /// How many values of documented fields have another type.
    pub fn odd_values(&self) -> u64 {
        let inner = self.sender.as_ref().map_or(0, |sender| {
            let sender_type = SenderType::of(self.sender_type.as_deref(), sender.id);
            odd(sender_type.names(), &sender.extra)
        });
        odd(names_of(Object::Message), &self.extra) + inner
    }
}

fn names_of(object: Object) -> impl Iterator<Item = &'static str> {
    object.fields().iter().map(|field| field.name)
}

fn odd(documented: impl Iterator<Item = &'static str>, extra: &Unknown<'_>) -> u64 {
    if extra.is_empty() {
        return 0;
    }
    let kept = documented.filter(|name| extra.iter().any(|(key, _)| key == name));
    kept.count() as u64
}
