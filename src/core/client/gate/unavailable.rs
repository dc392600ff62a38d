//! Whether 503 without a stated wait means "too fast" or "unhealthy".

use tokio::time::Instant;

use super::rate::Rate;

/// So many failures tell a share well enough: half of them is more than chance.
const SAMPLE: u32 = 12;
/// An unhealthy backend is left alone for so many responses, then it is looked at again.
const UNHEALTHY: u32 = 4_000;

/// What 503s are taken for. The share of requests that fail decides: a limit's falls when fewer are
/// sent, that of an unhealthy backend does not.
#[derive(Debug, Clone, Copy, Default)]
enum Judgement {
    /// They are few, and retried.
    #[default]
    Few,
    /// A quarter fails: how many pass per second?
    Watched { began: Instant },
    /// Half as many are sent, or what was found since: does half the share fail, of a sample that
    /// had `SAMPLE` failures before? `obeyed` once it did not: then a 503 is a refusal.
    Slower { answers: u32, obeyed: bool },
    /// It did: the pace is not the cause.
    Unhealthy,
}

#[derive(Debug, Default)]
pub struct Unavailable {
    judgement: Judgement,
    /// Of requests after `since`.
    answers: u32,
    failures: u32,
    since: u64,
}

impl Unavailable {
    /// Forgets what was measured, and the rate that is in force because of it.
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

    /// Records a response to a request of this number, after `sent` requests; `failed` if it was a 503.
    /// Returns whether that is a refusal.
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
            Judgement::Few if self.answers >= 2 * SAMPLE => {
                self.answers /= 2;
                self.failures /= 2;
            }
            Judgement::Watched { .. } if self.answers >= 4 * SAMPLE => {
                self.begin(Judgement::Few, sent);
            }
            Judgement::Watched { began } if self.failures >= SAMPLE => {
                let (answers, passed) = (self.answers, self.answers - self.failures);
                let lasted = now.saturating_duration_since(began).as_secs_f64();
                // The service may be down, or so few are sent that no limit would matter.
                if passed == 0 || lasted > f64::from(SAMPLE) {
                    self.begin(Judgement::Few, sent);
                } else {
                    let obeyed = false;
                    self.begin(Judgement::Slower { answers, obeyed }, sent);
                    rate.try_rate(f64::from(passed) / lasted.max(0.01) / 2.0, now);
                }
            }
            Judgement::Slower { .. } if self.failures >= SAMPLE / 2 => {
                self.begin(Judgement::Unhealthy, sent);
                rate.forget();
            }
            Judgement::Slower { answers, obeyed } => {
                if failed {
                    // What is under way would be refused for the same reason.
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
