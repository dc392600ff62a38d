//! All users' messages as one walk, whose report sums up those of the lists.

use std::collections::HashMap;

use crate::core::client::Client;
use crate::core::error::{Error, ErrorKind};
use crate::core::list_state::askable;
use crate::core::prefetch::{Outlet, Prefetch};
use crate::core::report::{Certificate, Counts, Evidence, WalkReport};
use crate::core::timestamp::Timestamp;
use crate::core::walk::crawl::{Event, Users, crawl};
use crate::core::walk::{SharedReport, Walk, WalkSettings, WalkedPage};

// Pages passed on together, and buffered for the reader.
const AT_ONCE: usize = 32;
// The request that errors name.
const EVERY_LIST: &str = "/external/users/*/messages";

/// The messages of `users`; `settings` apply to all of them together.
pub fn all_messages(client: Client, users: Users, settings: WalkSettings) -> Walk {
    let report = SharedReport::new(WalkReport::not_read_yet());
    let shared = report.clone();
    let prefetch = Prefetch::with_room(AT_ONCE, move |outlet: Outlet<WalkedPage>| async move {
        let client = client.counted();
        let down_before = client.outage_time();
        let now = || Timestamp::by(client.clock());
        let mut summary = Summary::new(matches!(users, Users::Listed));
        shared.set(WalkReport {
            total_first: Some(0),
            total_last: Some(0),
            evidence: Evidence {
                rows_short: Some(0),
                ..Evidence::default()
            },
            ..WalkReport::start(now())
        });
        let mut room = settings.max_items.unwrap_or(u64::MAX);
        let lists = WalkSettings {
            strict: false,
            ..settings
        };
        let crawl = crawl(client.clone(), users, lists);
        while room > 0 {
            let events = match crawl.next_ready(AT_ONCE).await {
                Ok(events) if events.is_empty() => break,
                Ok(events) => events,
                Err(error) => {
                    shared.update(|report| {
                        report.requests = client.sent();
                        report.outage_seconds = client.outage_seconds_since(down_before);
                        report.evidence.rows_short = None;
                        report.doubt("a request failed".to_owned());
                        report.end(now());
                    });
                    return Err(error);
                }
            };
            for event in events {
                let page = shared.update(|report| {
                    report.requests = client.sent();
                    summary.take(event, report)
                });
                let Some(mut page) = page else {
                    continue;
                };
                page.rows
                    .truncate(usize::try_from(room).unwrap_or(usize::MAX));
                room -= page.rows.len() as u64;
                if !outlet.put(page).await {
                    return Ok(());
                }
                if room == 0 {
                    break;
                }
            }
        }
        crawl.stop();
        let cut = settings.max_items.filter(|_| room == 0);
        let incomplete = shared.update(|report| {
            report.requests = client.sent();
            report.outage_seconds = client.outage_seconds_since(down_before);
            summary.end(cut, report, now());
            let doubted = report.certificate == Certificate::Uncertified;
            (settings.strict && doubted && cut.is_none()).then(|| Box::new(report.clone()))
        });
        match incomplete {
            None => Ok(()),
            Some(report) => {
                let incomplete = Error::new(ErrorKind::Incomplete(report));
                Err(incomplete.during(EVERY_LIST.to_owned(), Vec::new()))
            }
        }
    });
    Walk { prefetch, report }
}

/// What is known of a crawl in addition to the counts of its report.
struct Summary {
    weakest: Certificate,
    users_gone: u64,
    users_unasked: usize,
    users_reason: Option<String>,
    all_totals_known: bool,
    /// The counts of the lists that have not ended.
    under_way: HashMap<i64, Counts>,
}

impl Summary {
    fn new(listed: bool) -> Self {
        Self {
            weakest: Certificate::Snapshot,
            users_gone: 0,
            users_unasked: 0,
            users_reason: listed.then(|| "not read to its end".to_owned()),
            all_totals_known: true,
            under_way: HashMap::new(),
        }
    }

