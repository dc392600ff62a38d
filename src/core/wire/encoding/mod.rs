//! Decodes content encodings (RFC 9110, 8.4) piece by piece, within a size limit.

use std::io::{self, Write};

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::write::MultiGzDecoder;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

/// The `Accept-Encoding` header.
pub const ACCEPTED: &str = "zstd,gzip,br";

// RFC 9659 section 3: decoders need not support zstd windows above 8 MiB.
const LARGEST_ZSTD_WINDOW: u32 = 23;
const PIECE: usize = 32 * 1024;
// The most memory reserved before a body arrives, in bytes.
const MOST_RESERVED: u64 = 1 << 20;
// A body that becomes longer than this gets room for the longest at once; what it does not fill is not
// memory yet.
const LARGE: usize = 16 * 1024 * 1024;

/// The content encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Plain,
    Gzip,
    Brotli,
    Zstd,
}

impl Encoding {
    /// Parses Content-Encoding; `None` if it names an encoding that was not requested.
    pub fn named<'a>(values: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut found = Self::Plain;
        for name in values.flat_map(|value| value.split(',')).map(str::trim) {
            let named = match name.to_ascii_lowercase().as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => Self::Gzip,
                "br" => Self::Brotli,
                "zstd" => Self::Zstd,
                _ => return None,
            };
            if found != Self::Plain {
                return None;
            }
            found = named;
        }
        Some(found)
    }
}

/// Why a body cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfit {
    TooLarge,
    Broken(String),
}

/// A body that arrives piece by piece, with a size limit before and after decoding.
pub struct Body {
    came: u64,
    most: u64,
    unpacker: Unpacker,
    /// The first bytes as they came, if they are kept.
    raw: Option<Vec<u8>>,
}

enum Unpacker {
    Plain(Unpacked),
    Gzip(Box<MultiGzDecoder<Unpacked>>),
    Brotli(Box<Brotli>, Unpacked),
    Zstd(Box<Zstd>, Unpacked),
}

impl Body {
    /// `length` is the response's Content-Length; the body gets no memory that it does not fill.
    pub fn new(encoding: Encoding, length: Option<u64>, most: u64) -> Self {
        let reserved = length.unwrap_or(0).min(most).min(MOST_RESERVED);
        let unpacked = Unpacked {
            bytes: Vec::with_capacity(usize::try_from(reserved).unwrap_or(0)),
            most,
            overflown: false,
        };
        Self {
            came: 0,
            most,
            unpacker: match encoding {
                Encoding::Plain => Unpacker::Plain(unpacked),
                Encoding::Gzip => Unpacker::Gzip(Box::new(MultiGzDecoder::new(unpacked))),
                Encoding::Brotli => Unpacker::Brotli(Box::new(Brotli::new()), unpacked),
                Encoding::Zstd => Unpacker::Zstd(Box::default(), unpacked),
            },
            raw: None,
        }
    }

    /// Keeps the first bytes as they came, for a body that is not what its encoding says: proxies
    /// label their own pages so.
    pub fn keeping_raw(self) -> Self {
        Self {
            raw: Some(Vec::new()),
            ..self
        }
    }

    pub fn add(&mut self, packed: &[u8]) -> Result<(), Unfit> {
        // An empty input may look to a decoder like the start of another frame.
        if packed.is_empty() {
            return Ok(());
        }
        self.came = self.came.saturating_add(packed.len() as u64);
        if let Some(raw) = self.raw.as_mut().filter(|raw| raw.is_empty()) {
            let most = usize::try_from(self.most).unwrap_or(usize::MAX);
            raw.extend_from_slice(packed.get(..most).unwrap_or(packed));
        }
        // A body that decodes to nothing could go on forever.
        if self.came > self.most {
            return Err(Unfit::TooLarge);
        }
        let added = match &mut self.unpacker {
            Unpacker::Plain(unpacked) => unpacked.write_all(packed),
            Unpacker::Gzip(gzip) => gzip.write_all(packed),
            Unpacker::Brotli(brotli, unpacked) => brotli.unpack(packed, unpacked),
            Unpacker::Zstd(zstd, unpacked) => zstd.unpack(packed, unpacked),
        };
        added.map_err(|error| self.unfit(&error))
    }

