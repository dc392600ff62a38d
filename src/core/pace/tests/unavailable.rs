//! The effect of 503s on the pace: "too fast" is obeyed, "unhealthy" slows nothing down.

use super::super::simulation::*;
use super::*;

const SEEDS: u64 = 8;

/// Means over several seeds.
#[derive(Debug, Default)]
struct Mean {
    used: f64,
    refused: f64,
    done: f64,
    failed: f64,
    sent: f64,
}

fn mean(set: Run) -> Mean {
    let mut mean = Mean::default();
    for seed in 1..=SEEDS {
        let outcome = run(Run { seed, ..set });
        let part = (SEEDS as f64).recip();
        mean.used += part * outcome.share();
        mean.refused += part * outcome.refused_share();
        mean.done += part * outcome.done.len() as f64;
        mean.failed += part * outcome.failed;
        mean.sent += part * outcome.sent.len() as f64;
    }
    mean
}

fn limited(per_second: f64, burst: f64, wait_header: WaitHeader) -> Run {
    Run {
        limiter: Limiter::Bucket { per_second, burst },
        by: RefusedBy::Unavailable,
        wait_header,
        latency: 0.02,
        ..Run::default()
    }
}

fn pool(unhealthy: Unhealthy, latency: f64) -> Run {
    Run {
        limiter: Limiter::Unlimited,
        unhealthy,
        latency,
        seconds: 20.0,
        ..Run::default()
    }
}

/// Prints the table of the limits: `cargo test --lib a_limit_that_is_signalled -- --nocapture`.
#[test]
fn a_limit_that_is_signalled_by_503_is_used_like_one_by_429() {
    println!("| limit | signal | used | refused | failed calls |");
    println!("|---|---|---|---|---|");
    for per_second in [10.0, 50.0, 500.0] {
        // nginx: `limit_req burst=N nodelay` is a bucket of N + 1.
        for burst in [1.0, 21.0] {
            for wait_header in [WaitHeader::WholeSeconds, WaitHeader::Nothing] {
                let set = limited(per_second, burst, wait_header);
                let by = |by| mean(Run { by, ..set });
                let told = match wait_header {
                    WaitHeader::Nothing => "",
                    _ => ", Retry-After",
                };
                let (many, unavailable) =
                    (by(RefusedBy::TooManyRequests), by(RefusedBy::Unavailable));
                for (status, mean) in [(429, &many), (503, &unavailable)] {
                    println!(
                        "| {per_second}/s, burst {burst} | {status}{told} | {:.1} % | {:.2} % | {:.1} of {:.0} |",
                        mean.used * 100.0,
                        mean.refused * 100.0,
                        mean.failed,
                        mean.done
                    );
                }
                let context = format!("{set:?}: {many:?}, {unavailable:?}");
                assert!(unavailable.used >= 0.85 * many.used, "{context}");
                // This many more until they are known to be refusals; if the limit is just below
                // what 16 calls can send, no more than that is ever refused.
                let more = (unavailable.refused - many.refused) * unavailable.sent;
                assert!(
                    more <= 60.0 || unavailable.refused < 0.1,
                    "{more} more: {context}"
                );
                assert!(unavailable.failed <= many.failed + 0.5, "{context}");
            }
        }
    }
}

/// Prints the table of the pools.
#[test]
fn an_unhealthy_backend_slows_nobody_down() {
    println!("| 503 | latency | calls without any pace | calls | failed without | failed |");
    println!("|---|---|---|---|---|---|");
    for (unhealthy, name, least) in [
        (Unhealthy::OneOf(3), "one backend of three", 0.95),
        (Unhealthy::OneOf(10), "one backend of ten", 0.97),
        (Unhealthy::Share(0.1), "one in ten, by chance", 0.95),
        (Unhealthy::Share(0.01), "one in a hundred, by chance", 0.97),
    ] {
        for latency in [0.0, 0.005, 0.05] {
            let set = pool(unhealthy, latency);
            let (blind, sees) = (mean(Run { blind: true, ..set }), mean(set));
            println!(
                "| {name} | {} ms | {:.0} | {:.0} ({:.1} %) | {:.1} | {:.1} |",
                latency * 1000.0,
                blind.done,
                sees.done,
                100.0 * sees.done / blind.done,
                blind.failed,
                sees.failed
            );
            assert!(
                sees.done >= least * blind.done,
                "{set:?}: {blind:?}, {sees:?}"
            );
        }
    }
}

/// Compared with a client that obeys the waits and learns nothing from them.
#[test]
fn waits_that_come_by_chance_are_hardly_taken_for_a_rate() {
    for (share, least) in [(0.1, 0.4), (0.01, 0.8)] {
        for latency in [0.0, 0.02] {
            let set = Run {
                unhealthy_wait: Some(1.0),
                seconds: 120.0,
                ..pool(Unhealthy::Share(share), latency)
            };
            let (blind, sees) = (mean(Run { blind: true, ..set }), mean(set));
            assert!(
                sees.done >= least * blind.done,
                "{set:?}: {blind:?}, {sees:?}"
            );
        }
    }
}

