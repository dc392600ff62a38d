//! Statistics of many walks, and the table of them.

use std::collections::BTreeMap;
use std::fmt;

use super::behaviour::Churn;
use super::cases::Kind;
use crate::report::Certificate;

/// Walks that lost rows, and the rows that they lost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lost {
    pub walks: u64,
    pub rows: u64,
}

impl Lost {
    pub fn count(&mut self, rows: u64) {
        self.walks += u64::from(rows > 0);
        self.rows += rows;
    }

    fn add(&mut self, other: Self) {
        self.walks += other.walks;
        self.rows += other.rows;
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&format!("{} ({})", self.walks, self.rows))
    }
}

/// The walks over lists of one kind.
#[derive(Debug, Clone, Default)]
pub struct OfKind {
    pub walks: u64,
    pub certificates: BTreeMap<Certificate, u64>,
    /// Certified, although untouched rows that existed the whole time are missing.
    pub falsely_certified: Lost,
    /// Certified, although moved rows that existed the whole time are missing.
    pub moved_away: Lost,
    pub uncertified: Lost,
    /// Walks without rows that the plain loop got from the same list.
    pub plain_gets: Lost,
    pub plain: Lost,
    pub plain_endless: u64,
    /// Of the walks with the same pages as the plain loop.
    pub requests: u64,
    pub plain_requests: u64,
}

#[derive(Debug, Clone, Default)]
pub struct Tally {
    pub kinds: BTreeMap<Kind, OfKind>,
    /// Requests in excess of the plain loop's, per hundred of its requests, for walks over ordinary
    /// lists of ten pages or more.
    pub overheads: BTreeMap<Churn, Vec<f64>>,
    pub requests: u64,
    /// The largest part of the proving budget that was spent.
    pub most_of_bound: f64,
}

impl Tally {
    pub fn add(&mut self, other: Self) {
        for (kind, more) in other.kinds {
            let sum = self.kinds.entry(kind).or_default();
            sum.walks += more.walks;
            for (certificate, walks) in more.certificates {
                *sum.certificates.entry(certificate).or_default() += walks;
            }
            sum.falsely_certified.add(more.falsely_certified);
            sum.moved_away.add(more.moved_away);
            sum.uncertified.add(more.uncertified);
            sum.plain_gets.add(more.plain_gets);
            sum.plain.add(more.plain);
            sum.plain_endless += more.plain_endless;
            sum.requests += more.requests;
            sum.plain_requests += more.plain_requests;
        }
        for (churn, more) in other.overheads {
            self.overheads.entry(churn).or_default().extend(more);
        }
        self.requests += other.requests;
        self.most_of_bound = self.most_of_bound.max(other.most_of_bound);
    }

    pub fn walks(&self) -> u64 {
        self.kinds.values().map(|of_kind| of_kind.walks).sum()
    }

    /// The overhead that this percentage of the walks does not exceed.
    pub fn overhead(&self, churn: Churn, hundredths: usize) -> Option<f64> {
        let mut sorted = self.overheads.get(&churn)?.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() * hundredths / 100).copied()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let certificates = [
            Certificate::Snapshot,
            Certificate::Counted,
            Certificate::Linked,
            Certificate::Uncertified,
        ];
        writeln!(
            formatter,
            "{} walks, {} requests",
            self.walks(),
            self.requests
        )?;
        writeln!(
            formatter,
            "lost: walks that lack rows, and (rows), that were there all the time and that nobody touched; plain \
             gets: of those, the ones that the plain loop got; requests: for one of the plain loop's, \
             where pages are as long"
        )?;
        writeln!(
            formatter,
            "the list            walks snapshot  counted   linked uncertified | certified: lost of those \
             moved | uncertified: lost     plain gets | plain loop: lost endless requests"
        )?;
        for (kind, of_kind) in &self.kinds {
            let name = format!("{kind:?}");
            write!(formatter, "{name:<17} {:>7}", of_kind.walks)?;
            for (certificate, width) in certificates.iter().zip([8, 8, 8, 11]) {
                let walks = of_kind.certificates.get(certificate).copied().unwrap_or(0);
                write!(formatter, " {walks:>width$}")?;
            }
            writeln!(
                formatter,
                " | {:>15} {:>14} | {:>17} {:>14} | {:>16} {:>7} {:>7.2}x",
                of_kind.falsely_certified,
                of_kind.moved_away,
                of_kind.uncertified,
                of_kind.plain_gets,
                of_kind.plain,
                of_kind.plain_endless,
                of_kind.requests as f64 / of_kind.plain_requests as f64
            )?;
        }
        writeln!(
            formatter,
            "requests beyond the plain loop's, lists of ten pages or more:"
        )?;
        for (churn, walks) in &self.overheads {
            let hundredth = |part| self.overhead(*churn, part).unwrap_or(f64::NAN);
            let (name, median) = (format!("{churn:?}"), hundredth(50));
            write!(
                formatter,
                "{name:<17} {:>7} walks, median {median:>5.1} %",
                walks.len()
            )?;
            writeln!(formatter, ", p90 {:>5.1} %", hundredth(90))?;
        }
        write!(
            formatter,
            "spent on proving at most {:.0} % of the bound",
            100.0 * self.most_of_bound
        )
    }
}
