//! What holds however a list changes before and during a read of its growing end.

use proptest::prelude::*;

use super::super::{GrowingEnd, MOST_PAGES, Step};
use super::chat::{Chat, grown, known, read};
use crate::list_state::Grows;

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
    GrowingEnd::new(chat.state(), page_rows as u64, MOST_PAGES)
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
            let (shown, step, _) = read(&mut chat, end, |chat| {
                chat.append(meanwhile.next().unwrap_or(0));
            });
            if let Step::Fits(_) = step {
                let (grown, grown_ends) = grown(step);
                prop_assert_eq!(grown.rows as usize, chat.rows.len());
                prop_assert_eq!(&held | &shown, chat.ids());
                let ends = chat.ends();
                prop_assert_eq!(grown_ends.first_ids, ends.first_ids);
                prop_assert_eq!(grown_ends.last_ids, ends.last_ids);
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
            // Those of number 0 come before the first request, the others between two requests.
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
