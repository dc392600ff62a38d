//! Whether 503 without a stated wait means "too fast" or "unhealthy".

use tokio::time::Instant;

use super::rate::Rate;

/// The failures in a sample of responses: enough that a third as many in the next sample is not chance.
const SAMPLE: u32 = 12;
/// How many responses an unhealthy backend may give before the rate is tested again.
const UNHEALTHY: u32 = 4_000;

/// What the 503s mean. At a lower rate, a limit causes a smaller share of 503s, and an unhealthy backend
/// the same share.
#[derive(Debug, Clone, Copy, Default)]
enum Judgement {
    /// Nothing yet: they are few, and retried.
    #[default]
    Few,
    /// A sixth of the requests fail: measure how many pass per second.
    Watched { began: Instant },
    /// The rate was halved. Compare each `answers` responses, of which `SAMPLE` failed before. `obeyed`
    /// once less than a third as many failed: then a 503 is a refusal.
    Slower { answers: u32, obeyed: bool },
    /// A third as many or more failed: the pace is not the cause.
    Unhealthy,
}

#[derive(Debug, Default)]
pub struct Unavailable {
    judgement: Judgement,
    /// The responses to requests after number `since`.
    answers: u32,
    failures: u32,
    since: u64,
}

impl Unavailable {
    /// Discards the measurements, and the rate that was set because of them.
    pub fn forget(&mut self, rate: &mut Rate) {
        if matches!(self.judgement, Judgement::Slower { .. }) {
            rate.forget();
        }
        *self = Self::default();
    }

    fn begin(&mut self, judgement: Judgement, since: u64) {
        *self = Self {
            judgement,
            since,
            ..Self::default()
        };
    }

    /// Records the response to request `number` after `sent` requests; `failed` if it is a 503. Returns
    /// whether the 503 is a refusal.
    pub fn record(
        &mut self,
        number: u64,
        failed: bool,
        sent: u64,
        rate: &mut Rate,
        now: Instant,
    ) -> bool {
        if number > self.since {
            self.answers += 1;
            self.failures += u32::from(failed);
        }
        match self.judgement {
            Judgement::Few if self.failures >= SAMPLE / 2 => {
                self.begin(Judgement::Watched { began: now }, sent);
            }
            Judgement::Few if self.answers >= 3 * SAMPLE => {
                self.answers /= 2;
                self.failures /= 2;
            }
            Judgement::Watched { .. } if self.answers >= 6 * SAMPLE => {
                self.begin(Judgement::Few, sent);
            }
            Judgement::Watched { began } if self.failures >= SAMPLE => {
                let (answers, passed) = (self.answers, self.answers - self.failures);
                let lasted = now.saturating_duration_since(began).as_secs_f64();
                // The service may be down, or use is too light for a limit to matter.
                if passed == 0 || lasted > f64::from(SAMPLE) {
                    self.begin(Judgement::Few, sent);
                } else {
                    let obeyed = false;
                    self.begin(Judgement::Slower { answers, obeyed }, sent);
                    rate.try_rate(f64::from(passed) / lasted.max(0.01) / 2.0, now);
                }
            }
            Judgement::Slower { .. } if self.failures >= SAMPLE / 3 => {
                self.begin(Judgement::Unhealthy, sent);
                rate.forget();
            }
            Judgement::Slower { answers, obeyed } => {
                if failed {
                    // Requests in flight may fail for the same reason: count one failure.
                    self.since = sent;
                }
                if self.answers >= answers {
                    if !obeyed {
                        rate.search(now);
                    }
                    let obeyed = true;
                    self.begin(Judgement::Slower { answers, obeyed }, self.since);
                }
                return failed && obeyed;
            }
            Judgement::Unhealthy if self.answers >= UNHEALTHY => self.begin(Judgement::Few, sent),
            Judgement::Few | Judgement::Watched { .. } | Judgement::Unhealthy => {}
        }
        false
    }
}
