//! A file of this machine that is there whole or not at all, and never over another.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use glovebox_model::{Code, Error, Result, Stage};
use tempfile::NamedTempFile;

use crate::stop::Stop;

#[derive(Debug)]
pub(crate) struct FreshFile {
    path: PathBuf,
    file: NamedTempFile,
    stop: Stop,
}

impl FreshFile {
    pub(crate) fn begin(path: &Path) -> Result<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(taken(path));
        }
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .prefix(".glovebox-")
            .tempfile_in(directory)
            .map_err(|error| failed(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            stop: Stop::listen()?,
        })
    }

    pub(crate) fn finish(self) -> Result<()> {
        let kept = self.file.persist_noclobber(&self.path);
        match kept.map_err(|error| error.error) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(taken(&self.path)),
            Err(error) => Err(failed(&self.path, error)),
        }
    }
}

impl Write for FreshFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.stop.is_asked() {
            true => Err(io::Error::other("canceled by the caller")),
            false => self.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn taken(path: &Path) -> Error {
    let message = format!("`{}` is there already", path.display());
    Error::new(Code::Conflict, Stage::Parse, message)
        .hint("choose another name, or remove it first")
}

fn failed(path: &Path, error: io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::DiskFull,
        _ => Code::InvalidArgument,
    };
    let message = format!("cannot write `{}`", path.display());
    Error::new(code, Stage::Close, message).caused_by(error)
}
