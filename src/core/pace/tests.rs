//! Who waits for the pace, and for how long.

use super::*;

#[tokio::test(start_paused = true)]
async fn requests_are_spaced_by_the_rate_limit() {
    let pace = Pace::new(16, Some(10.0), Clock::real());
    let start = Instant::now();
    for _ in 0..11 {
        let _place = pace.admit(None).await.unwrap();
    }
    assert_eq!(start.elapsed().as_millis(), 1000);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_one_was_asked_for_holds_all() {
    let pace = Pace::new(16, None, Clock::real());
    let start = Instant::now();
    pace.admit(None)
        .await
        .unwrap()
        .refused(Duration::from_secs(30), true);
    let refused = pace.admit(Some(Duration::from_secs(10))).await.unwrap_err();
    assert_eq!(refused.as_secs(), 30);
    let _place = pace.admit(None).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_comes_too_late_is_left_to_others() {
    let pace = Pace::new(16, Some(1.0), Clock::real());
    let start = Instant::now();
    let _first = pace.admit(None).await.unwrap();
    let too_late = pace.admit(Some(Duration::from_millis(100))).await;
    assert_eq!(too_late.unwrap_err().as_millis(), 1000);
    let _second = pace.admit(None).await.unwrap();
    assert_eq!(start.elapsed().as_millis(), 1000);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_waits_takes_no_turn() {
    let pace = Pace::new(16, Some(1.0), Clock::real());
    let start = Instant::now();
    let _first = pace.admit(None).await.unwrap();
    for _ in 0..10 {
        let dropped = tokio::time::timeout(Duration::from_millis(1), pace.admit(None)).await;
        assert!(dropped.is_err());
    }
    let _second = pace.admit(None).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_more_are_under_way_than_allowed() {
    let pace = Pace::new(2, None, Clock::real());
    let first = pace.admit(None).await.unwrap();
    let _second = pace.admit(None).await.unwrap();
    let third = tokio::time::timeout(Duration::from_secs(1), pace.admit(None)).await;
    assert!(third.is_err());
    drop(first);
    let _third = pace.admit(None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_no_herd_comes_back() {
    let pace = Pace::new(64, None, Clock::real());
    let places: Vec<_> = futures_util::future::join_all((0..4).map(|_| pace.admit(None)))
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    // Two were taken at once, and two refused.
    let mut places = places.into_iter();
    for place in places.by_ref().take(2) {
        place.answered(Instant::now());
    }
    for place in places {
        place.refused(Duration::from_secs(1), true);
    }
    let start = Instant::now();
    let mut came = Vec::new();
    for _ in 0..6 {
        pace.admit(None).await.unwrap().answered(Instant::now());
        came.push(start.elapsed().as_secs_f64());
    }
    assert_eq!(came[0], 1.0);
    assert!(came[5] > 1.2 && came[5] < 4.0, "{came:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_before_a_cut_does_not_cut_again() {
    let pace = Pace::new(4, None, Clock::real());
    let mut places = Vec::new();
    for _ in 0..4 {
        places.push(pace.admit(None).await.unwrap());
    }
    places.into_iter().for_each(Admission::overloaded);
    let _first = pace.admit(None).await.unwrap();
    let _second = pace.admit(None).await.unwrap();
    let third = tokio::time::timeout(Duration::from_secs(1), pace.admit(None)).await;
    assert!(third.is_err());
}

#[tokio::test(start_paused = true)]
async fn it_is_never_cut_to_nothing_and_grows_again() {
    let pace = Pace::new(16, None, Clock::real());
    for _ in 0..20 {
        pace.admit(None).await.unwrap().overloaded();
    }
    for _ in 0..100 {
        let places = futures_util::future::join_all((0..16).map(|_| async {
            let place = pace.admit(None).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            place.answered(Instant::now());
        }));
        places.await;
    }
    let places = futures_util::future::join_all((0..16).map(|_| pace.admit(None)));
    let all = tokio::time::timeout(Duration::from_secs(1), places).await;
    assert_eq!(all.unwrap().len(), 16);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_answers_late_is_not_asked_a_few_at_a_time() {
    let pace = Pace::new(64, None, Clock::real());
    let start = Instant::now();
    let places = futures_util::future::join_all((0..64).map(|_| pace.admit(None))).await;
    assert_eq!(places.len(), 64);
    assert_eq!(start.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stray_refusal_leaves_no_rate_behind() {
    let pace = Pace::new(4, None, Clock::real());
    let mut places = Vec::new();
    for _ in 0..4 {
        places.push(pace.admit(None).await.unwrap());
    }
    let refused = places.remove(1);
    for place in places {
        place.answered(Instant::now());
    }
    refused.refused(Duration::from_secs(30), true);
    let start = Instant::now();
    for _ in 0..1_000 {
        pace.admit(None).await.unwrap().answered(Instant::now());
    }
    assert_eq!(start.elapsed().as_secs(), 30);
}

mod services {
    use super::super::simulation::*;

    const BUCKET: fn(f64, f64) -> Limiter =
        |per_second, burst| Limiter::Bucket { per_second, burst };

    fn check(expected: f64, refused: f64, set: Run) {
        for seed in 1..=5 {
            let outcome = run(Run { seed, ..set });
            assert!(
                outcome.share() >= expected && outcome.refused_share() <= refused,
                "{:.1} % of what is allowed, {:.2} % refused: {set:?}, seed {seed}",
                outcome.share() * 100.0,
                outcome.refused_share() * 100.0,
            );
        }
    }

    #[test]
    fn a_hundred_a_second_are_made_use_of() {
        for latency in [0.0, 0.005, 0.05] {
            for max_concurrency in [16, 64] {
                check(
                    0.94,
                    0.02,
                    Run {
                        latency,
                        max_concurrency,
                        ..Run::default()
                    },
                );
            }
        }
    }

    #[test]
    fn other_rates_and_bursts_are_found_too() {
        for (per_second, burst, share, refused) in [
            (5.0, 1.0, 0.6, 0.08),
            (5.0, 20.0, 0.9, 0.08),
            (5.0, 200.0, 0.9, 0.08),
            (20.0, 10.0, 0.9, 0.02),
            (50.0, 50.0, 0.95, 0.02),
            (100.0, 1.0, 0.7, 0.02),
            (100.0, 100.0, 0.95, 0.02),
            (100.0, 200.0, 0.95, 0.02),
            (500.0, 20.0, 0.9, 0.02),
            (2000.0, 20.0, 0.9, 0.02),
            (2000.0, 200.0, 0.92, 0.02),
        ] {
            for latency in [0.0, 0.05] {
                let limiter = BUCKET(per_second, burst);
                check(
                    share,
                    refused,
                    Run {
                        limiter,
                        latency,
                        ..Run::default()
                    },
                );
            }
        }
    }

    #[test]
    fn what_the_service_says_of_the_wait_matters_little() {
        for says in [Says::Epoch, Says::Nothing] {
            for latency in [0.0, 0.05] {
                check(
                    0.85,
                    0.02,
                    Run {
                        says,
                        latency,
                        ..Run::default()
                    },
                );
            }
        }
    }

    #[test]
    fn fixed_windows_are_made_use_of() {
        for latency in [0.0, 0.005, 0.05] {
            let limiter = Limiter::Fixed {
                count: 100.0,
                every: 1.0,
            };
            check(
                0.7,
                0.03,
                Run {
                    limiter,
                    latency,
                    ..Run::default()
                },
            );
            let limiter = Limiter::Fixed {
                count: 600.0,
                every: 60.0,
            };
            check(
                0.95,
                0.03,
                Run {
                    limiter,
                    latency,
                    seconds: 600.0,
                    ..Run::default()
                },
            );
        }
    }

    #[test]
    fn a_limit_that_changes_is_followed() {
        for latency in [0.0, 0.005, 0.05] {
            check(
                0.75,
                0.02,
                Run {
                    latency,
                    change: Some((30.0, 50.0)),
                    ..Run::default()
                },
            );
            let change = Some((30.0, 200.0));
            check(
                0.7,
                0.02,
                Run {
                    latency,
                    change,
                    seconds: 300.0,
                    ..Run::default()
                },
            );
        }
    }

    #[test]
    fn two_clients_share_a_quota() {
        for latency in [0.0, 0.005, 0.05] {
            let set = Run {
                latency,
                clients: 2,
                seconds: 300.0,
                ..Run::default()
            };
            check(0.8, 0.02, set);
            for share in run(set).by_client {
                assert!(share > 0.1 * 100.0 * 300.0);
            }
        }
    }
}

mod properties {
    use proptest::prelude::*;

    use super::super::simulation::*;
    use super::*;

    /// Each got 2 to 8 % once: what came before the first refusal was taken for a burst.
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
            says in prop::sample::select(vec![Says::WholeSeconds, Says::Epoch, Says::Nothing]),
            seed: u64,
        ) {
            let limiter = Limiter::Bucket { per_second, burst: f64::from(burst) };
            let set = Run {
                limiter, says, latency, max_concurrency, rate_limit, seed, seconds: 30.0,
                ..Run::default()
            };
            let outcome = run(set);
            prop_assert!(outcome.most_under_way <= max_concurrency);
            if let Some(rate) = rate_limit {
                for (index, from) in outcome.sent.iter().enumerate() {
                    // A wake-up may be ten milliseconds late, and is made up for.
                    let within = outcome.sent[index..].iter().take_while(|at| **at <= from + 1.0);
                    prop_assert!(within.count() as f64 <= rate * 1.01 + 2.0);
                }
            }
            let possible = rate_limit.map_or(f64::INFINITY, |rate| 30.0 * rate).min(outcome.allowed);
            prop_assert!(outcome.taken >= (0.1 * possible).floor(), "{} of {possible}", outcome.taken);
        }

        #[test]
        fn places_come_back_whatever_became_of_them(
            max_concurrency in 1_usize..20, fates in prop::collection::vec(0_u8..5, 0..200),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all().start_paused(true).build().unwrap();
            runtime.block_on(async {
                let pace = Pace::new(max_concurrency, None, Clock::real());
                let mut held = Vec::new();
                for fate in fates {
                    let admitted = tokio::time::timeout(Duration::from_secs(100), pace.admit(None));
                    let Ok(place) = admitted.await else {
                        // As many as may are under way.
                        held.clear();
                        continue;
                    };
                    let place = place.unwrap();
                    match fate {
                        0 => place.answered(Instant::now()),
                        1 => place.refused(Duration::from_millis(500), true),
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
}
