//! One page of a listing.

use glovebox_model::{Code, Error, Result, Stage};
use serde::{Deserialize, Serialize};

const DEFAULT: usize = 50;
const MOST: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// The cursor of the next page; `None` on the last.
    pub next: Option<String>,
}

pub(crate) fn page_size(limit: usize) -> usize {
    match limit {
        0 => DEFAULT,
        limit => limit.min(MOST),
    }
}

/// One more than the page holds.
pub(crate) fn sql_limit(limit: usize) -> i64 {
    i64::try_from(page_size(limit) + 1).unwrap_or(i64::MAX)
}

pub(crate) fn bad_cursor(cursor: &str) -> Error {
    let shown: String = cursor
        .chars()
        .take(80)
        .flat_map(char::escape_debug)
        .collect();
    Error::new(
        Code::InvalidArgument,
        Stage::Parse,
        format!("`{shown}` is not a cursor"),
    )
    .hint("use the `next` of the page before, as it is")
}

impl<T> Page<T> {
    /// From up to one item more than the page holds: that one says that there is a next page.
    pub(crate) fn cut(mut items: Vec<T>, size: usize, cursor: impl Fn(&T) -> String) -> Self {
        let more = items.len() > size;
        items.truncate(size);
        let next = items.last().filter(|_| more).map(cursor);
        Self { items, next }
    }

    pub(crate) fn try_map<U>(self, map: impl FnMut(T) -> Result<U>) -> Result<Page<U>> {
        let items = self.items.into_iter().map(map).collect::<Result<_>>()?;
        Ok(Page {
            items,
            next: self.next,
        })
    }
}
