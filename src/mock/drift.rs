//! Changes of the world between two pages of a list.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::dialect::Order;
use super::routes::{Route, Target};
use super::world::{Fields, View, World, WorldError};
use crate::mock::dialect::order::Sequence;
use crate::mock::dialect::row_mutation::RowMutation;

/// The most rows that change between two pages.
pub const MOST_ROWS: u64 = 10_000;

/// Which rows a change is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Which {
    /// The first rows of the list, as it is ordered at that moment.
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
    Edit(Which, Fields),
}

/// A change that waits for its moment: right after a page was answered.
#[derive(Clone, Debug)]
pub struct Drift {
    pub route: Route,
    /// For messages: whose list; `None` for any.
    pub user: Option<u64>,
    /// How many whole pages are answered before it happens.
    pub after: u64,
    pub change: Change,
    /// How many of these pages were answered.
    pub(super) pages: u64,
}

impl Drift {
    /// A change right after the page numbered `after` of a list.
    ///
    /// # Errors
    /// Which argument is wrong, and what would be right.
    pub fn new(route: &str, user: Option<u64>, after: u64, change: Change) -> Result<Self, String> {
        let route = match route {
            "users" if user.is_some() => {
                return Err("user: the list of users is nobody's; leave it out".into());
            }
            "users" => Route::Users,
            "messages" => Route::Messages,
            _ => {
                return Err(format!(
                    "route: only the lists users and messages have pages, not {route:?}"
                ));
            }
        };
        if after == 0 {
            return Err("after: must be at least 1, the first page".into());
        }
        let rows = match &change {
            Change::Add(rows)
            | Change::Delete(Which::First(rows) | Which::Last(rows))
            | Change::Edit(Which::First(rows) | Which::Last(rows), _) => *rows,
            Change::Delete(Which::Ids(ids)) | Change::Edit(Which::Ids(ids), _) => ids.len() as u64,
        };
        if rows > MOST_ROWS {
            // They are changed while an answer is on its way, and all lanes wait for that.
            return Err(format!(
                "rows: {MOST_ROWS} at most between two pages, not {rows}"
            ));
        }
        if matches!(&change, Change::Edit(_, fields) if fields.contains_key("id")) {
            return Err("id: rows are found by it, so it cannot be edited".into());
        }
        Ok(Self {
            route,
            user,
            after,
            change,
            pages: 0,
        })
    }
}

/// The changes of one lane that are still to come.
#[derive(Debug, Default)]
pub struct Drifts {
    waiting: Mutex<Vec<Drift>>,
}

impl Drifts {
    /// Adds a change.
    pub fn add(&self, drift: Drift) {
        self.lock().push(drift);
    }

    /// How many are still to come.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock().len()
    }

    /// What is still to come, as text.
    #[must_use]
    pub fn list(&self) -> Vec<String> {
        self.lock().iter().map(Drift::to_string).collect()
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Counts a whole page, and makes the changes whose moment has come.
    pub fn page(&self, world: &World, target: Target, mutation: &RowMutation) {
        let mut waiting = self.lock();
        if waiting.is_empty() {
            return;
        }
        let (route, user) = (target.route(), target.user());
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
            apply(world, user, drift.change, mutation);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Drift>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Drift {
    /// As it is set from Python.
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
            Self::Edit(which, fields) => {
                write!(out, "edit({which}")?;
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

/// Makes a change to the users, or to the messages of `user`. A row that is gone needs none.
fn apply(world: &World, user: Option<u64>, change: Change, mutation: &RowMutation) {
    let view = world.view();
    let _ = match (change, user) {
        (Change::Add(count), None) => world.add_users(count).map(drop),
        (Change::Add(count), Some(user)) => world.add_messages(user, count).map(drop),
        (Change::Delete(which), None) => each(ids(&view, None, which, mutation), |id| {
            world.remove_user(id)
        }),
        (Change::Delete(which), Some(user)) => {
            each(ids(&view, Some(user), which, mutation), |id| {
                world.remove_message(user, id)
            })
        }
        (Change::Edit(which, fields), None) => each(ids(&view, None, which, mutation), |id| {
            world.edit_user(id, fields.clone())
        }),
        (Change::Edit(which, fields), Some(user)) => {
            each(ids(&view, Some(user), which, mutation), |id| {
                world.edit_message(user, id, fields.clone())
            })
        }
    };
}

fn each(ids: Vec<u64>, change: impl Fn(u64) -> Result<(), WorldError>) -> Result<(), WorldError> {
    ids.into_iter().map(change).fold(Ok(()), Result::and)
}

fn ids(view: &View, user: Option<u64>, which: Which, mutation: &RowMutation) -> Vec<u64> {
    let total = match user {
        None => view.total_users(),
        Some(user) => view.total_messages(user).unwrap_or(0),
    };
    // Orders that change at every request have no first row of their own; the world's is taken.
    let order = match mutation.dialect.order {
        Order::Newest => Order::Newest,
        Order::Id | Order::Ties | Order::Shuffled => Order::Id,
    };
    let sequence = Sequence {
        order,
        total,
        chance: 0,
    };
    let places = match which {
        // As they were sent; the world's own will do as well.
        Which::Ids(ids) => {
            let own = |id| mutation.own_id(id).unwrap_or(id);
            return ids.into_iter().map(own).collect();
        }
        Which::First(count) => 0..count.min(total),
        Which::Last(count) => total.saturating_sub(count)..total,
    };
    places
        .map(|place| sequence.position(place))
        .filter_map(|position| match user {
            None => view.user_id_at(position),
            Some(user) => view.message_id_at(user, position),
        })
        .collect()
}
