//! All users' messages as one walk, whose report sums up those of the lists.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Notify};

use crate::client::{CallOptions, Client};
use crate::error::Error;
use crate::list_state::requestable_id;
use crate::prefetch::{Outlet, Prefetch, Sink};
use crate::report::{Certificate, Counts, Evidence, WalkReport};
use crate::timestamp::Timestamp;
use crate::walk::crawl::{Event, ListEnd, Users, crawl_into};
use crate::walk::in_turn::InTurn;
use crate::walk::room::Room;
use crate::walk::{SharedReport, Walk, WalkSettings, WalkedPage, incomplete};

// Pages buffered for the reader, in addition to one in each list's task.
const PAGES_AHEAD: usize = 64;
// The request that errors name.
const EVERY_LIST: &str = "/external/users/*/messages";

/// The messages of `users`; `settings` apply to all of them together.
pub fn all_messages(client: Client, users: Users, settings: WalkSettings) -> Walk {
    let report = SharedReport::default();
    let shared = report.clone();
    let prefetch = Prefetch::with_room(PAGES_AHEAD, move |outlet| async move {
        let client = client.with(CallOptions::count_anew);
        let listed = matches!(users, Users::Listed);
        // Without messages, all of them were read.
        let nothing = Evidence {
            rows_short: Some(0),
            ..Evidence::default()
        };
        shared.set(WalkReport {
            total_first: Some(0),
            total_last: Some(0),
            evidence: nothing,
            ..WalkReport::start(Timestamp::by(client.clock()))
        });
        let messages = Messages {
            down_before: client.outage_time(),
            report: shared,
            summary: Mutex::new(Summary::new(listed, settings.max_items)),
            full: Notify::new(),
            outlet,
            waiting: Room::default(),
            client: client.clone(),
        };
        let in_turn = Arc::new(InTurn::new(messages, &users));
        let messages = &in_turn.inner;
        let lists = WalkSettings {
            strict: false,
            ..settings
        };
        let crawl = crawl_into(&client, users, lists, Arc::clone(&in_turn));
        let crawled = if settings.max_items == Some(0) {
            Ok(())
        } else {
            tokio::select! {
                crawled = crawl => crawled,
                () = messages.full.notified() => Ok(()),
            }
        };
        messages.end(crawled, settings).await
    });
    Walk { prefetch, report }
}

/// Takes the events of a crawl: sums up the reports of the lists, and passes on their pages, up to
/// `max_items`.
struct Messages {
    client: Client,
    down_before: Duration,
    report: SharedReport,
    /// Locked while a page is put, so that all rows that were counted reach the reader.
    summary: Mutex<Summary>,
    /// Notified once `max_items` rows were passed on.
    full: Notify,
    outlet: Outlet<WalkedPage>,
    waiting: Room,
}

impl Sink<Event> for Messages {
    async fn put(&self, event: Event) -> bool {
        let mut summary = self.summary.lock().await;
        if summary.room == 0 {
            return false;
        }
        let page = self.report.update(|report| {
            report.requests = self.client.sent();
            summary.take(event, report)
        });
        let Some(mut page) = page else {
            return true;
        };
        page.rows
            .truncate(usize::try_from(summary.room).unwrap_or(usize::MAX));
        summary.room -= page.rows.len() as u64;
        page.held = Some(self.waiting.take(page.size()).await);
        let read = self.outlet.put(page).await;
        if summary.room == 0 {
            self.full.notify_one();
        }
        read && summary.room > 0
    }
}

