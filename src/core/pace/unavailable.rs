//! Whether 503 means "too fast" or "unhealthy".
//!
//! A limiter's share of 503s falls as the pace falls; an unhealthy backend's does not. If there are
//! more 503s than the known background, a pace below what passed is tried, and the shares are
//! compared. If the share fell, 503s are obeyed like 429s, as far as they exceed the background. If
//! not, they are the background, and nothing slows down. Each finding is revised: "unhealthy" as
//! soon as 503s become more frequent; "too fast" by another trial if they stay frequent although
//! they are obeyed, and by lifting the limit now and then to see whether they become more frequent.
//!
//! 503s with a stated wait hold all requests, so even a few cost much time. If they are many, they
//! are obeyed at once. If they are few, the trial runs at the average pace that passed, including
//! waits; that costs nothing, because a limiter refuses nothing then. These findings are revised in
//! the same way.
//!
//! Everything here counts responses and uses no clock.

use super::finding::{Finding, LearnedState};
use super::refusal::Refusal;
use super::share::{Cusum, LEAST_BACKGROUND, MOST_BACKGROUND, Sample};
use super::trial::{ENOUGH, FEWEST, HARMLESS, Outcome, Trial, Waits, WithoutWaits};

/// Log likelihood ratios at which 503s are suspected: at first three among ten responses, if there
/// were none before; each time they turn out to be unrelated, the threshold rises, up to the
/// second.
const SUSPICIOUS: f64 = 6.0;
const MOST_SUSPICIOUS: f64 = 12.0;
/// 503s that state a wait are obeyed at once (six in a row, if there were none before).
const BEYOND_DOUBT: f64 = 20.0;
/// Where 503s are obeyed, one is enough if there is no background.
const SURE: f64 = 3.0;
/// If 503s stay frequent although they are obeyed, the finding is doubted.
const DOUBTFUL: f64 = 10.0;
/// Not frequent: a limiter that is obeyed still refuses some requests.
const OBEYED: f64 = 0.08;
/// Below this share 503s do not start a trial.
const SUSPECTED: f64 = 0.12;
/// The most 503s held until they are found to be refusals.
const MOST_PENDING: usize = 64;
/// The current share is averaged over this many responses; the background is at most that share
/// plus this many of its standard deviations.
const RECENT: f64 = 48.0;
const DEVIATIONS: f64 = 2.5;
/// While 503s are obeyed, a small background shrinks by this factor with each response.
const FADING: f64 = 0.998;
/// A background that fell to this is gone.
const GONE: f64 = 0.04;

/// How many stated waits start a trial; each time they turn out to be unrelated to the pace, the
/// number is multiplied, up to the last.
const FEW_WAITS: u32 = 2;
const LATER_WAITS: u32 = 2;
const MOST_WAITS: u32 = 1024;
/// The limit is lifted after this many responses, then after multiples of that,
const FIRST_LIFT: u32 = 256;
const LATER: u32 = 8;
const LAST_LIFT: u32 = 131_072;
/// unless the current share is smaller than this,
const UNTROUBLED: f64 = 0.015;
/// until this many responses came without any influence of a learned rate.
const LIFTED: u32 = 32;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Judgement {
    /// 503s are unrelated to the pace.
    Unrelated,
    /// They may exceed the background. The responses up to `since` raised the suspicion; only those
    /// to later requests are an unbiased sample.
    Watched { since: u64, fresh: Sample },
    /// A trial of a lower pace is running.
    Trial(Trial),
    /// A trial of a pace at which no wait should be stated is running.
    WithoutWaits(WithoutWaits),
    /// 503s are obeyed; requests up to `since` were sent before the last refusal was known.
    TooFast {
        since: u64,
        /// Responses until the limit is lifted.
        left: u32,
        /// Whether they stay frequent.
        many: Cusum,
    },
    /// The limit is lifted; this many responses came since it last limited anything.
    Lifted {
        free: u32,
        /// The share at the learned rate.
        usual: f64,
    },
}

/// Judges 503s by how their share changes with the pace.
#[derive(Debug)]
pub struct Unavailable {
    judgement: Judgement,
    /// The share of 503s at any pace.
    background: f64,
    /// The current share.
    recent: f64,
    /// Whether they exceed the background, and below, the 503s that suggest it.
    score: Cusum,
    pending: Vec<Refusal>,
    /// The threshold for suspecting them.
    suspicious: f64,
    obeyed: bool,
    /// The threshold for doubting that obeying them helps.
    doubtful: f64,
    lift_after: u32,
    waits: Option<Waits>,
    /// The number of stated waits that is suspicious.
    few_waits: u32,
}

