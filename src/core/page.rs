//! A list response (interface 2.3), its rows cut out and not read yet.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::interface::Resource;
use super::json::{self, Fault, Text};
use super::model::{IdOf, Record};

/// One row of a page, not read yet: a slice of the page's text, and its id if it has one.
#[derive(Debug, Clone)]
pub struct Row {
    page: Arc<String>,
    slice: Range<usize>,
    /// `None` when the row is no object or has no whole number as its id.
    pub id: Option<i64>,
    /// Where the row stood in its page: `$.users[3]`.
    pub index: usize,
    pub resource: Resource,
}

impl Row {
    /// A record that came by itself, not in a page.
    pub fn alone(json: String, resource: Resource) -> Self {
        Self {
            slice: 0..json.len(),
            id: id_of(&json),
            page: Arc::new(json),
            index: 0,
            resource,
        }
    }

    pub fn json(&self) -> &str {
        self.page.get(self.slice.clone()).unwrap_or_default()
    }

    pub fn read<T: Record>(&self) -> Result<T, Fault> {
        T::read(self.json())
            .map_err(|fault| fault.below(&format!("$.{}[{}]", self.resource.key(), self.index)))
    }
}

/// A list response (interface 2.3), its rows not read yet.
#[derive(Debug, Clone)]
pub struct Page {
    pub limit: Option<i64>,
    pub offset: Option<i64>,
    pub total: Option<i64>,
    pub rows: Vec<Row>,
    pub text: Text,
}

impl Page {
    pub fn read(text: Text, resource: Resource) -> Result<Self, Fault> {
        let envelope = json::parse::<Entries<'_>>(&text.json)?;
        let items: Option<Vec<&RawValue>> = envelope.read(resource.key())?;
        let Some(items) = items else {
            let path = format!("$.{}", resource.key());
            return Err(Fault::new(
                &path,
                "the array is null or missing",
                &text.json,
            ));
        };
        let limit = envelope.read("limit")?;
        let offset = envelope.read("offset")?;
        let total = envelope.read("total")?;
        let start = text.json.as_ptr() as usize;
        let rows = items
            .into_iter()
            .enumerate()
            .map(|(index, item)| {
                let from = item.get().as_ptr() as usize - start;
                Row {
                    page: Arc::clone(&text.json),
                    slice: from..from + item.get().len(),
                    id: id_of(item.get()),
                    index,
                    resource,
                }
            })
            .collect();
        Ok(Self {
            limit,
            offset,
            total,
            rows,
            text,
        })
    }
}

fn id_of(json: &str) -> Option<i64> {
    serde_json::from_str::<IdOf<i64>>(json).ok()?.0
}

/// The entries of an object, not read yet; of a key that comes twice the last one rules.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Entries<'a> {
    fn read<T: Deserialize<'a>>(&self, key: &str) -> Result<Option<T>, Fault> {
        match self.0.iter().rev().find(|(name, _)| name == key) {
            None => Ok(None),
            Some((_, value)) => {
                json::parse(value.get()).map_err(|fault| fault.below(&format!("$.{key}")))
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(EntriesVisitor)
    }
}
