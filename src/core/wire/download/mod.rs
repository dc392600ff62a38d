//! Downloads attachments. Their links come with the data, so they never get the secret, and what they
//! name must be public.

mod public_only;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, StatusCode};
use ring::digest::{Context, SHA256};
use tokio::time::timeout;
use url::Url;

pub use self::public_only::PublicOnly;
use self::public_only::refusal;
use super::failures::root_cause;
use super::{MOST_REDIRECTS, setup};
use crate::config::Origin;
use crate::error::Error;

/// A file that arrives more slowly, in bytes a second, holds a place for longer than it is worth.
const SLOWEST: u64 = 10_000;
/// How a web page begins; a link that has expired or wants a login often leads to one.
const WEB_PAGES: [&[u8]; 2] = [b"<!doctype html", b"<html"];
/// The longest media type that is kept.
const LONGEST_TYPE: usize = 100;

/// What a link led to.
#[derive(Debug)]
pub struct Downloaded {
    pub bytes: u64,
    /// In hexadecimal.
    pub sha256: String,
    /// As the server states it, in lower case, without parameters.
    pub media_type: Option<String>,
}

/// Why there is no file.
#[derive(Debug)]
pub enum Missing {
    /// The link, or what it leads to, is the reason, in words.
    Refused(String),
    /// It cannot be written.
    Unwritten(std::io::Error),
}

fn refused(reason: impl Into<String>) -> Missing {
    Missing::Refused(reason.into())
}

/// Connections for attachments.
pub struct Downloader {
    /// Connects to public addresses only.
    public: Client,
    /// Connects to the service itself.
    own: Client,
    /// What relative links are resolved against.
    base: Url,
    proxies: Arc<[String]>,
    /// How long an answer, or the next part of a body, may take.
    patience: Duration,
}

impl Downloader {
    pub fn new(origin: &Origin, patience: Duration) -> Result<Self, Error> {
        let resolver = PublicOnly::new(setup::proxy_names(origin)?);
        Self::with_resolver(origin, patience, resolver)
    }

    fn with_resolver(
        origin: &Origin,
        patience: Duration,
        resolver: PublicOnly,
    ) -> Result<Self, Error> {
        let mut base = origin.url.clone();
        base.set_path(&format!("{}/", base.path().trim_end_matches('/')));
        Ok(Self {
            proxies: Arc::clone(&resolver.proxies),
            public: setup::download_client(origin, Some(resolver))?,
            own: setup::download_client(origin, None)?,
            base,
            patience,
        })
    }

    /// The address of a link.
    pub fn address(&self, link: &str) -> Result<Url, Missing> {
        let url = self.base.join(link.trim());
        url.map_err(|error| refused(format!("the link is not a URL: {error}")))
    }

    /// Whether an address is the service's own, whatever it is.
    pub fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// Writes the file behind an address to the new file `path`, if it has at most `max_bytes`.
    pub async fn fetch(
        &self,
        url: Url,
        path: &Path,
        max_bytes: u64,
    ) -> Result<Downloaded, Missing> {
        let may_be_page = [".htm", ".html", ".xhtml"]
            .iter()
            .any(|end| url.path().to_ascii_lowercase().ends_with(end));
        let response = self.follow(url).await?;
        if let Some(length) = response
            .content_length()
            .filter(|length| *length > max_bytes)
        {
            return Err(too_large(&format!("{length} bytes"), max_bytes));
        }
        let media_type = media_type(&response);
        if !may_be_page && media_type.as_deref() == Some("text/html") {
            return Err(web_page());
        }
        let file = File::options().write(true).create_new(true).open(path);
        let mut file = file.map_err(Missing::Unwritten)?;
        let (bytes, sha256) = self
            .save(response, &mut file, max_bytes, may_be_page)
            .await?;
        Ok(Downloaded {
            bytes,
            sha256,
            media_type,
        })
    }

    /// The response at the end of the redirects; each address is checked.
    async fn follow(&self, mut url: Url) -> Result<Response, Missing> {
        for _ in 0..=MOST_REDIRECTS {
            if !matches!(url.scheme(), "http" | "https") {
                return Err(refused(format!(
                    "its scheme is {}, not http or https",
                    url.scheme()
                )));
            }
            // Whatever credentials the link has are not ours to send.
            let _ = url.set_username("");
            let _ = url.set_password(None);
            let client = match self.is_own(&url) {
                true => &self.own,
                false if let Some(why) = refusal(&url, &self.proxies) => return Err(refused(why)),
                false => &self.public,
            };
            let sent = timeout(self.patience, client.get(url.clone()).send()).await;
            let response = sent
                .map_err(|_| refused(format!("no answer within {} s", self.patience.as_secs())))?
                .map_err(|error| refused(format!("no connection: {}", root_cause(&error))))?;
            let status = response.status();
            let next = response
                .headers()
                .get(LOCATION)
                .filter(|_| status.is_redirection())
                .and_then(|location| url.join(location.to_str().ok()?).ok());
            match next {
                Some(next) => url = next,
                None if status == StatusCode::OK => return Ok(response),
                None => return Err(refused(format!("the server answered {}", status.as_u16()))),
            }
        }
        Err(refused(format!(
            "more than {MOST_REDIRECTS} redirects, one after another"
        )))
    }

    /// Writes a body; returns its length and its hash.
    async fn save(
        &self,
        mut response: Response,
        file: &mut File,
        max_bytes: u64,
        may_be_page: bool,
    ) -> Result<(u64, String), Missing> {
        let began = Instant::now();
        let mut hash = Context::new(&SHA256);
        let mut bytes = 0;
        loop {
            let allowed = self.patience + Duration::from_secs(bytes / SLOWEST);
            let left = allowed.saturating_sub(began.elapsed()).min(self.patience);
            let chunk = timeout(left, response.chunk()).await.map_err(|_| {
                let seconds = began.elapsed().as_secs();
                refused(format!("it came too slowly: {bytes} bytes in {seconds} s"))
            })?;
            let chunk = chunk.map_err(|error| {
                refused(format!(
                    "it broke off after {bytes} bytes: {}",
                    root_cause(&error)
                ))
            })?;
            let Some(chunk) = chunk else {
                return Ok((bytes, hex(hash.finish().as_ref())));
            };
            if bytes == 0 && !may_be_page && is_web_page(&chunk) {
                return Err(web_page());
            }
            bytes += chunk.len() as u64;
            if bytes > max_bytes {
                return Err(too_large("more", max_bytes));
            }
            hash.update(&chunk);
            file.write_all(&chunk).map_err(Missing::Unwritten)?;
        }
    }
}

fn too_large(size: &str, max_bytes: u64) -> Missing {
    refused(format!(
        "it is too large: {size}, and {max_bytes} bytes are allowed"
    ))
}

fn web_page() -> Missing {
    refused("a web page came instead of the file; the link may have expired, or want a login")
}

fn is_web_page(start: &[u8]) -> bool {
    let start = start
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(start)
        .trim_ascii_start();
    let begins = |page: &&[u8]| {
        start
            .get(..page.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(page))
    };
    WEB_PAGES.iter().any(begins)
}

fn media_type(response: &Response) -> Option<String> {
    let stated = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let essence = stated.split(';').next()?.trim().to_ascii_lowercase();
    (!essence.is_empty() && essence.len() <= LONGEST_TYPE).then_some(essence)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
