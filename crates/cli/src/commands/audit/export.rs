//! `glovebox audit export`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use glovebox_model::{Code, Error, Result, Stage};
use tempfile::NamedTempFile;

use crate::args::{ExportArgs, Global};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::count;
use crate::render;

pub(crate) fn run(global: &Global, args: ExportArgs) -> Result<Exit> {
    let records = Context::new(global).some_records()?;
    let format = args.format.into();
    let space = args.space.as_ref();
    match args.output.filter(|path| path != Path::new("-")) {
        None => {
            let mut out = Piped {
                out: BufWriter::new(io::stdout().lock()),
                gone: false,
            };
            match records.export(space, format, &mut out) {
                Err(_) if out.gone => {}
                exported => {
                    exported?;
                }
            }
        }
        Some(path) => {
            let mut target = Target::open(&path)?;
            let entries = records.export(space, format, target.writer())?;
            target.finish(&path)?;
            if !global.quiet && !global.json {
                let entries = count(entries, "entry", "entries");
                render::note(&format!("wrote {entries} to `{}`", path.display()));
            }
        }
    }
    Ok(Exit::SUCCESS)
}

/// Remembers that the reader went away, which is no failure.
struct Piped<W> {
    out: W,
    gone: bool,
}

impl<W> Piped<W> {
    fn noted<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            self.gone |= error.kind() == io::ErrorKind::BrokenPipe;
        }
        result
    }
}

impl<W: Write> Write for Piped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.noted(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.noted(flushed)
    }
}

/// Where an export goes. A file appears whole or not at all; a device or a pipe is written to.
enum Target {
    Whole {
        file: BufWriter<NamedTempFile>,
        place: PathBuf,
    },
    Device(File),
}

impl Target {
    fn open(path: &Path) -> Result<Self> {
        Self::try_open(path).map_err(|error| not_written(path).caused_by(error))
    }

    fn try_open(path: &Path) -> io::Result<Self> {
        let place = match fs::metadata(path) {
            Ok(facts) if facts.is_file() => path.canonicalize()?,
            Ok(facts) if facts.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) => return File::options().write(true).open(path).map(Self::Device),
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::path::absolute(path)?,
            Err(error) => return Err(error),
        };
        let parent = place.parent().unwrap_or(Path::new("/"));
        let file = BufWriter::new(NamedTempFile::new_in(parent)?);
        Ok(Self::Whole { file, place })
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Whole { file, .. } => file,
            Self::Device(file) => file,
        }
    }

    fn finish(self, path: &Path) -> Result<()> {
        let Self::Whole { file, place } = self else {
            return Ok(());
        };
        let finish = || -> io::Result<()> {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.as_file().sync_all()?;
            file.persist(&place)?;
            Ok(())
        };
        finish().map_err(|error| not_written(path).caused_by(error))
    }
}

fn not_written(path: &Path) -> Error {
    let shown = path.display();
    Error::new(
        Code::InvalidArgument,
        Stage::Close,
        format!("cannot write the export to `{shown}`"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_only_by_a_whole_one() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        fs::write(&path, "old").unwrap();
        let mut abandoned = Target::open(&path).unwrap();
        abandoned.writer().write_all(b"half").unwrap();
        drop(abandoned);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");

        let mut whole = Target::open(&path).unwrap();
        whole.writer().write_all(b"new").unwrap();
        whole.finish(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link_and_a_device_a_device() {
        let place = tempfile::tempdir().unwrap();
        let (link, file) = (place.path().join("link"), place.path().join("file"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut target = Target::open(&link).unwrap();
        target.writer().write_all(b"x").unwrap();
        target.finish(&link).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "x");
        assert!(matches!(
            Target::open(Path::new("/dev/null")),
            Ok(Target::Device(_))
        ));
        assert!(Target::open(place.path()).is_err());
    }
}
