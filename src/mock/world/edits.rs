//! Manual changes of a world.

use std::sync::{Arc, PoisonError, RwLockWriteGuard};
use tokio::time::Instant;

use super::hints::Hints;
use super::view::View;
use super::{Fields, MAX_LIST, MAX_USERS, Overlay, World, WorldError, too_many_users};

impl World {
    /// Adds users at the end of the list and returns their ids. They are the generator's next rows,
    /// and come with their own messages.
    ///
    /// # Errors
    /// `Argument` if the world would have more than [`MAX_USERS`].
    pub fn add_users(&self, count: u64) -> Result<Vec<u64>, WorldError> {
        let mut change = self.change();
        let first = self.rows.users + change.overlay().added_users;
        let end = first.saturating_add(count);
        if end > MAX_USERS {
            return Err(too_many_users(end));
        }
        if count > 0 {
            self.check_room()?;
            change.make().added_users += count;
        }
        // Outside the lock, because computing many ids takes time.
        drop(change);
        Ok((first..end).map(|index| self.rows.user_id(index)).collect())
    }

    /// Adds messages at the end of a user's list and returns their ids; the user's `updated_at` and
    /// `online_at` follow as the [`Hints`](super::Hints) say, unless they were set manually.
    ///
    /// # Errors
    /// `NoUser`; `Argument` if the list would have more than [`MAX_LIST`].
    pub fn add_messages(&self, user_id: u64, count: u64) -> Result<Vec<u64>, WorldError> {
        let mut change = self.change();
        let (hints, now) = change.hints;
        let view = change.view();
        let index = view.index(user_id)?;
        let first = view.chat_at(index).list().end;
        let end = first.saturating_add(count);
        if end > MAX_LIST {
            return Err(WorldError::Argument {
                argument: "count",
                problem: format!(
                    "user {user_id} would have {end} messages; {MAX_LIST} is the most"
                ),
            });
        }
        drop(view);
        if count > 0 {
            self.check_room()?;
            let overlay = change.make();
            overlay.update(index, |user| {
                user.done.added += count;
                user.announce(hints, now);
            });
            overlay.message_delta = overlay.message_delta.saturating_add_unsigned(count);
        }
        Ok((first..end)
            .map(|position| self.rows.message_id(index, position))
            .collect())
    }

    fn check_room(&self) -> Result<(), WorldError> {
        if self.rows.has_room() {
            return Ok(());
        }
        Err(WorldError::Argument {
            argument: "count",
            problem: "the JSON lines have ids above 2^62, which leaves none for more rows".into(),
        })
    }

    /// Removes a user with all messages; the id is never reused.
    ///
    /// # Errors
    /// `NoUser`.
    pub fn remove_user(&self, user_id: u64) -> Result<(), WorldError> {
        let mut change = self.change();
        let view = change.view();
        let index = view.index(user_id)?;
        let messages = view.chat_at(index).list().len();
        drop(view);
        let overlay = change.make();
        overlay.users.remove(index);
        overlay.removed_users.insert(index);
        overlay.message_delta = overlay.message_delta.saturating_sub_unsigned(messages);
        Ok(())
    }

    /// Removes a message; the id is never reused.
    ///
    /// # Errors
    /// `NoUser`, `NoMessage`.
    pub fn remove_message(&self, user_id: u64, message_id: u64) -> Result<(), WorldError> {
        let mut change = self.change();
        let (hints, now) = change.hints;
        let (index, row) = change.place(user_id, message_id)?;
        let overlay = change.make();
        overlay.update(index, |user| {
            user.removed.insert(row);
            user.messages.remove(row);
            user.done.edited += 1;
            user.announce(hints, now);
        });
        overlay.message_delta -= 1;
        Ok(())
    }

    /// Sets fields of a user to any given values; fields that the interface does not name are sent
    /// after the others. Fields that were set no longer change by themselves.
    ///
    /// # Errors
    /// `NoUser`; `Argument` for the field `id`, because rows are found by it.
    pub fn edit_user(&self, user_id: u64, fields: Fields) -> Result<(), WorldError> {
        refuse_id(&fields)?;
        let mut change = self.change();
        let index = change.view().index(user_id)?;
        if !fields.is_empty() {
            change
                .make()
                .update(index, |user| user.fields.extend(fields));
        }
        Ok(())
    }

    /// Sets fields of a message, as [`World::edit_user`] does.
    ///
    /// # Errors
    /// `NoUser`, `NoMessage`; `Argument` for the field `id`.
    pub fn edit_message(
        &self,
        user_id: u64,
        message_id: u64,
        fields: Fields,
    ) -> Result<(), WorldError> {
        refuse_id(&fields)?;
        let mut change = self.change();
        let (hints, now) = change.hints;
        let (index, row) = change.place(user_id, message_id)?;
        if !fields.is_empty() {
            change.make().update(index, |user| {
                user.messages
                    .update(row, |held| Arc::make_mut(held).extend(fields));
                user.done.edited += 1;
                user.announce(hints, now);
            });
        }
        Ok(())
    }

    fn change(&self) -> Change<'_> {
        Change {
            world: self,
            hints: self.hints(),
            overlay: self.overlay.write().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// A change in progress; a rejected one affects neither the world nor those that share its changes.
struct Change<'world> {
    world: &'world World,
    /// What the hints of users do, and the time.
    hints: (Hints, Instant),
    overlay: RwLockWriteGuard<'world, Arc<Overlay>>,
}

impl Change<'_> {
    fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    /// The previous instant. Drop it before making the change, or all changes are copied.
    fn view(&self) -> View {
        View {
            rows: Arc::clone(&self.world.rows),
            overlay: Arc::clone(&self.overlay),
            now: self.hints.1,
        }
    }

    fn place(&self, user_id: u64, message_id: u64) -> Result<(u64, u64), WorldError> {
        let view = self.view();
        let (chat, row) = view.place(user_id, message_id)?;
        Ok((chat.index, row))
    }

    fn make(&mut self) -> &mut Overlay {
        Arc::make_mut(&mut self.overlay)
    }
}

fn refuse_id(fields: &Fields) -> Result<(), WorldError> {
    if fields.contains_key("id") {
        return Err(WorldError::Argument {
            argument: "id",
            problem: "cannot be edited, because rows are found by it; remove the row instead"
                .into(),
        });
    }
    Ok(())
}
