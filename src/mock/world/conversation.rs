//! The shape of conversations: how long they are, when they happen, who speaks, what was read.

use super::calendar::{self, Calendar, DAY, HOUR, MINUTE, SECOND};
use super::draw::{Draw, Stream};
use super::overlay::Activity;

/// Messages per visit, unless the list is so long that visits must have more.
const VISIT: u64 = 12;
/// The most visits in a list, so that even the longest spans about two years.
const MAX_VISITS: u64 = 700;
/// The longest visit, so that it is over before the next one can begin at seven.
const VISIT_TIME: u64 = 6 * HOUR + 30 * MINUTE;

/// One user's conversation, as generated (without later changes).
#[derive(Clone, Debug)]
pub struct Conversation {
    seed: u64,
    index: u64,
    /// Messages generated.
    pub length: u64,
    /// When the user arrived, in milliseconds since 1970.
    pub arrival: u64,
    visit: u64,
    gap_days: u64,
    invited: bool,
    unread: u64,
    /// When the last message was written, if that is known.
    last: Option<u64>,
}

/// The times of one conversation; requesting them in order costs one step each.
#[derive(Debug)]
pub struct Moments<'conversation> {
    conversation: &'conversation Conversation,
    /// The visit that was last requested, and the position reached in it.
    visit: Option<(u64, u64)>,
    replies: Draw,
    moment: u64,
    end: Option<u64>,
}

impl<'conversation> Moments<'conversation> {
    /// The times of `conversation`, to be requested one by one.
    #[must_use]
    pub const fn new(conversation: &'conversation Conversation) -> Self {
        let replies = Draw::new(conversation.seed, Stream::Reply, conversation.index, 0);
        Self {
            conversation,
            visit: None,
            replies,
            moment: 0,
            end: None,
        }
    }

    /// When message `position` was written, in milliseconds since 1970.
    pub fn at(&mut self, position: u64) -> u64 {
        let conversation = self.conversation;
        if position >= conversation.length {
            let end = *self.end.get_or_insert_with(|| conversation.end());
            return conversation.added_moment(position, end);
        }
        let (number, place) = (position / conversation.visit, position % conversation.visit);
        let reached = match self.visit {
            Some((visit, reached)) if visit == number && reached <= place => reached,
            _ => {
                let Conversation { seed, index, .. } = *conversation;
                self.replies = Draw::new(seed, Stream::Reply, index, number);
                self.moment = conversation.visit_start(number);
                0
            }
        };
        let longest = VISIT_TIME / conversation.visit;
        for _ in reached..place {
            let doubling = (4 * SECOND) << self.replies.below(9);
            self.moment += (doubling + self.replies.below(doubling)).clamp(1, longest);
        }
        self.visit = Some((number, place));
        self.moment
    }
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
#[must_use]
pub const fn length(seed: u64, index: u64, lo: u64, hi: u64) -> u64 {
    let even = Draw::new(seed, Stream::Length, index, 0).bits() as u128;
    let square = (even * even) >> 64;
    let fourth = (square * square) >> 64;
    lo + ((fourth * (hi - lo + 1) as u128) >> 64) as u64
}

impl Conversation {
    /// The conversation of the user in row `index`, of `length` messages.
    #[must_use]
    pub fn new(seed: u64, index: u64, length: u64, calendar: &Calendar) -> Self {
        let arrival = calendar.arrival(seed, index);
        let days_left = calendar.days_left(arrival);
        let visit = VISIT.max(length.div_ceil(MAX_VISITS.min(1 + days_left)));
        let visits = length.div_ceil(visit).max(1);
        let mut draw = Draw::new(seed, Stream::Arrival, index, 1);
        let doubling = 1 << draw.below(9);
        let span_days = (doubling + draw.below(doubling)).min(days_left);
        Self {
            seed,
            index,
            length,
            arrival,
            visit,
            gap_days: (span_days / visits).max(1),
            invited: draw.chance(350),
            unread: if draw.chance(300) {
                1 + draw.below(2)
            } else {
                0
            },
            last: None,
        }
    }

    /// What follows `length` given messages that end at `last`; only for positions from `length`
    /// on.
    #[must_use]
    pub const fn following(seed: u64, index: u64, length: u64, last: u64) -> Self {
        Self {
            seed,
            index,
            length,
            arrival: last,
            visit: VISIT,
            gap_days: 1,
            invited: false,
            unread: 0,
            last: Some(last),
        }
    }

    /// When message `position` was written; strictly later than the previous one and than the
    /// user's arrival. Positions past `length` are messages added manually.
    #[must_use]
    pub fn moment(&self, position: u64) -> u64 {
        Moments::new(self).at(position)
    }

    /// When the messages last changed: the time of the last one, and a second for each edit.
    #[must_use]
    pub fn last_change(&self, activity: Activity) -> u64 {
        self.last_moment(self.length + activity.added) + activity.edited * SECOND
    }

    /// When the generated messages end; those added manually follow.
    fn end(&self) -> u64 {
        self.last.unwrap_or_else(|| self.last_moment(self.length))
    }

