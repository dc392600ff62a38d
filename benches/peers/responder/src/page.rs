//! What a path answers: a page of a list, or one row.

use std::borrow::Cow;

use crate::rows::Service;

const USUAL_LIMIT: usize = 30;
const MOST: usize = 99;

/// A body in three parts, of which the large one is not copied.
pub struct Page<'a> {
    pub head: String,
    pub rows: Cow<'a, [u8]>,
    pub tail: &'static [u8],
}

impl<'a> Page<'a> {
    /// What a request's target is answered with; `None` where there is nothing.
    pub fn of(service: &'a Service, target: &str) -> Option<Self> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut parts = path.strip_prefix("/external/users")?.split('/').skip(1);
        match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => {
                let total = service.total_users();
                Some(Self::list("users", query, total, |from, to| {
                    service.users(from, to).into()
                }))
            }
            (Some(id), None, _) => {
                let user = service.position(id.parse().ok()?)?;
                let rows = service.users(user, user + 1).into();
                Some(Self {
                    head: String::new(),
                    rows,
                    tail: b"",
                })
            }
            (Some(id), Some("messages"), None) => {
                let user = service.position(id.parse().ok()?)?;
                let total = service.total_messages();
                Some(Self::list("messages", query, total, |from, to| {
                    service.messages(user, from, to)
                }))
            }
            _ => None,
        }
    }

    fn list(
        key: &str,
        query: &str,
        total: usize,
        rows: impl FnOnce(usize, usize) -> Cow<'a, [u8]>,
    ) -> Self {
        let asked = |name: &str| -> Option<usize> {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name)?.1.parse().ok()
        };
        let limit = asked("limit").unwrap_or(USUAL_LIMIT).min(MOST);
        let offset = asked("offset").unwrap_or(0);
        let from = offset.min(total);
        Self {
            head: format!(r#"{{"limit":{limit},"offset":{offset},"total":{total},"{key}":["#),
            rows: rows(from, (from + limit).min(total)),
            tail: b"]}",
        }
    }

    pub fn length(&self) -> usize {
        self.head.len() + self.rows.len() + self.tail.len()
    }
}
