//! A place to unpack to, beside one that nothing may touch.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use glovebox_workspace::archive::{
    Purpose, Refusal, UnpackError, UnpackLimits, UnpackResult, Unpacked, unpack_new, unpack_over,
    unpack_zip_over,
};
use glovebox_workspace::files::{FileError, Parents, Placement, Source, upload};
use glovebox_workspace::{Dir, RelPath};
use proptest::test_runner::Config as ProptestConfig;

pub(crate) struct Ground {
    _tmp: tempfile::TempDir,
    pub(crate) base: PathBuf,
    pub(crate) dir: Dir,
    before: Tree,
}

/// Path to kind, mode and contents.
pub(crate) type Tree = BTreeMap<PathBuf, (u32, u64, Vec<u8>)>;

pub(crate) fn ground() -> Ground {
    // In memory: syncing a busy disk would take most of the time.
    let tmp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let tmp = tmp.unwrap();
    let base = tmp.path().canonicalize().unwrap();
    std::fs::create_dir_all(base.join("home/inside")).unwrap();
    std::fs::create_dir(base.join("outside")).unwrap();
    std::fs::write(base.join("outside/canary"), "host canary").unwrap();
    std::fs::write(base.join("home/beside"), "beside").unwrap();
    let dir = Dir::open_trusted(&base.join("home/inside")).unwrap();
    let mut ground = Ground {
        _tmp: tmp,
        base,
        dir,
        before: Tree::new(),
    };
    ground.before = ground.elsewhere();
    ground
}

impl Ground {
    pub(crate) fn inside(&self) -> PathBuf {
        self.base.join("home/inside")
    }

    pub(crate) fn outside(&self) -> String {
        self.base.join("outside").to_str().unwrap().to_owned()
    }

    fn elsewhere(&self) -> Tree {
        let mut all = tree(&self.base);
        all.retain(|path, _| !path.starts_with("home/inside/"));
        all
    }

    pub(crate) fn assert_elsewhere_untouched(&self) {
        let mut now = self.elsewhere();
        let mut before = self.before.clone();
        // Its number of entries and thus its size may differ.
        now.remove(Path::new("home/inside"));
        before.remove(Path::new("home/inside"));
        assert_eq!(now, before, "something outside was changed");
    }

    /// Into the new directory `new`.
    pub(crate) fn unpack(&self, archive: &[u8], purpose: Purpose) -> UnpackResult<Unpacked> {
        self.unpack_within(archive, purpose, UnpackLimits::FILES)
    }

    pub(crate) fn unpack_within(
        &self,
        archive: &[u8],
        purpose: Purpose,
        limits: UnpackLimits,
    ) -> UnpackResult<Unpacked> {
        let path = RelPath::new("new").unwrap();
        let unpacked = unpack_new(archive, &self.dir, &path, purpose, limits);
        self.assert_elsewhere_untouched();
        if unpacked.is_err() {
            assert_eq!(tree(&self.inside()), Tree::new(), "something was left");
        }
        unpacked
    }

    pub(crate) fn refusal(&self, archive: &[u8]) -> Refusal {
        let refused = self.unpack(archive, Purpose::Files);
        refused.expect_err("it must be refused").why().clone()
    }

    pub(crate) fn over(&self, archive: &[u8], purpose: Purpose) -> UnpackResult<Unpacked> {
        let unpacked = unpack_over(archive, &self.dir, purpose, UnpackLimits::FILES);
        self.assert_elsewhere_untouched();
        unpacked
    }

    /// As it is uploaded: all of it or nothing.
    pub(crate) fn zip(&self, archive: &[u8]) -> Result<Unpacked, FileError> {
        let before = tree(&self.inside());
        let mut source = std::io::Cursor::new(archive);
        let unpacked = upload(
            &self.dir,
            None,
            Source::Zip(&mut source),
            Placement::Whole,
            Parents::Require,
            UnpackLimits::FILES,
        );
        self.assert_elsewhere_untouched();
        if unpacked.is_err() {
            assert_eq!(tree(&self.inside()), before, "something was left");
        }
        unpacked
    }

    pub(crate) fn zip_refusal(&self, archive: &[u8]) -> Refusal {
        match self.zip(archive) {
            Err(FileError::Archive(error)) => error.why().clone(),
            other => panic!("it must be refused: {other:?}"),
        }
    }

    pub(crate) fn zip_straight(&self, archive: &[u8]) -> Result<Unpacked, UnpackError> {
        self.zip_within(archive, UnpackLimits::FILES)
    }

    pub(crate) fn zip_within(
        &self,
        archive: &[u8],
        limits: UnpackLimits,
    ) -> Result<Unpacked, UnpackError> {
        let mut source = std::io::Cursor::new(archive);
        let unpacked = unpack_zip_over(&mut source, &self.dir, limits);
        self.assert_elsewhere_untouched();
        unpacked
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.inside().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn mode(&self, name: &str) -> u32 {
        std::fs::symlink_metadata(self.path(name)).unwrap().mode() & 0o7777
    }
}

/// Everything below, no link followed.
pub(crate) fn tree(top: &Path) -> Tree {
    let mut all = Tree::new();
    let mut pending = vec![top.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            let contents = if meta.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                target.into_os_string().into_encoded_bytes()
            } else if meta.is_file() {
                std::fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            let name = path.strip_prefix(top).unwrap().to_owned();
            all.insert(name, (meta.mode(), contents.len() as u64, contents));
            if meta.is_dir() {
                pending.push(path);
            }
        }
    }
    all
}

/// How many cases to try; `PROPTEST_CASES` asks for more.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let set = std::env::var("PROPTEST_CASES").ok();
    let set = set.map(|text| text.parse().expect("a number of cases"));
    ProptestConfig::with_cases(set.unwrap_or(usual))
}
