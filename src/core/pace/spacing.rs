//! Evenly spaced turns, of which a bounded number may be saved up.

use std::time::Duration;

use tokio::time::Instant;

/// Ten years: a clock can hold it, and no request waits longer.
pub const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// A wake-up this late does not lower the rate.
pub const LATENESS: Duration = Duration::from_millis(10);

/// When the next turn comes. Unused turns are saved up to a bound, which is passed to each call, as
/// is the distance, because both may change.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spacing {
    next: Option<Instant>,
}

impl Spacing {
    /// Saves up no turn at `now`; the next one is due at once.
    pub fn from(now: Instant) -> Self {
        Self { next: Some(now) }
    }

    /// When the next turn comes, if that is in the future.
    pub fn due(self, now: Instant) -> Option<Instant> {
        self.next.filter(|next| *next > now)
    }

    /// Whether the maximum number of turns is saved up.
    pub fn is_idle(self, now: Instant, saved: Duration) -> bool {
        self.next
            .is_none_or(|next| now.saturating_duration_since(next) >= saved)
    }

    /// Takes a turn that is due; `saved` is the time whose unused turns may be caught up.
    pub fn take(&mut self, now: Instant, distance: Duration, saved: Duration) {
        let earliest = now.checked_sub(saved).unwrap_or(now);
        let turn = self.next.map_or(now, |next| next.max(earliest));
        self.next = turn.checked_add(distance);
    }
}

pub fn seconds(length: f64) -> Duration {
    Duration::try_from_secs_f64(length).map_or(FOREVER, |length| length.min(FOREVER))
}