impl Unavailable {
    pub fn new() -> Self {
        Self {
            judgement: Judgement::Unrelated,
            background: LEAST_BACKGROUND,
            recent: 0.0,
            score: Cusum::default(),
            pending: Vec::new(),
            suspicious: SUSPICIOUS,
            obeyed: false,
            doubtful: DOUBTFUL,
            lift_after: FIRST_LIFT,
            waits: None,
            few_waits: FEW_WAITS,
        }
    }

    /// Records a response, which is a 503 if there is a `refusal`; `sent` is the number of the last
    /// request.
    pub fn answered(
        &mut self,
        number: u64,
        refusal: Option<Refusal>,
        sent: u64,
        learned: LearnedState,
    ) -> Finding {
        let failed = refusal.is_some();
        self.average(failed);
        match self.judgement {
            Judgement::Unrelated => {
                let told = refusal.is_some_and(|refusal| refusal.told);
                let suspicious = if told { BEYOND_DOUBT } else { self.suspicious };
                if !self.is_excess(refusal, suspicious) {
                    return self.wait(number, failed, told, sent);
                }
                self.waits = None;
                if told {
                    self.obey();
                    self.judgement = self.too_fast(sent);
                    return Finding::Believed(self.excess());
                }
                self.watch(sent)
            }
            Judgement::Watched { since, mut fresh } => {
                if number <= since {
                    return Finding::Nothing;
                }
                fresh.add(failed);
                self.judgement = Judgement::Watched { since, fresh };
                let none_passed = fresh.failed == fresh.answers;
                let many = fresh.answers >= FEWEST && fresh.share() >= HARMLESS;
                if none_passed || (fresh.answers < ENOUGH && !many) {
                    return Finding::Nothing;
                }
                if fresh.share() >= SUSPECTED {
                    return self.suspect(fresh, sent);
                }
                if self.obeyed {
                    self.judgement = self.too_fast(sent);
                    self.rest();
                    return Finding::Nothing;
                }
                self.rule_out(self.recent)
            }
            Judgement::WithoutWaits(mut trial) => {
                let passes = trial.add(number, failed);
                self.judgement = Judgement::WithoutWaits(trial);
                match passes {
                    None => Finding::Nothing,
                    Some(false) => {
                        self.few_waits = (self.few_waits * LATER_WAITS).min(MOST_WAITS);
                        self.rule_out(self.background)
                    }
                    Some(true) => {
                        self.obey();
                        self.judgement = self.too_fast(sent);
                        self.rest();
                        Finding::TooFast { anew: true }
                    }
                }
            }
            Judgement::Trial(mut trial) => {
                trial.add(number, failed);
                self.judgement = Judgement::Trial(trial);
                self.follow(trial.outcome(sent), sent)
            }
            Judgement::TooFast {
                mut since,
                left,
                mut many,
            } => {
                // Sooner if obeying them does not help.
                let helps = self.recent <= OBEYED || self.lift_after == FIRST_LIFT;
                let mut left = left.saturating_sub(if helps { 1 } else { LATER });
                if self.background < HARMLESS {
                    // It may have been caused by the limiter; if not, it is found again.
                    let less = self.background * FADING;
                    self.background = less.max(LEAST_BACKGROUND);
                }
                if left == 0 && self.recent < UNTROUBLED {
                    left = self.lift_after;
                } else if left == 0 || (failed && learned == LearnedState::Collapsed) {
                    self.judgement = Judgement::Lifted {
                        free: 0,
                        usual: self.background.max(self.recent).min(MOST_BACKGROUND),
                    };
                    self.rest();
                    return Finding::Lifted;
                }
                if number > since {
                    let usual = (self.background + OBEYED).min(MOST_BACKGROUND);
                    if many.add(failed, usual) && many.value >= self.doubtful {
                        self.pending.extend(refusal);
                        return self.watch(sent);
                    }
                }
                let excess = self.is_excess(refusal, SURE);
                if excess {
                    since = since.max(sent);
                }
                self.judgement = Judgement::TooFast { since, left, many };
                if excess {
                    Finding::Refused(self.excess())
                } else {
                    Finding::Nothing
                }
            }
            Judgement::Lifted {
                free: answers,
                usual,
            } => {
                // If waits are obeyed, 503s cannot become frequent.
                let threshold = match refusal {
                    Some(Refusal { told: true, .. }) => SURE,
                    _ => SUSPICIOUS,
                };
                if self.exceeds(refusal, usual, threshold) {
                    self.lift_after = (LATER * self.lift_after).min(LAST_LIFT);
                    self.background = (usual - OBEYED / 2.0).max(LEAST_BACKGROUND);
                    self.judgement = self.too_fast(sent);
                    return Finding::Confirmed(self.excess());
                }
                let answers = answers + u32::from(learned == LearnedState::Free);
                if answers >= LIFTED {
                    return self.rule_out(self.recent);
                }
                self.judgement = Judgement::Lifted {
                    free: answers,
                    usual,
                };
                Finding::Nothing
            }
        }
    }

