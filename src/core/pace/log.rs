//! What was sent and what was refused, as far back as needed to measure a rate.

use std::time::Duration;

use tokio::time::Instant;

/// The least distance between marks; it doubles each time there are too many.
const GAP: Duration = Duration::from_millis(10);
const MOST_MARKS: usize = 160;
/// The most marks from before the last refusal.
const MOST_OLD_MARKS: usize = 48;
/// Network jitter: how much the distance between requests may change on their way.
const JITTER: f64 = 0.004;
/// Requests further apart than this, in seconds, were not sent as fast as possible.
const APART: f64 = 0.001;
/// The least number of seconds over which a rate is measured.
const SHORTEST_SPAN: f64 = 0.05;

/// How many requests a service takes at once, as measured: they came within `over` seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    pub count: f64,
    pub over: f64,
}

impl Burst {
    /// The burst if `rate` more per second are allowed meanwhile.
    pub fn at(self, rate: f64) -> f64 {
        (self.count - rate * self.over).max(1.0)
    }

    /// The burst if as many as possible were allowed meanwhile.
    pub fn least(self) -> f64 {
        self.at(self.fastest())
    }

    /// The highest likely rate: assumes that the burst took at least a tenth of a second.
    pub fn fastest(self) -> f64 {
        self.count / (self.over + 0.1)
    }

    /// Whether it was spread out, and so may exceed what would have passed at once.
    pub fn is_spread(self) -> bool {
        self.over > self.count * APART
    }

    /// The rate at which a service that takes this burst takes `count` within `span` seconds;
    /// `None` if the spans are too similar.
    fn rate(self, count: f64, span: f64) -> Option<f64> {
        let longer = span > 3.0 * self.over + SHORTEST_SPAN;
        longer.then(|| ((count - self.count) / (span - self.over)).max(0.0))
    }
}

/// How many requests had been taken before an instant.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Instant,
    taken: f64,
}

/// The requests since the refusal before the last one.
#[derive(Debug, Clone)]
pub struct Log {
    marks: Vec<Mark>,
    gap: Duration,
    /// The index of the first mark after the last refusal.
    recent: usize,
    sent: u64,
    refused: u64,
    /// Refused later than the last one below, and known to say nothing new.
    disregarded: u64,
    /// The last refused request: its number, and when it was sent.
    last: Option<(u64, Instant)>,
    /// As of the previous refusal.
    before: Option<Mark>,
}

impl Log {
    pub fn new() -> Self {
        Self {
            marks: Vec::new(),
            gap: GAP,
            recent: 0,
            sent: 0,
            refused: 0,
            disregarded: 0,
            last: None,
            before: None,
        }
    }

    /// Records a request and returns its number.
    pub fn send(&mut self, now: Instant) -> u64 {
        let latest = self.marks.last();
        if latest.is_none_or(|mark| now.saturating_duration_since(mark.at) >= self.gap) {
            if self.marks.len() >= MOST_MARKS {
                self.thin(self.recent, 2);
                self.gap *= 2;
            }
            self.mark(now);
        }
        self.sent += 1;
        self.sent
    }

    /// Records a refusal; those of one episode may come in any order.
    pub fn refuse(&mut self, number: u64, sent: Instant) {
        self.refused += 1;
        // Later marks counted it before it was known to be refused.
        let known = self.marks.partition_point(|mark| mark.at <= sent);
        self.marks.truncate(known.max(self.recent + 1));
        if self.last.is_none_or(|(last, _)| number > last) {
            self.last = Some((number, sent));
        }
    }

    /// Records a refusal that says nothing new: the wait before it was too short.
    pub fn disregard(&mut self) {
        self.disregarded += 1;
    }

    /// Counts the disregarded refusals like others from here on.
    pub fn settle(&mut self) {
        self.refused += std::mem::take(&mut self.disregarded);
    }

