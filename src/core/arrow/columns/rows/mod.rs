//! Users and messages as columns.

#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use arrow_array::builder::Int64Builder;
use arrow_schema::{ArrowError, Schema, SchemaRef};

use super::column::Column;
use super::fields::{Message, User};
use super::table;
use crate::decode::json::Fault;
use crate::decode::page::Row;
use crate::decode::rows;
use crate::privacy::Privacy;

table! {
    /// One row per user; `extra` is the JSON of the fields that the interface does not name.
    USERS;
    /// Collects users into a batch of `USERS`.
    UserColumns {
        user: User;
    }
}

table! {
    /// One row per message, with its user's id; the sender's fields are flattened.
    MESSAGES;
    /// Collects messages into a batch of `MESSAGES`.
    MessageColumns {
        user_id: Int64Builder;
        message: Message;
    }
}

impl UserColumns {
    /// `text` is what the user was read from.
    pub fn append(&mut self, text: &str, user: &rows::User) {
        self.user.extend(text, &[user]);
    }

    /// Appends a user from its page, without what `privacy` keeps out; fails if the row cannot be
    /// read.
    pub fn append_row(&mut self, row: &Row, privacy: Option<&Privacy>) -> Result<(), Fault> {
        if let Some(privacy) = privacy {
            let (text, user) = privacy.user(row)?;
            self.append(&text, &user);
        } else {
            let (text, user) = row.user()?;
            self.append(text, user);
        }
        Ok(())
    }

    /// Appends rows that can be read, which is faster than one by one.
    pub fn append_rows(&mut self, rows: &[&Row]) {
        for (page, users) in by_page(rows, Row::user) {
            self.user.extend(page, &users);
        }
    }
}

impl MessageColumns {
    /// `text` is what the message was read from.
    pub fn append(&mut self, user_id: i64, text: &str, message: &rows::Message) {
        self.user_id.append_value(user_id);
        self.message.extend(text, &[message]);
    }

    /// Appends a message from its page, without what `privacy` keeps out; fails if the row cannot
    /// be read.
    pub fn append_row(
        &mut self,
        user_id: i64,
        row: &Row,
        privacy: Option<&Privacy>,
    ) -> Result<(), Fault> {
        if let Some(privacy) = privacy {
            let (text, message) = privacy.message(row)?;
            self.append(user_id, &text, &message);
        } else {
            let (text, message) = row.message()?;
            self.append(user_id, text, message);
        }
        Ok(())
    }

    /// Appends rows that can be read, which is faster than one by one.
    pub fn append_rows(&mut self, user_id: i64, rows: &[&Row]) {
        for (page, messages) in by_page(rows, Row::message) {
            self.user_id.append_value_n(user_id, messages.len());
            self.message.extend(page, &messages);
        }
    }
}

/// The texts of pages, and what was read of the rows in each.
fn by_page<'a, T: 'a>(
    rows: &'a [&'a Row],
    read: impl Fn(&'a Row) -> Result<(&'a str, &'a T), Fault>,
) -> impl Iterator<Item = (&'a str, Vec<&'a T>)> {
    rows.chunk_by(|row, next| row.is_beside(next))
        .filter_map(move |rows| {
            let mut all = Vec::with_capacity(rows.len());
            let mut page = None;
            for (text, row) in rows.iter().filter_map(|row| read(row).ok()) {
                page = Some(text);
                all.push(row);
            }
            Some((page?, all))
        })
}
