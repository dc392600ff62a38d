//! The growing end of a simulated list: a match is the list, and a mismatch is never accepted.

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::*;
use crate::api::Resource;
use crate::decode::json::Text;

const BOTH: [Grows; 2] = [Grows::End, Grows::Start];

/// The messages of a user as a service might serve them.
#[derive(Debug, Clone)]
struct Chat {
    /// Oldest first, as (id, read by all).
    rows: Vec<(i64, bool)>,
    next_id: i64,
    grows: Grows,
    largest_page: usize,
    says_what_it_applied: bool,
    /// The total that it states, if not the number of rows.
    total: Option<Value>,
}

impl Chat {
    fn new(rows: i64, grows: Grows) -> Self {
        Self {
            rows: (1..=rows).map(|id| (id, true)).collect(),
            next_id: rows + 1,
            grows,
            largest_page: 99,
            says_what_it_applied: true,
            total: None,
        }
    }

    fn append(&mut self, count: usize) {
        for _ in 0..count {
            self.rows.push((self.next_id, true));
            self.next_id += 1;
        }
    }

    fn served(&self) -> Vec<(i64, bool)> {
        let mut rows = self.rows.clone();
        if self.grows == Grows::Start {
            rows.reverse();
        }
        rows
    }

    fn ids(&self) -> BTreeSet<i64> {
        self.rows.iter().map(|(id, _)| *id).collect()
    }

    /// The state that a sweep of the whole list would leave.
    fn state(&self) -> ListState {
        let ids: Vec<i64> = self.served().iter().map(|(id, _)| *id).collect();
        let unread = self.rows.iter().position(|(_, read)| !read);
        ListState {
            rows: ids.len() as u64,
            certificate: Certificate::Counted,
            ends: Some(Ends {
                grows: self.grows,
                first_ids: ids.iter().copied().take(ENDS).collect(),
                last_ids: ids[ids.len().saturating_sub(ENDS)..].to_vec(),
                unread_from: unread.map(|position| position as u64),
            }),
            ..ListState::default()
        }
    }

    fn known(&self) -> GrowingEnd {
        GrowingEnd::new(self.state(), 99, MOST_PAGES).unwrap()
    }

    fn answer(&self, offset: u64, limit: Limit) -> Page {
        let served = self.served();
        let size = usize::from(limit.get()).min(self.largest_page);
        let from = usize::try_from(offset).unwrap().min(served.len());
        let messages: Vec<_> = served[from..(from + size).min(served.len())]
            .iter()
            .map(|(id, read)| {
                let created_at = format!("2026-01-01T{:02}:{:02}:00Z", id / 60 % 24, id % 60);
                json!({"id": id, "created_at": created_at, "read_by_user": read})
            })
            .collect();
        let applied = match self.says_what_it_applied {
            true => size,
            false => limit.get().into(),
        };
        let total = self.total.clone().unwrap_or(json!(served.len()));
        let body = json!({
            "limit": applied, "offset": offset, "total": total, "messages": messages,
        });
        let text = Text::repair(Bytes::from(body.to_string()), None);
        Page::read(text, Resource::Messages).unwrap()
    }
}

/// Reads to the end, changing the list after each response except the last; returns the ids shown,
/// the outcome, and the requests.
fn read(
    chat: &mut Chat,
    mut end: GrowingEnd,
    mut change: impl FnMut(&mut Chat, u64),
) -> (BTreeSet<i64>, Step, u64) {
    let mut shown = BTreeSet::new();
    for responses in 1..400 {
        let (offset, limit) = end.request();
        let page = chat.answer(offset, limit);
        shown.extend(page.rows.iter().filter_map(|row| row.id));
        let step = end.take(&page);
        if step != Step::Request {
            return (shown, step, responses);
        }
        change(chat, responses);
    }
    panic!("the read does not end");
}