    /// This log, continued after what `later` has recorded, which says nothing new.
    #[must_use]
    pub fn continued(self, later: &Self) -> Self {
        let refused = later.refused + later.disregarded;
        Self {
            sent: later.sent,
            disregarded: refused - self.refused,
            ..self
        }
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// How many were taken between the previous refusal and the last one.
    pub fn taken_recently(&self) -> f64 {
        self.spans(self.recent)
            .next()
            .map_or(0.0, |(count, _)| count)
    }

    /// The largest burst before a refusal: where requests came fastest.
    pub fn burst(&self) -> Burst {
        self.spans(self.recent)
            .map(|(count, over)| Burst { count, over })
            .max_by(|one, other| one.fastest().total_cmp(&other.fastest()))
            .unwrap_or(Burst {
                count: 1.0,
                over: 0.0,
            })
    }

    /// The highest rate that the taken requests prove.
    pub fn proven(&self, burst: Burst) -> f64 {
        let ends = self.marks.iter().copied().chain(self.end());
        let mut proven = 0.0_f64;
        for end in ends {
            for start in &self.marks {
                let span = end.at.saturating_duration_since(start.at).as_secs_f64();
                let rate = burst.rate(end.taken - start.taken - 1.0, span + JITTER);
                proven = proven.max(rate.unwrap_or_default());
            }
        }
        let between = self.between();
        between.map_or(proven, |(count, span)| proven.max((count - 1.0) / span))
    }

    /// Requests taken and seconds between the previous refusal and the last one; both left the
    /// bucket empty.
    pub fn between(&self) -> Option<(f64, f64)> {
        let (before, end) = self.before.zip(self.end())?;
        let span = end.at.saturating_duration_since(before.at).as_secs_f64();
        (span > SHORTEST_SPAN).then_some((end.taken - before.taken, span))
    }

    /// The rate that the last refusal rules out; infinite if it came too soon to tell.
    pub fn refuted(&self, burst: Burst) -> f64 {
        let rate = |(count, span)| burst.rate(count + 2.0, span - JITTER);
        if self.spans(self.recent).any(|span| rate(span).is_some()) {
            self.spans(0).filter_map(rate).fold(0.0, f64::max)
        } else {
            f64::INFINITY
        }
    }

    /// Seconds from the end of the last refusal's wait to the next refusal.
    pub fn lasted(&self) -> f64 {
        self.spans(self.recent).next().map_or(0.0, |(_, span)| span)
    }

    /// A refusal's wait is over: measure afresh.
    pub fn begin(&mut self, now: Instant) {
        self.before = self.end();
        self.settle();
        self.marks.drain(..self.recent.min(self.marks.len()));
        let every = self.marks.len().div_ceil(MOST_OLD_MARKS).max(1);
        self.thin(0, every);
        self.gap = GAP;
        self.recent = self.marks.len();
        self.mark(now);
    }

    /// Discards measurements that say nothing about what follows.
    pub fn restart(&mut self, now: Instant) {
        self.settle();
        self.marks.clear();
        self.recent = 0;
        self.gap = GAP;
        self.last = None;
        self.before = None;
        self.mark(now);
    }

    fn mark(&mut self, at: Instant) {
        let taken = self.sent.saturating_sub(self.refused + self.disregarded) as f64;
        self.marks.push(Mark { at, taken });
    }

    fn end(&self) -> Option<Mark> {
        let (number, at) = self.last?;
        let taken = number.saturating_sub(self.refused) as f64;
        Some(Mark { at, taken })
    }

    /// Requests taken and seconds, from each mark to the last request.
    fn spans(&self, from: usize) -> impl Iterator<Item = (f64, f64)> {
        let end = self.end();
        self.marks.iter().skip(from).filter_map(move |start| {
            let end = end?;
            let span = end.at.saturating_duration_since(start.at).as_secs_f64();
            Some((end.taken - start.taken, span))
        })
    }

    fn thin(&mut self, from: usize, every: usize) {
        let mut position = 0;
        self.marks.retain(|_| {
            position += 1;
            position <= from + 1 || (position - 1 - from).is_multiple_of(every)
        });
    }
}
