//! The files of an exec, for gates that look into them: what it wrote, what stood there before, its
//! streams and its artifacts.

use glovebox_model::Stream;
use std::fs::File;
use std::io::Read as _;

use glovebox_capture::Secrets;
use glovebox_gate::{Beginning, Content, Contents};
use glovebox_workspace::{Dir, stream_file};
use rustix::fs::{FileType, OFlags, fstat};

use super::judging::InLayer;

#[derive(Debug)]
pub(super) struct Files<'f> {
    pub(super) written: Option<InLayer<'f>>,
    /// Streams and artifacts; none when they could not be kept.
    pub(super) kept: Option<Dir>,
    pub(super) masks: &'f Secrets,
}

impl Contents for Files<'_> {
    fn read(&self, content: Content<'_>, most: usize) -> Option<Beginning> {
        let (dir, path) = match content {
            Content::Stdout => (self.kept.as_ref()?, stream_file(Stream::Stdout).as_bytes()),
            Content::Stderr => (self.kept.as_ref()?, stream_file(Stream::Stderr).as_bytes()),
            Content::Artifact(path) => (self.kept.as_ref()?, path.as_bytes()),
            Content::Before(path) => (self.written.as_ref()?.work, path.as_bytes()),
            Content::After(path) => (self.written.as_ref()?.upper, path.as_bytes()),
        };
        // Whoever put a pipe there meanwhile does not make anybody wait.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(dir.open_plain(path, flags).ok()?);
        let kind = FileType::from_raw_mode(fstat(&file).ok()?.st_mode);
        if kind != FileType::RegularFile {
            return None;
        }
        let mut bytes = Vec::new();
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let length = file.take(most).read_to_end(&mut bytes).ok()?;
        Some(Beginning {
            bytes: self.masks.redact(&bytes).into_owned(),
            length: u64::try_from(length).unwrap_or(u64::MAX),
        })
    }
}
