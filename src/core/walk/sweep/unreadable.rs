//! The rows of a list that could not be decoded to records.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::decode::page::Row;

// The most rows that the report names.
const NAMED: usize = 5;

/// How many rows cannot be read, and which ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unreadables {
    count: u64,
    /// The first ones, in words.
    named: Vec<String>,
    /// The offsets of those that were not received.
    not_read: BTreeSet<u64>,
}

impl Unreadables {
    /// Records a row of a page that begins at `offset`; false if it can be read, or is known.
    pub fn take(&mut self, offset: u64, row: &Row) -> bool {
        let Some(why) = row.unreadable else {
            return false;
        };
        let (reason, offset) = (why.reason(), offset + row.index() as u64);
        // Later passes come by again.
        if !why.was_received() && !self.not_read.insert(offset) {
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

    /// How many rows were not received.
    pub fn not_read(&self) -> u64 {
        self.not_read.len() as u64
    }

    pub fn any(&self) -> bool {
        self.count > 0
    }

    /// The text for the report.
    pub fn in_words(&self) -> String {
        let named = self.named.join(", ");
        match self.count.saturating_sub(self.named.len() as u64) {
            0 => named,
            1 => format!("{named}, and 1 more row cannot be read"),
            more => format!("{named}, and {more} more rows cannot be read"),
        }
    }
}
