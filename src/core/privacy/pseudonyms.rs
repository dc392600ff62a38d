//! Pseudonyms: `email-` and 32 hexadecimal digits, by HMAC-SHA256 under a key.

use std::fmt::Write;

use ring::hmac;
use url::Url;

/// Bytes of a pseudonym, of the 32 that the hash has.
const LENGTH: usize = 16;

/// Makes pseudonyms; holds the key, and its debug form does not show it.
#[derive(Debug)]
pub struct Pseudonyms(hmac::Key);

impl Pseudonyms {
    pub fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The pseudonym of a text, which begins with the kind of the text: equal texts of one kind have
    /// equal pseudonyms. An empty text stays empty.
    pub fn of(&self, kind: &'static str, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let mut hash = hmac::Context::with_key(&self.0);
        // No kind has a colon, so no two kinds hash the same bytes.
        for part in [kind, ":", text] {
            hash.update(part.as_bytes());
        }
        let mut pseudonym = String::with_capacity(kind.len() + 1 + 2 * LENGTH);
        pseudonym.push_str(kind);
        pseudonym.push('-');
        for byte in hash.sign().as_ref().iter().take(LENGTH) {
            let _ = write!(pseudonym, "{byte:02x}");
        }
        pseudonym
    }

    /// The address of a page: its host and the pseudonym of its path. Query and fragment are left
    /// out, and so are a user name and a password.
    pub fn page(&self, address: &str) -> String {
        let page = Url::parse(address).ok();
        let page = page.filter(|page| matches!(page.scheme(), "http" | "https"));
        let Some((page, host)) = page
            .as_ref()
            .and_then(|page| Some((page, page.host_str()?)))
        else {
            return self.of("url", address);
        };
        let port = page.port().map_or(String::new(), |port| format!(":{port}"));
        let path = match page.path() {
            "" | "/" => String::new(),
            path => self.of("page", path),
        };
        format!("{}://{host}{port}/{path}", page.scheme())
    }
}
