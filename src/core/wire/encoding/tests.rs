use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

const TEXT: &[u8] = br#"{"id": 42, "name": "Ada"}"#;
const MOST: u64 = 1 << 20;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    let mut packed = vec![0; zstd_safe::compress_bound(text.len())];
    let length = zstd_safe::compress(packed.as_mut_slice(), text, 3).unwrap();
    packed.truncate(length);
    packed
}

/// `TEXT`, or the letter a 100,000 times.
fn brotli(many: bool) -> Vec<u8> {
    let hex = match many {
        false => "0b0c807b226964223a2034322c20226e616d65223a2022416461227d03",
        true => "5b9f860140222c1e0b24cb2f00",
    };
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

fn unpack(
    encoding: Encoding,
    packed: &[u8],
    step: usize,
    most: u64,
) -> (Vec<u8>, Result<(), Unfit>) {
    let mut body = Body::new(encoding, None, most);
    let added = packed
        .chunks(step)
        .try_for_each(|chunk| body.add(chunk).and_then(|()| body.add(&[])));
    let ended = added.and_then(|()| body.end());
    (body.take(), ended)
}

fn samples() -> [(Encoding, Vec<u8>); 3] {
    [
        (Encoding::Gzip, gzip(TEXT)),
        (Encoding::Brotli, brotli(false)),
        (Encoding::Zstd, zstd(TEXT)),
    ]
}

#[test]
fn an_encoding_goes_by_its_name_and_only_one_is_known_at_a_time() {
    let named = |values: &[&'static str]| Encoding::named(values.iter().copied());
    for (values, encoding) in [
        (&[][..], Some(Encoding::Plain)),
        (&[""], Some(Encoding::Plain)),
        (&["identity, GZIP"], Some(Encoding::Gzip)),
        (&["x-gzip"], Some(Encoding::Gzip)),
        (&[" br "], Some(Encoding::Brotli)),
        (&["Zstd"], Some(Encoding::Zstd)),
        (&["gzip, gzip"], None),
        (&["gzip", "br"], None),
        (&["deflate"], None),
    ] {
        assert_eq!(named(values), encoding, "{values:?}");
    }
}

#[test]
fn in_whatever_pieces_it_comes_it_is_the_same() {
    for (encoding, packed) in samples() {
        for step in 1..=packed.len() {
            let (text, ended) = unpack(encoding, &packed, step, MOST);
            assert_eq!((text.as_slice(), ended), (TEXT, Ok(())), "{encoding:?}");
        }
    }
}

#[test]
fn what_ends_early_is_broken_wherever_it_ends() {
    for (encoding, packed) in samples() {
        for length in 1..packed.len() {
            let (_, ended) = unpack(encoding, &packed[..length], 7, MOST);
            assert!(
                matches!(ended, Err(Unfit::Broken(_))),
                "{encoding:?} {length}"
            );
        }
        assert_eq!(unpack(encoding, &[], 1, MOST), (Vec::new(), Ok(())));
    }
}

#[test]
fn what_comes_after_the_end_is_broken() {
    for (encoding, mut packed) in samples() {
        packed.extend_from_slice(b"junk!");
        for step in [1, packed.len()] {
            let (_, ended) = unpack(encoding, &packed, step, MOST);
            assert!(
                matches!(ended, Err(Unfit::Broken(_))),
                "{encoding:?} {step}"
            );
        }
    }
}

#[test]
fn several_members_or_frames_are_one_body() {
    for (encoding, pack) in [
        (Encoding::Gzip, gzip as fn(&[u8]) -> _),
        (Encoding::Zstd, zstd),
    ] {
        let (start, end) = TEXT.split_at(9);
        let packed = [pack(start), pack(b""), pack(end)].concat();
        for step in 1..=packed.len() {
            let (text, ended) = unpack(encoding, &packed, step, MOST);
            assert_eq!((text.as_slice(), ended), (TEXT, Ok(())), "{encoding:?}");
        }
    }
}

#[test]
fn the_bound_is_over_what_is_unpacked_to_the_byte() {
    let many = vec![b'a'; 100_000];
    for (encoding, packed) in [
        (Encoding::Gzip, gzip(&many)),
        (Encoding::Brotli, brotli(true)),
        (Encoding::Zstd, zstd(&many)),
        (Encoding::Plain, many.clone()),
    ] {
        let (text, ended) = unpack(encoding, &packed, 5_000, 100_000);
        assert_eq!((text, ended), (many.clone(), Ok(())), "{encoding:?}");
        let (text, ended) = unpack(encoding, &packed, 5_000, 99_999);
        assert_eq!(ended, Err(Unfit::TooLarge), "{encoding:?}");
        assert!(text.len() < 100_000);
    }
}

#[test]
fn what_unpacks_to_nothing_has_an_end_too() {
    let skipped = [b"\x50\x2a\x4d\x18\x00\x00\x00\x00".as_slice(); 100].concat();
    let empty = vec![gzip(b""); 100].concat();
    for (encoding, packed) in [(Encoding::Zstd, skipped), (Encoding::Gzip, empty)] {
        assert_eq!(unpack(encoding, &packed, 64, 10_000).1, Ok(()));
        assert_eq!(unpack(encoding, &packed, 64, 700).1, Err(Unfit::TooLarge));
    }
}

#[test]
fn a_window_that_nobody_need_hold_is_refused() {
    // A frame with one block of one byte, which requires a window of 16 MiB or of 8.
    let frame = |window: u8| {
        [
            &b"\x28\xb5\x2f\xfd\x00"[..],
            &[window << 3],
            b"\x09\x00\x00a",
        ]
        .concat()
    };
    assert_eq!(
        unpack(Encoding::Zstd, &frame(13), 99, MOST),
        (b"a".to_vec(), Ok(()))
    );
    let (_, ended) = unpack(Encoding::Zstd, &frame(14), 99, MOST);
    assert!(matches!(ended, Err(Unfit::Broken(_))), "{ended:?}");
    // The marker of a large window, of 30 bits.
    let (_, ended) = unpack(Encoding::Brotli, &[0x11, 30, 3], 99, MOST);
    assert!(matches!(ended, Err(Unfit::Broken(_))), "{ended:?}");
}

proptest! {
    #[test]
    fn any_bytes_end_in_a_body_or_in_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        start in 0_usize..30,
        step in 1_usize..50,
    ) {
        for (encoding, packed) in samples() {
            let odd = [&packed[..start.min(packed.len())], &bytes].concat();
            let (text, _) = unpack(encoding, &odd, step, 5_000);
            prop_assert!(text.len() <= 5_000);
        }
    }
}
