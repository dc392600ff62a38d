//! The body of a response: whole, partial, or in drips.

use std::convert::Infallible;
use std::fmt;
use std::io::IoSlice;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::vec;

use bytes::{Buf, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::chunks::Chunks;
use crate::http::exchange::Sent;
use crate::http::socket::CloseSignal;
use backread_clock::Clock;

/// Pieces that are written to the socket without joining them, if they are few.
#[derive(Debug, Default)]
pub struct Pieces {
    pieces: vec::IntoIter<Bytes>,
    remaining: usize,
}

impl Pieces {
    /// Takes the first `count` bytes, or all if there are fewer.
    fn split_front(&mut self, count: u64) -> Self {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut taken = Chunks::default();
        while let Some(front) = self.pieces.as_mut_slice().first_mut() {
            let wanted = count - taken.length();
            if wanted < front.len() {
                taken.push(front.split_to(wanted));
                break;
            }
            taken.push(std::mem::take(front));
            let _ = self.pieces.next();
        }
        self.remaining -= taken.length();
        taken.into()
    }
}

/// From this many pieces on, joining them is cheaper than passing each to the system.
const MANY_PIECES: usize = 32;

impl From<Chunks> for Pieces {
    fn from(chunks: Chunks) -> Self {
        let remaining = chunks.length();
        let mut pieces = chunks.into_iter();
        if pieces.len() > MANY_PIECES {
            let mut joined = Vec::with_capacity(remaining);
            pieces.for_each(|piece| joined.extend_from_slice(&piece));
            pieces = vec![Bytes::from(joined)].into_iter();
        }
        Self { pieces, remaining }
    }
}

impl Buf for Pieces {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.as_slice().first().map_or(&[], |piece| piece)
    }

    fn chunks_vectored<'buffer>(&'buffer self, slots: &mut [IoSlice<'buffer>]) -> usize {
        let mut filled = 0;
        for (slot, piece) in slots.iter_mut().zip(self.pieces.as_slice()) {
            *slot = IoSlice::new(piece);
            filled += 1;
        }
        filled
    }

    fn advance(&mut self, mut count: usize) {
        self.remaining = self.remaining.saturating_sub(count);
        while let Some(front) = self.pieces.as_mut_slice().first_mut() {
            if count < front.len() {
                front.advance(count);
                return;
            }
            count -= front.len();
            let _ = self.pieces.next();
        }
    }
}

/// The body of one response.
#[derive(Debug)]
pub struct Body {
    /// The part not sent yet.
    rest: Pieces,
    /// The number of bytes that Content-Length promises beyond that.
    missing: u64,
    drip: Option<Dripping>,
    /// Notified once all of it was passed on.
    sent: Option<Arc<dyn Sent>>,
    /// Notified once the last byte was passed on, if the connection then ends.
    signal: Option<Arc<CloseSignal>>,
}

struct Dripping {
    bytes: NonZeroU64,
    pause: Duration,
    clock: Clock,
    hold: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl fmt::Debug for Dripping {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Dripping({} bytes, {:?})",
            self.bytes, self.pause
        )
    }
}

impl Body {
    /// The whole body, at once.
    pub fn whole(chunks: Chunks) -> Self {
        Self {
            rest: chunks.into(),
            missing: 0,
            drip: None,
            sent: None,
            signal: None,
        }
    }

    /// The first `bytes` of it, which Content-Length states as the length.
    pub fn short(chunks: Chunks, bytes: u64) -> Self {
        let mut all = Pieces::from(chunks);
        Self {
            rest: all.split_front(bytes),
            missing: 0,
            drip: None,
            sent: None,
            signal: None,
        }
    }

    /// The first `bytes` of it, then the signal.
    pub fn cut(chunks: Chunks, bytes: u64, signal: &Arc<CloseSignal>) -> Self {
        let mut all = Pieces::from(chunks);
        Self {
            rest: all.split_front(bytes),
            missing: all.remaining as u64,
            drip: None,
            sent: None,
            signal: Some(Arc::clone(signal)),
        }
    }

