//! What stands at each path of a directory, read by nothing of the product.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// By path, relative to the top; the top itself is the empty one.
pub(crate) type Census = BTreeMap<Vec<u8>, Facts>;

/// All that can be seen of it from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) seen: Seen,
    pub(crate) modified: (i64, i64),
    pub(crate) names: u64,
    /// Changes with anything that is done to it.
    identity: (u64, i64, i64),
}

/// What two runs of one program have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// As effects name it.
    pub(crate) kind: &'static str,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    /// BLAKE3 of a file's bytes.
    pub(crate) digest: Option<String>,
    /// The text of a link.
    pub(crate) target: Option<Vec<u8>>,
    /// Its attribute `user.note`.
    pub(crate) note: Option<Vec<u8>>,
}

pub(crate) fn census(top: &Path) -> Census {
    let mut found = Census::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        let stat = fs::symlink_metadata(&path).unwrap();
        if stat.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()));
        }
        let name = path.strip_prefix(top).unwrap().as_os_str().as_bytes();
        found.insert(name.to_vec(), facts(&path, &stat));
    }
    found
}

fn facts(path: &Path, stat: &fs::Metadata) -> Facts {
    let kind = stat.file_type();
    let kind = match () {
        () if kind.is_dir() => "directory",
        () if kind.is_file() => "file",
        () if kind.is_symlink() => "symlink",
        () if kind.is_fifo() => "fifo",
        () if kind.is_socket() => "socket",
        () => "device",
    };
    let is = |wanted: &str| kind == wanted;
    let digest = is("file").then(|| digest(&fs::read(path).unwrap()));
    let target = is("symlink").then(|| fs::read_link(path).unwrap().into_os_string());
    let mut note = [0u8; 256];
    let noted = (is("file") || is("directory"))
        .then(|| rustix::fs::getxattr(path, "user.note", &mut note[..]).ok())
        .flatten();
    Facts {
        seen: Seen {
            kind,
            mode: stat.mode() & 0o7777,
            size: if is("directory") { 0 } else { stat.size() },
            digest,
            target: target.map(|it| it.as_bytes().to_vec()),
            note: noted.map(|length| note[..length].to_vec()),
        },
        modified: (stat.mtime(), stat.mtime_nsec()),
        names: if is("directory") { 1 } else { stat.nlink() },
        identity: (stat.ino(), stat.ctime(), stat.ctime_nsec()),
    }
}

/// As effects write it.
pub(crate) fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Where two of them differ, by what `of` takes from each.
pub(crate) fn differences<T: PartialEq + std::fmt::Debug>(
    one: &Census,
    other: &Census,
    of: impl Fn(&Facts) -> T,
) -> Vec<(Vec<u8>, String)> {
    let paths: std::collections::BTreeSet<&Vec<u8>> = one.keys().chain(other.keys()).collect();
    let differ = |path: &Vec<u8>| {
        let (left, right) = (one.get(path).map(&of), other.get(path).map(&of));
        (left != right).then(|| {
            let text = format!("{}: {left:?}, not {right:?}", path.escape_ascii());
            (path.clone(), text)
        })
    };
    paths.into_iter().filter_map(differ).collect()
}

/// That nothing was done to anything.
#[track_caller]
pub(crate) fn assert_untouched(now: &Census, then: &Census, when: &str) {
    let differ = differences(now, then, Clone::clone);
    assert!(differ.is_empty(), "{when}: {differ:#?}");
}
