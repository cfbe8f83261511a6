//! What proc(5) says of this process in its `stat`.

use rustix::io::Errno;

use crate::sys::Result;

/// How many threads it has: field 20.
///
/// # Errors
/// `ENOENT` where /proc is not.
pub(crate) fn threads() -> Result<usize> {
    let fields = from_third(17, 1).ok_or(Errno::NOENT)?;
    fields.first().copied().ok_or(Errno::INVAL)
}

/// Where its arguments lie, and its environment: fields 48 to 51.
pub(crate) fn start() -> Option<[usize; 4]> {
    from_third(45, 4)?.try_into().ok()
}

/// Counted after the command's name, which may hold anything.
fn from_third(skipped: usize, count: usize) -> Option<Vec<usize>> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let fields = rest.split_whitespace().skip(skipped).take(count);
    fields.map(|field| field.parse().ok()).collect()
}
