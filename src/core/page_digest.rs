//! A keyed digest of a response that held a whole list, or of the rows at a list's growing end, by
//! which a later run knows that they have not changed.
//!
//! Visitors write the messages, so a hash without a key would let one of them prepare two texts of
//! the same digest and change one for the other unseen. HighwayHash is made for that, as SipHash is,
//! which took a sixth of the CPU of a sync of unchanged lists; 128 bits, because 64 would collide by
//! chance in a mirror of many lists.

use highway::{HighwayHash, HighwayHasher, Key};

use super::schema;

/// Another version may decode the same body to something else, or to more fields.
const DECODED_BY: &str = env!("CARGO_PKG_VERSION");

/// The random key of a mirror.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DigestKey([u8; 16]);

impl std::fmt::Debug for DigestKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("DigestKey(..)")
    }
}

/// The digest of one response's body, or of several rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(pub [u8; 16]);

impl DigestKey {
    pub fn new(key: [u8; 16]) -> Self {
        Self(key)
    }

    /// The digest of a body as this version decodes it.
    pub fn digest(&self, body: &[u8]) -> Digest {
        let mut hasher = HighwayHasher::new(self.expanded());
        for part in std::iter::once(DECODED_BY).chain(schema::names()) {
            hasher.append(part.as_bytes());
            hasher.append(&[0]);
        }
        hasher.append(body);
        Digest::of(hasher.finalize128())
    }

    /// The digest of a text, such as one row for that of `rows`.
    pub fn row(&self, json: &str) -> Digest {
        Digest::of(HighwayHasher::new(self.expanded()).hash128(json.as_bytes()))
    }

    /// The digest of these rows, in this order, as this version decodes them.
    pub fn rows<'a>(&self, rows: impl IntoIterator<Item = &'a Digest>) -> Digest {
        let rows: Vec<[u8; 16]> = rows.into_iter().map(|row| row.0).collect();
        self.digest(rows.as_flattened())
    }

    /// HighwayHash takes a key of 256 bits; half of them are secret here.
    fn expanded(self) -> Key {
        let key = u128::from_le_bytes(self.0);
        let halves = [key as u64, (key >> 64) as u64];
        Key([halves[0], halves[1], !halves[0], !halves[1]])
    }
}

impl Digest {
    fn of([low, high]: [u64; 2]) -> Self {
        Self(((u128::from(high) << 64) | u128::from(low)).to_le_bytes())
    }

    /// `None` unless it is of 16 bytes.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_of_rows_depends_on_each_and_on_their_order() {
        let key = DigestKey::new([1; 16]);
        let of = |rows: &[&str]| {
            let rows: Vec<Digest> = rows.iter().map(|row| key.row(row)).collect();
            key.rows(&rows)
        };
        let digest = of(&["{}", "[]"]);
        assert_eq!(digest, of(&["{}", "[]"]));
        for other in [&["[]", "{}"][..], &["{}"], &["{}", "[]", "[]"], &["{}[]"]] {
            assert_ne!(digest, of(other));
        }
    }

    #[test]
    fn a_digest_depends_on_key_and_body() {
        let of = |key: u8, body: &[u8]| DigestKey::new([key; 16]).digest(body);
        let digest = of(1, b"{}");
        assert_eq!(digest, of(1, b"{}"));
        assert_ne!(digest, of(2, b"{}"));
        assert_ne!(digest, of(1, b"{ }"));
        assert_eq!(Digest::from_slice(&digest.0), Some(digest));
        assert_eq!(Digest::from_slice(&[1; 15]), None);
    }
}
