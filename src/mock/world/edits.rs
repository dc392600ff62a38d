//! Manual changes of a world. A list is that of the users, or the messages of `user`.

use std::sync::{Arc, PoisonError, RwLockWriteGuard};

use super::changes::{Changes, Fields, Hints, ListChanges};
use super::view::View;
use super::{MAX_LIST, MAX_USERS, World, WorldError, too_many_users};

impl World {
    /// Adds rows at the end of a list and returns their ids. Users are the generator's next rows and
    /// come with their own messages; after messages, the user's `updated_at` and `online_at` follow
    /// as the [`Hints`] say, unless they were set manually.
    ///
    /// # Errors
    /// `NoUser`; `Argument` if there would be more than [`MAX_USERS`] or [`MAX_LIST`].
    pub fn add(&self, user: Option<u64>, count: u64) -> Result<Vec<u64>, WorldError> {
        let change = self.change();
        let list = change.view.list(user)?;
        let (owner, first) = (list.owner, list.end);
        let end = first.saturating_add(count);
        match user {
            None if end > MAX_USERS => return Err(too_many_users(end)),
            Some(id) if end > MAX_LIST => {
                let problem =
                    format!("user {id} would have {end} messages; {MAX_LIST} is the most");
                return Err(WorldError::argument("count", problem));
            }
            _ => {}
        }
        if count > 0 {
            change.make(owner, 0, |list| list.added += count);
        }
        // Outside the lock, because computing many ids takes time.
        Ok((first..end).map(|row| self.rows.id(owner, row)).collect())
    }

    /// Removes a row, a user with all messages; the id is never reused.
    ///
    /// # Errors
    /// `NoUser`, `NoMessage`.
    pub fn remove(&self, user: Option<u64>, id: u64) -> Result<(), WorldError> {
        let change = self.change();
        let (list, row) = change.view.place(user, id)?;
        let owner = list.owner;
        change.make(owner, 1, |list| {
            list.removed.insert(row as u32);
            list.fields.remove_mut(&row);
        });
        Ok(())
    }

    /// Sets fields of a row to any given values; fields that the interface does not name are sent
    /// after the others. Fields that were set no longer change by themselves.
    ///
    /// # Errors
    /// `NoUser`, `NoMessage`; `Argument` for the field `id`, because rows are found by it.
    pub fn edit(&self, user: Option<u64>, id: u64, fields: Fields) -> Result<(), WorldError> {
        if fields.contains_key("id") {
            let problem = "cannot be edited, because rows are found by it; remove the row instead";
            return Err(WorldError::argument("id", problem));
        }
        let change = self.change();
        let (list, row) = change.view.place(user, id)?;
        let owner = list.owner;
        if !fields.is_empty() {
            change.make(owner, 1, |list| {
                let mut all = list.fields.get(&row).cloned().unwrap_or_default();
                all.extend(fields);
                list.fields.insert_mut(row, all);
            });
        }
        Ok(())
    }

    fn change(&self) -> Change<'_> {
        let (hints, now) = self.hints();
        let held = self.changes.write().unwrap_or_else(PoisonError::into_inner);
        let view = View {
            rows: Arc::clone(&self.rows),
            changes: Arc::clone(&held),
            now,
        };
        Change { held, view, hints }
    }
}

/// A change in progress; a rejected one affects neither the world nor those that share its changes.
struct Change<'world> {
    held: RwLockWriteGuard<'world, Arc<Changes>>,
    /// The previous instant.
    view: View,
    hints: Hints,
}

impl Change<'_> {
    /// Changes a list; a user's hints follow additions and edits of the messages.
    fn make(mut self, owner: Option<u64>, edited: u64, change: impl FnOnce(&mut ListChanges)) {
        let mut changes = Changes::clone(&self.held);
        match owner {
            None => change(&mut changes.users),
            Some(index) => {
                let messages = changes.messages.get(&index).cloned();
                let mut messages = messages.unwrap_or_default();
                change(&mut messages.list);
                messages.edited += edited;
                messages.announce(self.hints, self.view.now);
                changes.messages.insert_mut(index, messages);
            }
        }
        *self.held = Arc::new(changes);
    }
}
