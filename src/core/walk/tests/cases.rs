//! The random walks: the services whose lists they read, how those change, and which of the assumptions
//! hold.

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use crate::api::{LARGEST_LIMIT, List, Natural};

/// The sort key of the rows, and how a change moves a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    OldestFirst,
    NewestFirst,
    /// New rows are inserted anywhere, and a renamed row moves.
    Name,
    /// An updated row moves to the front.
    UpdatedFirst,
    /// An updated row moves to the end.
    UpdatedLast,
    /// Groups of rows with the same key, each reshuffled at every request.
    Ties,
    /// The same, but each query always gets the same order, as from PostgreSQL.
    TiesByQuery,
    Shuffled,
    /// Rows move without any change in them.
    HiddenKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Total {
    Exact,
    Null,
    /// As at the first request.
    Stale,
    TooSmall,
    TooLarge,
    Capped,
    /// Counted now and then and cached in between: outdated, too large or too small.
    Cached,
    /// Missing from a third of the responses.
    Sometimes,
    /// Hidden rows take up a place but are not counted.
    WithoutHidden,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PastEnd {
    Empty,
    Refused,
    LastPage,
    FirstPage,
}

/// What a page reports about the limit and offset applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReportedPage {
    Applied,
    Requested,
    Nothing,
}

/// How many changes happen per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Churn {
    None,
    /// One per ten requests.
    Moderate,
    /// One to three with each request.
    Heavy,
    /// Moderate, and occasionally 50 at once.
    Bursts,
    /// Moderate, and up to three times hundreds of new rows at once, where new rows go.
    Imports,
    /// One row at the end before every second request.
    Grows,
}

/// The behaviour of a simulated service, fixed before the first request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct Behaviour {
    /// A list of messages, otherwise of users.
    pub messages: bool,
    pub rows: i64,
    pub order: Order,
    pub total: Total,
    pub churn: Churn,
    /// For `Order::Ties`, the average number of rows with the same key.
    pub tied: u16,
    /// If false, messages are only added, as the certificates assume.
    pub deletes: bool,
    pub largest_page: u8,
    pub reported: ReportedPage,
    pub short_pages: bool,
    /// How many of a hundred rows are filtered out after paging.
    pub hidden: u8,
    pub past_end: PastEnd,
    /// How many of a thousand rows fail each page that they are part of.
    pub failing: u16,
    /// The length of a block of consecutive hidden rows.
    pub hidden_block: u16,
    /// Offsets from here on are refused.
    pub refused_from: Option<u64>,
    pub seed: u64,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            messages: false,
            rows: 0,
            order: Order::OldestFirst,
            total: Total::Exact,
            churn: Churn::None,
            tied: 8,
            deletes: true,
            largest_page: LARGEST_LIMIT,
            reported: ReportedPage::Applied,
            short_pages: false,
            hidden: 0,
            past_end: PastEnd::Empty,
            failing: 0,
            hidden_block: 0,
            refused_from: None,
            seed: 0,
        }
    }
}

impl Behaviour {
    pub fn list(&self) -> List {
        let user_id = Natural::from(42);
        match self.messages {
            false => List::Users,
            true => List::Messages { user_id },
        }
    }
}

/// One walk; it runs the same way each time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct Case {
    pub behaviour: Behaviour,
    pub page_size: u8,
    pub concurrent_pages: usize,
    pub max_items: Option<u64>,
    /// Pages returned before it is killed, to resume from there.
    pub killed_after: Option<usize>,
}

/// The certificates' assumptions that a list breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    KeepsThem,
    /// None of them, but hundreds of rows are inserted at once.
    Imports,
    TotalMissing,
    TotalCached,
    /// The total is cached, and pages come short in the middle, so that one may end just where a
    /// wrong total says.
    CachedAndShort,
    TiesReshuffled,
    Shuffled,
    MovesUnseen,
    MessagesDeleted,
    TotalStale,
    TotalTooSmall,
    TotalTooLarge,
    TotalCapped,
    HiddenNotCounted,
    /// The service counts once and keeps that total, and rows are added at the end.
    GrowsBehindTotal,
    RowsFail,
    DeepOffsetsRefused,
    TiesByQuery,
    ABlockHidden,
}

