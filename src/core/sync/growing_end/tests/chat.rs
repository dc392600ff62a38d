//! A growing list of messages, and a read of its growing end.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::json;

use super::super::{GrowingEnd, MOST_PAGES, Step};
use crate::api::{Limit, Resource};
use crate::decode::json::Text;
use crate::decode::page::Page;
use crate::list_state::{ENDS, Ends, Grows, ListState};
use crate::report::Certificate;

/// The messages of a user as a service might serve them.
#[derive(Debug, Clone)]
pub struct Chat {
    /// Oldest first, as (id, read by all).
    pub rows: Vec<(i64, bool)>,
    pub next_id: i64,
    pub grows: Grows,
    pub largest_page: usize,
    pub says_what_it_applied: bool,
}

impl Chat {
    pub fn new(rows: i64, grows: Grows) -> Self {
        Self {
            rows: (1..=rows).map(|id| (id, true)).collect(),
            next_id: rows + 1,
            grows,
            largest_page: 99,
            says_what_it_applied: true,
        }
    }

    pub fn append(&mut self, count: usize) {
        for _ in 0..count {
            self.rows.push((self.next_id, true));
            self.next_id += 1;
        }
    }

    pub fn served(&self) -> Vec<(i64, bool)> {
        let mut rows = self.rows.clone();
        if self.grows == Grows::Start {
            rows.reverse();
        }
        rows
    }

    pub fn ids(&self) -> BTreeSet<i64> {
        self.rows.iter().map(|(id, _)| *id).collect()
    }

    pub fn ends(&self) -> Ends {
        self.state().ends.unwrap()
    }

    /// The state that a sweep of the whole list would leave.
    pub fn state(&self) -> ListState {
        let ids: Vec<i64> = self.served().iter().map(|(id, _)| *id).collect();
        let unread = self.rows.iter().position(|(_, read)| !read);
        ListState {
            rows: ids.len() as u64,
            certificate: Certificate::Counted,
            ends: Some(Ends {
                grows: self.grows,
                first_ids: ids.iter().copied().take(ENDS).collect(),
                last_ids: ids[ids.len().saturating_sub(ENDS)..].to_vec(),
                unread_from: unread.map(|position| position as u64),
            }),
            ..ListState::default()
        }
    }

    pub fn answer(&self, offset: u64, limit: Limit) -> Page {
        self.answer_with_total(offset, limit, json!(self.rows.len()))
    }

    pub fn answer_with_total(&self, offset: u64, limit: Limit, total: serde_json::Value) -> Page {
        let served = self.served();
        let size = usize::from(limit.get()).min(self.largest_page);
        let from = usize::try_from(offset).unwrap().min(served.len());
        let messages: Vec<_> = served[from..(from + size).min(served.len())]
            .iter()
            .map(|(id, read)| {
                let created_at = format!("2026-01-01T{:02}:{:02}:00Z", id / 60 % 24, id % 60);
                json!({"id": id, "created_at": created_at, "read_by_user": read})
            })
            .collect();
        let applied = if self.says_what_it_applied {
            size
        } else {
            limit.get().into()
        };
        let body = json!({
            "limit": applied, "offset": offset, "total": total, "messages": messages,
        });
        let text = Text::repair(Bytes::from(body.to_string()), None);
        Page::read(text, Resource::Messages).unwrap()
    }
}

/// Reads to the end, changing the list after each response except the last; returns the ids shown,
/// the outcome, and the requests.
pub fn read(
    chat: &mut Chat,
    mut end: GrowingEnd,
    mut change: impl FnMut(&mut Chat),
) -> (BTreeSet<i64>, Step, u64) {
    let mut shown = BTreeSet::new();
    for requests in 1.. {
        let (offset, limit) = end.request();
        let page = chat.answer(offset, limit);
        shown.extend(page.rows.iter().filter_map(|row| row.id));
        let step = end.take(&page);
        if step != Step::Request {
            return (shown, step, requests);
        }
        assert!(requests < 400, "the read does not end");
        change(chat);
    }
    unreachable!()
}

pub fn known(chat: &Chat) -> GrowingEnd {
    GrowingEnd::new(chat.state(), 99, MOST_PAGES).unwrap()
}

/// The list that the read left, with its ends.
pub fn grown(step: Step) -> (ListState, Ends) {
    match step {
        Step::Fits(grown) => (*grown.clone(), grown.ends.unwrap()),
        other => panic!("{other:?}"),
    }
}