#[test]
fn a_dead_backend_costs_a_few_hundred_requests_at_most() {
    let mut lost = 0.0;
    for seed in 1..=SEEDS {
        let set = Run {
            seconds: 4.0,
            seed,
            ..pool(Unhealthy::OneOf(3), 0.02)
        };
        let (blind, sees) = (run(Run { blind: true, ..set }), run(set));
        lost += blind.done.len() as f64 - sees.done.len() as f64;
    }
    assert!(lost / SEEDS as f64 <= 150.0, "{lost}");
}

#[test]
fn calls_get_through_a_limit_of_503_within_their_retries() {
    let mut failed = 0.0;
    for seed in 1..=SEEDS {
        let outcome = run(Run {
            seconds: 500.0,
            seed,
            ..limited(10.0, 21.0, WaitHeader::Nothing)
        });
        assert!(outcome.done.len() > 4_500, "{}", outcome.done.len());
        failed += outcome.failed;
    }
    assert!(failed <= 1.0, "{failed} of {SEEDS} times 5,000");
}

#[test]
fn without_a_pace_calls_fail_at_a_limit_of_503() {
    // Otherwise the test above would show nothing.
    let blind = mean(Run {
        blind: true,
        ..limited(10.0, 21.0, WaitHeader::Nothing)
    });
    assert!(blind.failed > 50.0, "{blind:?}");
}

#[test]
fn what_503_means_is_found_again_when_it_changes() {
    const LIMIT: Limiter = Limiter::Bucket {
        per_second: 50.0,
        burst: 20.0,
    };
    for seed in 1..=SEEDS {
        let set = Run {
            by: RefusedBy::Unavailable,
            wait_header: WaitHeader::Nothing,
            latency: 0.02,
            seconds: 80.0,
            seed,
            ..Run::default()
        };
        let recovered = run(Run {
            limiter: Limiter::Unlimited,
            unhealthy: Unhealthy::OneOf(3),
            changes: &[
                (20.0, Change::Unhealthy(Unhealthy::No)),
                (20.0, Change::Limiter(LIMIT)),
            ],
            ..set
        });
        let refused = recovered.refused;
        assert!(refused < 200.0, "{refused} refused, seed {seed}");
        assert!(recovered.throughput(40.0, 80.0) > 45.0, "seed {seed}");

        let died = run(Run {
            limiter: LIMIT,
            changes: &[
                (20.0, Change::Unhealthy(Unhealthy::OneOf(3))),
                (20.0, Change::Limiter(Limiter::Unlimited)),
            ],
            ..set
        });
        let throughput = died.throughput(50.0, 80.0);
        assert!(throughput > 100.0, "{throughput} a second, seed {seed}");
    }
}

#[test]
fn a_limiter_before_a_dead_backend_is_kept_to_better_than_without_a_pace() {
    for per_second in [10.0, 50.0] {
        let set = Run {
            unhealthy: Unhealthy::OneOf(3),
            ..limited(per_second, 21.0, WaitHeader::Nothing)
        };
        let (blind, sees) = (mean(Run { blind: true, ..set }), mean(set));
        println!("{per_second}/s and one dead backend of three: {blind:?} without, {sees:?} with");
        assert!(sees.used > 0.35, "{sees:?}");
        assert!(sees.refused < 0.8 * blind.refused, "{blind:?}, {sees:?}");
        assert!(sees.failed < 0.5 * blind.failed, "{blind:?}, {sees:?}");
    }
}

#[test]
fn a_service_that_was_down_is_soon_asked_as_before() {
    for seed in 1..=SEEDS {
        let outcome = run(Run {
            seconds: 40.0,
            seed,
            changes: &[
                (10.0, Change::Unhealthy(Unhealthy::Share(1.0))),
                (10.5, Change::Unhealthy(Unhealthy::No)),
            ],
            ..pool(Unhealthy::No, 0.02)
        });
        let (before, after) = (
            outcome.throughput(5.0, 10.0),
            outcome.throughput(25.0, 40.0),
        );
        assert!(after > 0.9 * before, "{after} after {before}, seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_503_alone_neither_waits_nor_lowers_anything() {
    let pace = Pace::new(16, None, Clock::real());
    let start = Instant::now();
    for number in 0..400 {
        let place = pace.admit(None).await.unwrap();
        match number % 40 {
            7 => place.refused(RefusedBy::Unavailable, Duration::from_secs(1), false),
            _ => place.answered(Instant::now()),
        }
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    // As many at once as at the start.
    let places = futures_util::future::join_all((0..4).map(|_| pace.admit(None)));
    let all = tokio::time::timeout(Duration::from_millis(1), places).await;
    assert_eq!(all.unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_a_503_states_is_everybodys() {
    let pace = Pace::new(16, None, Clock::real());
    let start = Instant::now();
    let place = pace.admit(None).await.unwrap();
    place.refused(RefusedBy::Unavailable, Duration::from_secs(30), true);
    let _place = pace.admit(None).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 30);
}