impl Kind {
    /// How often each is drawn; and of 210,000 walks, the share that was certified, and the share that
    /// lacked rows which the plain loop got.
    pub const ALL: [(Self, u32, (f64, f64)); 19] = [
        (Self::KeepsThem, 10, (0.903, 0.0001)),
        (Self::Imports, 2, (0.955, 0.0002)),
        (Self::TotalMissing, 2, (0.702, 0.0014)),
        (Self::TotalCached, 2, (0.924, 0.0)),
        (Self::CachedAndShort, 1, (0.609, 0.0017)),
        (Self::TiesReshuffled, 1, (0.489, 0.0244)),
        (Self::Shuffled, 1, (0.396, 0.0889)),
        (Self::MovesUnseen, 1, (0.825, 0.0003)),
        (Self::MessagesDeleted, 1, (0.899, 0.0005)),
        (Self::TotalStale, 1, (0.839, 0.0021)),
        (Self::TotalTooSmall, 1, (0.807, 0.0010)),
        (Self::TotalTooLarge, 1, (0.480, 0.0002)),
        (Self::TotalCapped, 1, (0.804, 0.0039)),
        (Self::HiddenNotCounted, 1, (0.340, 0.0006)),
        (Self::GrowsBehindTotal, 1, (0.989, 0.0)),
        (Self::RowsFail, 1, (0.217, 0.0)),
        (Self::DeepOffsetsRefused, 1, (0.310, 0.0898)),
        (Self::TiesByQuery, 1, (0.483, 0.0479)),
        (Self::ABlockHidden, 1, (0.089, 0.0723)),
    ];
}

impl Default for Case {
    fn default() -> Self {
        Self {
            behaviour: Behaviour::default(),
            page_size: LARGEST_LIMIT,
            concurrent_pages: 1,
            max_items: None,
            killed_after: None,
        }
    }
}

impl Case {
    pub fn kind(&self) -> Kind {
        let list = &self.behaviour;
        match (list.order, list.total) {
            _ if list.failing > 0 => Kind::RowsFail,
            _ if list.hidden_block > 0 => Kind::ABlockHidden,
            _ if list.refused_from.is_some() => Kind::DeepOffsetsRefused,
            _ if list.churn == Churn::Grows => Kind::GrowsBehindTotal,
            (Order::Ties, _) => Kind::TiesReshuffled,
            (Order::TiesByQuery, _) => Kind::TiesByQuery,
            (Order::Shuffled, _) => Kind::Shuffled,
            (Order::HiddenKey, _) => Kind::MovesUnseen,
            (_, Total::Stale) => Kind::TotalStale,
            (_, Total::TooSmall) => Kind::TotalTooSmall,
            (_, Total::TooLarge) => Kind::TotalTooLarge,
            (_, Total::Capped) => Kind::TotalCapped,
            (_, Total::WithoutHidden) => Kind::HiddenNotCounted,
            (_, Total::Cached) if self.pages_come_short() => Kind::CachedAndShort,
            (_, Total::Cached) => Kind::TotalCached,
            (_, Total::Null | Total::Sometimes) => Kind::TotalMissing,
            (_, Total::Exact) if list.messages && list.deletes => Kind::MessagesDeleted,
            (_, Total::Exact) if list.churn == Churn::Imports => Kind::Imports,
            (_, Total::Exact) => Kind::KeepsThem,
        }
    }

    /// Pages may have fewer rows than the limit that they report, although more rows follow.
    fn pages_come_short(&self) -> bool {
        let list = &self.behaviour;
        let clamped = self.size_of_a_page() < u64::from(self.page_size);
        list.short_pages || list.hidden > 0 || (clamped && list.reported != ReportedPage::Applied)
    }

    /// Untouched rows keep their order; totals are right, missing, or out of date.
    pub fn orders_truly(&self) -> bool {
        matches!(
            self.kind(),
            Kind::KeepsThem
                | Kind::Imports
                | Kind::TotalMissing
                | Kind::TotalCached
                | Kind::MessagesDeleted
                | Kind::GrowsBehindTotal
                | Kind::RowsFail
                | Kind::DeepOffsetsRefused
        )
    }

    /// A plain loop reads pages of the same size, with one request per page.
    pub fn reads_like_plain_loop(&self) -> bool {
        let whole = self.max_items.is_none() && self.killed_after.is_none();
        whole && self.size_of_a_page() == u64::from(LARGEST_LIMIT)
    }

