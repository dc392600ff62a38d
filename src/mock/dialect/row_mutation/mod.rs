//! How a dialect changes rows: nulls, missing and extra fields, unknown senders, unusual ids.
//!
//! The changes depend on the seed and the row's id, so they are the same in every response.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::dialect::{Dialect, ExtraFields, Files, Ids, Nulls, SenderType};
use crate::page::ELSEWHERE;
use crate::world::draw::{Draw, Stream};

/// What `ids=large` adds to ids.
pub const LARGE: u64 = 1 << 62;

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    User,
    Message,
}

impl Kind {
    /// The kind of the rows in the list of users, or of a user's messages.
    pub const fn of(user: Option<u64>) -> Self {
        match user {
            None => Self::User,
            Some(_) => Self::Message,
        }
    }
}

/// Changes the rows of one lane.
#[derive(Clone, Copy, Debug)]
pub struct RowMutation {
    pub dialect: Dialect,
    pub seed: u64,
}

/// The aspects in which rows are changed, each with its own random numbers.
#[derive(Clone, Copy)]
enum Aspect {
    Sender = 1,
    Nulls = 2,
    SenderNulls = 3,
    Extra = 4,
}

type Row = Map<String, Value>;

impl RowMutation {
    /// The id as this dialect sends it.
    pub const fn sent_id(&self, id: u64) -> u64 {
        match self.dialect.ids {
            Ids::Large => id.saturating_add(LARGE),
            Ids::Integer | Ids::Text => id,
        }
    }

    /// The world's id for an id in a path; `None` for one that was never sent.
    pub const fn own_id(&self, id: u64) -> Option<u64> {
        match self.dialect.ids {
            Ids::Large => id.checked_sub(LARGE),
            Ids::Integer | Ids::Text => Some(id),
        }
    }

    /// The row as it is sent; one that is not a JSON object is unchanged.
    pub fn row(&self, kind: Kind, row: Bytes) -> Bytes {
        if self.dialect.keeps_rows() {
            return row;
        }
        let Ok(mut fields) = serde_json::from_slice::<Row>(&row) else {
            return row;
        };
        let Some(id) = fields.get("id").and_then(Value::as_u64) else {
            return row;
        };
        if kind == Kind::Message {
            if self.dialect.files == Files::Own
                && let Some(Value::String(link)) = fields.get_mut("file_url")
                && let Some(path) = link.strip_prefix(ELSEWHERE)
            {
                *link = path.to_owned();
            }
            self.mutate_sender(id, &mut fields);
        }
        self.leave_out(self.draw(id, kind, Aspect::Nulls), &mut fields);
        if self.dialect.extra_fields == ExtraFields::Some {
            add_fields(kind, self.draw(id, kind, Aspect::Extra), &mut fields);
        }
        self.mutate_id(&mut fields);
        Bytes::from(Value::Object(fields).to_string())
    }

    /// Undocumented fields of an envelope, before its list.
    pub const fn envelope(&self, more: bool) -> &'static str {
        match (self.dialect.extra_fields, more) {
            (ExtraFields::None, _) => "",
            (ExtraFields::Some, true) => "\"has_more\":true,",
            (ExtraFields::Some, false) => "\"has_more\":false,",
        }
    }

    fn mutate_sender(&self, id: u64, fields: &mut Row) {
        let mut draw = self.draw(id, Kind::Message, Aspect::Sender);
        if self.dialect.sender_type == SenderType::Others && draw.below(6) == 0 {
            let (sender_type, sender) = match draw.below(3) {
                0 => ("bot", json!({"id": 9001, "title": "Help bot"})),
                1 => ("system", json!({"component": "routing"})),
                _ => (
                    "api",
                    json!({"id": 77, "application": "crm", "version": 2.5}),
                ),
            };
            fields.insert("sender_type".into(), sender_type.into());
            fields.insert("sender".into(), sender);
        }
        let of_user = fields.get("sender_type").and_then(Value::as_str) == Some("user");
        if let Some(Value::Object(sender)) = fields.get_mut("sender") {
            self.leave_out(self.draw(id, Kind::Message, Aspect::SenderNulls), sender);
            if self.dialect.extra_fields == ExtraFields::Some {
                sender.insert("role".into(), "member".into());
            }
            if of_user {
                self.mutate_id(sender);
            }
        }
    }

    fn leave_out(&self, mut draw: Draw, fields: &mut Row) {
        let (null, missing) = match self.dialect.nulls {
            Nulls::Documented => return,
            Nulls::Null => (200, 0),
            Nulls::Missing => (0, 200),
            Nulls::Both => (100, 100),
        };
        let mut left_out = Vec::new();
        for (name, value) in fields.iter_mut().filter(|(name, _)| *name != "id") {
            let chance = draw.below(1000);
            if chance < null {
                *value = Value::Null;
            } else if chance < null + missing {
                left_out.push(name.clone());
            }
        }
        for name in left_out {
            fields.shift_remove(&name);
        }
    }

    fn mutate_id(&self, fields: &mut Row) {
        let Some(value) = fields.get_mut("id") else {
            return;
        };
        let Some(id) = value.as_u64() else { return };
        match self.dialect.ids {
            Ids::Integer => {}
            Ids::Large => *value = self.sent_id(id).into(),
            Ids::Text => *value = id.to_string().into(),
        }
    }

    fn draw(&self, id: u64, kind: Kind, aspect: Aspect) -> Draw {
        Draw::new(
            self.seed,
            Stream::RowMutation,
            id,
            (kind as u64) << 8 | aspect as u64,
        )
    }
}

fn add_fields(kind: Kind, mut draw: Draw, fields: &mut Row) {
    let added = match kind {
        Kind::User => json!({
            "locale": draw.pick(&["en", "de", "pt-BR"]),
            "tags": ["web", draw.pick(&["vip", "trial"])],
            "score": draw.below(1000) as f64 / 8.0,
            "company": {"id": draw.below(500), "plan": null},
        }),
        Kind::Message => json!({
            "edited_at": null,
            "reactions": [{"emoji": draw.pick(&["👍", "🎉"]), "count": draw.below(4)}],
        }),
    };
    if let Value::Object(added) = added {
        fields.extend(added);
    }
}
