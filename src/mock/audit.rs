//! Which rows a reader should have but lacks, and which request lost each.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use thiserror::Error;

use super::journal::{Entry, Served};
use super::world::{List, View};

/// A row that existed from the first request until now, and that the reader lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    pub id: u64,
    /// The number of the request that lost it; `None` if no request covered its place.
    pub request: Option<u64>,
    /// What happened, in words.
    pub why: String,
}

/// A row that the reader has more than once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repeated {
    pub id: u64,
    pub times: u64,
    /// The requests whose responses had it.
    pub requests: Vec<u64>,
}

/// A reader's rows compared with the rows that existed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// In the order of the world.
    pub missing: Vec<Lost>,
    /// In the order of the ids.
    pub repeated: Vec<Repeated>,
    /// Ids that no response can have had, ascending.
    pub unexpected: Vec<u64>,
    /// How many rows existed the whole time.
    pub expected: u64,
}

/// Why an audit is impossible.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AuditError {
    #[error("user {user_id} never existed")]
    NoUser { user_id: u64 },
    #[error(
        "the journal has only the last {kept} requests, and an audit needs all: start the server \
         with a larger journal=, or call forget() before the list is read"
    )]
    Forgotten { kept: usize },
}

/// A page that was served.
struct Page {
    number: u64,
    served: Served,
}

/// The position of a row in the list of the users, or of the messages of `user`.
fn position(view: &View, user: Option<u64>, id: u64) -> Option<u64> {
    view.list(user).ok()?.position(id)
}

/// Compares the rows `held` by a reader with those that existed from `before` its first request
/// until `now`; `entries` are the requests for this list: the users, or the messages of `user`.
pub fn audit(
    user: Option<u64>,
    held: &[u64],
    before: View,
    entries: Vec<Entry>,
    now: View,
) -> Audit {
    let pages: Vec<Page> = entries
        .into_iter()
        .filter_map(|Entry { number, served, .. }| {
            Some(Page {
                number,
                served: served?,
            })
        })
        .collect();
    let mut views: Vec<&View> = vec![&before];
    for view in pages.iter().map(|page| &page.served.view).chain([&now]) {
        if views.last().is_none_or(|last| !last.same_as(view)) {
            views.push(view);
        }
    }
    let mut times: BTreeMap<u64, u64> = BTreeMap::new();
    for id in held {
        *times.entry(*id).or_default() += 1;
    }
    let stayed = now.list(user).map(List::ids).unwrap_or_default();
    let stayed: Vec<u64> = stayed
        .into_iter()
        .filter(|id| views.iter().all(|view| position(view, user, *id).is_some()))
        .collect();
    let repeated = times.iter().filter(|(_, times)| **times > 1);
    let ever_there = |id: u64| views.iter().any(|view| position(view, user, id).is_some());
    Audit {
        expected: stayed.len() as u64,
        missing: stayed
            .into_iter()
            .filter(|id| !times.contains_key(id))
            .map(|id| explain(user, id, &pages))
            .collect(),
        repeated: repeated
            .map(|(id, times)| Repeated {
                id: *id,
                times: *times,
                requests: pages
                    .iter()
                    .filter(|page| page.served.whole && page.holds(user, *id))
                    .map(|page| page.number)
                    .collect(),
            })
            .collect(),
        unexpected: held
            .iter()
            .copied()
            .filter(|id| !ever_there(*id))
            .collect::<BTreeSet<u64>>()
            .into_iter()
            .collect(),
    }
}

impl Page {
    /// The row's place in the order that this request saw.
    fn place(&self, user: Option<u64>, id: u64) -> Option<u64> {
        let position = position(&self.served.view, user, id)?;
        Some(self.served.sequence.place(position))
    }

    fn holds(&self, user: Option<u64>, id: u64) -> bool {
        self.place(user, id)
            .is_some_and(|place| (self.served.first..self.served.end()).contains(&place))
    }
}

fn explain(user: Option<u64>, id: u64, pages: &[Page]) -> Lost {
    let lost = |request, why| Lost { id, request, why };
    if let Some(page) = pages
        .iter()
        .find(|page| page.served.whole && page.holds(user, id))
    {
        let number = page.number;
        return lost(
            Some(number),
            format!(
                "the response to request {number} contained it, but the reader does not have it"
            ),
        );
    }
    if let Some(page) = pages.iter().find(|page| page.holds(user, id)) {
        let number = page.number;
        return lost(
            Some(number),
            format!(
                "the response to request {number} was incomplete, and its position was not requested again"
            ),
        );
    }
    let mut ahead: Option<(&Page, u64)> = None;
    for page in pages {
        let Some(place) = page.place(user, id) else {
            continue;
        };
        match ahead {
            Some((earlier, stood)) if place < page.served.first => {
                let (number, from) = (page.number, page.served.first);
                let why = format!(
                    "it was at position {stood} when request {} read the positions below {}, and at position {place} when request {number} continued from {from}",
                    earlier.number,
                    earlier.served.end(),
                );
                return lost(Some(number), why);
            }
            _ if place >= page.served.end() => ahead = Some((page, place)),
            _ => {}
        }
    }
    let why = match pages.iter().rev().find_map(|page| page.place(user, id)) {
        Some(place) => format!("no request covered its position, {place}"),
        None => "this list was not requested".to_owned(),
    };
    lost(None, why)
}