    /// Accounts for an event; returns its page of messages, if any.
    fn take(&mut self, event: Event, report: &mut WalkReport) -> Option<WalkedPage> {
        match event {
            Event::Users(page) => {
                let unasked = page.rows.iter().filter(|row| askable(row).is_none());
                self.users_unasked += unasked.count();
            }
            Event::UsersEnded(users) => {
                report.repaired_text += users.repaired_text;
                report.odd_values += users.odd_values;
                report.unreadable_rows += users.unreadable_rows;
                report.evidence.add(&Evidence {
                    // Counts messages only; missing users are in the reason.
                    rows_short: Some(0),
                    ..users.evidence
                });
                self.users_reason = users.reason;
                self.weakest = self.weakest.min(users.certificate);
            }
            Event::Messages(page) => {
                let user_id = page.user_id.unwrap_or_default();
                let before = self.under_way.insert(user_id, page.counts);
                report.add(page.counts, before.unwrap_or_default());
                return Some(page);
            }
            Event::UserGone {
                user_id,
                report: list,
            } => {
                self.users_gone += 1;
                self.close(user_id, &list, report);
            }
            Event::ListUnread {
                user_id,
                report: list,
            } => {
                self.close(user_id, &list, report);
                self.end_list(user_id, &list, report);
                report.unread_users.push(user_id);
            }
            Event::ListEnded {
                user_id,
                report: list,
            } => {
                self.close(user_id, &list, report);
                self.end_list(user_id, &list, report);
            }
        }
        None
    }

    /// Records a list's certificate.
    fn end_list(&mut self, user_id: i64, list: &WalkReport, report: &mut WalkReport) {
        self.all_totals_known &= list.total_first.is_some() && list.total_last.is_some();
        report.total_first = add(report.total_first, list.total_first);
        report.total_last = add(report.total_last, list.total_last);
        *report
            .lists_by_certificate
            .entry(list.certificate.name())
            .or_default() += 1;
        self.weakest = self.weakest.min(list.certificate);
        if list.certificate == Certificate::Uncertified {
            report.uncertified_users.push(user_id);
        }
    }

    /// Adds what a list counted after its last page of rows.
    fn close(&mut self, user_id: i64, list: &WalkReport, report: &mut WalkReport) {
        let before = self.under_way.remove(&user_id).unwrap_or_default();
        report.add(list.counts(), before);
        report.evidence.add(&list.evidence);
    }

    fn end(self, cut: Option<u64>, report: &mut WalkReport, at: Timestamp) {
        report.uncertified_users.sort_unstable();
        report.unread_users.sort_unstable();
        if !self.all_totals_known {
            (report.total_first, report.total_last) = (None, None);
        }
        let mut reasons = Vec::new();
        if let Some(most) = cut {
            report.evidence.rows_short = None;
            reasons.push(format!("stopped after max_items={most} rows, as asked"));
        }
        if let Some(reason) = &self.users_reason {
            reasons.push(format!("the list of users: {reason}"));
        }
        if !report.uncertified_users.is_empty() {
            let count = report.uncertified_users.len();
            let users = if count == 1 { "user" } else { "users" };
            reasons.push(format!("the messages of {count} {users} are uncertified"));
        }
        if !report.unread_users.is_empty() {
            let count = report.unread_users.len();
            reasons.push(format!("those of {count} could not be read"));
        }
        if self.users_gone > 0 {
            reasons.push(format!(
                "{} users were gone when their messages were asked for",
                self.users_gone
            ));
        }
        if self.users_unasked > 0 {
            reasons.push(format!(
                "{} users have no usable id, so their messages cannot be asked for",
                self.users_unasked
            ));
        }
        if reasons.is_empty() {
            report.certify(self.weakest);
        } else {
            report.doubt(reasons.join("; "));
        }
        report.end(at);
    }
}

fn add(sum: Option<i64>, more: Option<i64>) -> Option<i64> {
    Some(sum?.saturating_add(more.unwrap_or(0)))
}
