//! Reads one message list, whole or at its growing end, as events.

use std::sync::Mutex;

use super::context::{Context, Event, ListProgress, ReadRows};
use super::growing_end::{GrowingEnd, Step};
use super::known::HalfRead;
use super::plan::{Approach, Next, Plan, Turn};
use super::row_fetches::fetch_row;
use crate::api::{List, Resource, RowKey};
use crate::error::Error;
use crate::list_state::{Compared, Hints, Kind, ListRow, ListState, ListedUser};
use crate::lock;
use crate::prefetch::Sink;
use crate::report::WalkReport;
use crate::timestamp::Timestamp;
use crate::walk::crawl::is_gone;
use crate::walk::failing_pages::fails_for_its_rows;
use crate::walk::{SharedReport, says_past_end};

/// Reads a list as far as the run's budget goes; what is left of it is read by a later run.
pub(super) async fn read_list(context: &Context, next: Next) -> Result<(), Error> {
    let reading = ListReading {
        context,
        user: next.user,
        turn: next.turn,
        report: SharedReport::default(),
        so_far: Mutex::default(),
        began: None,
        before: None,
    };
    let read = reading.read_to_its_end().await;
    context.run.unless_spent(read).map(|_| ())
}

/// A list being read.
struct ListReading<'a> {
    context: &'a Context,
    user: ListedUser,
    turn: Turn,
    report: SharedReport,
    so_far: Mutex<HalfRead>,
    /// When the first request at the growing end was sent.
    began: Option<Timestamp>,
    /// The list as its last reading left it.
    before: Option<ListState>,
}

