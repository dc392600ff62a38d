//! Whether the hints of users are trusted, by what earlier runs have shown of them.

/// What one run has shown of the hints.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunEvidence {
    /// Users whose lists were certified at both readings, and those of them whose hints had moved.
    pub users: u64,
    pub moved: u64,
    /// Lists that had changed, and whose hints had moved.
    pub announced: u64,
    /// Those of them in which only operators wrote.
    pub by_operators: u64,
    /// Lists that had changed although the hints had not moved.
    pub missed: u64,
    /// The run read all lists to its end; only then its announced changes count.
    pub counts: bool,
    /// The service moved, so what was seen before says nothing.
    pub begins_anew: bool,
}

/// The evidence since the last miss.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence {
    pub announced: u64,
    pub by_operators: u64,
    /// The announced changes that chance does not explain: where a share s of the users moved, a
    /// hint that means nothing announces each change with the probability s, and n of them with less
    /// than e^-n(1-s).
    beyond_chance: f64,
    misses: u64,
    /// How many of the newest runs it is from.
    pub runs: usize,
}

impl Evidence {
    /// The announced changes needed, if there was never a miss,
    const CHANGES: f64 = 30.0;
    /// those of them in which only operators wrote, because many hints are of the visitor alone,
    const BY_OPERATORS: f64 = 10.0;
    /// and those beyond chance: e^-7 is less than 1 in 1,000.
    const BEYOND_CHANCE: f64 = 7.0;
    /// Each miss doubles what is needed; after this many, hints are never trusted again.
    const MOST_MISSES: u64 = 20;

    /// `runs` are in order, the oldest first.
    pub fn of(runs: impl IntoIterator<Item = RunEvidence>) -> Self {
        let mut evidence = Self::default();
        for run in runs {
            evidence.take(run);
        }
        evidence
    }

    pub fn take(&mut self, run: RunEvidence) {
        if run.begins_anew || run.missed > 0 {
            *self = Self {
                misses: (self.misses + run.missed).min(Self::MOST_MISSES),
                ..Self::default()
            };
        }
        if run.missed > 0 {
            return;
        }
        self.runs += 1;
        if run.counts {
            let stayed = run.users.saturating_sub(run.moved) as f64 / run.users.max(1) as f64;
            self.announced += run.announced;
            self.by_operators += run.by_operators;
            self.beyond_chance += run.announced as f64 * stayed;
        }
    }

    /// Whether hints are never trusted again.
    pub fn has_too_many_misses(&self) -> bool {
        self.misses >= Self::MOST_MISSES
    }

    pub fn is_trusted(&self) -> bool {
        !self.has_too_many_misses()
            && self.announced as f64 >= self.times(Self::CHANGES)
            && self.by_operators as f64 >= self.times(Self::BY_OPERATORS)
            && self.beyond_chance >= self.times(Self::BEYOND_CHANCE)
    }

    /// How many announced changes are needed, as far as is known now.
    pub fn needed(&self) -> f64 {
        let beyond_chance = self.times(Self::BEYOND_CHANCE) * self.announced as f64;
        self.times(Self::CHANGES)
            .max((beyond_chance / self.beyond_chance.max(f64::MIN_POSITIVE)).ceil())
    }

    /// How many of them must be of operators alone.
    pub fn needed_by_operators(&self) -> f64 {
        self.times(Self::BY_OPERATORS)
    }

    fn times(&self, needed: f64) -> f64 {
        needed * (self.misses as f64).exp2()
    }
}
