//! One connection: HTTP on a socket, with each response sent in its chosen delivery.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioTimer;
use tokio::net::TcpStream;

use super::admin::{Admin, is_admin};
use crate::faults::delivery::{Ending, How};
use crate::http::body::Body;
use crate::http::exchange::{Answer, Sending};
use crate::http::socket::{CloseSignal, Exit, Wire};

/// The longest head, in bytes, as in Node.js (`--max-http-header-size`).
const LONGEST_HEAD: usize = 16 * 1024;
// What hyper answers to what is not HTTP, and to a longer head.
const NOT_HTTP: u16 = 400;
const TOO_LARGE: u16 = 431;

/// How long a client may take for a head, and be idle before it, as nginx's
/// `client_header_timeout`.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Answers the requests of a connection until either side closes it.
pub async fn serve_connection(stream: TcpStream, admin: Arc<Admin>) {
    let _ = stream.set_nodelay(true);
    let signal = Arc::new(CloseSignal::default());
    let stale = AtomicBool::new(false);
    let answer = service_fn(|request: Request<Incoming>| {
        let (admin, signal, stale) = (&admin, &signal, &stale);
        async move {
            if stale.load(Ordering::Relaxed) && !signal.is_planned() {
                signal.plan(Exit::Close);
                signal.reach();
            }
            if signal.is_planned() {
                // A request on a connection that is about to be closed is not even read.
                return pending().await;
            }
            let mut answer = match is_admin(request.uri().path()) {
                true => Box::pin(Arc::clone(admin).administer(request)).await,
                false => admin.answer(&request.into_parts().0),
            };
            let body = Body::whole(std::mem::take(&mut answer.body));
            let body = match answer.sending.take() {
                None => body,
                Some(sending) => Box::pin(send(body, *sending, signal, stale)).await,
            };
            Ok::<_, Infallible>(respond(answer, body))
        }
    });
    let mut connection = http1::Builder::new()
        .auto_date_header(false)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(Wire::new(stream, Arc::clone(&signal)), answer);
    let ended = poll_fn(|context| {
        if let Poll::Ready(ended) = Pin::new(&mut connection).poll(context) {
            return Poll::Ready(Some(ended));
        }
        match signal.due() {
            Some(_) => Poll::Ready(None),
            None => Poll::Pending,
        }
    });
    match (ended.await, signal.due()) {
        (None, Some(exit)) => connection.into_parts().io.leave(exit).await,
        // Any other failure was caused by the client, and there is no one left to tell.
        (Some(Err(error)), _) if error.is_parse_too_large() => admin.malformed(TOO_LARGE),
        (Some(Err(error)), _) if error.is_parse() => admin.malformed(NOT_HTTP),
        _ => {}
    }
}

/// Delays a response, and applies its delivery to the body.
async fn send(
    mut body: Body,
    Sending {
        delivery,
        clock,
        sent,
    }: Sending,
    signal: &Arc<CloseSignal>,
    stale: &AtomicBool,
) -> Body {
    if !delivery.delay.is_zero() {
        clock.hold(Some(delivery.delay)).await;
    }
    if let Some(Ending { how, after_bytes }) = delivery.ending {
        let exit = match how {
            How::Reset => Some(Exit::Reset),
            How::Close => Some(Exit::Close),
            How::Stall => Some(Exit::Stall(clock.clone())),
            How::Short | How::Stale => None,
        };
        stale.store(how == How::Stale, Ordering::Relaxed);
        match (exit, after_bytes) {
            (Some(exit), Some(bytes)) => {
                signal.plan(exit);
                body = body.cut(bytes, signal);
            }
            (Some(exit), None) => {
                signal.plan(exit);
                signal.reach();
                return pending().await;
            }
            (None, bytes) => body = body.shortened(bytes.unwrap_or(u64::MAX)),
        }
    }
    if let Some(drip) = delivery.drip {
        body = body.dripping(drip.bytes, drip.pause, clock);
    }
    body.notifying(sent)
}

fn respond(answer: Answer, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, answer.content_type);
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.append(HeaderName::from_static(name), value);
        }
    }
    response
}
