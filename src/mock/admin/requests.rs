//! What requests to the admin interface say: their queries and bodies.

use std::fmt::Display;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::value::{Error as QueryError, MapDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_json::Value;

use super::access::Problem;
use crate::dialect::Dialect;
use crate::drift::check_rows;
use crate::faults::rate::Rate;
use crate::faults::rule::{Rule, read_rules};
use crate::lane::LaneOptions;
use crate::world::{Fields, World};

/// Parses a query of whole numbers.
///
/// # Errors
/// 400, which names the argument.
pub fn query<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let given = url::form_urlencoded::parse(text.as_bytes()).map(|(name, value)| {
        let refuse = |_| Problem::wrong(format!("{name}: must be a whole number, not {value:?}"));
        let number: u64 = value.parse().map_err(refuse)?;
        Ok((name.clone().into_owned(), number))
    });
    let given = given.collect::<Result<Vec<_>, Problem>>()?;
    let read: Result<T, QueryError> = T::deserialize(MapDeserializer::new(given.into_iter()));
    read.map_err(Problem::wrong)
}

/// Parses a body.
///
/// # Errors
/// 400, which names the place in the body.
pub fn body<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // In two steps, because deserialization errors of a value say more than those of a text.
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| Problem::wrong(format!("body: must be a JSON object: {error}")))?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let place = error.path().to_string();
        let place = if place == "." { "body" } else { &place };
        Problem::wrong(format!("{place}: {}", error.inner()))
    })
}

/// A part of a journal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Since {
    pub after: u64,
    pub limit: usize,
}

impl Default for Since {
    fn default() -> Self {
        Self {
            after: 0,
            limit: 100,
        }
    }
}

/// A lane to open; omitted values are as the main lane began.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes the lane")]
pub struct NewLane {
    pub name: Option<String>,
    seed: Option<u64>,
    pub world: Option<NewWorld>,
    dialect: Option<Parsed<Dialect>>,
    rate: Option<Parsed<Rate>>,
    #[serde(default, deserialize_with = "rules")]
    faults: Vec<Rule>,
}

impl NewLane {
    pub fn options(self) -> LaneOptions {
        LaneOptions {
            seed: self.seed,
            dialect: self
                .dialect
                .map_or(Dialect::DOCUMENTED, |dialect| dialect.0),
            rate: self.rate.map(|rate| rate.0),
            rules: self.faults,
            ..LaneOptions::default()
        }
    }
}

/// A world to create.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[serde(expecting = "an object with seed, users and messages_per_user")]
pub struct NewWorld {
    seed: u64,
    users: u64,
    messages_per_user: (u64, u64),
}

impl Default for NewWorld {
    fn default() -> Self {
        Self {
            seed: 0,
            users: 100,
            messages_per_user: (0, 40),
        }
    }
}

impl NewWorld {
    /// The world.
    ///
    /// # Errors
    /// 400, which names the number that is too large.
    pub fn make(&self) -> Result<World, Problem> {
        let (least, most) = self.messages_per_user;
        Ok(World::new(self.seed, self.users, least, most)?)
    }
}

/// A value that is sent as text.
#[derive(Debug)]
pub struct Parsed<T>(pub T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let rules = texts.iter().map(|text| read_rules(text));
    let rules: Result<Vec<_>, _> = rules.collect();
    Ok(rules.map_err(D::Error::custom)?.concat())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with dialect, a text")]
pub struct NewDialect {
    pub dialect: Parsed<Dialect>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with rate, a text or null")]
pub struct NewRate {
    #[serde(deserialize_with = "Option::deserialize")]
    pub rate: Option<Parsed<Rate>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an object with faults, a list of texts")]
pub struct NewFaults {
    #[serde(deserialize_with = "rules")]
    pub faults: Vec<Rule>,
}

/// A change of a world.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[serde(expecting = "an object with one change of the world")]
pub enum WorldChange {
    AddUsers(u64),
    AddMessages { user: u64, count: u64 },
    RemoveUser(u64),
    RemoveMessage { user: u64, id: u64 },
    EditUser { id: u64, fields: Fields },
    EditMessage { user: u64, id: u64, fields: Fields },
}

impl WorldChange {
    /// Makes the change, and returns the ids of added rows.
    ///
    /// # Errors
    /// 404 for a row that does not exist, 400 for values that are wrong.
    pub fn apply(self, world: &World) -> Result<Vec<u64>, Problem> {
        match self {
            Self::AddUsers(count) => {
                check_rows("add_users", count).map_err(Problem::wrong)?;
                return Ok(world.add(None, count)?);
            }
            Self::AddMessages { user, count } => {
                check_rows("add_messages.count", count).map_err(Problem::wrong)?;
                return Ok(world.add(Some(user), count)?);
            }
            Self::RemoveUser(id) => world.remove(None, id)?,
            Self::RemoveMessage { user, id } => world.remove(Some(user), id)?,
            Self::EditUser { id, fields } => world.edit(None, id, fields)?,
            Self::EditMessage { user, id, fields } => world.edit(Some(user), id, fields)?,
        }
        Ok(Vec::new())
    }
}

/// How the clock advances.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(
    expecting = "an object with virtual, a boolean, start, a timestamp, and advance, in seconds"
)]
pub struct NewTime {
    #[serde(rename = "virtual")]
    pub is_virtual: Option<bool>,
    pub start: Option<Parsed<jiff::Timestamp>>,
    pub advance: Option<f64>,
}

/// The rows that a reader has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an object with ids and, for messages, messages_of")]
pub struct Held {
    pub ids: Vec<u64>,
    pub messages_of: Option<u64>,
}