    fn added_moment(&self, position: u64, end: u64) -> u64 {
        let uneven = Draw::new(self.seed, Stream::Reply, self.index, position).below(MINUTE);
        end + (1 + position - self.length) * 90 * SECOND + uneven
    }

    fn visit_start(&self, number: u64) -> u64 {
        let mut draw = Draw::new(self.seed, Stream::Visit, self.index, number);
        if number == 0 {
            return self.arrival + SECOND + draw.below(10 * MINUTE);
        }
        let mut day = self.arrival / DAY + number * self.gap_days;
        // A visit may be moved back, but stays after the previous one: if visits are a week apart,
        // to any working day; if they are closer, to Friday.
        let (back, room) = match self.gap_days {
            7.. => (5, self.gap_days - 7),
            3.. => (1, self.gap_days - 3),
            _ => (0, 0),
        };
        if back > 0 {
            day += draw.below(room + 1);
            let weekday = calendar::weekday(day);
            if weekday > 4 && draw.chance(800) {
                day -= weekday - 4 + draw.below(back);
            }
        }
        day * DAY + 7 * HOUR + draw.below(6 * HOUR) + draw.below(6 * HOUR)
    }

    /// When the last of `count` messages was written, or when the user arrived if there is none.
    #[must_use]
    pub fn last_moment(&self, count: u64) -> u64 {
        count
            .checked_sub(1)
            .map_or(self.arrival, |last| self.moment(last))
    }

    /// Who speaks in message `position`, and who has read it.
    #[must_use]
    pub fn turn(&self, position: u64) -> Turn {
        let mut draw = Draw::new(self.seed, Stream::Turn, self.index, position);
        let auto_invitation = position == 0 && self.invited && self.length > 0;
        let users_turn = (position + u64::from(self.invited)).is_multiple_of(2);
        let by_user = match position {
            0 => !auto_invitation,
            _ => users_turn != draw.chance(180),
        };
        let fresh = position + self.unread >= self.length;
        let place = position % self.visit;
        let beat = if place == 0 {
            Beat::Opening
        } else if place + 1 == self.visit || position + 1 == self.length {
            Beat::Closing
        } else {
            Beat::Middle
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lengths_stay_within_what_was_asked(
            seed: u64, index in 0_u64..1 << 31, lo in 0_u64..1000, more in 0_u64..100_000,
        ) {
            let found = length(seed, index, lo, lo + more);
            prop_assert!((lo..=lo + more).contains(&found));
        }

        #[test]
        fn messages_follow_each_other(seed: u64, index in 0_u64..1 << 31, hi in 1_u64..400) {
            let length = length(seed, index, 0, hi);
            let conversation = Conversation::new(seed, index, length, &Calendar::default());
            let mut before = conversation.arrival;
            for position in 0..conversation.length + 20 {
                let moment = conversation.moment(position);
                prop_assert!(moment > before, "position {position}: {moment} after {before}");
                before = moment;
            }
        }

        #[test]
        fn all_messages_are_before_the_end(
            seed: u64, index in 0_u64..3_000, hi in 1_u64..2_000,
            end in 1_300_000_000_000_u64..7_000_000_000_000,
        ) {
            let calendar = Calendar::ending(seed, 2_000, end).unwrap();
            let length = length(seed, index, 0, hi);
            let conversation = Conversation::new(seed, index, length, &calendar);
            let mut before = conversation.arrival;
            for position in 0..conversation.length {
                let moment = conversation.moment(position);
                prop_assert!(before < moment && moment < end, "position {position}: {moment}");
                before = moment;
            }
        }

        #[test]
        fn the_order_of_asking_changes_no_moment(
            seed: u64, index in 0_u64..100, asked in prop::collection::vec(0_u64..300, 1..40),
        ) {
            let length = length(seed, index, 0, 290);
            let conversation = Conversation::new(seed, index, length, &Calendar::default());
            let mut moments = Moments::new(&conversation);
            for position in asked {
                prop_assert_eq!(moments.at(position), conversation.moment(position));
            }
        }

        #[test]
        fn the_longest_lists_stay_in_order(seed: u64, index in 0_u64..1000, from in 0_u64..999_900) {
            let conversation = Conversation::new(seed, index, 1_000_000, &Calendar::default());
            for position in from..from + 99 {
                prop_assert!(conversation.moment(position) < conversation.moment(position + 1));
            }
        }
    }

    #[test]
    fn most_lists_are_short_and_few_are_long() {
        let mut lengths: Vec<u64> = (0..10_000).map(|index| length(7, index, 0, 500)).collect();
        lengths.sort_unstable();
        let median = lengths.get(5_000).copied().unwrap_or_default();
        let top = lengths.get(9_900).copied().unwrap_or_default();
        assert!((20..45).contains(&median), "median {median}");
        assert!(top > 450, "99th percentile {top}");
        let mean = lengths.iter().sum::<u64>() / 10_000;
        assert!((90..110).contains(&mean), "mean {mean}");
    }
}
