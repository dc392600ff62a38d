//! How much of a service's limit is used, and how many requests it refuses.

use super::super::simulation::*;

const BUCKET: fn(f64, f64) -> Limiter = |per_second, burst| Limiter::Bucket { per_second, burst };

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
    for wait_header in [WaitHeader::Epoch, WaitHeader::Nothing] {
        for latency in [0.0, 0.05] {
            check(
                0.85,
                0.02,
                Run {
                    wait_header,
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
                changes: &[(30.0, Change::PerSecond(50.0))],
                ..Run::default()
            },
        );
        check(
            0.7,
            0.02,
            Run {
                latency,
                changes: &[(30.0, Change::PerSecond(200.0))],
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

#[test]
fn bans_longer_than_their_window_are_avoided() {
    for (count, every, banned, share) in [
        (100.0, 10.0, 60.0, 0.7),
        (50.0, 10.0, 30.0, 0.8),
        (10.0, 1.0, 60.0, 0.7),
        (100.0, 60.0, 60.0, 0.8),
    ] {
        for latency in [0.0, 0.05] {
            let limiter = Limiter::Ban {
                count,
                every,
                banned,
            };
            check(
                share,
                0.01,
                Run {
                    limiter,
                    latency,
                    seconds: 3600.0,
                    ..Run::default()
                },
            );
        }
    }
}

#[test]
fn windows_that_end_at_their_time_are_no_bans() {
    for (count, every) in [(100.0, 60.0), (5000.0, 3600.0)] {
        for wait_header in [WaitHeader::WholeSeconds, WaitHeader::Epoch] {
            let limiter = Limiter::Fixed { count, every };
            check(
                0.99,
                0.05,
                Run {
                    limiter,
                    wait_header,
                    latency: 0.05,
                    seconds: 8.0 * every,
                    ..Run::default()
                },
            );
        }
    }
}

#[test]
fn limits_per_minute_that_state_no_wait_are_outlasted_by_every_call() {
    for (count, every, max_concurrency, refused) in [
        (20.0, 60.0, 1, 0.25),
        (20.0, 60.0, 16, 0.3),
        (60.0, 60.0, 16, 0.15),
        (600.0, 60.0, 16, 0.05),
        (100.0, 10.0, 16, 0.15),
    ] {
        for latency in [0.01, 0.1] {
            let set = Run {
                limiter: Limiter::Fixed { count, every },
                wait_header: WaitHeader::Nothing,
                latency,
                max_concurrency,
                seconds: 15.0 * every,
                ..Run::default()
            };
            check(0.8, refused, set);
            assert_eq!(run(set).failed, 0.0, "{set:?}");
        }
    }
}
