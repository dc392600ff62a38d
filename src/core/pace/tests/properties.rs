//! What holds for any service and any order of events.

use proptest::prelude::*;

use super::super::simulation::*;
use super::*;
use crate::retry;

/// Each got 2 to 8 % once, because the requests before the first refusal were taken for a burst.
#[test]
fn small_buckets_that_fill_fast_are_made_use_of() {
    let first = Run {
        limiter: Limiter::Bucket {
            per_second: 1532.2993034565036,
            burst: 1.0,
        },
        latency: 0.054486959261581695,
        max_concurrency: 12,
        rate_limit: Some(416.31925989900714),
        seed: 4369854647490624681,
        seconds: 30.0,
        ..Run::default()
    };
    let second = Run {
        limiter: Limiter::Bucket {
            per_second: 1686.8330620066595,
            burst: 13.0,
        },
        latency: 0.006530505616729593,
        max_concurrency: 28,
        rate_limit: None,
        seed: 4834509670221671511,
        ..first
    };
    let third = Run {
        limiter: Limiter::Bucket {
            per_second: 1718.2337396041705,
            burst: 9.0,
        },
        latency: 0.001637983330422019,
        max_concurrency: 4,
        seed: 4549998426217511900,
        ..second
    };
    for set in [first, second, third] {
        let outcome = run(set);
        assert!(
            outcome.share() >= 0.3,
            "{:.1} % of {set:?}",
            outcome.share() * 100.0
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_bounds_of_the_user_are_kept_and_nobody_waits_for_ever(
        per_second in 0.5_f64..2000.0, burst in 1_u32..200, max_concurrency in 1_usize..40,
        rate_limit in prop::option::of(0.5_f64..500.0), latency in 0.0_f64..0.2,
        wait_header in prop::sample::select(vec![WaitHeader::WholeSeconds, WaitHeader::Epoch, WaitHeader::Nothing]),
        seed: u64,
    ) {
        let limiter = Limiter::Bucket { per_second, burst: f64::from(burst) };
        let set = Run {
            limiter, wait_header, latency, max_concurrency, rate_limit, seed, seconds: 30.0,
            ..Run::default()
        };
        let outcome = run(set);
        prop_assert!(outcome.most_under_way <= max_concurrency);
        if let Some(rate) = rate_limit {
            for (index, from) in outcome.sent.iter().enumerate() {
                // A wake-up may be ten milliseconds late, and is compensated.
                let within = outcome.sent[index..].iter().take_while(|at| **at <= from + 1.0);
                prop_assert!(within.count() as f64 <= rate * 1.01 + 2.0);
            }
        }
        let possible = rate_limit.map_or(f64::INFINITY, |rate| 30.0 * rate).min(outcome.allowed);
        prop_assert!(outcome.taken >= (0.1 * possible).floor(), "{} of {possible}", outcome.taken);
    }

    #[test]
    fn a_constant_share_of_503_leaves_no_rate_behind(
        share in 0.02_f64..0.5, latency in 0.0_f64..0.1, max_concurrency in 4_usize..40,
        seed: u64,
    ) {
        let set = Run {
            limiter: Limiter::Unlimited, unhealthy: Unhealthy::Share(share), latency,
            max_concurrency, seed, seconds: 60.0, ..Run::default()
        };
        // If a trial is running at the end, it finishes soon after.
        let free = [60.0, 90.0, 120.0].into_iter().any(|seconds| {
            run(Run { seconds, ..set }).learned.iter().all(Option::is_none)
        });
        prop_assert!(free, "{set:?}");
    }

    #[test]
    fn what_says_nothing_of_the_load_never_slows_a_client(
        fates in prop::collection::vec(0_u8..3, 0..300), max_concurrency in 1_usize..20,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let pace = Pace::new(max_concurrency, None, Clock::real());
            let start = Instant::now();
            for fate in fates {
                let place = pace.admit(None).await.unwrap();
                let status = match fate {
                    0 => 502,
                    1 => 504,
                    _ => {
                        place.answered(Instant::now());
                        continue;
                    }
                };
                let failure = retry::tests::status(status, None);
                assert_eq!(retry::load(&failure), retry::Load::Unknown);
                drop(place);
            }
            assert_eq!(start.elapsed(), Duration::ZERO);
            let first = pace.shared().state.size();
            assert!(first >= 4.min(max_concurrency));
        });
    }

    #[test]
    fn places_come_back_whatever_became_of_them(
        max_concurrency in 1_usize..20, fates in prop::collection::vec(0_u8..6, 0..200),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let pace = Pace::new(max_concurrency, None, Clock::real());
            let mut held = Vec::new();
            for fate in fates {
                let admitted = tokio::time::timeout(Duration::from_secs(100), pace.admit(None));
                let Ok(place) = admitted.await else {
                    // As many as allowed are in flight.
                    held.clear();
                    continue;
                };
                let place = place.unwrap();
                match fate {
                    0 => place.answered(Instant::now()),
                    1 => place.refused(RefusedBy::TooManyRequests, Duration::from_millis(500), true),
                    5 => place.refused(RefusedBy::Unavailable, Duration::from_millis(500), false),
                    2 => place.overloaded(),
                    3 => drop(place),
                    _ => held.push(place),
                }
                assert!(held.len() <= max_concurrency);
            }
            held.clear();
            for _ in 0..100 {
                let again = tokio::time::timeout(Duration::from_secs(100), pace.admit(None));
                again.await.unwrap().unwrap().answered(Instant::now());
            }
        });
    }
}
