//! Pseudonyms: `email-` and 32 hexadecimal digits, by HMAC-SHA256 under a key.

use ring::hmac;
use url::Url;

/// Bytes of a pseudonym, of the 32 that the hash has.
const LENGTH: usize = 16;

/// What a text is: equal texts of one kind have equal pseudonyms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Name,
    Forename,
    Surname,
    Email,
    Reference,
    /// The value of a user's attribute.
    Value,
    Picture,
    File,
    /// The path of a visited page.
    Page,
    /// An address without a host.
    Url,
    /// A value of an undocumented field.
    Extra,
    /// The name of one.
    Field,
}

impl What {
    /// What its pseudonyms begin with.
    fn label(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Forename => "forename",
            Self::Surname => "surname",
            Self::Email => "email",
            Self::Reference => "reference",
            Self::Value => "value",
            Self::Picture => "picture",
            Self::File => "file",
            Self::Page => "page",
            Self::Url => "url",
            Self::Extra => "extra",
            Self::Field => "field",
        }
    }
}

/// Makes pseudonyms; holds the key.
pub struct Pseudonyms(hmac::Key);

impl Pseudonyms {
    pub fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The pseudonym of a text; an empty one stays empty.
    pub fn of(&self, what: What, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let label = what.label();
        let mut hash = hmac::Context::with_key(&self.0);
        // No label has a colon, so no two kinds hash the same bytes.
        for part in [label, ":", text] {
            hash.update(part.as_bytes());
        }
        let mut pseudonym = String::with_capacity(label.len() + 1 + 2 * LENGTH);
        pseudonym.push_str(label);
        pseudonym.push('-');
        for byte in hash.sign().as_ref().iter().take(LENGTH) {
            for digit in [byte >> 4, byte & 15] {
                pseudonym.extend(char::from_digit(digit.into(), 16));
            }
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
            return self.of(What::Url, address);
        };
        let port = page.port().map_or(String::new(), |port| format!(":{port}"));
        let path = match page.path() {
            "" | "/" => String::new(),
            path => self.of(What::Page, path),
        };
        format!("{}://{host}{port}/{path}", page.scheme())
    }
}
