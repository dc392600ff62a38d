//! The order of a list as its pages showed it: which rows two pages share, and which contradict.

mod recent_pages;

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use self::recent_pages::{PageNumber, RecentPages};
use crate::decode::page::Row;

/// Rows whose position is remembered; of earlier rows it is only known that they were seen.
const REMEMBERED: usize = 65_536;
/// This many of the newest rows are searched one by one, from the end. Most lists are no longer, and
/// need no map: lists of 250 messages take 2 % less CPU, and lists of 5,000 at least 5 %.
const NEWEST: usize = 256;
/// Up to this many ids are looked for one by one.
const FEW: usize = 8;
/// Two pages that share this many rows are linked.
pub const LINK: u64 = 2;
/// This many neighbouring rows that all changed are few enough to be the end of a short page.
const RESPELLED: u64 = 8;

/// The chain: the rows of the pages joined so far, in the list's order.
#[derive(Debug, Default)]
pub struct RowOrder {
    /// All rows that are remembered, except the newest.
    places: HashMap<i64, Place>,
    /// The rows with the highest ranks, in their order.
    newest: Vec<(i64, Content)>,
    /// Ids by rank, ascending.
    line: VecDeque<(u64, i64)>,
    /// Rows that appeared between others and have no rank.
    between: VecDeque<i64>,
    next_rank: u64,
    /// The smallest and the largest id that was ever added.
    range: Option<(i64, i64)>,
    recent: RecentPages,
    /// Each response spells the rows differently, so they are compared by their ids alone.
    by_id: bool,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    rank: u64,
    content: Content,
}

/// A hash of a row's text. Most rows are never compared, so the hash waits until their page is not
/// recent any more.
#[derive(Debug, Clone, Copy)]
enum Content {
    Hash(u64),
    /// The row is in this page.
    In(PageNumber),
    /// An earlier walk read the row, and its hash may not be stored.
    Unknown,
}

/// A row at the end of a chain, remembered so that a later walk can link to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    id: i64,
    content: Option<u64>,
}

impl Remembered {
    pub fn forget_content(&mut self) {
        self.content = None;
    }
}

/// What a page shares with the chain.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// Rows of the chain that are unchanged.
    pub unchanged: u64,
    /// Neighbouring rows among them in reverse order.
    pub inversions: u64,
    /// Rows of the chain that changed and moved.
    pub moved: u64,
    /// Rows of the chain that changed, if all rows around them are the chain's too, in its order.
    pub respelled: u64,
    /// Rows of the chain that come after the page's last row.
    pub behind: u64,
    /// Rows of the chain that the page should have shown and did not.
    pub vanished: Vec<i64>,
}

impl Shared {
    /// Whether the page begins within the chain, so that no unmoved row can lie between.
    pub fn links(&self) -> bool {
        self.unchanged >= LINK
    }

    /// Whether many rows came again in their order, too few of them spelled as before to link:
    /// perhaps each response spells them differently, with signed addresses or the current time.
    pub fn is_respelled(&self) -> bool {
        self.respelled >= RESPELLED && !self.links() && self.moved == 0
    }
}

impl RowOrder {
    /// A chain that continues from the end of an earlier walk's.
    pub fn resumed(end: &[Remembered], by_id: bool) -> Self {
        let mut chain = Self {
            by_id,
            ..Self::default()
        };
        for row in end {
            chain.append(row.id, row.content.map_or(Content::Unknown, Content::Hash));
        }
        chain
    }

    /// The last rows, at most `rows`.
    pub fn end(&self, rows: usize) -> Vec<Remembered> {
        let skipped = self.line.len().saturating_sub(rows);
        let last = self.line.iter().skip(skipped);
        last.filter_map(|(_, id)| {
            let content = self.hash(*id, self.place(*id)?.content);
            Some(Remembered { id: *id, content })
        })
        .collect()
    }

    /// The row `places` positions before the end.
    pub fn before_end(&self, places: u64) -> Option<i64> {
        let places = usize::try_from(places).ok()?;
        let index = self.line.len().checked_sub(places)?;
        self.line.get(index).map(|(_, id)| *id)
    }

    /// Compares a page with the chain; `to_end` means that the page ends where the list does.
    pub fn compare(&self, rows: &[Row], to_end: bool) -> Shared {
        let mut shared = Shared::default();
        let mut first: Option<u64> = None;
        let mut last: Option<u64> = None;
        let mut beyond = false;
        let mut previous: Option<u64> = None;
        for row in rows {
            let Some((id, place)) = row.id.and_then(|id| Some((id, self.place(id)?))) else {
                beyond = true;
                continue;
            };
            if beyond || previous.is_some_and(|before| before + 1 != place.rank) {
                shared.respelled = 0;
            }
            previous = Some(place.rank);
            if !self.is_same(id, place, row) {
                shared.moved += u64::from(last.is_some_and(|last| place.rank < last));
                shared.respelled += u64::from(!beyond);
                continue;
            }
            shared.unchanged += 1;
            shared.inversions += u64::from(last.is_some_and(|last| place.rank < last));
            first = first.or(Some(place.rank));
            last = Some(place.rank);
            beyond = false;
        }
        if let (Some(first), Some(last), true, 0) = (first, last, shared.links(), shared.inversions)
        {
            if !beyond {
                shared.behind = self.next_rank.saturating_sub(last + 1);
            }
            let upper = if beyond || to_end { u64::MAX } else { last };
            shared.vanished = self.missing(first, upper, rows);
        }
        shared
    }

