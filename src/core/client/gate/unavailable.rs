//! Whether 503 without a stated wait means "too fast" or "unhealthy".

use tokio::time::Instant;

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

/// What follows from a response.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Judged {
    Nothing,
    /// This 503 is a refusal.
    Refusal,
    /// Try this rate.
    Try(f64),
    /// It is a limit: search for it.
    Search,
    /// It is none: forget the rate.
    Forget,
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
    /// Whether a rate is in force because of 503s.
    pub fn is_slower(&self) -> bool {
        matches!(self.judgement, Judgement::Slower { .. })
    }

    fn begin(&mut self, judgement: Judgement, since: u64) {
        *self = Self {
            judgement,
            since,
            ..Self::default()
        };
    }

    /// Records a response to a request of this number, after `sent` requests; `failed` if it was a 503.
    pub fn record(&mut self, number: u64, failed: bool, sent: u64, now: Instant) -> Judged {
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
                let passed = self.answers - self.failures;
                let lasted = now.saturating_duration_since(began).as_secs_f64();
                if passed == 0 || lasted > f64::from(SAMPLE) {
                    // The service may be down, or so few are sent that no limit would matter.
                    self.begin(Judgement::Few, sent);
                    return Judged::Nothing;
                }
                let (answers, obeyed) = (self.answers, false);
                self.begin(Judgement::Slower { answers, obeyed }, sent);
                return Judged::Try(f64::from(passed) / lasted.max(0.01) / 2.0);
            }
            Judgement::Slower { .. } if self.failures >= SAMPLE / 2 => {
                self.begin(Judgement::Unhealthy, sent);
                return Judged::Forget;
            }
            Judgement::Slower { answers, obeyed } => {
                if failed {
                    // What is under way would be refused for the same reason.
                    self.since = sent;
                }
                if self.answers >= answers {
                    let obeyed = true;
                    self.begin(Judgement::Slower { answers, obeyed }, self.since);
                }
                return match (obeyed, self.is_obeyed()) {
                    (true, _) if failed => Judged::Refusal,
                    (false, true) => Judged::Search,
                    _ => Judged::Nothing,
                };
            }
            Judgement::Unhealthy if self.answers >= UNHEALTHY => self.begin(Judgement::Few, sent),
            Judgement::Few | Judgement::Watched { .. } | Judgement::Unhealthy => {}
        }
        Judged::Nothing
    }

    fn is_obeyed(&self) -> bool {
        matches!(self.judgement, Judgement::Slower { obeyed: true, .. })
    }
}