    /// The same in drips: each `bytes` come after a pause.
    pub fn dripping(mut self, bytes: NonZeroU64, pause: Duration, clock: Clock) -> Self {
        self.drip = Some(Dripping {
            bytes,
            pause,
            clock,
            hold: None,
        });
        self
    }
}

impl Body {
    /// The same; `sent` is notified once all of it was passed on.
    pub fn notifying(mut self, sent: Option<Arc<dyn Sent>>) -> Self {
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
    type Data = Pieces;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Pieces>, Infallible>>> {
        let body = self.get_mut();
        let frame = if body.rest.has_remaining() {
            Some(match &mut body.drip {
                Some(drip) => {
                    ready!(drip.poll(context));
                    body.rest.split_front(drip.bytes.get())
                }
                None => std::mem::take(&mut body.rest),
            })
        } else {
            None
        };
        if !body.rest.has_remaining()
            && let Some(sent) = body.sent.take()
        {
            sent.sent();
        }
        if !body.rest.has_remaining()
            && let Some(signal) = &body.signal
        {
            signal.reach();
            if frame.is_none() {
                // The task that waits for the signal ends the connection.
                return Poll::Pending;
            }
        }
        Poll::Ready(frame.map(|pieces| Ok(Frame::data(pieces))))
    }

    fn is_end_stream(&self) -> bool {
        self.signal.is_none() && !self.rest.has_remaining()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.remaining as u64 + self.missing)
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use proptest::prelude::*;

    use super::*;

    fn chunks(pieces: &[Vec<u8>]) -> Chunks {
        let mut chunks = Chunks::default();
        pieces.iter().for_each(|piece| chunks.push(piece.clone()));
        chunks
    }

    proptest! {
        #[test]
        fn pieces_read_like_one_text(
            pieces: Vec<Vec<u8>>, front in 0..400_u64, steps in prop::collection::vec(0..90_usize, 0..9),
        ) {
            let whole = pieces.concat();
            let mut rest = Pieces::from(chunks(&pieces));
            let taken = rest.split_front(front);
            prop_assert_eq!(taken.remaining() + rest.remaining(), whole.len());
            prop_assert_eq!(taken.remaining(), whole.len().min(front as usize));
            let mut all = taken.chain(rest);
            let mut at = 0;
            for step in steps {
                prop_assert_eq!(all.chunk(), &whole[at..][..all.chunk().len()]);
                let step = step.min(all.remaining());
                all.advance(step);
                at += step;
            }
            let mut slots = [IoSlice::new(&[]); 200];
            let filled = all.chunks_vectored(&mut slots);
            let shown: Vec<u8> = slots[..filled].iter().flat_map(|slot| slot.to_vec()).collect();
            prop_assert_eq!(shown, &whole[at..]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_drip_comes_after_its_pause() {
        let whole: Vec<u8> = (0..100).collect();
        let pause = Duration::from_millis(250);
        let bytes = NonZeroU64::new(30).unwrap();
        let body = Body::short(chunks(&[whole[..50].to_vec(), whole[50..].to_vec()]), 70);
        let mut body = body.dripping(bytes, pause, Clock::real());
        assert_eq!(body.size_hint().exact(), Some(70));
        let start = tokio::time::Instant::now();
        let mut drips = Vec::new();
        while let Some(Ok(frame)) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
        {
            let mut pieces = frame.into_data().unwrap();
            let bytes = pieces.copy_to_bytes(pieces.remaining());
            drips.push((start.elapsed().as_millis(), bytes.to_vec()));
        }
        let expected = [(250, 0..30), (500, 30..60), (750, 60..70)];
        assert_eq!(
            drips,
            expected.map(|(at, range)| (at, whole[range].to_vec()))
        );
    }
}
