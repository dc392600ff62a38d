use proptest::prelude::*;

use super::*;

#[test]
fn a_rate_reads_back_from_its_text() {
    for text in [
        "10/s burst=20 says=headers",
        "0.5/s burst=1 says=nothing",
        "10/s burst=21 says=nothing status=503",
    ] {
        assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
    }
    assert_eq!("10/s".parse::<Rate>().unwrap().burst, 10);
    for text in [
        "",
        "10",
        "10/s burst",
        "0/s",
        "NaN/s",
        "1/s burst=0",
        "1/s says=x",
        "1/s status=500",
    ] {
        assert!(text.parse::<Rate>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn the_wait_that_was_told_is_enough(
        per_second in 0.01_f64..1000.0, burst in 1_u64..50, says_headers: bool,
    ) {
        let says = if says_headers { Says::Headers } else { Says::RetryAfter };
        let (start, wall) = (Instant::now(), UNIX_EPOCH + Duration::from_millis(1_767_225_600_123));
        let mut bucket = Bucket::new(Rate { per_second, burst, says, status: 429 }, start);
        for _ in 0..burst {
            prop_assert!(bucket.take(start, wall).admitted);
        }
        let turn = bucket.take(start, wall);
        prop_assert!(!turn.admitted);
        let told: f64 = turn.headers.last().unwrap().1.parse().unwrap();
        let wait = if says_headers { told - 1_767_225_600.123 } else { told };
        let wait = Duration::from_secs_f64(wait);
        prop_assert!(bucket.take(start + wait, wall + wait).admitted);
    }
}
