//! Users and messages as columns, appended from what the scan found or from what serde_json read.

use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use arrow_array::builder::Int64Builder;
use arrow_schema::{ArrowError, Schema, SchemaRef};

use super::column::Column;
use super::fields::{Message, User};
use super::table;
use crate::decode::json::Fault;
use crate::decode::model;
use crate::decode::page::Row;
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
    pub fn append(&mut self, user: &model::User<'_>) {
        self.user.extend(&(), &[user]);
    }

    /// Appends a user from its page, without what `privacy` keeps out; fails if the row cannot
    /// become a record.
    pub fn append_row(&mut self, row: &Row, privacy: Option<&Privacy>) -> Result<(), Fault> {
        match (privacy, row.scanned_user()) {
            (Some(privacy), _) => self.append(&privacy.user(row)?),
            (None, Some((page, user))) => self.user.extend(page, &[user]),
            (None, None) => self.append(&row.user()?),
        }
        Ok(())
    }

    /// Appends the rows of one page if the scan found all of them; otherwise appends none and
    /// returns false.
    pub fn append_scanned(&mut self, rows: &[Row]) -> bool {
        let Some((page, users)) = scanned(rows, Row::scanned_user) else {
            return false;
        };
        self.user.extend(page, &users);
        true
    }
}

impl MessageColumns {
    pub fn append(&mut self, user_id: i64, message: &model::Message<'_>) {
        self.user_id.append_value(user_id);
        self.message.extend(&(), &[message]);
    }

    /// Appends a message from its page, without what `privacy` keeps out; fails if the row cannot
    /// become a record.
    pub fn append_row(
        &mut self,
        user_id: i64,
        row: &Row,
        privacy: Option<&Privacy>,
    ) -> Result<(), Fault> {
        match (privacy, row.scanned_message()) {
            (Some(privacy), _) => self.append(user_id, &privacy.message(row)?),
            (None, Some((page, message))) => {
                self.user_id.append_value(user_id);
                self.message.extend(page, &[message]);
            }
            (None, None) => self.append(user_id, &row.message()?),
        }
        Ok(())
    }

    /// Appends the rows of one page if the scan found all of them; otherwise appends none and
    /// returns false.
    pub fn append_scanned(&mut self, user_id: i64, rows: &[Row]) -> bool {
        let Some((page, messages)) = scanned(rows, Row::scanned_message) else {
            return false;
        };
        self.user_id.append_value_n(user_id, messages.len());
        self.message.extend(page, &messages);
        true
    }
}

/// What the scan found of rows of one page; `None` unless it found all of them.
fn scanned<'a, T>(
    rows: &'a [Row],
    found: impl Fn(&'a Row) -> Option<(&'a str, &'a T)>,
) -> Option<(&'a str, Vec<&'a T>)> {
    let (page, _) = found(rows.first()?)?;
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let (text, each) = found(row)?;
        std::ptr::eq(text, page).then(|| all.push(each))?;
    }
    Some((page, all))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use bytes::Bytes;

    use super::*;
    use crate::api::Resource;
    use crate::decode::json::Text;
    use crate::decode::page::Page;

    #[test]
    fn a_row_has_the_same_columns_as_scanned_and_as_read() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/page");
        let (mut users, mut users_read) = (UserColumns::default(), UserColumns::default());
        let (mut messages, mut messages_read) =
            (MessageColumns::default(), MessageColumns::default());
        let (mut users_by_page, mut messages_by_page) =
            (UserColumns::default(), MessageColumns::default());
        let mut scanned = [0, 0];
        let mut whole_pages = 0;
        for file in fs::read_dir(corpus).unwrap() {
            let body = Text::repair(Bytes::from(fs::read(file.unwrap().path()).unwrap()), None);
            let rows = |resource| {
                let page = Page::read(body.clone(), resource).map(|page| page.rows);
                let mut rows = page.unwrap_or_default();
                rows.retain(|row| row.unreadable.is_none());
                rows
            };
            let of_users = rows(Resource::Users);
            for row in &of_users {
                scanned[0] += usize::from(row.scanned_user().is_some());
                users.append_row(row, None).unwrap();
                users_read.append(&row.user().unwrap());
            }
            if users_by_page.append_scanned(&of_users) {
                whole_pages += 1;
            } else {
                of_users
                    .iter()
                    .for_each(|row| users_by_page.append_row(row, None).unwrap());
            }
            let of_messages = rows(Resource::Messages);
            for row in &of_messages {
                scanned[1] += usize::from(row.scanned_message().is_some());
                messages.append_row(42, row, None).unwrap();
                messages_read.append(42, &row.message().unwrap());
            }
            if messages_by_page.append_scanned(42, &of_messages) {
                whole_pages += 1;
            } else {
                of_messages
                    .iter()
                    .for_each(|row| messages_by_page.append_row(42, row, None).unwrap());
            }
        }
        assert!(scanned.iter().all(|rows| *rows > 15), "{scanned:?}");
        assert!(whole_pages > 15, "{whole_pages}");
        let users = users.finish().unwrap();
        assert_eq!(users, users_read.finish().unwrap());
        assert_eq!(users, users_by_page.finish().unwrap());
        let messages = messages.finish().unwrap();
        assert_eq!(messages, messages_read.finish().unwrap());
        assert_eq!(messages, messages_by_page.finish().unwrap());
    }

    #[test]
    fn the_columns_of_a_message_are_its_fields_and_its_senders() {
        let names: Vec<&str> = MESSAGES
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        let expected = "user_id id body read_by_user read_by_operator created_at file_url \
            auto_invitation sender_type sender_id sender_name sender_email sender_forename \
            sender_surname sender_picture_thumb_url sender_extra extra";
        assert_eq!(names.join(" "), expected);
        let required = MESSAGES
            .fields()
            .iter()
            .filter(|field| !field.is_nullable());
        assert_eq!(
            required.map(|field| field.name()).collect::<Vec<_>>(),
            ["user_id", "id"]
        );
    }
}
