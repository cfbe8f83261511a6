//! Lists come in pages.

use serde::{Deserialize, Serialize};

use crate::error::Result;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// Newest first.
    pub items: Vec<T>,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

impl<T> Page<T> {
    pub const fn empty() -> Self {
        Self {
            items: Vec::new(),
            next: None,
        }
    }

    /// From up to one item more than the page holds: that one says that there is a next page.
    pub fn cut(mut items: Vec<T>, size: usize, cursor: impl Fn(&T) -> String) -> Self {
        let more = items.len() > size;
        items.truncate(size);
        let next = items.last().filter(|_| more).map(cursor);
        Self { items, next }
    }

    pub fn map<U>(self, each: impl FnMut(T) -> U) -> Page<U> {
        Page {
            items: self.items.into_iter().map(each).collect(),
            next: self.next,
        }
    }

    pub fn try_map<U>(self, each: impl FnMut(T) -> Result<U>) -> Result<Page<U>> {
        let items = self.items.into_iter().map(each).collect::<Result<_>>()?;
        Ok(Page {
            items,
            next: self.next,
        })
    }
}
