//! Rows on their way to the reader: each once, and no more than `max_items`.

use std::collections::{BTreeSet, VecDeque};

use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use super::arrived::ArrivedPage;
use crate::api::List;
use crate::client::Sent;
use crate::decode::page::Row;
use crate::report::WalkReport;
use crate::walk::WalkedPage;

// The most rows that cannot be read that the report names.
const NAMED: usize = 5;

/// What was delivered, and what waits for the reader.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// The user whose messages these are; `None` for users.
    user_id: Option<i64>,
    max_items: Option<u64>,
    delivered: u64,
    /// The ids of all rows delivered so far.
    pub known: RoaringTreemap,
    /// A row had no id, so it may have come before.
    pub unnamed: bool,
    pub unreadable: Unreadable,
    ready: VecDeque<WalkedPage>,
}

impl Delivery {
    pub fn new(list: List, max_items: Option<u64>) -> Self {
        Self {
            user_id: match list {
                List::Users => None,
                List::Messages { user_id } => user_id.get().try_into().ok(),
            },
            max_items,
            ..Self::default()
        }
    }

    pub fn knows_all(&self, rows: &[Row]) -> bool {
        let known = |id: i64| self.known.contains(id.cast_unsigned());
        rows.iter().all(|row| row.id.is_some_and(known))
    }

    /// How many more rows the caller wants; `None` for all.
    pub fn room(&self) -> Option<u64> {
        self.max_items
            .map(|most| most.saturating_sub(self.delivered))
    }

    /// Queues a page for the reader, without rows that were delivered before; returns how many are
    /// new.
    pub fn deliver(&mut self, page: ArrivedPage, report: &mut WalkReport) -> u64 {
        let received = !page.is_left_out();
        let mut rows = page.rows;
        let mut fresh = 0;
        rows.retain(|row| {
            match row.id {
                None => self.unnamed |= received,
                Some(id) if is_new(&mut self.known, id) => fresh += 1,
                Some(_) => {
                    report.repeats += 1;
                    // An earlier walk, which this one resumes, may have ended before it noted it.
                    if row.unreadable.is_some() && self.unreadable.count == 0 {
                        report.unreadable_rows += u64::from(self.unreadable.take(page.offset, row));
                    }
                    return false;
                }
            }
            report.unreadable_rows += u64::from(self.unreadable.take(page.offset, row));
            report.odd_values += row.odd_values;
            received
        });
        report.distinct += fresh;
        if let Some(sent) = page.sent {
            let said = [page.said_limit, page.said_offset, page.said_total];
            self.queue(said, rows, sent, report);
        }
        fresh
    }

    /// Queues a row that was found by its id.
    pub fn deliver_found(&mut self, row: Row, sent: Sent, report: &mut WalkReport) {
        is_new(&mut self.known, row.id.unwrap_or_default());
        report.rows += 1;
        report.distinct += 1;
        report.evidence.rows_found_by_id += 1;
        self.queue([None; 3], vec![row], sent, report);
    }

    fn queue(
        &mut self,
        [limit, offset, total]: [Option<i64>; 3],
        mut rows: Vec<Row>,
        sent: Sent,
        report: &WalkReport,
    ) {
        if let Some(room) = self.room() {
            rows.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        }
        self.delivered += rows.len() as u64;
        self.ready.push_back(WalkedPage {
            limit,
            offset,
            total,
            user_id: self.user_id,
            ..WalkedPage::of(rows, sent, report.counts())
        });
    }

    /// The next page to read.
    pub fn next_page(&mut self) -> Option<WalkedPage> {
        self.ready.pop_front()
    }

    /// The page queued last.
    pub fn last_page(&mut self) -> Option<&mut WalkedPage> {
        self.ready.back_mut()
    }
}

/// Adds an id; returns whether it was not known. Most ids are larger than all before, for which
/// `try_push` takes 110 instructions, and `insert` takes 190.
fn is_new(known: &mut RoaringTreemap, id: i64) -> bool {
    let id = id.cast_unsigned();
    known.try_push(id).is_ok() || known.insert(id)
}

/// The rows that cannot be read: how many, and which ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unreadable {
    pub count: u64,
    /// The first ones, in words.
    named: Vec<String>,
    /// The offsets of those that were left out.
    left_out: BTreeSet<u64>,
}

impl Unreadable {
    /// Records a row of a page that begins at `offset`; false if it can be read, or is known.
    fn take(&mut self, offset: u64, row: &Row) -> bool {
        let Some(why) = row.unreadable else {
            return false;
        };
        let (reason, offset) = (why.reason(), offset + row.index() as u64);
        if !why.was_received() && !self.left_out.insert(offset) {
            return false;
        }
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push(match row.id {
                None => format!("the row at offset {offset} {reason}"),
                Some(id) => format!("the row with id {id} at offset {offset} {reason}"),
            });
        }
        true
    }

    /// How many rows were left out.
    pub fn left_out(&self) -> u64 {
        self.left_out.len() as u64
    }

    /// The rows in words, for the report.
    pub fn in_words(&self) -> String {
        let named = self.named.join(", ");
        match self.count.saturating_sub(self.named.len() as u64) {
            0 => named,
            1 => format!("{named}, and 1 more row cannot be read"),
            more => format!("{named}, and {more} more rows cannot be read"),
        }
    }
}
