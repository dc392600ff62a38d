//! The first page of a list, which a digest may show to be the same as before.

use super::{Client, Read};
use crate::api::{Limit, List};
use crate::budget::Budget;
use crate::decode::page::Page;
use crate::error::Error;
use crate::page_digest::{Digest, DigestKey};

/// The first page of a list of which a digest may be known.
#[derive(Debug)]
pub enum FirstPage {
    /// It is the same as when the digest was made.
    Unchanged,
    Changed(Page, Digest),
}

impl Client {
    /// The first page of a list; not decoded if its digest is the `known` one.
    pub async fn first_page(
        &self,
        list: List,
        limit: Limit,
        key: DigestKey,
        known: Option<Digest>,
        budget: &Budget,
    ) -> Result<Read<FirstPage>, Error> {
        let endpoint = list.page(0, limit);
        let mut read = self
            .read_body(endpoint, budget, |body, content_type| {
                let digest = key.digest(&body);
                if known == Some(digest) {
                    return Ok(FirstPage::Unchanged);
                }
                let page = Page::of_body(body, content_type, list.resource())?;
                Ok(FirstPage::Changed(page, digest))
            })
            .await?;
        if let FirstPage::Changed(page, _) = &mut read.value {
            page.stored_at = read.sent.stored_at;
            self.note_repaired(page.text.repaired);
        }
        Ok(read)
    }
}
