//! Users and messages as the interface names them (2.1 and 2.2), tolerant of what it leaves open:
//! any field but `id` may be null or missing, and unknown fields survive in `extra`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::error::Misfit;
use super::json::{self, Fault, Whole};
use super::timestamp::Timestamp;

/// A JSON object as sent.
pub type Extra = Map<String, Value>;

/// The fields that the interface does not name: keys and the JSON of their values, in the order in
/// which they came. Of a key that comes twice the last one rules.
pub type Unknown<'a> = Vec<(Cow<'a, str>, &'a str)>;

/// Unknown fields as one object.
pub fn object_of(unknown: &Unknown<'_>) -> Result<Extra, Fault> {
    let members = unknown.iter();
    members
        .map(|(key, json)| Ok((key.clone().into_owned(), json::parse(json)?)))
        .collect()
}

/// A struct read from a JSON object: required numbers, then fields that may be null or missing, then
/// `extra`. Of a key that comes twice the last one rules, as in Python's json.
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
                        while let Some(key) = map.next_key::<Key>()? {
                            match key {
                                $(Key::$required => {
                                    $required = Some(map.next_value::<Whole>()?.0);
                                })*
                                $(Key::$field => $field = map.next_value()?,)*
                                Key::Unknown(key) => {
                                    let value: &'de RawValue = map.next_value()?;
                                    // Nested too deep to be read, it is refused here.
                                    serde_json::from_str::<Value>(value.get())
                                        .map_err(de::Error::custom)?;
                                    extra.push((Cow::Owned(key), value.get()));
                                }
                            }
                        }
                        Ok($name {
                            $($required: $required
                                .ok_or_else(|| de::Error::missing_field(stringify!($required)))?,)*
                            $($field,)*
                            extra,
                        })
                    }
                }
                deserializer.deserialize_map(RecordVisitor(PhantomData))
            }
        }
    };
}

record! {
    /// A visitor of the widget (interface 2.1).
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
    /// Any other sender: of a type that the interface does not show, or without an id.
    #[derive(Debug, Clone, PartialEq)]
    OtherSender<'a> {} { id: Whole, }
}

record! {
    /// A message before its sender is read, which may stand ahead of its sender_type.
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

/// What a visitor or an operator wrote (interface 2.2).
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

/// What the JSON of one row is read as; the caller has checked that it is JSON.
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
        let fields: MessageFields<'a> = identified(json)?;
        let sender = match &fields.sender {
            Some(sender) => Some(
                Sender::read(fields.sender_type.as_deref(), sender.get())
                    .map_err(|fault| fault.below("$.sender").of(Misfit::Field))?,
            ),
            None => None,
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

/// Reads a record that must have an id; where there is none, that is what the fault points at.
fn identified<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Fault> {
    json::parse(json).map_err(|fault| {
        let Ok(IdOf(id)) = serde_json::from_str::<IdOf<IgnoredAny>>(json) else {
            return fault;
        };
        let fault = match id {
            None => Fault::new("$.id", "the id is null or missing", json),
            Some(_) => fault,
        };
        fault.of(Misfit::Field)
    })
}

impl<'a> Sender<'a> {
    fn read(sender_type: Option<&str>, json: &'a str) -> Result<Self, Fault> {
        let named = json::parse::<IdOf<IgnoredAny>>(json)?.0.is_some();
        match sender_type {
            Some("user") if named => json::parse(json).map(Self::User),
            Some("operator") if named => json::parse(json).map(Self::Operator),
            _ => json::parse(json).map(Self::Other),
        }
    }
}

/// The id of an object, and nothing else of it; of two the last one rules.
pub(super) struct IdOf<T>(pub Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for IdOf<T> {
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

        struct IdVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for IdVisitor<T> {
            type Value = IdOf<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<IdOf<T>, A::Error> {
                let mut id = None;
                while let Some(IsId(is_id)) = map.next_key()? {
                    match is_id {
                        true => id = map.next_value()?,
                        false => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(IdOf(id))
            }
        }

        deserializer.deserialize_map(IdVisitor(PhantomData))
    }
}