    /// Messages are only added, and each response states the current total.
    pub fn counts_truly(&self) -> bool {
        !self.behaviour.deletes && self.behaviour.total == Total::Exact
    }

    /// The most rows in one response.
    pub fn size_of_a_page(&self) -> u64 {
        self.page_size.min(self.behaviour.largest_page).into()
    }

    /// The number of pages to read this many places at worst, if each shares rows with the previous
    /// one.
    pub fn pages(&self, places: u64, shared: u64) -> u64 {
        let list = &self.behaviour;
        let brought = self.size_of_a_page() * u64::from(100 - list.hidden) / 100;
        let brought = if list.short_pages {
            brought / 2
        } else {
            brought
        };
        // The end of a changing list is read again; if pages come short, the last rows come in ever
        // shorter ones.
        let last_ones = if list.short_pages || list.hidden > 0 {
            6
        } else {
            3
        };
        let new = brought.saturating_sub(shared).max(1);
        places.saturating_sub(shared).div_ceil(new) + last_ones
    }

    /// The service behaves well, except for changes by others.
    pub fn is_ordinary(&self) -> bool {
        let list = &self.behaviour;
        let whole = !list.short_pages && list.hidden == 0 && self.reads_like_plain_loop();
        whole && matches!(self.kind(), Kind::KeepsThem | Kind::Imports)
    }

    /// Whether a patient reader finds every row if the list does not change.
    pub fn is_at_rest(&self) -> bool {
        let list = &self.behaviour;
        let odd = list.hidden_block > 0 || list.refused_from.is_some();
        let random = matches!(
            list.order,
            Order::Ties | Order::TiesByQuery | Order::Shuffled
        );
        if list.churn != Churn::None || odd || random {
            return false;
        }
        // Pages of a few rows may be hidden entirely, and then look like those past the end.
        if list.hidden > 0 && (list.short_pages || self.size_of_a_page() < 10) {
            return false;
        }
        // What follows a page that was short, or filtered to nothing, can only be told from a
        // correct total.
        let told = matches!(list.total, Total::Exact | Total::TooLarge | Total::Stale);
        let full = self.size_of_a_page() == u64::from(self.page_size)
            || list.reported == ReportedPage::Applied
            || list.total == Total::Null;
        let all = self
            .max_items
            .is_none_or(|most| most >= list.rows.unsigned_abs());
        all && (told || (list.hidden == 0 && full && !list.short_pages))
    }
}

/// The unusual ways of a service and of the reader.
fn oddities() -> impl Strategy<Value = Case> {
    let reported = [
        ReportedPage::Applied,
        ReportedPage::Requested,
        ReportedPage::Nothing,
    ];
    let some = (
        prop_oneof![2 => Just(LARGEST_LIMIT), 1 => 10..=LARGEST_LIMIT],
        prop::sample::select(reported.to_vec()),
        prop::bool::weighted(0.2),
        prop_oneof![3 => Just(0), 1 => 1_u8..30],
        prop_oneof![5 => Just(LARGEST_LIMIT), 1 => 1..=LARGEST_LIMIT],
        prop_oneof![20 => Just(None), 1 => (0_u64..500).prop_map(Some)],
    );
    let some = some.prop_map(
        |(largest_page, reported, short_pages, hidden, page_size, max_items)| Case {
            behaviour: Behaviour {
                largest_page,
                reported,
                short_pages,
                hidden,
                ..Behaviour::default()
            },
            page_size,
            max_items,
            ..Case::default()
        },
    );
    prop_oneof![1 => Just(Case::default()), 1 => some]
}

