//! Reading a page.

use clap::Args;
use glovebox_model::{Bytes, Millis};

/// Read a page of the web as text
///
/// GET only, without headers of yours. Every address, port, redirect, size and type is checked, and
/// nothing of the page is executed. Policy must give the network mode `retrieval` or more.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox retrieve https://example.com/
  glovebox retrieve https://example.com/data.json --max-bytes 1M --json
  glovebox --server URL retrieve https://example.com/")]
pub(crate) struct RetrieveArgs {
    /// `http://…` or `https://…`
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// At most so much of the body, after decompression
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_bytes: Option<Bytes>,
    /// At most so much of the text; what is longer is cut
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_text_bytes: Option<Bytes>,
    /// At most so long, over everything
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Millis>,
}
