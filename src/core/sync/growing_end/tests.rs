//! The growing end against a simulated list: what fits is the list, and what does not is not taken for it.

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::core::interface::Resource;
use crate::core::json::Text;
use crate::core::list_state::{Hints, Kind};
use crate::core::report::Certificate;

/// The messages of a user as a service might serve them.
#[derive(Debug, Clone)]
struct Chat {
    /// Oldest first, as (id, read by all).
    rows: Vec<(i64, bool)>,
    next_id: i64,
    grows: Grows,
    largest_page: usize,
    says_what_it_applied: bool,
}

impl Chat {
    fn new(rows: i64, grows: Grows) -> Self {
        Self {
            rows: (1..=rows).map(|id| (id, true)).collect(),
            next_id: rows + 1,
            grows,
            largest_page: 99,
            says_what_it_applied: true,
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

    /// As a sweep of the whole list would leave it.
    fn state(&self) -> ListState {
        let ids: Vec<i64> = self.served().iter().map(|(id, _)| *id).collect();
        let unread = self.rows.iter().position(|(_, read)| !read);
        ListState {
            rows: ids.len() as u64,
            total: Some(ids.len() as i64),
            certificate: Certificate::Counted,
            started_at: None,
            ended_at: None,
            kind: Kind::Whole,
            swept_at: None,
            grows: Some(self.grows),
            first_ids: ids.iter().copied().take(ENDS).collect(),
            last_ids: ids[ids.len().saturating_sub(ENDS)..].to_vec(),
            unread_from: unread.map(|position| position as u64),
            hints: Hints::default(),
        }
    }

    fn answer(&self, offset: u64, limit: Limit) -> Page {
        self.answer_with_total(offset, limit, json!(self.rows.len()))
    }

    fn answer_with_total(&self, offset: u64, limit: Limit, total: serde_json::Value) -> Page {
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
        let body = json!({
            "limit": applied, "offset": offset, "total": total, "messages": messages,
        });
        let text = Text::repair(&Bytes::from(body.to_string()));
        Page::read(text, Resource::Messages).unwrap()
    }
}

/// Reads to the end, changing the list after each answer but the last; gives the ids shown, what
/// came of it, and the requests.
fn read(
    chat: &mut Chat,
    mut end: GrowingEnd,
    mut change: impl FnMut(&mut Chat),
) -> (BTreeSet<i64>, Step, u64) {
    let mut shown = BTreeSet::new();
    for requests in 1.. {
        let (offset, limit) = end.request();
        let page = chat.answer(offset, limit);
        shown.extend(page.rows.iter().filter_map(|row| row.id));
        let step = end.take(&page);
        if step != Step::Ask {
            return (shown, step, requests);
        }
        assert!(requests < 400, "the read does not end");
        change(chat);
    }
    unreachable!()
}

fn known(chat: &Chat) -> GrowingEnd {
    GrowingEnd::new(chat.state(), 99).unwrap()
}

fn grown(step: Step) -> Grown {
    match step {
        Step::Fits(grown) => *grown,
        other => panic!("{other:?}"),
    }
}

const BOTH: [Grows; 2] = [Grows::End, Grows::Start];

#[test]
fn a_list_without_news_takes_one_request() {
    for grows in BOTH {
        for rows in [91, 99, 100, 5_000] {
            let mut chat = Chat::new(rows, grows);
            let end = known(&chat);
            let (_, step, requests) = read(&mut chat, end, |_| {});
            assert_eq!(requests, 1);
            let (grown, state) = (grown(step), chat.state());
            assert_eq!(grown.rows, state.rows);
            assert_eq!(grown.first_ids, state.first_ids);
            assert_eq!(grown.last_ids, state.last_ids);
            assert_eq!(grown.unread_from, None);
        }
    }
}

#[test]
fn new_rows_and_the_total_come_by_one_request() {
    for grows in BOTH {
        let mut chat = Chat::new(300, grows);
        let end = known(&chat);
        chat.append(9);
        let (shown, step, requests) = read(&mut chat, end, |_| {});
        assert_eq!((grown(step).rows, requests), (309, 1));
        assert!((301..=309).all(|id| shown.contains(&id)));
    }
}

#[test]
fn more_news_than_a_page_holds_is_read_on() {
    for grows in BOTH {
        let mut chat = Chat::new(300, grows);
        let end = known(&chat);
        chat.append(250);
        let (shown, step, requests) = read(&mut chat, end, |_| {});
        assert_eq!(grown(step).rows, 550);
        assert!((301..=550).all(|id| shown.contains(&id)));
        assert!(requests <= 4, "{requests}");
    }
}

#[test]
fn recent_unread_messages_are_asked_for_again_however_old_the_oldest_is() {
    for (unread, asked) in [(299, 290), (250, 250), (211, 211), (100, 211), (0, 211)] {
        let mut chat = Chat::new(300, Grows::End);
        chat.rows[unread].1 = false;
        let end = known(&chat);
        assert_eq!(end.request().0, asked, "unread at {unread}");
        let (_, step, _) = read(&mut chat, end, |_| {});
        // It is still unread, and stays in mind.
        assert_eq!(grown(step).unread_from, Some(unread as u64));
    }
}

#[test]
fn what_has_been_read_meanwhile_is_no_longer_waited_for() {
    for grows in BOTH {
        let mut chat = Chat::new(300, grows);
        chat.rows[250].1 = false;
        let end = known(&chat);
        chat.rows[250].1 = true;
        chat.append(2);
        chat.rows[301].1 = false;
        let (_, step, _) = read(&mut chat, end, |_| {});
        assert_eq!(grown(step).unread_from, Some(301));
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
        let end = known(&chat);
        chat.append(5);
        let (_, step, requests) = read(&mut chat, end, |_| {});
        assert_eq!(grown(step).rows, 305);
        assert!(requests <= 5, "{requests}");
    }
}

#[test]
fn what_is_proved_of_the_end_serves_the_next_run() {
    for grows in BOTH {
        let mut chat = Chat::new(200, grows);
        let mut held = chat.state();
        for news in [0, 3, 120, 1] {
            let end = GrowingEnd::new(held.clone(), 99).unwrap();
            chat.append(news);
            let (_, step, _) = read(&mut chat, end, |_| {});
            let grown = grown(step);
            held = ListState {
                rows: grown.rows,
                first_ids: grown.first_ids,
                last_ids: grown.last_ids,
                unread_from: grown.unread_from,
                ..held
            };
            assert_eq!(held.first_ids, chat.state().first_ids);
            assert_eq!(held.last_ids, chat.state().last_ids);
        }
    }
}

#[test]
fn a_total_that_is_not_the_lists_fits_nothing() {
    for grows in BOTH {
        for total in [json!(null), json!(299), json!(301), json!(-1)] {
            let chat = Chat::new(300, grows);
            let mut end = known(&chat);
            let (offset, limit) = end.request();
            let mut step = end.take(&chat.answer_with_total(offset, limit, total.clone()));
            if step == Step::Ask {
                let (offset, limit) = end.request();
                step = end.take(&chat.answer_with_total(offset, limit, total.clone()));
            }
            assert!(
                matches!(step, Step::Misfit(_)),
                "{grows:?} {total}: {step:?}"
            );
        }
    }
}

#[test]
fn an_old_row_that_moved_to_the_growing_end_is_no_news() {
    for grows in BOTH {
        let mut chat = Chat::new(300, grows);
        let end = known(&chat);
        let moved = chat.rows.remove(40);
        chat.rows.push(moved);
        // Another came where it was, so that nothing is out of its place.
        chat.rows.insert(41, (7_777, true));
        let (_, step, _) = read(&mut chat, end, |_| {});
        assert!(matches!(step, Step::Misfit(_)), "{grows:?}: {step:?}");
    }
}

#[test]
fn a_known_row_that_made_room_for_another_is_missed() {
    let mut chat = Chat::new(300, Grows::Start);
    let end = known(&chat);
    chat.rows.remove(298);
    chat.rows.insert(100, (7_777, true));
    let (_, step, _) = read(&mut chat, end, |_| {});
    assert!(matches!(step, Step::Misfit(_)), "{step:?}");
}

#[test]
fn a_new_row_that_made_room_for_another_while_pages_were_read_is_missed() {
    let mut chat = Chat::new(300, Grows::Start);
    let end = known(&chat);
    chat.append(150);
    let mut pages = 0;
    let (_, step, _) = read(&mut chat, end, |chat| {
        pages += 1;
        if pages == 1 {
            // Nothing moves that the second page shows, and the total stays.
            chat.rows.remove(440);
            chat.append(1);
        }
    });
    assert!(matches!(step, Step::Misfit(_)), "{step:?}");
}

#[test]
fn a_total_that_moves_while_the_start_does_not_is_not_believed() {
    for total in [449, 451] {
        let mut chat = Chat::new(300, Grows::Start);
        let mut end = known(&chat);
        chat.append(150);
        for expected in [450, 450, total] {
            let (offset, limit) = end.request();
            let step = end.take(&chat.answer_with_total(offset, limit, json!(expected)));
            assert_eq!(step == Step::Ask, expected == 450, "{step:?}");
            assert!(!matches!(step, Step::Fits(_)));
        }
    }
}

#[test]
fn a_total_that_is_too_small_costs_one_request() {
    let chat = Chat::new(300, Grows::End);
    let mut end = known(&chat);
    let (offset, limit) = end.request();
    let step = end.take(&chat.answer_with_total(offset, limit, json!(299)));
    assert!(matches!(step, Step::Misfit(_)), "{step:?}");
}

#[test]
fn a_total_that_falls_is_not_believed() {
    let mut chat = Chat::new(300, Grows::End);
    let mut end = known(&chat);
    chat.append(150);
    let (offset, limit) = end.request();
    let first = end.take(&chat.answer_with_total(offset, limit, json!(500)));
    assert_eq!(first, Step::Ask);
    let (offset, limit) = end.request();
    let then = end.take(&chat.answer(offset, limit));
    assert!(matches!(then, Step::Misfit(_)), "{then:?}");
}

#[test]
fn a_row_that_comes_twice_does_not_count_for_two() {
    for grows in BOTH {
        let mut chat = Chat::new(300, grows);
        let end = known(&chat);
        chat.append(1);
        chat.rows.push((301, true));
        let (_, step, _) = read(&mut chat, end, |_| {});
        assert!(matches!(step, Step::Misfit(_)), "{grows:?}: {step:?}");
    }
}

#[test]
fn too_little_known_of_an_end_is_not_asked_by_it() {
    let state = Chat::new(300, Grows::End).state();
    for unknown in [
        ListState {
            grows: None,
            ..state.clone()
        },
        ListState {
            last_ids: Vec::new(),
            ..state.clone()
        },
        ListState {
            last_ids: vec![300],
            ..state
        },
    ] {
        assert!(GrowingEnd::new(unknown, 99).is_none());
    }
}

#[derive(Debug, Clone)]
enum Change {
    Append(usize),
    Delete(prop::sample::Index),
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
    (20_i64..400, any::<bool>(), largest, any::<bool>()).prop_map(
        |(rows, oldest_first, largest_page, says_what_it_applied)| Chat {
            largest_page,
            says_what_it_applied,
            ..Chat::new(
                rows,
                if oldest_first {
                    Grows::End
                } else {
                    Grows::Start
                },
            )
        },
    )
}

/// How the page size is known, if it is.
fn end_of(chat: &Chat, size_known: bool) -> Option<GrowingEnd> {
    let page_rows = if size_known { chat.largest_page } else { 99 };
    GrowingEnd::new(chat.state(), page_rows as u64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn news_that_came_before_the_read_always_fit(
        rows in 91_i64..400,
        oldest_first: bool,
        news in 0_usize..300,
    ) {
        let mut chat = Chat::new(rows, if oldest_first { Grows::End } else { Grows::Start });
        let end = known(&chat);
        let held = chat.ids();
        chat.append(news);
        let (shown, step, requests) = read(&mut chat, end, |_| {});
        prop_assert!(matches!(step, Step::Fits(_)), "{step:?}");
        prop_assert_eq!(&held | &shown, chat.ids());
        prop_assert!(requests <= 1 + news as u64 / 89 + 2, "{requests} for {news}");
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
            let (shown, step, _) = read(&mut chat, end, |chat| {
                chat.append(meanwhile.next().unwrap_or(0));
            });
            if let Step::Fits(grown) = step {
                prop_assert_eq!(grown.rows as usize, chat.rows.len());
                prop_assert_eq!(&held | &shown, chat.ids());
                let state = chat.state();
                prop_assert_eq!(grown.first_ids, state.first_ids);
                prop_assert_eq!(grown.last_ids, state.last_ids);
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
                any::<prop::sample::Index>().prop_map(Change::Delete),
                any::<prop::sample::Index>().prop_map(Change::Delete),
            ]),
            0..12,
        ),
    ) {
        if let Some(end) = end_of(&chat, size_known) {
            let held = chat.ids();
            let mut changes = changes.into_iter().peekable();
            // Those of number 0 come before the first request, the others between two.
            while let Some((_, change)) = changes.next_if(|(when, _)| *when == 0) {
                change.apply(&mut chat);
            }
            let (shown, step, _) = read(&mut chat, end, |chat| {
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
