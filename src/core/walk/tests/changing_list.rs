//! A list as a service might serve it while others change it; the same case gives the same list.

use std::collections::HashSet;
use std::ops::Range;

use super::cases::{Behaviour, Churn, Order, PastEnd, ReportedPage, Total};
use crate::api::Limit;

#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub id: i64,
    key: u64,
    revision: u32,
    hidden: bool,
    /// It fails each page that it is part of.
    pub fails: bool,
    pub touched: bool,
    pub moved: bool,
}

impl Entry {
    pub fn json(&self, behaviour: &Behaviour) -> String {
        let (id, revision) = (self.id, self.revision);
        let (seconds, micros) = (self.key / SECOND, self.key % SECOND);
        let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let at = format!("2026-01-01T{hours:02}:{minutes:02}:{seconds:02}.{micros:06}Z");
        let sorted_by = match behaviour.order {
            Order::OldestFirst | Order::NewestFirst | Order::Ties | Order::TiesByQuery => {
                "created_at"
            }
            Order::Name if behaviour.messages => "body",
            Order::Name => "name",
            Order::UpdatedFirst | Order::UpdatedLast => "updated_at",
            Order::Shuffled | Order::HiddenKey => {
                return format!(r#"{{"id":{id},"revision":{revision}}}"#);
            }
        };
        format!(r#"{{"id":{id},"{sorted_by}":"{at}","revision":{revision}}}"#)
    }
}

/// The response to a request for a page.
#[derive(Debug)]
pub enum Served {
    Page {
        rows: Vec<Entry>,
        /// The index of the first row that fails the page.
        fails_at: Option<usize>,
        limit: Option<u8>,
        offset: Option<u64>,
        total: Option<usize>,
    },
    Refused,
}

/// The current list, and what was true at each instant since the walk began.
#[derive(Debug)]
pub struct ChangingList {
    pub behaviour: Behaviour,
    entries: Vec<Entry>,
    next_id: i64,
    instant: u64,
    first_total: Option<usize>,
    /// The cached total, and the instant when it is counted again.
    cached_total: (usize, u64),
    imports_left: u8,
    /// The most places that the list had at any instant.
    pub greatest_extent: usize,
    contents: HashSet<u64>,
    members: HashSet<u64>,
    hidden_ids: HashSet<i64>,
}

const SECOND: u64 = 1_000_000;
const BURST: usize = 50;

fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// A hash of a set of rows, regardless of their order.
fn sum(rows: impl IntoIterator<Item = (i64, u32)>) -> u64 {
    rows.into_iter().fold(0, |sum: u64, (id, revision)| {
        sum.wrapping_add(mixed(id.cast_unsigned() << 20 | u64::from(revision)))
    })
}

/// The revision in which a row was served.
pub fn revision(json: &str) -> u32 {
    let (_, last) = json.rsplit_once(':').unwrap();
    last.trim_end_matches('}').parse().unwrap()
}

impl ChangingList {
    pub fn new(behaviour: Behaviour) -> Self {
        let mut list = Self {
            entries: Vec::new(),
            next_id: behaviour.rows + 1,
            instant: 0,
            first_total: None,
            cached_total: (0, 0),
            imports_left: 3,
            greatest_extent: 0,
            contents: HashSet::new(),
            members: HashSet::new(),
            hidden_ids: HashSet::new(),
            behaviour,
        };
        let mut random = list.random();
        let mut ids: Vec<i64> = (1..=list.behaviour.rows).collect();
        match list.behaviour.order {
            Order::NewestFirst => ids.reverse(),
            Order::Name => random.shuffle(&mut ids),
            _ => {}
        }
        for id in ids {
            list.add(list.entries.len(), id, &mut random);
        }
        let block = usize::from(list.behaviour.hidden_block);
        let start = random.usize(..list.entries.len().saturating_sub(block).max(1));
        for entry in list.entries.iter_mut().skip(start).take(block) {
            entry.hidden = true;
            list.hidden_ids.insert(entry.id);
        }
        // Counted before the walk began, when there were slightly more or fewer rows.
        let counted = (list.entries.len() + random.usize(..20)).saturating_sub(10);
        list.cached_total = (counted, random.u64(..10));
        list.note();
        list
    }

    /// Answers a request for a page, at its own instant.
    pub fn page(&mut self, offset: u64, limit: Limit) -> Served {
        let mut random = self.pass();
        let behaviour = &self.behaviour;
        let extent = self.entries.len();
        let mut size = usize::from(limit.get().min(behaviour.largest_page));
        let applied = size;
        if behaviour.short_pages && random.u8(..3) == 0 {
            size = random.usize(1..=size);
        }
        let requested = usize::try_from(offset).unwrap();
        if behaviour.refused_from.is_some_and(|from| offset > from) {
            return Served::Refused;
        }
        let start = match behaviour.past_end {
            _ if requested < extent => requested,
            PastEnd::LastPage => extent.saturating_sub(size),
            PastEnd::FirstPage => 0,
            PastEnd::Refused if requested > 0 => return Served::Refused,
            PastEnd::Empty | PastEnd::Refused => extent,
        };
        let mut entries = self.entries[start..(start + size).min(extent)].to_vec();
        if behaviour.order == Order::TiesByQuery {
            entries = self.tied_for(offset, limit)[start..(start + size).min(extent)].to_vec();
        }
        let rows: Vec<Entry> = entries.into_iter().filter(|entry| !entry.hidden).collect();
        let fails_at = rows.iter().position(|entry| entry.fails);
        let first_total = *self.first_total.get_or_insert(extent);
        if self.instant >= self.cached_total.1 {
            self.cached_total = (extent, self.instant + random.u64(2..20));
        }
        let total = match behaviour.total {
            Total::Exact => Some(extent),
            Total::Null => None,
            Total::Stale => Some(first_total),
            Total::TooSmall => Some(extent - extent.div_ceil(10)),
            Total::TooLarge => Some(extent + extent.div_ceil(10)),
            Total::Cached => Some(self.cached_total.0),
            Total::Sometimes => (random.u8(..3) > 0).then_some(extent),
            Total::Capped => Some(extent.min(first_total * 2 / 3)),
            Total::WithoutHidden => Some(self.visible().count()),
        };
        let (limit, offset) = match behaviour.reported {
            ReportedPage::Applied => (Some(applied as u8), Some(start as u64)),
            ReportedPage::Requested => (Some(limit.get()), Some(offset)),
            ReportedPage::Nothing => (None, None),
        };
        Served::Page {
            rows,
            fails_at,
            limit,
            offset,
            total,
        }
    }

    /// All entries, with ties in the order of this query.
    fn tied_for(&self, offset: u64, limit: Limit) -> Vec<Entry> {
        let mut entries = self.entries.clone();
        let query = mixed(offset << 8 | u64::from(limit.get()));
        for tied in entries.chunk_by_mut(|one, next| one.key == next.key) {
            tied.sort_by_key(|entry| mixed(query ^ entry.id.cast_unsigned()));
        }
        entries
    }

    /// Answers a request for one row, at its own instant.
    pub fn row(&mut self, id: i64) -> Option<String> {
        self.pass();
        let entry = self
            .visible()
            .find(|entry| entry.id == id && !entry.fails)?;
        Some(entry.json(&self.behaviour))
    }

    /// Whether a row with this id was visible at some instant of the walk.
    pub fn was_there(&self, id: i64) -> bool {
        (1..self.next_id).contains(&id) && !self.hidden_ids.contains(&id)
    }

    /// The rows that existed from the first instant until now and can be read.
    pub fn lasting(&self) -> impl Iterator<Item = &Entry> {
        self.visible()
            .filter(|entry| entry.id <= self.behaviour.rows && !entry.fails)
    }

    /// The visible ids, in the order served.
    pub fn ids(&self) -> Vec<i64> {
        self.visible().map(|entry| entry.id).collect()
    }

    /// Whether exactly these ids were in the list at one instant.
    pub fn had_just(&self, ids: impl IntoIterator<Item = i64>) -> bool {
        self.members
            .contains(&sum(ids.into_iter().map(|id| (id, 0))))
    }

    /// The same for ids with the revisions in which they were served.
    pub fn had_just_these_contents(&self, rows: impl IntoIterator<Item = (i64, u32)>) -> bool {
        self.contents.contains(&sum(rows))
    }

    fn visible(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.hidden)
    }

    fn random(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(mixed(self.behaviour.seed ^ mixed(self.instant)))
    }

    /// Advances to the next instant: applies changes, and redraws an order that is random.
    fn pass(&mut self) -> fastrand::Rng {
        self.instant += 1;
        let mut random = self.random();
        let changes = match self.behaviour.churn {
            Churn::None => 0,
            Churn::Moderate | Churn::Bursts | Churn::Imports => (random.u8(..10) == 0).into(),
            Churn::Heavy => random.u8(1..=3),
            Churn::Grows => 0,
        };
        let grows = self.behaviour.churn == Churn::Grows && self.instant.is_multiple_of(2);
        if grows {
            self.add(self.entries.len(), self.next_id, &mut random);
            self.next_id += 1;
        }
        for _ in 0..changes {
            self.change(&mut random);
        }
        if self.behaviour.churn == Churn::Bursts && random.u8(..16) == 0 {
            self.burst(&mut random);
        }
        let imports = self.behaviour.churn == Churn::Imports && self.imports_left > 0;
        let imports = imports && random.u8(..12) == 0;
        if imports {
            self.imports_left -= 1;
            self.import(&mut random);
        }
        match self.behaviour.order {
            Order::Shuffled => random.shuffle(&mut self.entries),
            Order::Ties => {
                let same_key = |one: &Entry, next: &Entry| one.key == next.key;
                for tied in self.entries.chunk_by_mut(same_key) {
                    random.shuffle(tied);
                }
            }
            _ => {}
        }
        if changes > 0 || grows || imports || self.behaviour.churn == Churn::Bursts {
            self.note();
        }
        random
    }

    fn note(&mut self) {
        let contents = sum(self.visible().map(|entry| (entry.id, entry.revision)));
        let members = sum(self.visible().map(|entry| (entry.id, 0)));
        self.contents.insert(contents);
        self.members.insert(members);
        self.greatest_extent = self.greatest_extent.max(self.entries.len());
    }

    fn change(&mut self, random: &mut fastrand::Rng) {
        match random.u8(..10) {
            0..3 => self.add_new(random),
            3..6 if self.behaviour.deletes => {
                let place = self.any_place(random);
                self.remove(place..place + 1);
            }
            // One row goes and one comes, so every count stays the same.
            6 if self.behaviour.deletes => {
                let place = self.any_place(random);
                self.remove(place..place + 1);
                self.add_new(random);
            }
            _ => self.touch(random),
        }
    }

    fn burst(&mut self, random: &mut fastrand::Rng) {
        let place = self.any_place(random);
        if !self.behaviour.deletes {
            for _ in 0..BURST {
                self.add_new(random);
            }
        } else if random.bool() {
            self.remove(place..place + BURST);
        } else {
            for _ in 0..BURST {
                let place = self.any_place(random);
                self.remove(place..place + 1);
            }
        }
    }

    fn import(&mut self, random: &mut fastrand::Rng) {
        let place = self.place_of_new(random);
        let key = self.key_at(place, false);
        let first = self.next_id;
        self.next_id += random.i64(100..1_200);
        let ids = first..self.next_id;
        let mut entries: Vec<Entry> = ids.map(|id| self.entry(id, key, random)).collect();
        if self.is_descending() {
            entries.reverse();
        }
        self.entries.splice(place..place, entries);
    }

    fn is_descending(&self) -> bool {
        matches!(
            self.behaviour.order,
            Order::NewestFirst | Order::UpdatedFirst
        )
    }

    /// Often near the front, where the walk has already been when most changes happen.
    fn any_place(&self, random: &mut fastrand::Rng) -> usize {
        let near = if random.u8(..3) == 0 { 150 } else { usize::MAX };
        random.usize(..self.entries.len().clamp(1, near))
    }

    fn place_of_new(&self, random: &mut fastrand::Rng) -> usize {
        let end = self.entries.len();
        match self.behaviour.order {
            // A row that was stored late, at the place of its time.
            _ if random.u8(..10) == 0 => random.usize(..=end),
            Order::OldestFirst | Order::UpdatedLast | Order::Ties | Order::TiesByQuery => end,
            Order::NewestFirst | Order::UpdatedFirst => 0,
            Order::Name | Order::Shuffled | Order::HiddenKey => random.usize(..=end),
        }
    }

    fn add_new(&mut self, random: &mut fastrand::Rng) {
        let place = self.place_of_new(random);
        self.add(place, self.next_id, random);
        self.next_id += 1;
    }

    fn add(&mut self, place: usize, id: i64, random: &mut fastrand::Rng) {
        let ties = matches!(self.behaviour.order, Order::Ties | Order::TiesByQuery);
        let tied = ties && random.u16(..self.behaviour.tied) > 0;
        let entry = self.entry(id, self.key_at(place, tied), random);
        self.entries.insert(place, entry);
    }

    fn entry(&mut self, id: i64, key: u64, random: &mut fastrand::Rng) -> Entry {
        let hidden = random.u8(..100) < self.behaviour.hidden;
        if hidden {
            self.hidden_ids.insert(id);
        }
        let failing = self.behaviour.failing;
        Entry {
            id,
            key,
            revision: 0,
            hidden,
            fails: failing > 0 && random.u16(..1_000) < failing,
            touched: false,
            moved: false,
        }
    }

    /// A key for a place; keys are a second apart, and a new one is halfway between two.
    fn key_at(&self, place: usize, tied: bool) -> u64 {
        let descending = self.is_descending();
        let key = |place: usize| self.entries.get(place).map(|entry| entry.key);
        let before = place.checked_sub(1).and_then(key);
        match (before, key(place)) {
            (Some(before), _) if tied => before,
            (Some(before), Some(after)) => before.midpoint(after),
            (Some(end), None) if descending => end - SECOND,
            (Some(end), None) => end + SECOND,
            (None, Some(front)) if descending => front + SECOND,
            (None, Some(front)) => front - SECOND,
            (None, None) => 40_000 * SECOND,
        }
    }

    fn remove(&mut self, places: Range<usize>) {
        let end = self.entries.len();
        self.entries
            .drain(places.start.min(end)..places.end.min(end));
    }

    /// Edits a row, which may move it; if the key is hidden, the row only moves.
    fn touch(&mut self, random: &mut fastrand::Rng) {
        if self.entries.is_empty() {
            return;
        }
        let place = self.any_place(random);
        let mut entry = self.entries.remove(place);
        let end = self.entries.len();
        let silent = self.behaviour.order == Order::HiddenKey && random.bool();
        let moves_to = match self.behaviour.order {
            Order::UpdatedFirst => Some(0),
            Order::UpdatedLast => Some(end),
            Order::Name => Some(random.usize(..=end)),
            Order::HiddenKey if silent => Some(random.usize(..=end)),
            _ => None,
        };
        entry.touched = true;
        entry.revision += u32::from(!silent);
        if let Some(place) = moves_to {
            entry.moved = true;
            entry.key = self.key_at(place, false);
        }
        self.entries.insert(moves_to.unwrap_or(place), entry);
    }
}
