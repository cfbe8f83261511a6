//! The resolver: lines of a small language make up a tree that a guest prepared, and what is asked
//! of it from outside. Nothing of the outside may be read, made, changed or removed.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use glovebox_workspace::files::{
    self, CopyLimits, ListOptions, Occurrence, Parents, Range, Recursive, WriteOptions,
};
use glovebox_workspace::{Dir, Existing, RelPath};

use super::{Target, as_it_is};
use crate::ground::{Ground, SECRET};

pub const TARGET: Target = Target {
    name: "paths",
    run,
    seeds,
    mend: as_it_is,
    #[rustfmt::skip]
    words: &[
        b"\n", b"\t", b"/", b"..", b"../", b"./", b"//", b"a", b"b", b"a/b", b"OUT", b"OUT/secret",
        b"../outside", b"../outside/secret", b"outside", b"secret", b"\nl", b"\nr", b"\nw", b"\nm",
        b"\nd", b"\nv", b"\nc", b"\no", b"\ns", b"\ne", b"\nh", b"\0", b"\xff", b"~", b"/proc/self/cwd",
        b"/proc/self/root", b"/", b"fifo", b"\nf",
    ],
};

/// More of them only make a run slow.
const LINES: usize = 24;
const MOST: u64 = 1 << 16;

thread_local! {
    static GROUND: RefCell<Ground> = RefCell::new(Ground::new());
}

fn seeds() -> Vec<Vec<u8>> {
    [
        "lOUT\ta\nra/secret\nwa/new\nma/b/c\nda\n",
        "l../outside\ta\nda/secret\nva/secret\tb\nca\tb\noa\nsa/secret\n",
        "ma/b\nl../../../outside\ta/b\nra/b/secret\nwa/b/x\nda\n",
        "wa\nrb/../a\nva\tb\ncb\tc\nec\nsd\n",
        "h\ta\nra\nwa\nea\nf\tb\nrb\nwb\ncb\tc\n",
        "ma\nlb\ta/c\nlc\ta/b\nra/b/x\nma/b/c/d\n",
        "la\ta\nra\nwa/b\nd.\nr..\nr/\nr../inside/a\n",
        "l/proc/self/cwd\ta\nra/secret\nl/proc/self/root\tb\nrb/etc/passwd\n",
    ]
    .map(|it| it.as_bytes().to_vec())
    .into()
}

fn run(bytes: &[u8]) -> Result<String, String> {
    GROUND.with_borrow(|ground| {
        ground.clear();
        let dir = ground.dir();
        let mut said = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n').take(LINES) {
            if let Some((order, rest)) = line.split_first() {
                said.push(obey(ground, &dir, *order, rest));
            }
        }
        ground.assert_untouched();
        said.sort();
        said.dedup();
        // The kinds of faults that were met, whatever their paths.
        Ok(said.join("\n"))
    })
}

fn obey(ground: &Ground, dir: &Dir, order: u8, rest: &[u8]) -> String {
    let (first, mut second) = match rest.iter().position(|byte| *byte == b'\t') {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, b"a".as_slice()),
    };
    if matches!(order, b'l' | b'h' | b'f') {
        guest(ground, order, first, second);
        return String::new();
    }
    let path = match RelPath::new(ground.lead(first)) {
        Ok(path) => path,
        Err(error) => return format!("{error:?}"),
    };
    assert!(!path.as_bytes().starts_with(b"/") && !path.as_bytes().contains(&0));
    assert_eq!(
        RelPath::new(path.as_bytes()).as_ref(),
        Ok(&path),
        "spelled twice"
    );
    let other = RelPath::new(ground.lead(second)).unwrap_or_else(|_| path.clone());
    second = &second[..second.len().min(64)];
    let done = match order {
        b'r' => files::read(dir, &path, Range::Whole, MOST).map(|contents| {
            let found = contents.bytes.windows(SECRET.len()).any(|it| it == SECRET);
            assert!(!found, "the secret was read");
        }),
        b'w' => files::write(dir, &path, &mut second, &WriteOptions::default()).map(drop),
        b'm' => files::mkdir(dir, &path, Parents::Make).map(drop),
        b'd' => files::remove(dir, &path, Recursive::Yes),
        b'v' => files::rename(dir, &path, &other, Existing::Replace, Parents::Make),
        b'c' => files::copy(
            dir,
            &path,
            &other,
            Existing::Replace,
            Parents::Make,
            CopyLimits::default(),
        )
        .map(drop),
        b'o' => files::list(dir, Some(&path), &ListOptions::default()).map(drop),
        b'e' => files::replace(dir, &path, b"a", b"b", Occurrence::All, None, MOST).map(drop),
        _ => files::stat(dir, Some(&path)).map(drop),
    };
    match done {
        Ok(()) => char::from(order).to_string(),
        Err(error) => format!("{}: {}", char::from(order), error),
    }
}

/// What the guest does in its own tree: a link to anywhere, a hard link, a FIFO.
fn guest(ground: &Ground, order: u8, first: &[u8], second: &[u8]) {
    let Some(place) = inside(ground, second) else {
        return;
    };
    let target = ground.lead(first);
    if target.is_empty() || target.contains(&0) {
        return;
    }
    let _ = match order {
        b'l' => symlink(OsStr::from_bytes(&target), place),
        b'h' => match inside(ground, first) {
            Some(from) => fs::hard_link(from, place),
            None => Ok(()),
        },
        _ => {
            let fifo = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, place, fifo, 0o600.into(), 0).map_err(Into::into)
        }
    };
}

/// A place of its tree that no link is on the way to, as a guest's own root would have it.
fn inside(ground: &Ground, path: &[u8]) -> Option<PathBuf> {
    let mut place = ground.inside();
    let mut parts = path.split(|byte| *byte == b'/').peekable();
    while let Some(part) = parts.next() {
        if part.is_empty() || part == b"." || part == b".." || part.contains(&0) {
            return None;
        }
        place.push(OsStr::from_bytes(part));
        let real = fs::symlink_metadata(&place).is_ok_and(|it| it.is_dir());
        if parts.peek().is_some() && !real {
            return None;
        }
    }
    Some(place)
}