    fn average(&mut self, failed: bool) {
        let outcome = if failed { 1.0 } else { 0.0 };
        self.recent += (outcome - self.recent) / RECENT;
        let deviation = (self.recent * (1.0 - self.recent) / (2.0 * RECENT)).sqrt();
        let most = (self.recent + DEVIATIONS * deviation).max(LEAST_BACKGROUND);
        if most < self.background {
            self.background = most;
            // The share fell by itself: the earlier finding no longer holds.
            if most < GONE {
                self.suspicious = SUSPICIOUS;
            }
        }
    }

    /// Whether 503s have come to exceed the background.
    fn is_excess(&mut self, refusal: Option<Refusal>, threshold: f64) -> bool {
        self.exceeds(refusal, self.background, threshold)
    }

    fn exceeds(&mut self, refusal: Option<Refusal>, usual: f64, threshold: f64) -> bool {
        if !self.score.add(refusal.is_some(), usual) {
            self.pending.clear();
            return false;
        }
        if self.pending.len() >= MOST_PENDING {
            self.pending.clear();
        }
        self.pending.extend(refusal);
        refusal.is_some() && self.score.value >= threshold
    }

    /// The pending 503s, without those that the background accounts for.
    fn excess(&mut self) -> Vec<Refusal> {
        let usual = (self.background * self.score.segment.answers) as usize;
        let usual = usual.min(self.pending.len().saturating_sub(1));
        let excess = self.pending.split_off(usual);
        self.rest();
        excess
    }

    fn rest(&mut self) {
        self.score = Cusum::default();
        self.pending.clear();
    }

    fn watch(&mut self, sent: u64) -> Finding {
        self.judgement = Judgement::Watched {
            since: sent,
            fresh: Sample::default(),
        };
        Finding::Watched(self.excess())
    }

    /// Handles stated waits that are too rare for the share to show anything.
    fn wait(&mut self, number: u64, failed: bool, told: bool, sent: u64) -> Finding {
        let Some(mut waits) = self.waits else {
            if !told {
                return Finding::Nothing;
            }
            self.waits = Some(Waits::from(sent));
            return Finding::Watched(Vec::new());
        };
        waits.add(number, failed, told, sent);
        self.waits = Some(waits);
        if waits.count() < self.few_waits {
            return Finding::Nothing;
        }
        self.waits = None;
        let trial = waits.trial(sent);
        self.judgement = Judgement::WithoutWaits(trial);
        Finding::Suspected {
            part: trial.part(),
            obeyed: self.obeyed,
        }
    }

    fn suspect(&mut self, before: Sample, sent: u64) -> Finding {
        let trial = Trial::of(before, sent);
        self.judgement = Judgement::Trial(trial);
        Finding::Suspected {
            part: trial.part(),
            obeyed: self.obeyed,
        }
    }

    fn follow(&mut self, outcome: Outcome, sent: u64) -> Finding {
        match outcome {
            Outcome::Open => Finding::Nothing,
            Outcome::Constant(share) => self.rule_out(share),
            Outcome::Slower(trial) => {
                self.judgement = Judgement::Trial(trial);
                Finding::Slower(trial.part())
            }
            Outcome::Fell { background } => {
                let known = self.background;
                self.background = background;
                let anew = !self.obeyed || background > known + OBEYED;
                if anew {
                    self.obey();
                } else {
                    self.doubtful *= 2.0;
                }
                self.judgement = self.too_fast(sent);
                self.rest();
                Finding::TooFast { anew }
            }
        }
    }

    fn rule_out(&mut self, background: f64) -> Finding {
        self.background = background.clamp(LEAST_BACKGROUND, MOST_BACKGROUND);
        self.suspicious = (self.suspicious + 1.0).min(MOST_SUSPICIOUS);
        self.judgement = Judgement::Unrelated;
        self.obeyed = false;
        self.rest();
        Finding::Unrelated
    }

    fn obey(&mut self) {
        self.obeyed = true;
        self.waits = None;
        self.few_waits = FEW_WAITS;
        self.doubtful = DOUBTFUL;
        self.lift_after = FIRST_LIFT;
    }

    fn too_fast(&self, since: u64) -> Judgement {
        Judgement::TooFast {
            since,
            left: self.lift_after,
            many: Cusum::default(),
        }
    }
}