pub fn cases() -> impl Strategy<Value = Case> {
    let rows = prop_oneof![
        3 => 0_i64..100,
        4 => 100_i64..400,
        2 => 400_i64..991,
        2 => 991_i64..1600,
    ];
    let kinds = Kind::ALL.map(|(kind, weight, _)| (weight, Just(kind)));
    let churn = prop_oneof![
        2 => Just(Churn::None),
        2 => Just(Churn::Moderate),
        2 => Just(Churn::Heavy),
        2 => Just(Churn::Bursts),
        1 => Just(Churn::Imports),
    ];
    let tied = prop_oneof![2 => Just(8_u16), 1 => 8_u16..600];
    let orders = [
        Order::OldestFirst,
        Order::NewestFirst,
        Order::Name,
        Order::UpdatedFirst,
        Order::UpdatedLast,
    ];
    let past_ends = [
        PastEnd::Empty,
        PastEnd::Refused,
        PastEnd::LastPage,
        PastEnd::FirstPage,
    ];
    let list = (
        rows,
        prop::strategy::Union::new_weighted(kinds.to_vec()),
        any::<bool>(),
        (churn, tied),
        prop::sample::select(orders.to_vec()),
        prop::sample::select(past_ends.to_vec()),
    );
    let concurrent_pages = prop_oneof![2 => Just(1_usize), 3 => 2_usize..9, 1 => Just(16)];
    let killed_after = prop_oneof![7 => Just(None), 1 => (1_usize..12).prop_map(Some)];
    let seed = any::<u64>().no_shrink();
    (list, oddities(), concurrent_pages, killed_after, seed).prop_map(
        |(list, case, concurrent_pages, killed_after, seed)| {
            let (rows, kind, messages, (churn, tied), order, past_end) = list;
            let mut behaviour = Behaviour {
                messages,
                rows,
                order,
                churn,
                tied,
                deletes: !messages,
                past_end,
                seed,
                ..case.behaviour
            };
            break_assumption(&mut behaviour, kind);
            // For a page of one row, thousands of requests show no more than hundreds.
            // A list that grows by more than a page per request has no end.
            let page_size = match rows {
                0..200 if churn < Churn::Bursts => case.page_size,
                _ => case.page_size.max(10),
            };
            Case {
                behaviour,
                page_size,
                concurrent_pages,
                killed_after: killed_after.filter(|_| case.max_items.is_none()),
                ..case
            }
        },
    )
}

fn break_assumption(behaviour: &mut Behaviour, kind: Kind) {
    match kind {
        Kind::KeepsThem => {}
        Kind::Imports => behaviour.churn = Churn::Imports,
        Kind::TotalMissing if behaviour.seed.is_multiple_of(3) => {
            behaviour.total = Total::Sometimes
        }
        Kind::TotalMissing => behaviour.total = Total::Null,
        Kind::TotalCached | Kind::CachedAndShort => {
            behaviour.short_pages |= kind == Kind::CachedAndShort;
            behaviour.total = Total::Cached;
            behaviour.churn = behaviour.churn.max(Churn::Moderate);
        }
        Kind::TiesReshuffled => behaviour.order = Order::Ties,
        Kind::Shuffled => behaviour.order = Order::Shuffled,
        Kind::MovesUnseen => {
            behaviour.order = Order::HiddenKey;
            behaviour.churn = behaviour.churn.max(Churn::Moderate);
        }
        Kind::MessagesDeleted => {
            behaviour.messages = true;
            behaviour.deletes = true;
            behaviour.churn = behaviour.churn.max(Churn::Moderate);
        }
        Kind::TotalStale => {
            behaviour.total = Total::Stale;
            behaviour.churn = behaviour.churn.max(Churn::Moderate);
        }
        Kind::TotalTooSmall => behaviour.total = Total::TooSmall,
        Kind::TotalTooLarge => behaviour.total = Total::TooLarge,
        Kind::TotalCapped => behaviour.total = Total::Capped,
        Kind::GrowsBehindTotal => {
            behaviour.order = Order::OldestFirst;
            behaviour.total = Total::Stale;
            behaviour.churn = Churn::Grows;
            behaviour.short_pages = false;
            behaviour.hidden = 0;
        }
        Kind::RowsFail => {
            // With short pages as well, a list may grow faster than it can be read.
            behaviour.failing = 1 + (behaviour.seed % 30) as u16;
            behaviour.short_pages = false;
            behaviour.hidden = 0;
        }
        Kind::DeepOffsetsRefused => {
            behaviour.refused_from = Some(behaviour.rows.unsigned_abs() / 2);
        }
        Kind::TiesByQuery => behaviour.order = Order::TiesByQuery,
        Kind::ABlockHidden => behaviour.hidden_block = 1 + (behaviour.seed % 250) as u16,
        Kind::HiddenNotCounted => {
            behaviour.total = Total::WithoutHidden;
            behaviour.hidden = behaviour.hidden.max(1);
        }
    }
}
