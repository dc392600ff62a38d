//! The body of a response: whole, partial, or in drips.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::chunks::Chunks;
use crate::http::exchange::OnSent;
use crate::http::socket::CloseSignal;
use backread_clock::Clock;

/// The body of one response. Its pieces are written to the socket without joining them.
pub struct Body {
    /// The part not sent yet.
    pieces: VecDeque<Bytes>,
    /// The number of bytes of this part.
    rest: usize,
    /// The number of bytes that Content-Length promises beyond that.
    missing: usize,
    drip: Option<Dripping>,
    /// Called once all of it was passed on.
    sent: Option<OnSent>,
    /// Notified once the last byte was passed on, if the connection then ends.
    signal: Option<Arc<CloseSignal>>,
}

struct Dripping {
    bytes: NonZeroUsize,
    pause: Duration,
    clock: Clock,
    hold: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// From this many pieces on, joining them is cheaper than passing each to the system.
const MANY_PIECES: usize = 12;

impl Body {
    /// The whole body, at once.
    pub fn whole(chunks: Chunks) -> Self {
        let rest = chunks.length();
        let mut pieces: VecDeque<Bytes> = chunks.into_iter().collect();
        if pieces.len() > MANY_PIECES {
            pieces = [join(pieces)].into();
        }
        Self {
            pieces,
            rest,
            missing: 0,
            drip: None,
            sent: None,
            signal: None,
        }
    }

    /// The first `bytes` of it, which Content-Length states as the length.
    pub fn shortened(mut self, bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.rest = self.rest.min(bytes);
        let mut left = self.rest;
        for piece in &mut self.pieces {
            piece.truncate(left);
            left -= piece.len();
        }
        self.pieces.retain(|piece| !piece.is_empty());
        self
    }

    /// The first `bytes` of it, then the signal.
    pub fn cut(self, bytes: u64, signal: &Arc<CloseSignal>) -> Self {
        let whole = self.rest;
        let mut body = self.shortened(bytes);
        body.missing = whole - body.rest;
        body.signal = Some(Arc::clone(signal));
        body
    }

    /// The same in drips: each `bytes` come after a pause.
    pub fn dripping(mut self, bytes: NonZeroUsize, pause: Duration, clock: Clock) -> Self {
        let joined = join(std::mem::take(&mut self.pieces));
        self.pieces
            .extend(Some(joined).filter(|joined| !joined.is_empty()));
        self.drip = Some(Dripping {
            bytes,
            pause,
            clock,
            hold: None,
        });
        self
    }

    /// The same; `sent` is called once all of it was passed on.
    pub fn notifying(mut self, sent: Option<OnSent>) -> Self {
        self.sent = sent;
        self
    }
}

fn join(pieces: VecDeque<Bytes>) -> Bytes {
    let mut joined = Vec::with_capacity(pieces.iter().map(Bytes::len).sum());
    pieces
        .iter()
        .for_each(|piece| joined.extend_from_slice(piece));
    joined.into()
}

impl Dripping {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let hold = self.hold.get_or_insert_with(|| {
            let (clock, pause) = (self.clock.clone(), self.pause);
            Box::pin(async move { clock.hold(Some(pause)).await })
        });
        ready!(hold.as_mut().poll(context));
        self.hold = None;
        Poll::Ready(())
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let body = self.get_mut();
        let piece = match (&mut body.drip, body.pieces.front_mut()) {
            (Some(drip), Some(front)) => {
                ready!(drip.poll(context));
                if front.len() > drip.bytes.get() {
                    Some(front.split_to(drip.bytes.get()))
                } else {
                    body.pieces.pop_front()
                }
            }
            _ => body.pieces.pop_front(),
        };
        body.rest -= piece.as_ref().map_or(0, Bytes::len);
        if body.pieces.is_empty() {
            if let Some(sent) = body.sent.take() {
                sent();
            }
            if let Some(signal) = &body.signal {
                signal.reach();
                if piece.is_none() {
                    // The task that waits for the signal ends the connection.
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.signal.is_none() && self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.rest + self.missing) as u64)
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        // A response without a body, as to HEAD, ends as well.
        if let Some(signal) = &self.signal {
            signal.reach();
        }
    }
}
