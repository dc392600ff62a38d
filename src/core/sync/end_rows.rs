//! Digests of the rows at both ends of a list, while it is read.

use std::collections::VecDeque;

use crate::decode::page::Row;
use crate::list_state::Grows;
use crate::page_digest::{Digest, DigestKey};

/// Collected page by page. Rows in between are not hashed.
#[derive(Debug)]
pub struct EndRows {
    key: DigestKey,
    /// The most rows at each end.
    most: usize,
    first: Vec<Digest>,
    last: VecDeque<Digest>,
    /// The position after the row that was taken last.
    next: u64,
}

impl EndRows {
    /// For reads of an end that show at most this many rows.
    pub fn new(key: DigestKey, most: usize) -> Self {
        Self {
            key,
            most,
            first: Vec::new(),
            last: VecDeque::new(),
            next: 0,
        }
    }

    /// Takes new rows of a page that began at `offset` of a list of `total` rows.
    pub fn take(&mut self, offset: u64, rows: &[Row], total: u64) {
        let from_end = total.saturating_sub(self.most as u64);
        for row in rows {
            let position = offset.saturating_add(row.index() as u64);
            if position != self.next {
                self.last.clear();
            }
            self.next = position.saturating_add(1);
            let (starts, ends) = (position < self.most as u64, position >= from_end);
            if !is_plain(row) || !(starts || ends) {
                self.last.clear();
                continue;
            }
            let digest = self.key.row(row.json());
            if starts && position == self.first.len() as u64 {
                self.first.push(digest);
            }
            self.last.push_back(digest);
            if self.last.len() > self.most {
                self.last.pop_front();
            }
        }
    }

    /// The digest of this many rows at an end; `None` unless all were taken, in their order.
    pub fn digest(&self, end: Grows, rows: usize) -> Option<Digest> {
        match end {
            Grows::Start => self.first.get(..rows).map(|rows| self.key.rows(rows)),
            Grows::End => {
                let skipped = self.last.len().checked_sub(rows)?;
                Some(self.key.rows(self.last.iter().skip(skipped)))
            }
        }
    }

    /// The digest of the oldest of the rows at the end; `None` unless that many were taken.
    pub fn digest_of_oldest(&self, rows: usize) -> Option<Digest> {
        let taken = self.last.len() >= rows;
        taken.then(|| self.key.rows(self.last.iter().take(rows)))
    }
}

/// Whether a row has nothing that each run must report.
pub fn is_plain(row: &Row) -> bool {
    row.id.is_some() && row.unreadable.is_none() && row.odd_values == 0
}
