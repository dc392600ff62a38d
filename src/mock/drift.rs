//! Changes of the world between two pages of a list.

use std::fmt;
use std::sync::Mutex;

use serde::Deserialize;

use super::dialect::Order;
use super::lock;
use super::routes::{Route, Target};
use super::world::{Fields, List, World, WorldError};
use crate::dialect::row_mutation::RowMutation;

/// The most rows that change at once.
pub const MOST_ROWS: u64 = 10_000;

/// The rows that a change applies to.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(
    rename_all = "snake_case",
    expecting = "an object with one of first, last and ids"
)]
pub enum Which {
    /// The first rows of the list in its current order.
    First(u64),
    /// The last rows of the list.
    Last(u64),
    Ids(Vec<u64>),
}

/// What changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Delete(Which),
    Add(u64),
    Edit(Edit),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with rows and fields")]
pub struct Edit {
    rows: Which,
    fields: Fields,
}

/// A change between two pages, as a request to the admin interface says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an object with route, after, and one of delete, add and edit")]
pub struct NewDrift {
    route: String,
    user: Option<u64>,
    after: u64,
    delete: Option<Which>,
    add: Option<u64>,
    edit: Option<Edit>,
}

/// A pending change, which happens right after a page was served.
#[derive(Clone, Debug)]
pub struct Drift {
    pub route: Route,
    /// For messages, the list's user; `None` for any.
    pub user: Option<u64>,
    /// The number of whole pages served before it happens.
    pub after: u64,
    pub change: Change,
    /// The number of these pages served so far.
    pub(super) pages: u64,
}

/// Rejects a number of rows outside 1 to [`MOST_ROWS`].
///
/// # Errors
/// Which argument is wrong, and what would be right.
pub fn check_rows(argument: &str, count: u64) -> Result<(), String> {
    // While rows change, all lanes wait.
    if (1..=MOST_ROWS).contains(&count) {
        return Ok(());
    }
    Err(format!(
        "{argument}: must be from 1 to {MOST_ROWS}, not {count}"
    ))
}

impl Which {
    fn check(&self, argument: &str) -> Result<(), String> {
        match self {
            Self::First(count) => check_rows(&format!("{argument}.first"), *count),
            Self::Last(count) => check_rows(&format!("{argument}.last"), *count),
            Self::Ids(ids) => check_rows(&format!("{argument}.ids"), ids.len() as u64),
        }
    }
}

impl NewDrift {
    /// The change, for a lane.
    ///
    /// # Errors
    /// Which argument is wrong, and what would be right.
    pub fn read(self) -> Result<Drift, String> {
        let route = match &*self.route {
            "users" if self.user.is_some() => {
                return Err("user: the list of users takes none; leave it out".into());
            }
            "users" => Route::Users,
            "messages" => Route::Messages,
            other => {
                return Err(format!(
                    "route: must be users or messages, the lists with pages, not {other:?}"
                ));
            }
        };
        if self.after == 0 {
            return Err("after: must be at least 1, the first page".into());
        }
        let change = match (self.delete, self.add, self.edit) {
            (Some(rows), None, None) => {
                rows.check("delete")?;
                Change::Delete(rows)
            }
            (None, Some(count), None) => {
                check_rows("add", count)?;
                Change::Add(count)
            }
            (None, None, Some(edit)) => {
                edit.rows.check("edit.rows")?;
                if edit.fields.contains_key("id") {
                    return Err("id: rows are found by it, so it cannot be edited".into());
                }
                Change::Edit(edit)
            }
            _ => return Err("give exactly one of delete, add and edit".into()),
        };
        Ok(Drift {
            route,
            user: self.user,
            after: self.after,
            change,
            pages: 0,
        })
    }
}

/// The pending changes of one lane.
#[derive(Debug, Default)]
pub struct Drifts {
    waiting: Mutex<Vec<Drift>>,
    /// Those that were due and found no row to change, as text.
    idle: Mutex<Vec<String>>,
}

