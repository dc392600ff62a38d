//! Bodies in pieces.

use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Buf;
use hyper::body::Body as _;
use proptest::prelude::*;

use crate::chunks::Chunks;
use crate::http::body::Body;
use backread_clock::Clock;

fn chunks(pieces: &[Vec<u8>]) -> Chunks {
    let mut chunks = Chunks::default();
    pieces.iter().for_each(|piece| chunks.push(piece.clone()));
    chunks
}

proptest! {
    #[test]
    fn pieces_read_like_one_text(pieces: Vec<Vec<u8>>, front in 0..400_u64) {
        let whole = pieces.concat();
        let mut body = Body::whole(chunks(&pieces)).shortened(front);
        let wanted = &whole[..whole.len().min(front as usize)];
        prop_assert_eq!(body.size_hint().exact(), Some(wanted.len() as u64));
        let mut context = Context::from_waker(Waker::noop());
        let mut read = Vec::new();
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) {
            let mut data = frame.into_data().unwrap();
            read.extend_from_slice(&data.copy_to_bytes(data.remaining()));
        }
        prop_assert_eq!(read, wanted);
    }
}

#[tokio::test(start_paused = true)]
async fn each_drip_comes_after_its_pause() {
    let whole: Vec<u8> = (0..100).collect();
    let pause = Duration::from_millis(250);
    let bytes = NonZeroUsize::new(30).unwrap();
    let body = Body::whole(chunks(&[whole[..50].to_vec(), whole[50..].to_vec()])).shortened(70);
    let mut body = body.dripping(bytes, pause, Clock::real());
    assert_eq!(body.size_hint().exact(), Some(70));
    let start = tokio::time::Instant::now();
    let mut drips = Vec::new();
    while let Some(Ok(frame)) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
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
