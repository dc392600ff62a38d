//! Users and messages as the interface names them (2.1 and 2.2), tolerant of what it leaves open:
//! any field except `id` may be null or missing, and unknown fields are preserved in `extra`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::core::decode::json::{self, Fault, Whole};
use crate::core::error::Misfit;
use crate::core::timestamp::Timestamp;

/// A JSON object as sent.
pub type Extra = Map<String, Value>;

/// Fields without a typed counterpart: keys and the JSON of their values, in the original order.
/// They are fields that the interface does not name, and documented ones whose value has another
/// type. If a key occurs twice, the last one wins.
pub type Unknown<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// Unknown fields as one object.
pub fn object_of(unknown: &Unknown<'_>) -> Result<Extra, Fault> {
    let members = unknown.iter();
    members
        .map(|(key, json)| Ok((key.clone().into_owned(), json::parse(json)?)))
        .collect()
}

/// A struct read from a JSON object: required numbers, then fields that may be null, missing or of
/// another type, then `extra`. If a key occurs twice, the last one wins, as in Python's json.
macro_rules! record {
    (
        $(#[$attribute:meta])*
        $name:ident<$lifetime:lifetime> { $($required:ident: i64,)* } { $($field:ident: $type:ty,)* }
    ) => {
        $(#[$attribute])*
        pub struct $name<$lifetime> {
            $(pub $required: i64,)*
            $(pub $field: Option<$type>,)*
            pub extra: Unknown<$lifetime>,
        }

        impl $name<'_> {
            /// The fields that may be null, missing or of another type.
            const OPTIONAL: &'static [&'static str] = &[$(stringify!($field),)*];
        }

        impl<'de: $lifetime, $lifetime> Deserialize<'de> for $name<$lifetime> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[allow(non_camel_case_types)]
                enum Key { $($required,)* $($field,)* Unknown(String) }

                impl<'de> Deserialize<'de> for Key {
                    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                        struct KeyVisitor;
                        impl Visitor<'_> for KeyVisitor {
                            type Value = Key;
                            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                                formatter.write_str("a key")
                            }
                            fn visit_str<E: de::Error>(self, key: &str) -> Result<Key, E> {
                                Ok(match key {
                                    $(stringify!($required) => Key::$required,)*
                                    $(stringify!($field) => Key::$field,)*
                                    unknown => Key::Unknown(unknown.to_owned()),
                                })
                            }
                        }
                        deserializer.deserialize_identifier(KeyVisitor)
                    }
                }

                struct RecordVisitor<T>(PhantomData<T>);
                impl<'de: $lifetime, $lifetime> Visitor<'de> for RecordVisitor<$name<$lifetime>> {
                    type Value = $name<$lifetime>;
                    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                        formatter.write_str("an object")
                    }
                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        $(let mut $required: Option<i64> = None;)*
                        $(let mut $field: Option<$type> = None;)*
                        let mut extra = Unknown::new();
                        let mut kept = Kept::default();
                        while let Some(key) = map.next_key::<Key>()? {
                            match key {
                                $(Key::$required => {
                                    let value: &'de RawValue = map.next_value()?;
                                    $required = whole(value);
                                })*
                                $(Key::$field => {
                                    kept.forget(stringify!($field));
                                    let value: &'de RawValue = map.next_value()?;
                                    let (typed, odd) = <$type>::read(value.get());
                                    $field = typed;
                                    kept.keep(stringify!($field), odd, extra.len());
                                })*
                                Key::Unknown(key) => {
                                    let value: &'de RawValue = map.next_value()?;
                                    extra.push((Cow::Owned(key), Cow::Borrowed(value.get())));
                                }
                            }
                        }
                        Ok($name {
                            $($required: $required
                                .ok_or_else(|| de::Error::missing_field(stringify!($required)))?,)*
                            $($field,)*
                            extra: kept.join(extra),
                        })
                    }
                }
                deserializer.deserialize_map(RecordVisitor(PhantomData))
            }
        }
    };
}

record! {
    /// A visitor who uses the widget (interface 2.1).
    #[derive(Debug, Clone, PartialEq)]
    User<'a> { id: i64, } {
        name: Cow<'a, str>,
        email: Cow<'a, str>,
        reference: Cow<'a, str>,
        created_at: Timestamp,
        updated_at: Timestamp,
        online_at: Timestamp,
        last_url: Cow<'a, str>,
        user_attributes: Vec<UserAttribute<'a>>,
    }
}

record! {
    /// A custom property that the widget's code set (interface 2.1).
    #[derive(Debug, Clone, PartialEq)]
    UserAttribute<'a> {} { name: Cow<'a, str>, value: Cow<'a, str>, }
}

record! {
    /// The sender of a message whose sender_type is `user` (interface 2.2).
    #[derive(Debug, Clone, PartialEq)]
    UserSender<'a> { id: i64, } { name: Cow<'a, str>, email: Cow<'a, str>, }
}

