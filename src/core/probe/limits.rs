//! The default page, the largest one, and the responses to limits outside 1 to 99.

use super::probe_client::{Listed, Measured, ProbeClient, Reply, unmeasured};
use super::profile::{LimitAnswer, Treatment};
use crate::api::{LARGEST_LIMIT, Limit, List};
use crate::probe_request::ProbeRequest;

/// Requests smaller and smaller limits until one is applied, at most seven times.
pub async fn largest_page(
    probe_client: &mut ProbeClient,
    default: Option<u64>,
    first: Option<&Listed>,
) -> Measured<u64> {
    let most = u64::from(LARGEST_LIMIT);
    if let Some(listed) = first {
        match listed.applied() {
            None => {
                return unmeasured(
                    "no page reports the limit applied, and its rows do not show it",
                );
            }
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
        let reply = probe_client
            .send(&ProbeRequest::start(List::Users, Some(limit)))
            .await?;
        let applied = reply.listed().and_then(|listed| listed.applied());
        match applied == Some(limit) {
            true => low = limit,
            false => high = limit,
        }
    }
    match low {
        0 => unmeasured("no limit from 1 to 99 was applied as requested"),
        _ => Ok(low),
    }
}

/// The response to a limit outside the interface's range.
pub fn outside(
    reply: &Reply,
    limit: u64,
    default: Option<u64>,
    largest: Option<u64>,
) -> (LimitAnswer, Option<&'static str>) {
    let listed = reply.listed();
    let applied = listed.as_ref().and_then(Listed::applied);
    let nearest = if limit == 0 { Some(1) } else { largest };
    let (treatment, note) = match applied {
        _ if reply.is_refusal() => (Some(Treatment::Refused), None),
        _ if listed.is_none() => (Some(Treatment::Other), None),
        None => (
            None,
            Some("the page does not report the limit applied, and its rows do not show it"),
        ),
        Some(applied) if applied == limit => (Some(Treatment::Applied), None),
        Some(applied) if Some(applied) == nearest && nearest == default => (
            None,
            Some(
                "the nearest limit and the default page are equal, so which was applied is unclear",
            ),
        ),
        Some(applied) if Some(applied) == nearest => (Some(Treatment::Clamped), None),
        Some(applied) if Some(applied) == default => (Some(Treatment::Ignored), None),
        Some(_) => (Some(Treatment::Other), None),
    };
    let answer = LimitAnswer {
        treatment,
        applied,
        answer: reply.profile(),
    };
    (answer, note)
}

/// The limit for all further pages.
pub fn to_read_with(largest: Option<u64>) -> Limit {
    largest
        .and_then(|largest| i64::try_from(largest).ok())
        .and_then(|largest| Limit::new("limit", largest).ok())
        .unwrap_or(Limit::LARGEST)
}
