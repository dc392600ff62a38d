//! The random walks: their lists, how those change, and which of the assumptions hold.

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::behaviour::{Behaviour, Churn, Order, PastEnd, ReportedPage, Total};
use crate::api::LARGEST_LIMIT;

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
        let behaviour = &self.behaviour;
        if behaviour.failing > 0 {
            return Kind::RowsFail;
        } else if behaviour.hidden_block > 0 {
            return Kind::ABlockHidden;
        } else if behaviour.refused_from.is_some() {
            return Kind::DeepOffsetsRefused;
        } else if behaviour.churn == Churn::Grows {
            return Kind::GrowsBehindTotal;
        }
        match (self.behaviour.order, self.behaviour.total) {
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
            (_, Total::Exact) if self.behaviour.messages && self.behaviour.deletes => {
                Kind::MessagesDeleted
            }
            (_, Total::Exact) if self.behaviour.churn == Churn::Imports => Kind::Imports,
            (_, Total::Exact) => Kind::KeepsThem,
        }
    }

    /// Pages may have fewer rows than the limit that they report, although more rows follow.
    fn pages_come_short(&self) -> bool {
        let Behaviour {
            short_pages,
            hidden,
            reported,
            ..
        } = self.behaviour;
        let clamped = self.size_of_a_page() < u64::from(self.page_size);
        short_pages || hidden > 0 || (clamped && reported != ReportedPage::Applied)
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
        self.size_of_a_page() == u64::from(LARGEST_LIMIT)
            && self.max_items.is_none()
            && self.killed_after.is_none()
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
        let Behaviour {
            hidden,
            short_pages,
            ..
        } = self.behaviour;
        let brought = self.size_of_a_page() * u64::from(100 - hidden) / 100;
        let brought = if short_pages { brought / 2 } else { brought };
        // The end of a changing list is read again; if pages come short, the last rows come in ever
        // shorter ones.
        let last_ones = if short_pages || hidden > 0 { 6 } else { 3 };
        let new = brought.saturating_sub(shared).max(1);
        places.saturating_sub(shared).div_ceil(new) + last_ones
    }

    /// The service behaves well, except for changes by others.
    pub fn is_ordinary(&self) -> bool {
        let largest = self.size_of_a_page() == u64::from(LARGEST_LIMIT);
        let Behaviour {
            short_pages,
            hidden,
            ..
        } = self.behaviour;
        let whole = !short_pages && hidden == 0 && self.max_items.is_none();
        let whole = whole && self.killed_after.is_none();
        matches!(self.kind(), Kind::KeepsThem | Kind::Imports) && largest && whole
    }

    /// Whether a patient reader finds every row if the list does not change.
    pub fn is_at_rest(&self) -> bool {
        let Behaviour {
            order,
            total,
            churn,
            short_pages,
            hidden,
            reported,
            ..
        } = self.behaviour;
        // What follows a page that was short, or filtered to nothing, can only be told from a
        // correct total.
        let full =
            self.size_of_a_page() == u64::from(self.page_size) || reported == ReportedPage::Applied;
        // Pages of a few rows may be hidden entirely, and then look like those past the end.
        if hidden > 0 && (short_pages || self.size_of_a_page() < 10) {
            return false;
        }
        let told = matches!(total, Total::Exact | Total::TooLarge | Total::Stale);
        let odd = self.behaviour.hidden_block > 0 || self.behaviour.refused_from.is_some();
        churn == Churn::None
            && !odd
            && !matches!(order, Order::Ties | Order::TiesByQuery | Order::Shuffled)
            && (told || (hidden == 0 && full && !short_pages))
            && self.max_items.is_none()
    }
}

/// The unusual behaviour of a service.
#[derive(Debug, Clone, Copy)]
struct Oddities {
    largest_page: u8,
    reported: ReportedPage,
    short_pages: bool,
    hidden: u8,
    page_size: u8,
    max_items: Option<u64>,
}

fn oddities() -> impl Strategy<Value = Oddities> {
    let none = Just(Oddities {
        largest_page: LARGEST_LIMIT,
        reported: ReportedPage::Applied,
        short_pages: false,
        hidden: 0,
        page_size: LARGEST_LIMIT,
        max_items: None,
    });
    let some = (
        prop_oneof![2 => Just(LARGEST_LIMIT), 1 => 10..=LARGEST_LIMIT],
        prop::sample::select(vec![
            ReportedPage::Applied,
            ReportedPage::Requested,
            ReportedPage::Nothing,
        ]),
        prop::bool::weighted(0.2),
        prop_oneof![3 => Just(0), 1 => 1_u8..30],
        prop_oneof![5 => Just(LARGEST_LIMIT), 1 => 1..=LARGEST_LIMIT],
        prop_oneof![20 => Just(None), 1 => (0_u64..500).prop_map(Some)],
    );
    let some = some.prop_map(
        |(largest_page, reported, short_pages, hidden, page_size, max_items)| Oddities {
            largest_page,
            reported,
            short_pages,
            hidden,
            page_size,
            max_items,
        },
    );
    prop_oneof![1 => none, 1 => some]
}

pub fn cases() -> impl Strategy<Value = Case> {
    let rows = prop_oneof![
        3 => 0_i64..100,
        4 => 100_i64..400,
        2 => 400_i64..991,
        2 => 991_i64..1600,
    ];
    let kinds = Kind::ALL.map(|(kind, weight, _)| (weight, Just(kind)));
    let churns = [
        (2, Just(Churn::None)),
        (2, Just(Churn::Moderate)),
        (2, Just(Churn::Heavy)),
        (2, Just(Churn::Bursts)),
        (1, Just(Churn::Imports)),
    ];
    let ties = prop_oneof![2 => Just(8_u16), 1 => 8_u16..600];
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
    (
        rows,
        prop::strategy::Union::new_weighted(kinds.to_vec()),
        any::<bool>(),
        (prop::strategy::Union::new_weighted(churns.to_vec()), ties),
        prop::sample::select(orders.to_vec()),
        prop::sample::select(past_ends.to_vec()),
        oddities(),
        prop_oneof![2 => Just(1_usize), 3 => 2_usize..9, 1 => Just(16)],
        prop_oneof![7 => Just(None), 1 => (1_usize..12).prop_map(Some)],
        any::<u64>().no_shrink(),
    )
        .prop_map(
            |(
                rows,
                kind,
                messages,
                (churn, tied),
                order,
                past_end,
                oddities,
                concurrent_pages,
                killed_after,
                seed,
            )| {
                let mut behaviour = Behaviour {
                    messages,
                    rows,
                    order,
                    churn,
                    tied,
                    deletes: !messages,
                    largest_page: oddities.largest_page,
                    reported: oddities.reported,
                    short_pages: oddities.short_pages,
                    hidden: oddities.hidden,
                    past_end,
                    seed,
                    ..Behaviour::default()
                };
                break_assumption(&mut behaviour, kind);
                // For a page of one row, thousands of requests show no more than hundreds.
                // A list that grows by more than a page per request has no end.
                let page_size = match rows {
                    0..200 if churn < Churn::Bursts => oddities.page_size,
                    _ => oddities.page_size.max(10),
                };
                Case {
                    behaviour,
                    page_size,
                    concurrent_pages,
                    max_items: oddities.max_items,
                    killed_after: killed_after.filter(|_| oddities.max_items.is_none()),
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