/// The list that the read left, with its ends.
fn grown(step: Step) -> (ListState, Ends) {
    match step {
        Step::Fits(grown) => (*grown.clone(), grown.ends.unwrap()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn recent_unread_messages_are_asked_for_again_however_old_the_oldest_is() {
    for (unread, asked) in [(299, 290), (250, 250), (211, 211), (0, 211)] {
        let mut chat = Chat::new(300, Grows::End);
        chat.rows[unread].1 = false;
        let end = chat.known();
        assert_eq!(end.request().0, asked, "unread at {unread}");
        let (_, step, _) = read(&mut chat, end, |_, _| {});
        // It is still unread, so it is remembered.
        assert_eq!(grown(step).1.unread_from, Some(unread as u64));
    }
}

#[test]
fn what_has_been_read_meanwhile_is_no_longer_waited_for() {
    for grows in BOTH {
        let mut chat = Chat::new(300, grows);
        chat.rows[250].1 = false;
        let end = chat.known();
        chat.rows[250].1 = true;
        chat.append(2);
        chat.rows[301].1 = false;
        let (_, step, _) = read(&mut chat, end, |_, _| {});
        assert_eq!(grown(step).1.unread_from, Some(301));
    }
}

#[test]
fn pages_that_come_short_are_joined() {
    for grows in BOTH {
        let mut chat = Chat {
            largest_page: 20,
            says_what_it_applied: false,
            ..Chat::new(300, grows)
        };
        chat.rows[240].1 = false;
        let end = chat.known();
        chat.append(5);
        let (_, step, requests) = read(&mut chat, end, |_, _| {});
        assert_eq!(grown(step).0.rows, 305);
        assert!(requests <= 5, "{requests}");
    }
}

/// Reads a list of 300 rows that is changed before the first request and after each response, and sees
/// that it is not the known list with new rows.
fn is_no_match(grows: &[Grows], change: impl Fn(&mut Chat, u64)) {
    for grows in grows {
        let mut chat = Chat::new(300, *grows);
        let end = chat.known();
        change(&mut chat, 0);
        let (_, step, _) = read(&mut chat, end, &change);
        assert!(matches!(step, Step::Misfit), "{grows:?}: {step:?}");
    }
}

#[test]
fn a_total_that_is_not_the_lists_fits_nothing() {
    for total in [json!(null), json!(299), json!(301), json!(-1)] {
        is_no_match(&BOTH, |chat, _| chat.total = Some(total.clone()));
    }
    // It moves, although the start does not.
    for total in [449, 451] {
        is_no_match(&[Grows::Start], |chat, responses| match responses {
            0 => chat.append(150),
            1 => {}
            _ => chat.total = Some(json!(total)),
        });
    }
    // It falls to the right one.
    is_no_match(&[Grows::End], |chat, responses| match responses {
        0 => {
            chat.append(150);
            chat.total = Some(json!(500));
        }
        _ => chat.total = None,
    });
}

#[test]
fn a_row_that_moved_or_made_room_for_another_or_comes_twice_is_no_news() {
    is_no_match(&BOTH, |chat, responses| {
        if responses == 0 {
            let moved = chat.rows.remove(40);
            chat.rows.push(moved);
            // Another row took its place, so nothing else moved.
            chat.rows.insert(41, (7_777, true));
        }
    });
    is_no_match(&[Grows::Start], |chat, responses| {
        if responses == 0 {
            chat.rows.remove(298);
            chat.rows.insert(100, (7_777, true));
        }
    });
    is_no_match(&[Grows::Start], |chat, responses| match responses {
        0 => chat.append(150),
        1 => {
            // No row on the second page moves, and the total stays the same.
            chat.rows.remove(440);
            chat.append(1);
        }
        _ => {}
    });
    is_no_match(&BOTH, |chat, responses| {
        if responses == 0 {
            chat.append(1);
            chat.rows.push((301, true));
        }
    });
}

#[test]
fn too_little_known_of_an_end_is_not_asked_by_it() {
    let chat = Chat::new(300, Grows::End);
    let with = |last_ids: Vec<i64>| Ends {
        last_ids,
        ..chat.state().ends.unwrap()
    };
    for ends in [None, Some(with(Vec::new())), Some(with(vec![300]))] {
        let unknown = ListState {
            ends,
            ..chat.state()
        };
        assert!(GrowingEnd::new(unknown, 99, MOST_PAGES).is_none());
    }
}

#[derive(Debug, Clone)]
enum Change {
    Append(usize),
    Delete(Index),
}

impl Change {
    fn apply(&self, chat: &mut Chat) {
        match self {
            Self::Append(count) => chat.append(*count),
            Self::Delete(place) if !chat.rows.is_empty() => {
                chat.rows.remove(place.index(chat.rows.len()));
            }
            Self::Delete(_) => {}
        }
    }
}

fn chat() -> impl Strategy<Value = Chat> {
    let largest = prop_oneof![Just(99_usize), 1_usize..99];
    (20_i64..400, select(&BOTH[..]), largest, any::<bool>()).prop_map(
        |(rows, grows, largest_page, says_what_it_applied)| Chat {
            largest_page,
            says_what_it_applied,
            ..Chat::new(rows, grows)
        },
    )
}

/// The end of a list whose largest page is known or not.
fn end_of(chat: &Chat, size_known: bool) -> Option<GrowingEnd> {
    let page_rows = if size_known { chat.largest_page } else { 99 };
    GrowingEnd::new(chat.state(), page_rows as u64, MOST_PAGES)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn news_that_came_before_the_read_always_fit_and_are_the_end_of_the_next_run(
        rows in prop_oneof![Just(91_i64), Just(5_000), 91_i64..400],
        grows in select(&BOTH[..]),
        news in prop_oneof![Just(0_usize), 0_usize..300],
    ) {
        let mut chat = Chat::new(rows, grows);
        let end = chat.known();
        let held = chat.ids();
        chat.append(news);
        let (shown, step, requests) = read(&mut chat, end, |_, _| {});
        let (grown, ends) = grown(step);
        prop_assert_eq!(&held | &shown, chat.ids());
        prop_assert_eq!((grown.rows, Some(ends)), (chat.state().rows, chat.state().ends));
        let most = if news < 10 { 1 } else { 3 + news as u64 / 89 };
        prop_assert!(requests <= most, "{requests} for {news}");
    }

    #[test]
    fn what_fits_misses_nothing_of_a_list_that_grows_meanwhile(
        mut chat in chat(),
        size_known: bool,
        before in 0_usize..250,
        meanwhile in prop::collection::vec(0_usize..4, 0..8),
    ) {
        if let Some(end) = end_of(&chat, size_known) {
            let held = chat.ids();
            chat.append(before);
            let mut meanwhile = meanwhile.into_iter();
            let (shown, step, _) = read(&mut chat, end, |chat, _| {
                chat.append(meanwhile.next().unwrap_or(0));
            });
            if let Step::Fits(_) = step {
                let (grown, ends) = grown(step);
                prop_assert_eq!(&held | &shown, chat.ids());
                prop_assert_eq!((grown.rows, Some(ends)), (chat.state().rows, chat.state().ends));
            }
        }
    }

    #[test]
    fn what_fits_holds_nothing_that_was_deleted(
        mut chat in chat(),
        size_known: bool,
        changes in prop::collection::vec(
            (0_u8..3, prop_oneof![
                (0_usize..120).prop_map(Change::Append),
                (0_usize..4).prop_map(Change::Append),
                any::<Index>().prop_map(Change::Delete),
                any::<Index>().prop_map(Change::Delete),
            ]),
            0..12,
        ),
    ) {
        if let Some(end) = end_of(&chat, size_known) {
            let held = chat.ids();
            let mut changes = changes.into_iter().peekable();
            // Those of number 0 come before the first request, the others between two requests.
            while let Some((_, change)) = changes.next_if(|(when, _)| *when == 0) {
                change.apply(&mut chat);
            }
            let (shown, step, _) = read(&mut chat, end, |chat, _| {
                for (when, change) in changes.by_ref() {
                    change.apply(chat);
                    if when == 1 {
                        break;
                    }
                }
            });
            if let Step::Fits(_) = step {
                prop_assert_eq!(&held | &shown, chat.ids());
            }
        }
    }
}