impl ListReading<'_> {
    async fn read_to_its_end(mut self) -> Result<(), Error> {
        let context = self.context;
        let mut row = match self.read().await {
            Ok(Some(row)) => row,
            // There is no such user, or no reader, any more.
            Ok(None) => return Ok(()),
            Err(error) => self.give_up(error).await?,
        };
        if row.state.kind != Kind::Unread {
            context.unread.note_read();
        }
        row.compared = self.compared(&row.state);
        let so_far = lock(&self.so_far).clone();
        let half_read = so_far.walk.is_some() && row.state.kind == Kind::Unread;
        let ended = Box::new(ListProgress {
            list: row,
            half_read: half_read.then_some(so_far),
        });
        context.outlet.put(Event::ListEnded(ended)).await;
        Ok(())
    }

    fn compared(&self, now: &ListState) -> Compared {
        let hints = self.user.hints.filter(|hints| hints.any());
        // What changed before a reading of the end alone may show only now, if the number of rows is
        // the same.
        let comparable = |before: &&ListState| {
            let whole_after_end = (before.kind, now.kind) == (Kind::End, Kind::Whole);
            before.is_certified()
                && before.hints.any()
                && now.is_certified()
                && (!whole_after_end || before.rows != now.rows)
        };
        let both = self.before.as_ref().filter(comparable).zip(hints);
        Compared {
            moved: both.map(|(before, hints)| hints != before.hints),
            rows_differ: both.is_some_and(|(before, _)| before.rows != now.rows),
            audited: matches!(self.turn, Turn::Audited(_)),
        }
    }

    /// Fetches the user's own row; false if there is no such user any more.
    async fn fetch_user(&mut self) -> Result<bool, Error> {
        let context = self.context;
        let id = self.user.id();
        let key = RowKey {
            resource: Resource::Users,
            user_id: Some(id),
            id,
        };
        let Some(found) = fetch_row(&context.client, key, &context.budget).await? else {
            return Ok(true);
        };
        let row = match &found {
            Event::Rows(found) => found.rows.first(),
            _ => None,
        };
        self.user.hints = row.map(Hints::of);
        context.outlet.put(found).await;
        if self.user.hints.is_none() {
            context.unread.note_read();
            context.plan.with(Plan::leave_out);
        }
        Ok(self.user.hints.is_some())
    }

    async fn read(&mut self) -> Result<Option<ListRow>, Error> {
        if self.turn == Turn::Given && !self.fetch_user().await? {
            return Ok(None);
        }
        let approach;
        (approach, self.before) = self.context.plan.with(|plan| plan.approach(self.user.id()));
        match approach {
            Approach::Sweep(half_read) => {
                // Those of before the reading began; later ones may have moved during it.
                if let Some(half_read) = half_read {
                    self.user.hints = Some(half_read.hints);
                    self.so_far = Mutex::new(*half_read);
                }
                self.sweep().await
            }
            Approach::GrowingEnd(end) => match self.grow(*end).await {
                Ok(None) => self.sweep().await,
                other => other,
            },
        }
    }

    /// Reads the growing end; `None` if that does not show the whole list.
    async fn grow(&mut self, mut end: GrowingEnd) -> Result<Option<ListRow>, Error> {
        let context = self.context;
        let user_id = self.user.id();
        let began = *self.began.insert(context.now());
        loop {
            let (offset, limit) = end.request();
            let read = context
                .client
                .page(self.list(), offset, limit, &context.budget);
            let read = match read.await {
                Ok(read) => read,
                // A sweep will tell: the list may have ended before the offset, and a sweep reads
                // around rows that cannot be read.
                Err(error)
                    if (offset > 0 && says_past_end(&error))
                        || error.is_too_large()
                        || fails_for_its_rows(&error) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            if read.sent.is_older_than(began) {
                return Ok(None);
            }
            let mut page = read.value;
            context.note_page_rows(&read.sent, page.limit, page.rows.len());
            let repeated = end.repeated().min(page.rows.len());
            let step = end.take(&page);
            let rows = page.rows.split_off(repeated);
            if !rows.is_empty() {
                let rows = ReadRows {
                    user_id: Some(user_id),
                    rows,
                    progress: None,
                };
                context.outlet.put(Event::Rows(rows)).await;
            }
            match step {
                Step::Request => {}
                Step::Misfit => return Ok(None),
                Step::Fits(mut state) => {
                    state.checked_at = Some(began);
                    state.hints = self.user.hints.unwrap_or(state.hints);
                    return Ok(Some(ListRow {
                        user_id,
                        total: i64::try_from(state.rows).ok(),
                        reason: None,
                        state: *state,
                        compared: Compared::default(),
                    }));
                }
            }
        }
    }

    fn list(&self) -> List {
        List::Messages {
            user_id: self.user.user_id,
        }
    }

    /// Reads the list to its end; `None` if there is no reader any more.
    async fn sweep(&self) -> Result<Option<ListRow>, Error> {
        let context = self.context;
        lock(&self.so_far).hints = self.user.hints.unwrap_or_default();
        context
            .sweep(self.list(), &self.so_far, &self.report, |_| {})
            .await?;
        let report = self.report.get();
        if report.ended_at.is_none() {
            return Ok(None);
        }
        let mut row = self.row(&report, Kind::Whole);
        if row.state.rows >= context.plan.with(|plan| plan.page_rows) {
            row.state.ends = lock(&self.so_far).shape.ends(row.state.rows);
        }
        Ok(Some(row))
    }

    /// The end of a list that cannot be read: it stays as it was until a later run.
    /// If its messages were not found, the user may be gone.
    async fn give_up(&self, error: Error) -> Result<ListRow, Error> {
        let context = self.context;
        let (client, budget) = (&context.client, &context.budget);
        let gone = match error.is_not_found() {
            true => is_gone(client, self.user.user_id, budget).await,
            false => Err(error),
        };
        let (kind, reason) = match gone {
            Ok(true) => (
                Kind::Gone,
                "the user was gone when the messages were requested".to_owned(),
            ),
            Ok(false) => (
                Kind::Unread,
                "its messages were not found, although the user exists".to_owned(),
            ),
            Err(error) => {
                let before = self.before.as_ref();
                let again = before.is_some_and(|before| before.kind == Kind::Unread);
                let reason = context.unread.give_up(client, budget, error, again).await?;
                (Kind::Unread, reason)
            }
        };
        let mut report = self.report.get();
        report.doubt(reason);
        report.end(context.now());
        Ok(self.row(&report, kind))
    }

    fn row(&self, report: &WalkReport, kind: Kind) -> ListRow {
        let hints = self.user.hints.unwrap_or_default();
        let mut state = ListState::of(report, kind, hints);
        state.checked_at = self.began.or(state.checked_at);
        ListRow::of(self.user.id(), report, state)
    }
}
