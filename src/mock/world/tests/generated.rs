//! Generated rows: ids, times, lengths, languages, and the fields of the interface.

use super::*;
use crate::world::calendar::{DAY, in_rhythm};
use crate::world::conversation::{Conversation, length};
use crate::world::locale::LOCALES;
use crate::world::row::{Json, Moment, TIMES};

const END: u64 = 1_795_455_000_000; // 2026-11-23T17:30Z
const ENDS: std::ops::Range<u64> = 1_300_000_000_000..7_000_000_000_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ids_lead_back_to_their_rows(
        seed: u64, index in 0..MAX_USERS, position in 0..MAX_LIST, other in 0_u64..1 << 54,
    ) {
        let generator = Generator::new(seed, 0, 0);
        for (owner, row, most) in [(None, index, MAX_USERS), (Some(index), position, MAX_LIST)] {
            let id = generator.id(owner, row);
            prop_assert_eq!(generator.row(owner, id), Some(row));
            prop_assert!(id < 1 << 53);
            prop_assert!(row + 1 == most || generator.id(owner, row + 1) > id);
            if let Some(row) = generator.row(owner, other) {
                prop_assert_eq!(generator.id(owner, row), other);
            }
        }
        let last = generator.id(Some(index), MAX_LIST - 1);
        prop_assert!(last < generator.id(Some(index + 1), 0));
    }

    #[test]
    fn lengths_stay_within_what_was_asked(
        seed: u64, index in 0_u64..1 << 31, lo in 0_u64..1000, more in 0_u64..100_000,
    ) {
        prop_assert!((lo..=lo + more).contains(&length(seed, index, lo, lo + more)));
    }

    #[test]
    fn users_come_one_after_another(seed: u64, index in 0_u64..1 << 31) {
        let calendar = Calendar::default();
        prop_assert!(calendar.arrival(seed, index) <= calendar.arrival(seed, index + 1));
    }

    #[test]
    fn messages_follow_each_other_and_all_are_before_the_end(
        seed: u64, index in prop_oneof![Just(1_999_u64), 0_u64..2_000],
        length in prop_oneof![0_u64..400, 0_u64..2_000, Just(MAX_GENERATED)],
        end in prop::option::of(ENDS),
    ) {
        let calendar = end.map(|end| Calendar::ending(seed, 2_000, end).unwrap());
        let calendar = calendar.unwrap_or_default();
        let conversation = Conversation::new(seed, index, length, &calendar);
        let last = length.saturating_sub(500)..length;
        let mut times = vec![conversation.arrival];
        times.extend(last.map(|position| conversation.moment(position)));
        prop_assert!(end.is_none_or(|end| times.last() < Some(&end)), "{times:?}");
        times.extend((length..length + 20).map(|added| conversation.moment(added)));
        prop_assert!(times.is_sorted_by(|earlier, later| earlier < later), "{times:?}");
    }

    #[test]
    fn the_last_user_comes_on_the_day_before_the_end(
        seed: u64, users in 1_u64..1 << 31, end in ENDS,
    ) {
        let calendar = Calendar::ending(seed, users, end).unwrap();
        let arrival = |index| in_rhythm(calendar.arrival(seed, index));
        let last = arrival(users - 1);
        prop_assert!(last < end - DAY && last > end - 2 * DAY, "{last}");
        prop_assert!(arrival(users + 1_000_000) <= end);
    }

    #[test]
    fn timestamps_are_read_as_they_are_written(moment in 0_u64..7_258_118_399_999) {
        let mut written = Vec::new();
        Moment(moment).write(&mut written);
        let written: Value = serde_json::from_slice(&written).unwrap();
        let read = Moment::read(written.as_str().unwrap()).map(|read| read.0);
        prop_assert_eq!((read, written.to_string().len()), (Some(moment), 26));
    }
}

#[test]
fn most_lists_are_short_and_few_are_long() {
    let mut lengths: Vec<u64> = (0..10_000).map(|index| length(7, index, 0, 500)).collect();
    lengths.sort_unstable();
    assert!((20..45).contains(&lengths[5_000]) && lengths[9_900] > 450);
    let mean = lengths.iter().sum::<u64>() / 10_000;
    assert!((90..110).contains(&mean), "mean {mean}");
}

#[test]
fn every_language_has_names_and_lines() {
    assert_eq!(LOCALES.len(), 16);
    assert_eq!(LOCALES.iter().map(|locale| locale.weight).sum::<u64>(), 100);
    for locale in LOCALES.iter() {
        let by_user = [
            &locale.user_opening,
            &locale.user_middle,
            &locale.user_closing,
        ];
        let by_operator = [
            &locale.operator_opening,
            &locale.operator_middle,
            &locale.operator_closing,
        ];
        let others = [&locale.invitation, &locale.cities];
        for lines in by_user.into_iter().chain(by_operator).chain(others) {
            let complete = !lines.is_empty() && !lines.contains(&String::new());
            assert!(complete, "{}", locale.tag);
        }
        for name in locale.given.iter().chain(&locale.family) {
            let plain = name.1.bytes().all(|byte| byte.is_ascii_lowercase());
            assert!(plain && !name.1.is_empty(), "{}: {}", locale.tag, name.1);
        }
    }
}

#[test]
fn a_given_end_changes_times_alone() {
    let ending = |end| world(7, 300, 0, 200).ending(end);
    let (usual, recent) = (world(7, 300, 0, 200), ending(END).unwrap());
    assert_eq!(recent.view().users().ids(), usual.view().users().ids());
    assert_eq!(recent.total_messages(), usual.total_messages());
    let mut latest = 0;
    for id in usual.view().users().ids() {
        let (row, other) = (parsed(&recent, None, id), parsed(&usual, None, id));
        for name in ["name", "reference", "user_attributes"] {
            assert_eq!(row[name], other[name]);
        }
        for name in TIMES {
            latest = latest.max(Moment::read(row[name].as_str().unwrap()).unwrap().0);
        }
    }
    assert!(latest <= END && latest > END - 2 * DAY, "{latest}");
    let print = recent.fingerprint();
    assert_eq!(print, ending(END).unwrap().fingerprint());
    assert_ne!(print, usual.fingerprint());
    assert_ne!(print, ending(END + 1).unwrap().fingerprint());
    assert!(ending(0).is_err() && ending(u64::MAX).is_err());
}

/// If this fails, rows have changed: raise the generator's version, then pin the new digest.
#[test]
fn the_generator_version_pins_the_rows() {
    let world = world(7, 60, 0, 90);
    let mut digest = draw::Digest::new();
    for id in world.view().users().ids() {
        digest.text(&text(&world, None, id));
        for message in world.view().list(Some(id)).unwrap().ids() {
            digest.text(&text(&world, Some(id), message));
        }
    }
    assert_eq!((GENERATOR_VERSION, &*digest.hex()), (2, "ba4c15e66ab9b2f0"));
}
