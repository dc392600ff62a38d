//! The rows of a list that could not be decoded to records.

use serde::{Deserialize, Serialize};

use crate::core::decode::page::{Row, Unreadable};

// The most rows that the report names.
const NAMED: usize = 5;

/// How many rows cannot be read, and which ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unreadables {
    count: u64,
    /// The first ones, in words.
    named: Vec<String>,
}

impl Unreadables {
    /// Records a row of a page that begins at `offset`.
    pub fn take(&mut self, offset: u64, row: &Row) {
        let Some(reason) = row.unreadable.map(Unreadable::reason) else {
            return;
        };
        self.count += 1;
        if self.named.len() < NAMED {
            let offset = offset + row.index() as u64;
            self.named.push(match row.id {
                None => format!("the row at offset {offset} {reason}"),
                Some(id) => format!("the row with id {id} at offset {offset} {reason}"),
            });
        }
    }

    pub fn count(&self) -> u64 {
        self.count
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
