use super::*;
use proptest::prelude::*;

#[test]
fn any_offset_and_precision_is_read() {
    let expected = Timestamp::parse("2024-03-05T09:31:07.042Z").unwrap();
    assert_eq!(expected.microseconds(), 1_709_631_067_042_000);
    for same in [
        "2024-03-05T10:31:07.042+01:00",
        "2024-03-05T09:31:07.042000Z",
        "2024-03-05T09:31:07.042000999Z",
        "2024-03-05 09:31:07.042Z",
        "2024-03-05T09:31:07.042",
    ] {
        assert_eq!(Timestamp::parse(same), Some(expected), "{same}");
    }
}

#[test]
fn what_is_cut_off_makes_an_instant_earlier_before_1970_too() {
    for text in [
        "1969-12-31T23:59:59.9999999Z",
        "1969-12-31T23:59:59.9999999",
    ] {
        let cut = Timestamp::parse(text).map(Timestamp::microseconds);
        assert_eq!(cut, Some(-1), "{text}");
    }
}

#[test]
fn what_is_no_instant_is_refused() {
    let last = Timestamp::parse("9999-12-30T22:00:00.999999Z").unwrap();
    assert_eq!(last.microseconds(), LATEST);
    for refused in [
        "",
        "yesterday",
        "0000-00-00T00:00:00Z",
        "-000044-03-15T00:00:00Z",
        // The last hours of the year 9999.
        "9999-12-30T22:00:01.000Z",
        "9999-12-31T23:59:59.999999",
        "9999-12-30T22:30:00-01:00",
        // The name of a zone without its offset.
        "2024-03-05T09:31:07[Europe/Berlin]",
        "2024-03-05T09:31:07+01:00 UTC",
        "2024-03-05 09:31:07 UTC UTC",
    ] {
        assert_eq!(Timestamp::parse(refused), None, "{refused}");
    }
}

proptest! {
    #[test]
    fn the_documented_shape_is_what_the_calendar_says(
        year in 0..=9999_u32, month in 0..=13_u32, day in 0..=32_u32, hour in 0..=24_u32,
        minute in 0..=60_u32, second in 0..=60_u32, fraction in 0..=999_u32,
    ) {
        let text = format!(
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z"
        );
        let calendar = text.trim_end_matches('Z').parse::<DateTime>().ok();
        let instant = calendar.and_then(|at| Offset::UTC.to_timestamp(at).ok());
        let expected = instant.and_then(|at| Timestamp::from_microseconds(at.as_microsecond()));
        prop_assert_eq!(Timestamp::parse(&text), expected, "{}", text);
    }

    #[test]
    fn the_calendar_shows_the_instant(microseconds in EARLIEST..=LATEST) {
        let instant = Timestamp::from_microseconds(microseconds).unwrap();
        prop_assert_eq!(Timestamp::parse(&format!("{}Z", instant.civil())), Some(instant));
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,40}") {
        let _ = Timestamp::parse(&text);
    }
}