    /// Rows ranked between `first` and `upper` that the page lacks.
    fn missing(&self, first: u64, upper: u64, rows: &[Row]) -> Vec<i64> {
        let ranked = self.line.iter().rev();
        let mut vanished: Vec<i64> = ranked
            .take_while(|(rank, _)| *rank > first)
            .filter(|(rank, _)| *rank < upper)
            .map(|(_, id)| *id)
            .collect();
        let ids = || rows.iter().filter_map(|row| row.id);
        if vanished.len() > FEW {
            let shown: HashSet<i64> = ids().collect();
            vanished.retain(|id| !shown.contains(id));
        } else {
            vanished.retain(|id| !ids().any(|shown| shown == *id));
        }
        vanished.reverse();
        vanished
    }

    /// Adds a page's rows; those after the last shared row become the chain's new end.
    pub fn join(&mut self, rows: &[Row]) {
        if let Some(first) = rows.first() {
            self.forget_old_pages(first);
        }
        let page = self.recent.newest();
        let named = || rows.iter().filter_map(|row| Some((row.id?, row)));
        let ranks: Vec<Option<u64>> = named()
            .map(|(id, row)| {
                let place = self.place(id)?;
                self.is_same(id, place, row).then_some(place.rank)
            })
            .collect();
        if self.line.is_empty() {
            // Growing them took 1.5 % of the CPU of lists of 250 messages.
            self.newest.reserve_exact(NEWEST);
            self.line.reserve_exact(NEWEST);
        }
        self.line.reserve(rows.len());
        let shared = ranks.iter().rposition(Option::is_some);
        let after = shared.map_or(0, |last| last + 1);
        let mut rank = ranks.iter().flatten().next().copied();
        for (index, ((id, row), held)) in named().zip(ranks).enumerate() {
            let content = page.map_or_else(|| Content::Hash(content(row)), Content::In);
            match rank {
                Some(near) if index < after => {
                    let here = held.unwrap_or(near);
                    rank = Some(here);
                    let place = Place {
                        rank: here,
                        content,
                    };
                    if held.is_none() {
                        self.insert(id, place);
                    }
                }
                _ => self.append(id, content),
            }
        }
    }

    /// Makes the page of this row the newest; hashes the rows of pages that are too old.
    fn forget_old_pages(&mut self, row: &Row) {
        if self.recent.drops_for(row) {
            self.index_newest();
        }
        let places = &mut self.places;
        self.recent.add(row, |number, id, text| {
            if let Some(place) = places.get_mut(&id)
                && matches!(place.content, Content::In(page) if page == number)
            {
                place.content = Content::Hash(content_of_text(text));
            }
        });
    }

    fn place(&self, id: i64) -> Option<Place> {
        // Most rows of a new page are outside of the range.
        let (smallest, largest) = self.range?;
        if id < smallest || id > largest {
            return None;
        }
        // Rows that two pages share are the last ones.
        let newest = self.newest.iter().rposition(|(newest, _)| *newest == id);
        match newest.and_then(|index| Some((index, self.newest.get(index)?))) {
            Some((index, (_, content))) => Some(Place {
                rank: self.next_rank - (self.newest.len() - index) as u64,
                content: *content,
            }),
            None => self.places.get(&id).copied(),
        }
    }

    fn index_newest(&mut self) {
        self.places.reserve(self.newest.len());
        let first = self.next_rank - self.newest.len() as u64;
        for ((id, content), rank) in self.newest.drain(..).zip(first..) {
            self.places.insert(id, Place { rank, content });
        }
    }

    /// From now on, rows with the same id count as unchanged.
    pub fn compare_by_id(&mut self) {
        self.by_id = true;
    }

    pub fn compares_by_id(&self) -> bool {
        self.by_id
    }

    fn is_same(&self, id: i64, place: Place, row: &Row) -> bool {
        self.by_id
            || self
                .hash(id, place.content)
                .is_none_or(|hash| hash == content(row))
    }

    fn hash(&self, id: i64, content: Content) -> Option<u64> {
        match content {
            Content::Hash(hash) => Some(hash),
            Content::In(page) => Some(content_of_text(self.recent.text(page, id))),
            Content::Unknown => None,
        }
    }

    fn widen_range(&mut self, id: i64) {
        let (smallest, largest) = self.range.unwrap_or((id, id));
        self.range = Some((smallest.min(id), largest.max(id)));
    }

    fn insert(&mut self, id: i64, place: Place) {
        self.widen_range(id);
        self.index_newest();
        if self.places.insert(id, place).is_none() {
            self.between.push_back(id);
        }
        if self.between.len() > REMEMBERED
            && let Some(id) = self.between.pop_front()
        {
            self.places.remove(&id);
        }
    }

    fn append(&mut self, id: i64, content: Content) {
        self.widen_range(id);
        let rank = self.next_rank;
        if self.newest.len() >= NEWEST {
            self.index_newest();
        }
        self.next_rank += 1;
        self.newest.push((id, content));
        self.line.push_back((rank, id));
        if self.line.len() > REMEMBERED
            && let Some((rank, id)) = self.line.pop_front()
            && self.places.get(&id).is_some_and(|place| place.rank == rank)
        {
            self.places.remove(&id);
        }
    }

    /// The content hash of the row with this id, as it was last joined.
    pub fn content_of(&self, id: i64) -> Option<u64> {
        let place = self.place(id)?;
        self.hash(id, place.content)
    }
}

/// A hash of a row's text, the same in every process.
pub fn content(row: &Row) -> u64 {
    content_of_text(row.json())
}

/// The same hash of a row's text.
pub fn content_of_text(json: &str) -> u64 {
    xxh3_64(json.as_bytes())
}