    /// Ends the body; an error means that it is incomplete.
    pub fn end(&mut self) -> Result<(), Unfit> {
        let ended = match &mut self.unpacker {
            // An empty body is a valid encoding of nothing.
            _ if self.came == 0 => Ok(()),
            Unpacker::Plain(_) => Ok(()),
            Unpacker::Gzip(gzip) => gzip.try_finish(),
            Unpacker::Brotli(brotli, _) if brotli.ended => Ok(()),
            Unpacker::Zstd(zstd, _) if !zstd.within_frame => Ok(()),
            Unpacker::Brotli(..) | Unpacker::Zstd(..) => Err(io::ErrorKind::UnexpectedEof.into()),
        };
        ended.map_err(|error| self.unfit(&error))
    }

    /// Takes the bytes decoded so far.
    pub fn take(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.unpacked().bytes);
        if bytes.len() >= LARGE {
            bytes.shrink_to_fit();
        }
        bytes
    }

    /// The same for a body that could not be decoded: if there are none, those kept as they came.
    pub fn take_what_came(&mut self) -> Vec<u8> {
        let bytes = self.take();
        match self.raw.take() {
            Some(raw) if bytes.is_empty() => raw,
            _ => bytes,
        }
    }

    fn unpacked(&mut self) -> &mut Unpacked {
        match &mut self.unpacker {
            Unpacker::Plain(unpacked)
            | Unpacker::Brotli(_, unpacked)
            | Unpacker::Zstd(_, unpacked) => unpacked,
            Unpacker::Gzip(gzip) => gzip.get_mut(),
        }
    }

    fn unfit(&mut self, error: &io::Error) -> Unfit {
        match self.unpacked().overflown {
            true => Unfit::TooLarge,
            false => Unfit::Broken(error.to_string()),
        }
    }
}

/// Decoded bytes, up to a limit.
struct Unpacked {
    bytes: Vec<u8>,
    most: u64,
    overflown: bool,
}

impl Write for Unpacked {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let room = self.most.saturating_sub(self.bytes.len() as u64);
        if piece.len() as u64 > room {
            self.overflown = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let full = self.bytes.capacity() - self.bytes.len() < piece.len();
        if full && self.bytes.len() >= LARGE {
            // Growth in steps copies, and both copies take memory for a while. If so much cannot be
            // reserved, it grows in steps.
            let _ = self
                .bytes
                .try_reserve_exact(usize::try_from(room).unwrap_or(0));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Brotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    ended: bool,
}

impl Brotli {
    fn new() -> Self {
        let allocator = StandardAlloc::default;
        Self {
            // Strict: no windows of up to 1 GiB, which RFC 7932 does not have.
            state: BrotliState::new_strict(allocator(), allocator(), allocator()),
            ended: false,
        }
    }

    fn unpack(&mut self, packed: &[u8], unpacked: &mut Unpacked) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        let (mut available, mut taken) = (packed.len(), 0);
        while !self.ended {
            let (mut room, mut made) = (piece.len(), 0);
            let result = BrotliDecompressStream(
                &mut available,
                &mut taken,
                packed,
                &mut room,
                &mut made,
                &mut piece,
                &mut 0,
                &mut self.state,
            );
            unpacked.write_all(piece.get(..made).unwrap_or_default())?;
            match result {
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::NeedsMoreInput => return Ok(()),
                BrotliResult::ResultSuccess => self.ended = true,
                BrotliResult::ResultFailure => return Err(io::Error::other("not a brotli stream")),
            }
        }
        match available {
            0 => Ok(()),
            _ => Err(io::Error::other("data after the end of the brotli stream")),
        }
    }
}

#[derive(Default)]
struct Zstd {
    /// Created with the first bytes.
    context: Option<DCtx<'static>>,
    within_frame: bool,
}

impl Zstd {
    fn unpack(&mut self, packed: &[u8], unpacked: &mut Unpacked) -> io::Result<()> {
        let failed = |code| io::Error::other(get_error_name(code));
        let context = match &mut self.context {
            Some(context) => context,
            none => {
                let mut made = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
                let window = DParameter::WindowLogMax(LARGEST_ZSTD_WINDOW);
                made.set_parameter(window).map_err(failed)?;
                none.insert(made)
            }
        };
        let mut piece = vec![0; PIECE];
        let mut input = InBuffer::around(packed);
        loop {
            let mut output = OutBuffer::around(piece.as_mut_slice());
            let wanted = context.decompress_stream(&mut output, &mut input);
            let made = output.as_slice();
            self.within_frame = wanted.map_err(failed)? > 0;
            unpacked.write_all(made)?;
            // If a piece is full, there may be more decoded data in the frame.
            let drained = !self.within_frame || made.len() < PIECE;
            if drained && input.pos() == packed.len() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests;
