//! Files by a pattern.

use std::time::Duration;

use glovebox_model::ByteString;

use super::fault::FileResult;
use super::pattern::{Hidden, Patterns};
use super::tour::{Bounds, Next, tour, until};
use crate::dir::Dir;
use crate::relpath::RelPath;
use crate::stat::Kind;

#[derive(Debug, Clone)]
pub struct GlobOptions {
    pub hidden: Hidden,
    /// Most paths in the answer.
    pub paths: usize,
    /// Most entries that are looked at.
    pub entries: u64,
    pub time: Duration,
}

impl Default for GlobOptions {
    fn default() -> Self {
        Self {
            hidden: Hidden::Skip,
            paths: 10_000,
            entries: 1_000_000,
            time: Duration::from_secs(10),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Globbed {
    /// Relative to where it began, each directory before what is in it.
    pub paths: Vec<(ByteString, Kind)>,
    /// There may be more.
    pub truncated: bool,
}

/// `*` and `?` stay within one name, `**` crosses directories; links are found and not followed.
pub fn glob(
    dir: &Dir,
    under: Option<&RelPath>,
    pattern: &str,
    options: &GlobOptions,
) -> FileResult<Globbed> {
    let patterns = Patterns::new(&[pattern.to_owned()])?;
    let start = dir.under(under)?;
    let bounds = Bounds {
        entries: options.entries,
        deadline: until(options.time),
    };
    let mut paths = Vec::new();
    let mut full = false;
    let toured = tour(&start, None, bounds, &mut |seen| {
        if options.hidden.skips(seen.name.to_bytes()) {
            return Ok(Next::Past);
        }
        if patterns.matches(seen.path) {
            if paths.len() == options.paths {
                full = true;
                return Ok(Next::Stop);
            }
            let path = ByteString::new(seen.path).unwrap_or_default();
            paths.push((path, seen.stat.kind));
        }
        Ok(Next::Into)
    })?;
    Ok(Globbed {
        paths,
        truncated: full || toured.cut.is_some() || toured.unread > 0,
    })
}
