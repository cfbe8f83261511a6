//! One page of a listing.

use glovebox_model::{Code, Error, Stage};

const DEFAULT: usize = 50;
const MOST: usize = 1000;

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
