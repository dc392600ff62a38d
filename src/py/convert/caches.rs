//! What recurs in the rows that are converted together.

use pyo3::prelude::*;

use super::dict_cache::DictCache;
use super::dict_shape::DictShape;
use super::string_cache::StringCache;

pub struct Caches<'py> {
    pub strings: StringCache<'py>,
    pub dicts: DictCache<'py>,
    /// Of the row before.
    pub shape: Option<DictShape<'py>>,
}

impl<'py> Caches<'py> {
    pub fn new(py: Python<'py>) -> Self {
        Self {
            strings: StringCache::new(py),
            dicts: DictCache::default(),
            shape: None,
        }
    }
}