impl Messages {
    async fn end(&self, crawled: Result<(), Error>, settings: WalkSettings) -> Result<(), Error> {
        let summary = self.summary.lock().await;
        let cut = settings.max_items.filter(|_| summary.room == 0);
        let now = Timestamp::by(self.client.clock());
        let report = self.report.update(|report| {
            report.requests = self.client.sent();
            report.outage_seconds = self.client.outage_seconds_since(self.down_before);
            if crawled.is_err() {
                report.evidence.rows_short = None;
                report.doubt("a request failed".to_owned());
                report.end(now);
            } else {
                summary.end(cut, report, now);
            }
            report.clone()
        });
        crawled?;
        let uncertified = report.certificate == Certificate::Uncertified;
        if settings.strict && uncertified && cut.is_none() {
            return Err(incomplete(&self.client, &EVERY_LIST, report));
        }
        Ok(())
    }
}

/// What is known of a crawl in addition to the counts of its report.
struct Summary {
    /// Rows that the caller still wants.
    room: u64,
    weakest: Certificate,
    users_gone: u64,
    users_without_id: usize,
    users_reason: Option<String>,
    all_totals_known: bool,
    /// The counts of the lists that have not ended.
    under_way: HashMap<i64, Counts>,
}

impl Summary {
    fn new(listed: bool, max_items: Option<u64>) -> Self {
        Self {
            room: max_items.unwrap_or(u64::MAX),
            weakest: Certificate::Snapshot,
            users_gone: 0,
            users_without_id: 0,
            users_reason: listed.then(|| "not read to its end".to_owned()),
            all_totals_known: true,
            under_way: HashMap::new(),
        }
    }

    /// Accounts for an event; returns its page of messages, if any.
    fn take(&mut self, event: Event, report: &mut WalkReport) -> Option<WalkedPage> {
        match event {
            Event::Users(page) => {
                let without_id = page.rows.iter().filter(|row| requestable_id(row).is_none());
                self.users_without_id += without_id.count();
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
            Event::ListEnded {
                user_id,
                end,
                report: list,
            } => self.end_list(user_id, end, &list, report),
        }
        None
    }

    /// Adds what a list counted after its last page of rows, and its certificate.
    fn end_list(&mut self, user_id: i64, end: ListEnd, list: &WalkReport, report: &mut WalkReport) {
        let before = self.under_way.remove(&user_id).unwrap_or_default();
        report.add(list.counts(), before);
        report.evidence.add(&list.evidence);
        if end == ListEnd::UserGone {
            self.users_gone += 1;
            return;
        }
        self.all_totals_known &= list.total_first.is_some() && list.total_last.is_some();
        report.total_first = add(report.total_first, list.total_first);
        report.total_last = add(report.total_last, list.total_last);
        let name = list.certificate.name();
        *report.lists_by_certificate.entry(name).or_default() += 1;
        self.weakest = self.weakest.min(list.certificate);
        if list.certificate == Certificate::Uncertified {
            report.uncertified_users.push(user_id);
        }
        if end == ListEnd::Unread {
            report.unread_users.push(user_id);
        }
    }

    fn end(&self, cut: Option<u64>, report: &mut WalkReport, at: Timestamp) {
        report.uncertified_users.sort_unstable();
        report.unread_users.sort_unstable();
        if !self.all_totals_known {
            (report.total_first, report.total_last) = (None, None);
        }
        if cut.is_some() {
            report.evidence.rows_short = None;
        }
        let uncertified = report.uncertified_users.len();
        let users = if uncertified == 1 { "user" } else { "users" };
        let unread = report.unread_users.len();
        let (gone, without_id) = (self.users_gone, self.users_without_id);
        let reasons = [
            cut.map(|most| format!("stopped after max_items={most} rows")),
            self.users_reason
                .as_ref()
                .map(|why| format!("the list of users: {why}")),
            (uncertified > 0)
                .then(|| format!("the messages of {uncertified} {users} are uncertified")),
            (unread > 0).then(|| format!("those of {unread} could not be read")),
            (gone > 0)
                .then(|| format!("{gone} users were gone when their messages were requested")),
            (without_id > 0).then(|| {
                format!(
                    "{without_id} users have no usable id, so their messages cannot be requested"
                )
            }),
        ];
        let reasons: Vec<String> = reasons.into_iter().flatten().collect();
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