impl Drifts {
    /// Adds a change.
    pub fn add(&self, drift: Drift) {
        lock(&self.waiting).push(drift);
    }

    /// The number of pending changes.
    pub fn waiting(&self) -> usize {
        lock(&self.waiting).len()
    }

    /// The changes that are pending or changed no row, as text.
    pub fn list(&self) -> Vec<String> {
        let waiting: Vec<_> = lock(&self.waiting).iter().map(Drift::to_string).collect();
        [waiting, lock(&self.idle).clone()].concat()
    }

    /// Drops the pending changes, and those that changed no row.
    pub fn clear(&self) {
        lock(&self.waiting).clear();
        lock(&self.idle).clear();
    }

    /// Counts a whole page, and makes the changes that are due.
    pub fn page(&self, world: &World, target: Target, mutation: &RowMutation) {
        let mut waiting = lock(&self.waiting);
        if waiting.is_empty() {
            return;
        }
        let (route, user) = (target.route, target.user);
        for drift in waiting.iter_mut() {
            let mine = drift.route == route && drift.user.is_none_or(|own| Some(own) == user);
            drift.pages += u64::from(mine);
        }
        let (due, later): (Vec<Drift>, Vec<Drift>) = std::mem::take(&mut *waiting)
            .into_iter()
            .partition(|drift| drift.pages >= drift.after);
        *waiting = later;
        for drift in due {
            let user = user.map(|sent| mutation.own_id(sent).unwrap_or(sent));
            let text = drift.to_string();
            if apply(world, user, drift.change, mutation) == 0 {
                lock(&self.idle).push(format!("{text}, which found no row"));
            }
        }
    }
}

impl fmt::Display for Drift {
    /// As Python source.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "between_pages({:?}, after={}",
            self.route.name(),
            self.after
        )?;
        if let Some(user) = self.user {
            write!(out, ", user={user}")?;
        }
        write!(out, ").{}", self.change)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delete(which) => write!(out, "delete({which})"),
            Self::Add(count) => write!(out, "add({count})"),
            Self::Edit(Edit { rows, fields }) => {
                write!(out, "edit({rows}")?;
                for (name, value) in fields {
                    write!(out, ", {name}={value}")?;
                }
                write!(out, ")")
            }
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First(count) => write!(out, "first={count}"),
            Self::Last(count) => write!(out, "last={count}"),
            Self::Ids(ids) => write!(out, "ids={ids:?}"),
        }
    }
}

/// Changes the users, or the messages of `user`; gives how many rows changed. A row that no longer
/// exists is skipped.
fn apply(world: &World, user: Option<u64>, change: Change, mutation: &RowMutation) -> usize {
    let view = world.view();
    let Ok(list) = view.list(user) else { return 0 };
    let each = |which, change: &dyn Fn(u64) -> Result<(), WorldError>| {
        let ids = ids(list, which, mutation).into_iter();
        ids.filter(|id| change(*id).is_ok()).count()
    };
    match change {
        Change::Add(count) => world.add(user, count).map_or(0, |added| added.len()),
        Change::Delete(which) => each(which, &|id| world.remove(user, id)),
        Change::Edit(Edit { rows, fields }) => {
            each(rows, &|id| world.edit(user, id, fields.clone()))
        }
    }
}

fn ids(list: List<'_>, which: Which, mutation: &RowMutation) -> Vec<u64> {
    let total = list.total();
    let places = match which {
        // As they were sent; the world's own ids are also accepted.
        Which::Ids(ids) => {
            let own = |id| mutation.own_id(id).unwrap_or(id);
            return ids.into_iter().map(own).collect();
        }
        Which::First(count) => 0..count.min(total),
        Which::Last(count) => total.saturating_sub(count)..total,
    };
    // An order that changes with every request has no first row; the world's is used.
    let newest_first = mutation.dialect.order == Order::Newest;
    places
        .map(|place| {
            if newest_first {
                total - 1 - place
            } else {
                place
            }
        })
        .filter_map(|position| list.id_at(position))
        .collect()
}