record! {
    /// The sender of a message whose sender_type is `operator` (interface 2.2).
    #[derive(Debug, Clone, PartialEq)]
    OperatorSender<'a> { id: i64, } {
        forename: Cow<'a, str>,
        surname: Cow<'a, str>,
        email: Cow<'a, str>,
        picture_thumb_url: Cow<'a, str>,
    }
}

record! {
    /// Any other sender: of an undocumented type, or without an id.
    #[derive(Debug, Clone, PartialEq)]
    OtherSender<'a> {} { id: Whole, }
}

record! {
    /// A message before its sender is decoded, because `sender` may precede `sender_type`.
    #[derive(Debug)]
    MessageFields<'a> { id: i64, } {
        body: Cow<'a, str>,
        read_by_user: bool,
        read_by_operator: bool,
        created_at: Timestamp,
        file_url: Cow<'a, str>,
        auto_invitation: bool,
        sender_type: Cow<'a, str>,
        sender: &'a RawValue,
    }
}

/// Who wrote a message, by its sender_type (interface 2.2).
#[derive(Debug, Clone, PartialEq)]
pub enum Sender<'a> {
    User(UserSender<'a>),
    Operator(OperatorSender<'a>),
    Other(OtherSender<'a>),
}

/// A message by a visitor or an operator (interface 2.2).
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'a> {
    pub id: i64,
    pub body: Option<Cow<'a, str>>,
    pub read_by_user: Option<bool>,
    pub read_by_operator: Option<bool>,
    pub created_at: Option<Timestamp>,
    pub file_url: Option<Cow<'a, str>>,
    pub auto_invitation: Option<bool>,
    pub sender_type: Option<Cow<'a, str>>,
    pub sender: Option<Sender<'a>>,
    pub extra: Unknown<'a>,
}

/// A type that a row's JSON is decoded to; the caller has checked that it is JSON.
pub trait Record<'a>: Sized {
    fn read(json: &'a str) -> Result<Self, Fault>;
}

impl<'a> Record<'a> for User<'a> {
    fn read(json: &'a str) -> Result<Self, Fault> {
        identified(json)
    }
}

impl<'a> Record<'a> for Message<'a> {
    fn read(json: &'a str) -> Result<Self, Fault> {
        let mut fields: MessageFields<'a> = identified(json)?;
        let sender = match fields.sender {
            None => None,
            Some(sent) => {
                let sender = Sender::read(fields.sender_type.as_deref(), sent.get());
                if sender.is_none() {
                    let odd = (Cow::Borrowed("sender"), Cow::Borrowed(sent.get()));
                    fields.extra.push(odd);
                }
                sender
            }
        };
        Ok(Self {
            id: fields.id,
            body: fields.body,
            read_by_user: fields.read_by_user,
            read_by_operator: fields.read_by_operator,
            created_at: fields.created_at,
            file_url: fields.file_url,
            auto_invitation: fields.auto_invitation,
            sender_type: fields.sender_type,
            sender,
            extra: fields.extra,
        })
    }
}

/// The JSON object as sent.
impl<'a> Record<'a> for Extra {
    fn read(json: &'a str) -> Result<Self, Fault> {
        json::parse(json).map_err(|fault| fault.of(Misfit::Envelope))
    }
}

/// Reads a record that must have an id; if it has none, the fault points at that.
fn identified<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Fault> {
    json::parse(json).map_err(|fault| {
        let Ok(IdOf(id)) = serde_json::from_str::<IdOf<'_>>(json) else {
            return fault;
        };
        let fault = match id.map(RawValue::get) {
            None | Some("null") => Fault::new("$.id", "the id is null or missing", json),
            Some(id) => Fault::new("$.id", "the id is no whole number of 64 bits", id),
        };
        fault.of(Misfit::Field)
    })
}

/// The id of an object, if it is a whole number.
fn id_of(json: &str) -> Option<i64> {
    let IdOf(id) = serde_json::from_str(json).ok()?;
    whole(id?)
}

fn whole(value: &RawValue) -> Option<i64> {
    let Whole(number) = serde_json::from_str(value.get()).ok()?;
    Some(number)
}

impl<'a> Sender<'a> {
    /// `None` if it is not an object.
    fn read(sender_type: Option<&str>, json: &'a str) -> Option<Self> {
        match sender_type.filter(|_| id_of(json).is_some()) {
            Some("user") => serde_json::from_str(json).ok().map(Self::User),
            Some("operator") => serde_json::from_str(json).ok().map(Self::Operator),
            _ => serde_json::from_str(json).ok().map(Self::Other),
        }
    }
}

