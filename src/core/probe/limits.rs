//! The default page, the largest one, and the responses to limits outside 1 to 99.

use super::Probe;
use super::probe_client::{Finding, Listed, ProbeClient, unmeasured};
use super::profile::{LimitAnswer, Treatment};
use crate::api::{LARGEST_LIMIT, List, Request};

const NOT_SHOWN: &str = "the page does not report the limit applied, and its rows do not show it";
const UNCLEAR: &str =
    "the nearest limit and the default page are equal, so which was applied is unclear";

/// The length of a list that is requested without a limit. Adds the page that it reads to `pages`.
pub async fn default_page(client: &mut ProbeClient, pages: &mut Vec<Listed>) -> Finding<u64> {
    let page = client.send(Request::Start(None)).await?.page()?;
    let applied = page.applied();
    pages.push(page);
    applied.ok_or_else(|| NOT_SHOWN.to_owned())
}

/// The largest limit that is applied. If 99 is not, and the default page is no answer to that, it
/// requests smaller limits, at most seven times. Adds the page with 99 to `pages`.
pub async fn largest_page(
    client: &mut ProbeClient,
    default: Option<u64>,
    pages: &mut Vec<Listed>,
) -> Finding<u64> {
    let most = u64::from(LARGEST_LIMIT);
    if let Ok(page) = client.page(List::Users, 0).await {
        let applied = page.applied();
        pages.push(page);
        match applied {
            None => return unmeasured(NOT_SHOWN),
            Some(applied) if applied >= most => return Ok(most),
            // A limit other than the default: the largest that the service accepts.
            Some(applied) if default.is_some_and(|default| default != applied) => {
                return Ok(applied);
            }
            Some(_) => {}
        }
    }
    // The largest limit known to be applied, and the smallest known not to be.
    let (mut low, mut high) = (default.unwrap_or(0).min(most - 1), most);
    while high - low > 1 {
        let limit = (low + high) / 2;
        let reply = client.send(Request::Start(Some(limit))).await?;
        match reply.listed.and_then(|page| page.applied()) == Some(limit) {
            true => low = limit,
            false => high = limit,
        }
    }
    match low {
        0 => unmeasured("no limit from 1 to 99 was applied as requested"),
        _ => Ok(low),
    }
}

impl Probe {
    /// The response to a limit that the interface rules out.
    pub(super) async fn limit_outside(&mut self, path: &str, limit: u64) -> Option<LimitAnswer> {
        let (default, largest) = (self.default_page, self.largest_page);
        let reply = self.client.send(Request::Start(Some(limit))).await;
        let reply = self.note(path, reply)?;
        let applied = reply.listed.as_ref().and_then(Listed::applied);
        let nearest = if limit == 0 { Some(1) } else { largest };
        let treatment = match applied {
            _ if (400..500).contains(&reply.status) => Ok(Treatment::Refused),
            _ if reply.listed.is_none() => Ok(Treatment::Other),
            None => unmeasured(NOT_SHOWN),
            Some(applied) if applied == limit => Ok(Treatment::Applied),
            _ if applied == nearest && nearest == default => unmeasured(UNCLEAR),
            _ if applied == nearest => Ok(Treatment::Clamped),
            _ if applied == default => Ok(Treatment::Ignored),
            Some(_) => Ok(Treatment::Other),
        };
        Some(LimitAnswer {
            treatment: self.note(&format!("{path}.treatment"), treatment),
            applied,
            status: reply.status,
        })
    }
}
