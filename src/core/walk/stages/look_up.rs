//! Looking up rows by id: those that a later page no longer showed, and those that no page showed.
//!
//! PostgreSQL orders ties the same way each time it runs the same query, so reading a list again finds
//! few of the rows that they hide. Where ids are dense, nearly every id between known ones belongs to
//! a missing row.

use std::collections::VecDeque;

use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use super::chain::content_of_text;
use super::{ListWalk, Stage};
use crate::api::{List, Natural};
use crate::client::Sent;
use crate::decode::json::Text;
use crate::decode::page::Row;
use crate::schema::SenderType;

// The most vanished rows fetched by id in one walk: they only show that rows move unchanged.
const MOST_LOOKED_UP: usize = 16;
// Ids are dense if at least one in this many unknown ids should be a missing row.
const IDS_A_ROW: u64 = 4;

/// The row that is fetched by its id.
#[derive(Debug)]
pub(super) enum LookUp {
    /// A later page no longer showed it: it is gone, or it moved. The hash is that of its text.
    Vanished { id: i64, content: Option<u64> },
    /// An unknown id between known ones, with the number of ids fetched and of rows found before it.
    Gap { id: i64, fetched: u64, found: u64 },
}

/// Rows that later pages no longer showed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Vanished {
    /// Those to fetch, with the hashes of their texts.
    queue: VecDeque<(i64, Option<u64>)>,
    /// All that were or will be fetched.
    chosen: Vec<i64>,
    /// Rows that are unchanged by id, but not in their place any more.
    pub moved_unchanged: u64,
}

impl Vanished {
    pub fn note(&mut self, rows: Vec<(i64, Option<u64>)>) {
        for (id, content) in rows {
            let fetched = self.chosen.contains(&id) || Natural::new("id", id).is_err();
            if !fetched && self.chosen.len() < MOST_LOOKED_UP {
                self.chosen.push(id);
                self.queue.push_back((id, content));
            }
        }
    }

    pub fn forget_contents(&mut self) {
        self.queue
            .iter_mut()
            .for_each(|(_, content)| *content = None);
    }
}

impl ListWalk {
    /// The next vanished row.
    pub(super) fn next_vanished(&mut self) -> Option<LookUp> {
        let (id, content) = self.vanished.queue.pop_front()?;
        Some(LookUp::Vanished { id, content })
    }

    /// The first unknown id, if rows are missing because the list's order changes, and ids are dense
    /// enough to find them. `most` is how many unknown ids there may be.
    pub(super) fn begin_gaps(&mut self, most: u64) -> Option<LookUp> {
        let known = &self.delivery.known;
        let disordered = self.report.evidence.inversions > 0;
        let missing = self.report.evidence.rows_short.filter(|short| *short > 0)?;
        let (least, greatest) = (known.min()?, known.max()?);
        let unknown = (greatest - least).saturating_sub(known.len() - 1);
        // Negative ids are not looked up; as unsigned numbers they exceed all others.
        let dense = i64::try_from(greatest).is_ok() && unknown <= missing.saturating_mul(IDS_A_ROW);
        if self.gaps_read || !disordered || !dense || unknown > most {
            return None;
        }
        let id = gap_after(known, least.cast_signed())?;
        self.gaps_read = true;
        Some(LookUp::Gap {
            id,
            fetched: 0,
            found: 0,
        })
    }

    /// Takes the response for a row that was fetched by its id.
    pub(super) fn take_row(&mut self, row: Option<Text>, sent: Sent) {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::LookUp(LookUp::Vanished { content, .. }) => {
                match row {
                    None => self.report.evidence.rows_gone += 1,
                    Some(row) => {
                        let same = |hash| hash == content_of_text(&row.json);
                        self.vanished.moved_unchanged += u64::from(content.is_none_or(same));
                        self.report.evidence.rows_moved += 1;
                    }
                }
                self.close();
            }
            Stage::LookUp(LookUp::Gap { id, fetched, found }) => {
                let found = found + u64::from(self.take_found(id, row, sent));
                let known = &self.delivery.known;
                let go_on = found * IDS_A_ROW + MOST_LOOKED_UP as u64 > fetched
                    && self.totals.last != Some(self.report.distinct)
                    && self.left() > 0
                    && !self.doubts.any_users
                    && !self.cut;
                match gap_after(known, id).filter(|_| go_on) {
                    Some(id) => {
                        let fetched = fetched + 1;
                        self.stage = Stage::LookUp(LookUp::Gap { id, fetched, found });
                    }
                    None => self.close(),
                }
            }
            stage => self.stage = stage,
        }
    }

    /// Delivers a row that no page showed, if there is one with this id.
    fn take_found(&mut self, id: i64, row: Option<Text>, sent: Sent) -> bool {
        let Some(text) = row else { return false };
        let row = Row::alone(text.json, self.list.resource());
        self.doubts.any_users = row.as_ref().is_ok_and(|row| self.is_of_another_user(row));
        let Some(row) = row
            .ok()
            .filter(|row| row.id == Some(id) && !self.doubts.any_users)
        else {
            return false;
        };
        self.report.repaired_text += text.repaired;
        self.delivery.deliver_found(row, sent, &mut self.report);
        self.totals.note_fresh(self.taken);
        self.end_at_max_items();
        true
    }

    /// Whether another user sent this message: the service ignores the user in the path.
    fn is_of_another_user(&self, row: &Row) -> bool {
        let List::Messages { user_id } = self.list else {
            return false;
        };
        row.message().is_ok_and(|(text, message)| {
            let sender_type = message.sender_type.map(|span| span.text(text));
            let sender = message.sender.as_ref().and_then(|sender| sender.id);
            SenderType::of(sender_type.as_deref(), sender) == SenderType::User
                && sender.is_some_and(|id| u64::try_from(id) != Ok(user_id.get()))
        })
    }
}

/// The first unknown id after this one, below the largest known id.
fn gap_after(known: &RoaringTreemap, id: i64) -> Option<i64> {
    let most = known.max()?.cast_signed();
    (id.checked_add(1)?..most)
        .find(|id| !known.contains(id.cast_unsigned()) && Natural::new("id", *id).is_ok())
}