/// A field of a record.
trait Field<'a>: Deserialize<'a> {
    /// The value, and the part of it whose type is not the field's.
    fn read(json: &'a str) -> (Option<Self>, Option<Cow<'a, str>>) {
        match serde_json::from_str(json) {
            Ok(value) => (value, None),
            Err(_) => (None, Some(Cow::Borrowed(json))),
        }
    }
}

impl Field<'_> for Cow<'_, str> {}
impl Field<'_> for Timestamp {}
impl Field<'_> for Whole {}
impl Field<'_> for bool {}
impl<'a> Field<'a> for &'a RawValue {}

impl<'a> Field<'a> for Vec<UserAttribute<'a>> {
    /// Elements that are not attributes are returned as a separate array.
    fn read(json: &'a str) -> (Option<Self>, Option<Cow<'a, str>>) {
        let elements: Vec<&RawValue> = match serde_json::from_str(json) {
            Ok(Some(elements)) => elements,
            Ok(None) => return (None, None),
            Err(_) => return (None, Some(Cow::Borrowed(json))),
        };
        let mut attributes = Self::with_capacity(elements.len());
        let mut strays = Vec::new();
        for element in elements {
            match serde_json::from_str(element.get()) {
                Ok(attribute) => attributes.push(attribute),
                Err(_) => strays.push(element.get()),
            }
        }
        let strays = (!strays.is_empty()).then(|| format!("[{}]", strays.join(",")));
        (Some(attributes), strays.map(Cow::Owned))
    }
}

/// Values whose type is not their field's, and their positions among the unknown fields.
#[derive(Default)]
struct Kept<'a>(Vec<(usize, &'static str, Cow<'a, str>)>);

impl<'a> Kept<'a> {
    fn forget(&mut self, name: &str) {
        self.0.retain(|(_, kept, _)| *kept != name);
    }

    fn keep(&mut self, name: &'static str, odd: Option<Cow<'a, str>>, position: usize) {
        self.0.extend(odd.map(|json| (position, name, json)));
    }

    fn join(self, mut extra: Unknown<'a>) -> Unknown<'a> {
        for (before, (position, name, json)) in self.0.into_iter().enumerate() {
            extra.insert(position + before, (Cow::Borrowed(name), json));
        }
        extra
    }
}

impl User<'_> {
    /// How many values of documented fields have another type.
    pub fn odd_values(&self) -> u64 {
        let attributes = self.user_attributes.iter().flatten();
        let inner: u64 = attributes
            .map(|attribute| odd(UserAttribute::OPTIONAL, &attribute.extra))
            .sum();
        let strays = match (
            &self.user_attributes,
            json_of("user_attributes", &self.extra),
        ) {
            (Some(_), Some(json)) => {
                let strays = serde_json::from_str::<Vec<&RawValue>>(json);
                strays.map_or(0, |strays| strays.len() as u64 - 1)
            }
            _ => 0,
        };
        odd(User::OPTIONAL, &self.extra) + strays + inner
    }
}

impl Message<'_> {
    /// How many values of documented fields have another type.
    pub fn odd_values(&self) -> u64 {
        let inner = match &self.sender {
            None => 0,
            Some(Sender::User(user)) => odd(UserSender::OPTIONAL, &user.extra),
            Some(Sender::Operator(operator)) => odd(OperatorSender::OPTIONAL, &operator.extra),
            Some(Sender::Other(other)) => odd(OtherSender::OPTIONAL, &other.extra),
        };
        odd(MessageFields::OPTIONAL, &self.extra) + inner
    }
}

fn odd(documented: &[&str], extra: &Unknown<'_>) -> u64 {
    let kept = extra
        .iter()
        .filter(|(key, _)| documented.contains(&key.as_ref()));
    kept.count() as u64
}

fn json_of<'a>(name: &str, extra: &'a Unknown<'_>) -> Option<&'a str> {
    let (_, json) = extra.iter().find(|(key, _)| key == name)?;
    Some(json)
}

/// The id of an object, ignoring everything else; of two, the last one wins.
struct IdOf<'a>(Option<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for IdOf<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IsId(bool);

        impl<'de> Deserialize<'de> for IsId {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct IsIdVisitor;

                impl Visitor<'_> for IsIdVisitor {
                    type Value = IsId;

                    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                        formatter.write_str("a key")
                    }

                    fn visit_str<E: de::Error>(self, key: &str) -> Result<IsId, E> {
                        Ok(IsId(key == "id"))
                    }
                }

                deserializer.deserialize_identifier(IsIdVisitor)
            }
        }

        struct IdVisitor;

        impl<'de> Visitor<'de> for IdVisitor {
            type Value = IdOf<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<IdOf<'de>, A::Error> {
                let mut id = None;
                while let Some(IsId(is_id)) = map.next_key()? {
                    match is_id {
                        true => id = Some(map.next_value()?),
                        false => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(IdOf(id))
            }
        }

        deserializer.deserialize_map(IdVisitor)
    }
}
