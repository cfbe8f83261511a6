//! A directory in which everything may happen, beside one in which nothing may.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use glovebox_workspace::Dir;
use tempfile::TempDir;

/// What nobody may read.
pub const SECRET: &[u8] = b"the secret outside";
/// What a link can point to; made an absolute path.
pub const OUTSIDE: &[u8] = b"OUT";

#[derive(Debug)]
pub struct Ground {
    top: TempDir,
    before: Tree,
}

/// Mode, size, time of change and contents, by path.
pub type Tree = BTreeMap<PathBuf, (u32, u64, i64, i64, Vec<u8>)>;

impl Default for Ground {
    fn default() -> Self {
        Self::new()
    }
}

impl Ground {
    pub fn new() -> Self {
        // In memory where there is such a place: millions of files are made and removed.
        let memory = Path::new("/dev/shm");
        let top = tempfile::Builder::new()
            .prefix("glovebox-fuzz-")
            .tempdir_in(if memory.is_dir() {
                memory.to_owned()
            } else {
                std::env::temp_dir()
            });
        let top = top.expect("make a directory");
        for name in ["inside", "outside", "outside/sub"] {
            fs::create_dir(top.path().join(name)).expect("make a directory");
        }
        for name in ["outside/secret", "outside/sub/secret"] {
            fs::write(top.path().join(name), SECRET).expect("write the secret");
        }
        let before = tree(&top.path().join("outside"));
        Self { top, before }
    }

    pub fn inside(&self) -> PathBuf {
        self.top.path().join("inside")
    }

    pub fn outside(&self) -> PathBuf {
        self.top.path().join("outside")
    }

    pub fn dir(&self) -> Dir {
        Dir::open_trusted(&self.inside()).expect("open the inside")
    }

    /// A place of its own to begin with.
    pub fn clear(&self) {
        fs::remove_dir_all(self.inside()).expect("empty the inside");
        fs::create_dir(self.inside()).expect("make the inside");
    }

    /// What a guest may have left to catch whoever works on its files.
    pub fn set_traps(&self) {
        let inside = self.inside();
        fs::create_dir_all(inside.join("d/e")).expect("make directories");
        fs::write(inside.join("f"), b"a file").expect("write a file");
        for (target, name) in [
            ("../outside", "up"),
            ("../../../outside/secret", "d/e/file"),
            (".", "here"),
            ("loop", "loop"),
            ("nowhere", "new"),
        ] {
            symlink(target, inside.join(name)).expect("make a link");
        }
        symlink(self.outside(), inside.join("away")).expect("make a link");
        let fifo = inside.join("fifo");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, 0o600.into(), 0).expect("make a FIFO");
    }

    /// `OUT` in what was made up, as a path that leads out.
    pub fn lead(&self, bytes: &[u8]) -> Vec<u8> {
        let outside = self.outside();
        let mut led = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some(at) = rest.windows(OUTSIDE.len()).position(|it| it == OUTSIDE) {
            led.extend_from_slice(&rest[..at]);
            led.extend_from_slice(outside.as_os_str().as_bytes());
            rest = &rest[at + OUTSIDE.len()..];
        }
        led.extend_from_slice(rest);
        led
    }

    /// # Panics
    /// When anything outside is not as it was.
    pub fn assert_untouched(&self) {
        let now = tree(&self.outside());
        assert!(now == self.before, "something outside has changed: {now:?}");
        let beside = fs::read_dir(self.top.path()).expect("list");
        assert_eq!(beside.count(), 2, "something was made beside");
    }

    /// # Panics
    /// When a link leads out of the inside.
    pub fn assert_links_stay(&self) {
        let inside = self.inside();
        for (path, (mode, ..)) in tree(&inside) {
            if mode & 0o170_000 == 0o120_000
                && let Ok(end) = inside.join(&path).canonicalize()
            {
                assert!(end.starts_with(&inside), "{path:?} leads to {end:?}");
            }
        }
    }
}

/// Everything below, without following a link.
pub fn tree(top: &Path) -> Tree {
    let mut found = Tree::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(stat) = fs::symlink_metadata(&path) else {
            continue;
        };
        let contents = match stat.file_type() {
            kind if kind.is_file() => fs::read(&path).unwrap_or_default(),
            kind if kind.is_symlink() => {
                let target = fs::read_link(&path).unwrap_or_default();
                target.as_os_str().as_bytes().to_vec()
            }
            kind if kind.is_dir() => {
                let listed = fs::read_dir(&path).into_iter().flatten().flatten();
                waiting.extend(listed.map(|entry| entry.path()));
                Vec::new()
            }
            _ => Vec::new(),
        };
        let name = path.strip_prefix(top).unwrap_or(&path).to_owned();
        let facts = (
            stat.mode(),
            stat.size(),
            stat.mtime(),
            stat.mtime_nsec(),
            contents,
        );
        found.insert(name, facts);
    }
    found
}
