//! The body of a response: whole, partial, or in drips.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Buf;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::chunks::Chunks;
use crate::http::exchange::OnSent;
use crate::http::socket::CloseSignal;
use backread_clock::Clock;

/// The body of one response.
pub struct Body {
    /// The part not sent yet.
    unsent: Chunks,
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

impl Body {
    /// The whole body, at once.
    pub fn whole(chunks: Chunks) -> Self {
        Self {
            unsent: chunks.joined(),
            missing: 0,
            drip: None,
            sent: None,
            signal: None,
        }
    }

    /// The first `bytes` of it, which Content-Length states as the length.
    pub fn shortened(mut self, bytes: u64) -> Self {
        self.unsent
            .truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        self
    }

    /// The first `bytes` of it, then the signal.
    pub fn cut(self, bytes: u64, signal: &Arc<CloseSignal>) -> Self {
        let whole = self.unsent.length();
        let mut body = self.shortened(bytes);
        body.missing = whole - body.unsent.length();
        body.signal = Some(Arc::clone(signal));
        body
    }

    /// The same in drips: each `bytes` come after a pause.
    pub fn dripping(mut self, bytes: NonZeroUsize, pause: Duration, clock: Clock) -> Self {
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
    type Data = Chunks;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunks>, Infallible>>> {
        let body = self.get_mut();
        let frame = match (&mut body.drip, body.unsent.has_remaining()) {
            (_, false) => None,
            (None, true) => Some(std::mem::take(&mut body.unsent)),
            (Some(drip), true) => {
                ready!(drip.poll(context));
                let length = body.unsent.length().min(drip.bytes.get());
                Some(Chunks::from(body.unsent.copy_to_bytes(length)))
            }
        };
        if !body.unsent.has_remaining() {
            if let Some(sent) = body.sent.take() {
                sent();
            }
            if let Some(signal) = &body.signal {
                signal.reach();
                if frame.is_none() {
                    // The task that waits for the signal ends the connection.
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(frame.map(|chunks| Ok(Frame::data(chunks))))
    }

    fn is_end_stream(&self) -> bool {
        self.signal.is_none() && !self.unsent.has_remaining()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.unsent.length() + self.missing) as u64)
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
