//! Pages for the unit tests of a walk's parts.

use super::in_flight::InFlight;
use super::page_arrival::PageArrival;
use super::request::Fetch;
use crate::api::{Limit, List, Resource};
use crate::client::{Read, Sent};
use crate::decode::json::Text;
use crate::decode::page::Page;
use crate::redact::Redactor;

/// A page of users with these ids, requested with the largest limit.
pub fn page(offset: u64, ids: &[i64], total: i64) -> PageArrival {
    let users: Vec<_> = ids.iter().map(|id| serde_json::json!({"id": id})).collect();
    let body = serde_json::json!({"limit": 99, "offset": offset, "total": total, "users": users});
    arrival(offset, &body)
}

/// A page of `count` consecutive users: user n + 1 is at offset n.
pub fn rows(offset: u64, count: i64, total: i64) -> PageArrival {
    let first = i64::try_from(offset).unwrap() + 1;
    page(offset, &(first..first + count).collect::<Vec<_>>(), total)
}

/// An empty page, already judged to lie past the end.
pub fn past_end(offset: u64, total: i64) -> PageArrival {
    let mut page = page(offset, &[], total);
    page.put_past_end();
    page
}

/// A page with this body.
pub fn arrival(offset: u64, body: &serde_json::Value) -> PageArrival {
    arrival_of(offset, body.to_string())
}

/// A page with this text.
pub fn arrival_of(offset: u64, body: String) -> PageArrival {
    let text = Text::repair(bytes::Bytes::from(body), None);
    let read = Read {
        value: Page::read(text, Resource::Users).unwrap(),
        sent: sent(),
    };
    let limit = Limit::LARGEST;
    let request = InFlight::default().send_single(Fetch::Page { offset, limit });
    PageArrival::page(&request, 1, read).unwrap()
}

pub fn sent() -> Sent {
    Sent {
        endpoint: List::Users.page(0, Limit::LARGEST),
        attempts: Vec::new(),
        redactor: Redactor::default(),
        stored_at: None,
    }
}
