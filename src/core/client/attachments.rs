//! Attachments: the files that messages link to.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::Client;
use super::gate::Patience;
use crate::error::Error;
use crate::wire::LONGEST_SILENCE;
use crate::wire::download::{Downloaded, Downloader, Missing};

/// Files at a time: their servers are not the service, and have not agreed to more.
const AT_ONCE: usize = 8;

/// A link, and the new file that gets what it leads to.
#[derive(Debug)]
pub struct Attachment {
    pub link: String,
    pub path: PathBuf,
}

/// What became of an attachment.
#[derive(Debug)]
pub enum Outcome {
    Downloaded(Downloaded),
    Missing(Missing),
    /// It was not requested: as many bytes as allowed have arrived.
    Left,
}

/// How much is downloaded, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub max_file_bytes: u64,
    /// No file is requested once so many have arrived.
    pub max_bytes: u64,
}

type Ended = Pin<Box<dyn Stream<Item = (usize, Outcome)> + Send>>;

/// Attachments that are being downloaded: only while `next` is awaited.
pub struct Downloads(Mutex<Ended>);

impl Downloads {
    /// The downloads that end within `time`, by their numbers, but at least one; empty at the end.
    pub async fn next(&self, time: Duration) -> Vec<(usize, Outcome)> {
        let mut downloads = self.0.lock().await;
        let mut ended: Vec<_> = downloads.next().await.into_iter().collect();
        let until = Instant::now() + time;
        while let Ok(Some(each)) = timeout_at(until, downloads.next()).await {
            ended.push(each);
        }
        ended
    }
}

impl Client {
    /// Downloads attachments, each once.
    pub fn attachments(
        &self,
        attachments: Vec<Attachment>,
        limits: Limits,
    ) -> Result<Downloads, Error> {
        let patience = self.options().timeout.unwrap_or(LONGEST_SILENCE);
        let run = Arc::new(Run {
            client: self.clone(),
            downloader: Downloader::new(self.origin(), patience)?,
            limits,
            arrived: AtomicU64::new(0),
        });
        let numbered = stream::iter(attachments.into_iter().enumerate());
        let downloads = numbered
            .map(move |(number, attachment)| {
                let run = Arc::clone(&run);
                async move { (number, run.outcome(attachment).await) }
            })
            .buffer_unordered(AT_ONCE);
        Ok(Downloads(Mutex::new(Box::pin(downloads))))
    }
}

struct Run {
    client: Client,
    downloader: Downloader,
    limits: Limits,
    arrived: AtomicU64,
}

impl Run {
    async fn outcome(&self, attachment: Attachment) -> Outcome {
        if self.arrived.load(Ordering::Relaxed) >= self.limits.max_bytes {
            return Outcome::Left;
        }
        match self.fetch(attachment).await {
            Ok(file) => {
                self.arrived.fetch_add(file.bytes, Ordering::Relaxed);
                Outcome::Downloaded(file)
            }
            Err(missing) => Outcome::Missing(missing),
        }
    }

    async fn fetch(&self, attachment: Attachment) -> Result<Downloaded, Missing> {
        let url = self.downloader.address(&attachment.link)?;
        let Ok(gate) = self.client.gate() else {
            return Err(Missing::Refused("the client is closed".to_owned()));
        };
        // The service's own files count for its limits as its pages do.
        let mut patience = Patience::new(None, Duration::ZERO);
        let _pass = match self.downloader.is_own(&url) {
            true => Some(gate.pass(&mut patience).await),
            false => None,
        };
        let (path, most) = (&attachment.path, self.limits.max_file_bytes);
        self.downloader.fetch(url, path, most).await
    }
}
