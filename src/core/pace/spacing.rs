//! Turns at even distances, of which a bounded number may be saved up.

use std::time::Duration;

use tokio::time::Instant;

/// Ten years: a clock can hold it, and nobody waits for more.
pub const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// A wake-up may be so late without lowering a rate.
pub const LATENESS: Duration = Duration::from_millis(10);

/// When the next turn comes. Turns that were not taken are saved up to a bound, which is said
/// anew each time, as is the distance: both may change.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spacing {
    next: Option<Instant>,
}

impl Spacing {
    /// No turn is saved up at `now`; the next one is due at once.
    pub fn from(now: Instant) -> Self {
        Self { next: Some(now) }
    }

    /// When the next turn comes, if it has not come yet.
    pub fn due(self, now: Instant) -> Option<Instant> {
        self.next.filter(|next| *next > now)
    }

    /// Whether as many turns are saved up as may be.
    pub fn is_idle(self, now: Instant, saved: Duration) -> bool {
        self.next
            .is_none_or(|next| now.saturating_duration_since(next) >= saved)
    }

    /// Takes a turn that is due; `saved` is the time whose turns may be made up for.
    pub fn take(&mut self, now: Instant, distance: Duration, saved: Duration) {
        let earliest = now.checked_sub(saved).unwrap_or(now);
        let turn = self.next.map_or(now, |next| next.max(earliest));
        self.next = turn.checked_add(distance);
    }
}

pub fn seconds(length: f64) -> Duration {
    Duration::try_from_secs_f64(length).map_or(FOREVER, |length| length.min(FOREVER))
}
