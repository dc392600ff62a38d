//! One connection: HTTP on a socket, with each response sent in its chosen delivery.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use tokio::net::TcpStream;

use super::admin::is_admin;
use super::responder::Responder;
use crate::faults::delivery::Ending;
use crate::http::body::Body;
use crate::http::exchange::{Answer, Call, Sending};
use crate::http::socket::{CloseSignal, Exit, Wire};

/// The longest head, in bytes, as in Node.js (`--max-http-header-size`).
const LONGEST_HEAD: usize = 16 * 1024;
// What hyper answers to what is not HTTP, and to a longer head.
const NOT_HTTP: u16 = 400;
const TOO_LARGE: u16 = 431;

/// When a request is answered.
enum Reply {
    Now(Answer),
    Later(Pin<Box<dyn Future<Output = Answer> + Send>>),
    Never,
}

/// Answers the requests of a connection until either side closes it.
pub async fn serve_connection<R: Responder>(stream: TcpStream, responder: Arc<R>) {
    let _ = stream.set_nodelay(true);
    let signal = Arc::new(CloseSignal::default());
    let stale = AtomicBool::new(false);
    let answer = service_fn(|request: Request<Incoming>| {
        if stale.load(Ordering::Relaxed) && !signal.is_planned() {
            signal.plan(Exit::Close);
            signal.reach();
        }
        let reply = match responder.admin() {
            // A request on a connection that is about to be closed is not even read.
            _ if signal.is_planned() => Reply::Never,
            Some(admin) if is_admin(request.uri().path()) => {
                Reply::Later(Box::pin(Arc::clone(admin).answer(request)))
            }
            _ => Reply::Now(responder.answer(Call {
                method: request.method(),
                uri: request.uri(),
                headers: request.headers(),
            })),
        };
        let (signal, stale) = (&signal, &stale);
        async move {
            let mut answer = match reply {
                Reply::Now(answer) => answer,
                Reply::Later(answer) => answer.await,
                Reply::Never => return pending().await,
            };
            let body = std::mem::take(&mut answer.body);
            let body = match answer.sending.take() {
                None => Body::whole(body),
                Some(sending) => {
                    let sending = Box::pin(send(body, *sending, signal, stale));
                    sending.await
                }
            };
            Ok::<_, Infallible>(respond(answer, body))
        }
    });
    let mut connection = http1::Builder::new()
        .auto_date_header(false)
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
        (Some(Err(error)), _) if error.is_parse_too_large() => responder.malformed(TOO_LARGE),
        (Some(Err(error)), _) if error.is_parse() => responder.malformed(NOT_HTTP),
        _ => {}
    }
}

/// Delays a response, and applies its delivery to the body.
async fn send(
    chunks: crate::chunks::Chunks,
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
    let exit = match delivery.ending {
        Ending::Whole | Ending::Short { .. } | Ending::Stale => None,
        Ending::Reset { after_bytes } => Some((after_bytes, Exit::Reset)),
        Ending::Close { after_bytes } => Some((Some(after_bytes), Exit::Close)),
        Ending::Stall { after_bytes } => Some((after_bytes, Exit::Stall(clock.clone()))),
    };
    let body = match (exit, delivery.ending) {
        (Some((after_bytes, exit)), _) => {
            signal.plan(exit);
            match after_bytes {
                Some(bytes) => Body::cut(chunks, bytes, signal),
                None => {
                    signal.reach();
                    pending().await
                }
            }
        }
        (None, Ending::Short { bytes }) => Body::short(chunks, bytes),
        (None, ending) => {
            stale.store(ending == Ending::Stale, Ordering::Relaxed);
            Body::whole(chunks)
        }
    };
    match delivery.drip {
        Some(drip) => body.dripping(drip.bytes, drip.pause, clock).notifying(sent),
        None => {
            if let Some(sent) = sent {
                sent.sent();
            }
            body
        }
    }
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
