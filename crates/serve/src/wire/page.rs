//! Lists come in pages.

use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    /// Newest first.
    pub(crate) items: Vec<T>,
    /// The `cursor` of the next page; null on the last one.
    pub(crate) next: Option<String>,
}

impl<T> Page<T> {
    pub(crate) fn of<S>(page: glovebox_store::Page<S>, each: impl FnMut(S) -> T) -> Self {
        Self {
            items: page.items.into_iter().map(each).collect(),
            next: page.next,
        }
    }
}
