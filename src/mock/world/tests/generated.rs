//! Generated rows: ids, times, lengths, languages, and the fields of the interface.

use super::*;
use crate::service::OPENAPI;
use crate::world::calendar::{DAY, in_rhythm};
use crate::world::conversation::{Conversation, length};
use crate::world::locale::LOCALES;
use crate::world::row::{Json, Moment, TIMES};

const END: u64 = 1_795_455_000_000; // 2026-11-23T17:30Z

fn times(conversation: &Conversation) -> Vec<u64> {
    let messages = (0..conversation.length).map(|position| conversation.moment(position));
    [conversation.arrival].into_iter().chain(messages).collect()
}

fn ascend(times: &[u64]) -> bool {
    times.is_sorted_by(|earlier, later| earlier < later)
}

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
    fn messages_follow_each_other(seed: u64, index in 0_u64..1 << 31, length in 0_u64..400) {
        let conversation = Conversation::new(seed, index, length, &Calendar::default());
        let mut times = times(&conversation);
        times.extend((length..length + 20).map(|added| conversation.moment(added)));
        prop_assert!(ascend(&times), "{times:?}");
    }

    #[test]
    fn the_longest_lists_stay_in_order(seed: u64, index in 0_u64..1000, from in 0_u64..999_900) {
        let conversation = Conversation::new(seed, index, MAX_GENERATED, &Calendar::default());
        let times: Vec<u64> = (from..from + 99).map(|at| conversation.moment(at)).collect();
        prop_assert!(ascend(&times), "{times:?}");
    }

    #[test]
    fn all_messages_are_before_the_end(
        seed: u64, index in 0_u64..3_000, length in 0_u64..2_000,
        end in 1_300_000_000_000_u64..7_000_000_000_000,
    ) {
        let calendar = Calendar::ending(seed, 2_000, end).unwrap();
        let times = times(&Conversation::new(seed, index, length, &calendar));
        prop_assert!(ascend(&times) && times.last() < Some(&end), "{times:?}");
    }

    #[test]
    fn the_longest_list_of_the_last_user_ends_in_time(seed: u64, end in 1_300_000_000_000_u64..7_000_000_000_000) {
        let calendar = Calendar::ending(seed, 2_000, end).unwrap();
        let conversation = Conversation::new(seed, 1_999, MAX_GENERATED, &calendar);
        let times: Vec<u64> = (MAX_GENERATED - 99..MAX_GENERATED).map(|at| conversation.moment(at)).collect();
        prop_assert!(ascend(&times) && times.last() < Some(&end), "{times:?}");
    }

    #[test]
    fn the_last_user_comes_on_the_day_before_the_end(
        seed: u64, users in 1_u64..1 << 31, end in 1_300_000_000_000_u64..7_000_000_000_000,
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
        for lines in [
            &locale.user_opening,
            &locale.user_middle,
            &locale.user_closing,
            &locale.operator_opening,
            &locale.operator_middle,
            &locale.operator_closing,
            &locale.invitation,
            &locale.cities,
        ] {
            let complete = !lines.is_empty() && !lines.contains(&String::new());
            assert!(complete, "{}", locale.tag);
        }
        for name in locale.given.iter().chain(&locale.family) {
            let plain = name.1.bytes().all(|byte| byte.is_ascii_lowercase());
            assert!(plain && !name.1.is_empty(), "{}: {}", locale.tag, name.1);
        }
    }
}

/// The names of the fields, and of those that are timestamps.
fn documented(schema: &str) -> (Vec<String>, Vec<String>) {
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    let fields = &document["components"]["schemas"][schema]["properties"];
    let fields = fields.as_object().unwrap();
    let is_time = |name: &&String| fields[*name]["$ref"] == "#/components/schemas/Timestamp";
    (
        fields.keys().cloned().collect(),
        fields.keys().filter(is_time).cloned().collect(),
    )
}

#[test]
fn the_fields_are_those_of_the_openapi_document() {
    let world = world(7, 1, 30, 30);
    let check = |row: &Value, schema| {
        let names = row
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<String>>();
        let is_time = |name: &&String| TIMES.contains(&name.as_str());
        let times = names.iter().filter(is_time).cloned().collect();
        assert_eq!((names, times), documented(schema));
    };
    check(&parsed(&world, None, 42), "User");
    for id in world.view().list(Some(42)).unwrap().ids() {
        let message = parsed(&world, Some(42), id);
        check(&message, "Message");
        let by_user = message["sender_type"] == "user";
        let schema = if by_user {
            "UserSender"
        } else {
            "OperatorSender"
        };
        check(&message["sender"], schema);
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
    assert_eq!(
        (GENERATOR_VERSION, digest.hex().as_str()),
        (2, "ba4c15e66ab9b2f0")
    );
}
