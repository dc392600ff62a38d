//! The shape of conversations: how long they are, when they happen, who speaks, what was read.

use super::calendar::{Calendar, DAY, MINUTE, SECOND, in_rhythm};
use super::changes::Activity;
use super::draw::{Draw, Stream};

/// Messages per visit.
const VISIT: u64 = 12;
/// The longest pause within a visit.
const LONGEST_PAUSE: u64 = 2048 * SECOND;
/// How many of the longest pauses are in the gap between two visits. The rhythm of the week shortens
/// gaps to 38 % at the least, and visits begin in the first half: one is over before the next begins.
const GAP_PAUSES: u64 = 64;
/// The days over which very long lists are spread at least.
const LONG: u64 = 700;

/// One user's conversation, as generated (without later changes).
#[derive(Clone, Debug)]
pub struct Conversation {
    seed: u64,
    index: u64,
    /// Messages generated.
    pub length: u64,
    /// When the user arrived, in milliseconds since 1970.
    pub arrival: u64,
    /// The same before the rhythm of the week is applied, and the time from visit to visit.
    begin: u64,
    gap: u64,
    invited: bool,
    unread: u64,
    /// When the last message was written, if that is known.
    last: Option<u64>,
}

/// Who speaks in a message, and who has read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub by_user: bool,
    pub auto_invitation: bool,
    pub read_by_user: bool,
    pub read_by_operator: bool,
    pub beat: Beat,
}

/// The position of a message within a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    Opening,
    Middle,
    Closing,
}

/// How many messages the user in row `index` has: `lo..=hi`, most lists short and few long (the
/// fourth power of a uniform draw, so the mean is at a fifth of the range and the median at a
/// sixteenth).
pub const fn length(seed: u64, index: u64, lo: u64, hi: u64) -> u64 {
    let even = Draw::new(seed, Stream::Length, index, 0).bits() as u128;
    let square = (even * even) >> 64;
    let fourth = (square * square) >> 64;
    lo + ((fourth * (hi - lo + 1) as u128) >> 64) as u64
}

impl Conversation {
    /// The conversation of the user in row `index`, of `length` messages: visits at even intervals,
    /// over a day to three years, each interval as likely as one twice as long.
    pub fn new(seed: u64, index: u64, length: u64, calendar: &Calendar) -> Self {
        let begin = calendar.arrival(seed, index);
        let visits = length.div_ceil(VISIT).max(1);
        let mut draw = Draw::new(seed, Stream::Arrival, index, 1);
        let doubling = 1 << draw.below(9);
        let days = (doubling + draw.below(doubling)).max(visits.min(LONG));
        let mut span = days * DAY;
        if visits > 1 {
            span = span.min(calendar.left(begin));
        }
        Self {
            seed,
            index,
            length,
            arrival: in_rhythm(begin),
            begin,
            gap: span / visits,
            invited: draw.chance(350),
            unread: if draw.chance(300) {
                1 + draw.below(2)
            } else {
                0
            },
            last: None,
        }
    }

    /// What follows given messages instead; the last of them was written at `last`, if that is known.
    pub fn after(self, last: Option<u64>) -> Self {
        Self {
            invited: false,
            unread: 0,
            last: last.or(Some(self.arrival)),
            ..self
        }
    }

    /// When message `position` was written; strictly later than the previous one and than the
    /// user's arrival. Positions past `length` are messages added manually.
    pub fn moment(&self, position: u64) -> u64 {
        self.moments(position).next().unwrap_or(self.arrival)
    }

    /// When message `position` and those after it were written.
    pub fn moments(&self, position: u64) -> impl Iterator<Item = u64> {
        let visits = position / VISIT..self.length.div_ceil(VISIT);
        let generated = visits
            .flat_map(|visit| self.visit(visit).take(VISIT as usize))
            .skip((position % VISIT) as usize)
            .take(self.length.saturating_sub(position) as usize);
        let added = (position.max(self.length)..).map(|position| {
            let uneven = Draw::new(self.seed, Stream::Reply, self.index, position).below(MINUTE);
            self.end() + (1 + position - self.length) * 90 * SECOND + uneven
        });
        generated.chain(added)
    }

    /// When the messages of a visit were written.
    fn visit(&self, visit: u64) -> impl Iterator<Item = u64> {
        let longest = LONGEST_PAUSE.min(self.gap / GAP_PAUSES);
        let mut pauses = Draw::new(self.seed, Stream::Reply, self.index, visit);
        std::iter::successors(Some(self.visit_start(visit)), move |moment| {
            let doubling = (longest / 2) >> (8 - pauses.below(9));
            Some(moment + (doubling + pauses.below(doubling)).max(1))
        })
    }

    fn visit_start(&self, visit: u64) -> u64 {
        let mut draw = Draw::new(self.seed, Stream::Visit, self.index, visit);
        if visit == 0 {
            let delay = SECOND + draw.below(10 * MINUTE);
            return self.arrival + delay.min(self.gap / GAP_PAUSES).max(1);
        }
        in_rhythm(self.begin + visit * self.gap + draw.below(self.gap / 2))
    }

    /// When the generated messages end; those added manually follow.
    fn end(&self) -> u64 {
        let last = || self.length.checked_sub(1).map(|last| self.moment(last));
        self.last.or_else(last).unwrap_or(self.arrival)
    }

    /// When the messages last changed: the time of the last one, and a second for each edit.
    pub fn last_change(&self, activity: Activity) -> u64 {
        let added = activity.added.checked_sub(1);
        let last = added.map_or_else(|| self.end(), |added| self.moment(self.length + added));
        last + activity.edited * SECOND
    }

    /// Who speaks in message `position`, and who has read it.
    pub fn turn(&self, position: u64) -> Turn {
        let mut draw = Draw::new(self.seed, Stream::Turn, self.index, position);
        let auto_invitation = position == 0 && self.invited && self.length > 0;
        let users_turn = (position + u64::from(self.invited)).is_multiple_of(2);
        let by_user = match position {
            0 => !auto_invitation,
            _ => users_turn != draw.chance(180),
        };
        let fresh = position + self.unread >= self.length;
        let beat = match position % VISIT {
            0 => Beat::Opening,
            place if place + 1 == VISIT || position + 1 == self.length => Beat::Closing,
            _ => Beat::Middle,
        };
        Turn {
            by_user,
            auto_invitation,
            read_by_user: by_user || !fresh,
            read_by_operator: !by_user || !fresh,
            beat,
        }
    }
}
