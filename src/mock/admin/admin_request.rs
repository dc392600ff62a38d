//! A request to the admin interface: its query and body.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::problem::Problem;
use crate::drift::{Change, Drift, Which};
use crate::world::{Fields, World};

/// The most rows that one request adds, changes or removes.
pub const MOST_ROWS: u64 = 10_000;

/// An authorized request.
#[derive(Clone, Copy, Debug)]
pub struct AdminRequest<'request> {
    pub method: &'request str,
    pub query: &'request str,
    pub body: &'request [u8],
}

impl AdminRequest<'_> {
    /// Answers a GET without a query.
    ///
    /// # Errors
    /// `wrong_method`, `wrong_request`, and those of `answer`.
    pub fn only_get(
        &self,
        answer: impl FnOnce() -> Result<Value, Problem>,
    ) -> Result<Value, Problem> {
        match self.method {
            "GET" => self.no_query().and_then(|()| answer()),
            _ => Err(Problem::wrong_method("GET")),
        }
    }

    /// Refuses a query.
    ///
    /// # Errors
    /// `wrong_request`.
    pub fn no_query(&self) -> Result<(), Problem> {
        self.numbers([]).map(|[]| ())
    }

    /// Parses a query of whole numbers: for each the name, the default, and the maximum.
    ///
    /// # Errors
    /// `wrong_request` for an unknown or repeated name, and for a number out of range.
    pub fn numbers<const N: usize>(
        &self,
        wanted: [(&'static str, u64, u64); N],
    ) -> Result<[u64; N], Problem> {
        let mut given: [Option<u64>; N] = [None; N];
        for (name, value) in url::form_urlencoded::parse(self.query.as_bytes()) {
            let place = wanted
                .iter()
                .zip(&mut given)
                .find(|(wanted, _)| wanted.0 == name);
            let Some((&(name, _, most), place)) = place else {
                let names = wanted.map(|(name, ..)| name).join(" and ");
                let names = if names.is_empty() {
                    "no arguments"
                } else {
                    &names
                };
                return Err(Problem::wrong(format!("{name:?}: this path takes {names}")));
            };
            let number = value.parse().ok().filter(|number| *number <= most);
            let refuse =
                || Problem::wrong(format!("{name}: must be from 0 to {most}, not {value:?}"));
            if place.replace(number.ok_or_else(refuse)?).is_some() {
                return Err(Problem::wrong(format!("{name}: was given more than once")));
            }
        }
        let mut numbers = [0; N];
        for ((number, given), (_, missing, _)) in numbers.iter_mut().zip(given).zip(wanted) {
            *number = given.unwrap_or(missing);
        }
        Ok(numbers)
    }

    /// Reads the body.
    ///
    /// # Errors
    /// `wrong_request`, which names the place in the body.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        self.no_query()?;
        if self.body.is_empty() {
            return Err(Problem::wrong("body: is empty; send a JSON object"));
        }
        // In two steps, because deserialization errors of a value say more than those of a text.
        let value: Value = serde_json::from_slice(self.body)
            .map_err(|error| Problem::wrong(format!("body: is not JSON: {error}")))?;
        serde_path_to_error::deserialize(value).map_err(|error| {
            let place = error.path().to_string();
            let place = if place == "." { "body" } else { &place };
            Problem::wrong(format!("{place}: {}", error.inner()))
        })
    }
}

/// Rejects a number of rows outside 1 to [`MOST_ROWS`].
///
/// # Errors
/// `wrong_request`, which names the argument.
pub fn some_rows(argument: &str, count: u64) -> Result<u64, Problem> {
    if (1..=MOST_ROWS).contains(&count) {
        return Ok(count);
    }
    Err(Problem::wrong(format!(
        "{argument}: must be from 1 to {MOST_ROWS}, not {count}"
    )))
}

/// A lane to open; omitted values are as the main lane began.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes the lane")]
pub struct NewLane {
    pub name: Option<String>,
    pub seed: Option<u64>,
    pub world: Option<NewWorld>,
    pub dialect: Option<String>,
    pub rate: Option<String>,
    #[serde(default)]
    pub faults: Vec<String>,
}

/// A world to create.
#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with seed, users and messages_per_user"
)]
pub struct NewWorld {
    #[serde(default)]
    seed: u64,
    #[serde(default = "hundred")]
    users: u64,
    #[serde(default = "to_forty")]
    messages_per_user: (u64, u64),
}

impl NewWorld {
    /// The world.
    ///
    /// # Errors
    /// `wrong_request`, which names the number that is too large.
    pub fn make(self) -> Result<World, Problem> {
        let (least, most) = self.messages_per_user;
        Ok(World::new(self.seed, self.users, least, most)?)
    }
}

const fn hundred() -> u64 {
    100
}

const fn to_forty() -> (u64, u64) {
    (0, 40)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with dialect, a text")]
pub struct NewDialect {
    pub dialect: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with rate, a text or null")]
pub struct NewRate {
    #[serde(deserialize_with = "Option::deserialize")]
    pub rate: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with faults, a list of texts"
)]
pub struct NewFaults {
    pub faults: Vec<String>,
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

/// A change of the world between two pages.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an object with route, after, and one of delete, add and edit")]
pub struct NewDrift {
    route: String,
    user: Option<u64>,
    after: u64,
    delete: Option<Rows>,
    add: Option<u64>,
    edit: Option<Edit>,
}

/// Which rows of a list.
#[derive(Debug, Deserialize)]
#[serde(
    rename_all = "snake_case",
    expecting = "an object with one of first, last and ids"
)]
enum Rows {
    First(u64),
    Last(u64),
    Ids(Vec<u64>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with rows and fields")]
struct Edit {
    rows: Rows,
    fields: Fields,
}

impl NewDrift {
    /// The same as the lane's type.
    ///
    /// # Errors
    /// `wrong_request` unless it is exactly one change, with few enough rows, of a list.
    pub fn read(self) -> Result<Drift, Problem> {
        let change = match (self.delete, self.add, self.edit) {
            (Some(rows), None, None) => Change::Delete(rows.which("delete")?),
            (None, Some(count), None) => Change::Add(some_rows("add", count)?),
            (None, None, Some(edit)) => Change::Edit(edit.rows.which("edit.rows")?, edit.fields),
            _ => return Err(Problem::wrong("give exactly one of delete, add and edit")),
        };
        Drift::new(&self.route, self.user, self.after, change).map_err(Problem::wrong)
    }
}

impl Rows {
    fn which(self, argument: &str) -> Result<Which, Problem> {
        Ok(match self {
            Self::First(count) => Which::First(some_rows(&format!("{argument}.first"), count)?),
            Self::Last(count) => Which::Last(some_rows(&format!("{argument}.last"), count)?),
            Self::Ids(ids) => Which::Ids(ids),
        })
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
    pub start: Option<String>,
    pub advance: Option<f64>,
}

/// The rows that a reader has.
#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with ids and, for messages, messages_of"
)]
pub struct Held {
    pub ids: Vec<u64>,
    pub messages_of: Option<u64>,
}
