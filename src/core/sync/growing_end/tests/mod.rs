//! The growing end of a simulated list: a match is the list, and a mismatch is never accepted.

mod always;
mod chat;

use serde_json::json;

use self::chat::{Chat, grown, known, read};
use super::*;

const BOTH: [Grows; 2] = [Grows::End, Grows::Start];

#[test]
fn a_list_without_news_takes_one_request() {
    for grows in BOTH {
        for rows in [91, 99, 100, 5_000] {
            let mut chat = Chat::new(rows, grows);
            let end = known(&chat);
            let (_, step, requests) = read(&mut chat, end, |_| {});
            assert_eq!(requests, 1);
            let (grown, ends) = grown(step);
            assert_eq!(grown.rows, chat.state().rows);
            assert_eq!(ends, chat.ends());
            assert_eq!(ends.unread_from, None);
        }
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
        // It is still unread, so it is remembered.
        assert_eq!(grown(step).1.unread_from, Some(unread as u64));
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
        let end = known(&chat);
        chat.append(5);
        let (_, step, requests) = read(&mut chat, end, |_| {});
        assert_eq!(grown(step).0.rows, 305);
        assert!(requests <= 5, "{requests}");
    }
}

#[test]
fn what_is_proved_of_the_end_serves_the_next_run() {
    for grows in BOTH {
        let mut chat = Chat::new(200, grows);
        let mut held = chat.state();
        for news in [0, 3, 120, 1] {
            let end = GrowingEnd::new(held.clone(), 99, MOST_PAGES).unwrap();
            chat.append(news);
            let (_, step, _) = read(&mut chat, end, |_| {});
            held = grown(step).0;
            assert_eq!(held.ends, chat.state().ends);
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
            if step == Step::Request {
                let (offset, limit) = end.request();
                step = end.take(&chat.answer_with_total(offset, limit, total.clone()));
            }
            assert!(matches!(step, Step::Misfit), "{grows:?} {total}: {step:?}");
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
        // Another row took its place, so nothing moved.
        chat.rows.insert(41, (7_777, true));
        let (_, step, _) = read(&mut chat, end, |_| {});
        assert!(matches!(step, Step::Misfit), "{grows:?}: {step:?}");
    }
}

#[test]
fn a_known_row_that_made_room_for_another_is_missed() {
    let mut chat = Chat::new(300, Grows::Start);
    let end = known(&chat);
    chat.rows.remove(298);
    chat.rows.insert(100, (7_777, true));
    let (_, step, _) = read(&mut chat, end, |_| {});
    assert!(matches!(step, Step::Misfit), "{step:?}");
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
            // No row on the second page moves, and the total stays the same.
            chat.rows.remove(440);
            chat.append(1);
        }
    });
    assert!(matches!(step, Step::Misfit), "{step:?}");
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
            assert_eq!(step == Step::Request, expected == 450, "{step:?}");
            assert!(!matches!(step, Step::Fits(_)));
        }
    }
}

#[test]
fn a_total_that_falls_is_not_believed() {
    let mut chat = Chat::new(300, Grows::End);
    let mut end = known(&chat);
    chat.append(150);
    let (offset, limit) = end.request();
    let first = end.take(&chat.answer_with_total(offset, limit, json!(500)));
    assert_eq!(first, Step::Request);
    let (offset, limit) = end.request();
    let then = end.take(&chat.answer(offset, limit));
    assert!(matches!(then, Step::Misfit), "{then:?}");
}

#[test]
fn a_row_that_comes_twice_does_not_count_for_two() {
    for grows in BOTH {
        let mut chat = Chat::new(300, grows);
        let end = known(&chat);
        chat.append(1);
        chat.rows.push((301, true));
        let (_, step, _) = read(&mut chat, end, |_| {});
        assert!(matches!(step, Step::Misfit), "{grows:?}: {step:?}");
    }
}

#[test]
fn too_little_known_of_an_end_is_not_asked_by_it() {
    let chat = Chat::new(300, Grows::End);
    let with = |last_ids: Vec<i64>| Ends {
        last_ids,
        ..chat.ends()
    };
    for ends in [None, Some(with(Vec::new())), Some(with(vec![300]))] {
        let unknown = ListState {
            ends,
            ..chat.state()
        };
        assert!(GrowingEnd::new(unknown, 99, MOST_PAGES).is_none());
    }
}
