//! A state directory with images in it.

use std::path::{Path, PathBuf};

use glovebox_model::{Error, Result};
use glovebox_workspace::Dir;
use glovebox_workspace::image::{ImageFormat, ImageName, ImageRecord, ImageSource, Images};

pub(crate) struct State {
    _tmp: tempfile::TempDir,
    pub(crate) path: PathBuf,
    pub(crate) images: Images,
}

pub(crate) fn state() -> State {
    // In memory: syncing a busy disk would take most of the time.
    let tmp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let tmp = tmp.unwrap();
    let path = tmp.path().canonicalize().unwrap();
    std::fs::create_dir(path.join("state")).unwrap();
    std::fs::create_dir(path.join("outside")).unwrap();
    std::fs::write(path.join("outside/canary"), "host canary").unwrap();
    let images = open(&path.join("state")).unwrap();
    State {
        _tmp: tmp,
        path,
        images,
    }
}

pub(crate) fn open(state: &Path) -> Result<Images> {
    Images::open(&Dir::open_trusted(state).unwrap())
}

pub(crate) fn name(text: &str) -> ImageName {
    text.parse().unwrap()
}

impl State {
    pub(crate) fn dir(&self) -> PathBuf {
        self.path.join("state/images")
    }

    pub(crate) fn import(&self, as_name: &str, archive: &[u8]) -> Result<ImageRecord> {
        self.import_as(as_name, archive, ImageFormat::Auto)
    }

    pub(crate) fn import_as(
        &self,
        as_name: &str,
        archive: &[u8],
        format: ImageFormat,
    ) -> Result<ImageRecord> {
        let source = ImageSource::Archive(Box::new(archive));
        let record = self
            .images
            .import(source, &name(as_name), format, &mut |_| ());
        self.assert_tidy();
        record
    }

    pub(crate) fn import_folder(&self, as_name: &str, folder: &Path) -> Result<ImageRecord> {
        let source = ImageSource::Folder(Dir::open_trusted(folder).unwrap());
        let format = ImageFormat::Auto;
        let record = self
            .images
            .import(source, &name(as_name), format, &mut |_| ());
        self.assert_tidy();
        record
    }

    /// Refused, with nothing left and nothing outside changed.
    pub(crate) fn refusal(&self, archive: &[u8]) -> Error {
        let error = self
            .import("refused", archive)
            .expect_err("must be refused");
        assert!(!error.hints.is_empty(), "no way out: {error}");
        error
    }

    pub(crate) fn rootfs(&self, record: &ImageRecord) -> PathBuf {
        let digest = record.digest.to_string();
        let hex = digest.strip_prefix("sha256:").unwrap();
        self.dir().join(hex).join("rootfs")
    }

    pub(crate) fn text(&self, record: &ImageRecord, path: &str) -> String {
        std::fs::read_to_string(self.rootfs(record).join(path)).unwrap()
    }

    pub(crate) fn has(&self, record: &ImageRecord, path: &str) -> bool {
        self.rootfs(record).join(path).symlink_metadata().is_ok()
    }

    pub(crate) fn kept(&self) -> usize {
        let entries = std::fs::read_dir(self.dir()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.len() == 64).count()
    }

    fn assert_tidy(&self) {
        let shelf = std::fs::read_dir(self.dir().join("tmp")).unwrap();
        assert_eq!(shelf.count(), 0, "an import left something");
        let outside = self.path.join("outside");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
        let canary = std::fs::read_to_string(outside.join("canary")).unwrap();
        assert_eq!(canary, "host canary");
    }
}
