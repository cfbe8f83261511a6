//! What a tree is: the kind, permissions and contents of everything in it. Two trees with one digest
//! run the same programs. Times and owners are no part of it, and neither are devices, which no
//! sandbox shows.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;

use glovebox_model::ByteString;
use rustix::fs::OFlags;

use super::carry::LeftOut;
use super::read::link_text;
use crate::dir::{Dir, READING, Skip, Visit, WalkEnd, WalkEntry, WalkLimits, regular, single};
use crate::fault::{FsError, FsErrorKind, FsResult};
use crate::relpath::PATH_MAX;
use crate::stat::Kind;

const READING_STATE: &str = "look at";
const BUFFER: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeState {
    /// BLAKE3 in hex.
    pub digest: String,
    pub entries: u64,
    pub bytes: u64,
    parts: BTreeMap<Vec<u8>, Part>,
}

type Part = [u8; 32];

impl TreeState {
    /// All of it or an error: what was not seen is not bound.
    pub fn of(dir: &Dir, entries: u64, left_out: LeftOut<'_>) -> FsResult<Self> {
        let mut reader = Reader {
            parts: BTreeMap::new(),
            bytes: 0,
            buffer: vec![0; BUFFER],
        };
        let limits = WalkLimits {
            depth: PATH_MAX / 2,
            path_bytes: PATH_MAX,
            entries,
            deadline: None,
        };
        let mut fault = None;
        let end = dir.walk(limits, |visit| {
            match reader.visit(visit, entries, left_out) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    fault = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        let failed = |kind| FsError::new(READING_STATE, b"", kind);
        match (end, fault) {
            (_, Some(fault)) => Err(fault),
            (WalkEnd::Complete, None) => Ok(reader.finish()),
            (WalkEnd::EntryLimit, None) => {
                Err(failed(FsErrorKind::TooManyEntries { cap: entries }))
            }
            (WalkEnd::Deadline | WalkEnd::Stopped | WalkEnd::Moved, None) => {
                Err(failed(FsErrorKind::Contended))
            }
        }
    }

    /// The paths that differ, by name.
    pub fn changed<'s>(&'s self, other: &'s Self) -> impl Iterator<Item = ByteString> {
        let gone = |it: &(&'s Vec<u8>, &'s Part)| !other.parts.contains_key(it.0);
        let new = |it: &(&'s Vec<u8>, &'s Part)| self.parts.get(it.0) != Some(it.1);
        let gone = self.parts.iter().filter(gone);
        let paths = gone.chain(other.parts.iter().filter(new));
        paths.filter_map(|(path, _)| ByteString::new(path.as_slice()))
    }
}

struct Reader {
    parts: BTreeMap<Vec<u8>, Part>,
    bytes: u64,
    buffer: Vec<u8>,
}

impl Reader {
    fn visit(&mut self, visit: Visit<'_>, most: u64, left_out: LeftOut<'_>) -> FsResult<()> {
        match visit {
            Visit::Entry(entry) | Visit::Skipped { entry, .. }
                if left_out(entry.path, &entry.stat) =>
            {
                Ok(())
            }
            Visit::Entry(entry) => self.entry(&entry),
            Visit::Skipped { entry, why } => {
                let kind = match why {
                    Skip::TooDeep => FsErrorKind::NameTooLong,
                    Skip::TooManyEntries => FsErrorKind::TooManyEntries { cap: most },
                    Skip::Unreadable => FsErrorKind::Permission,
                    Skip::OtherFileSystem => FsErrorKind::OtherFileSystem,
                };
                Err(FsError::new(READING_STATE, entry.path, kind))
            }
        }
    }

    fn entry(&mut self, entry: &WalkEntry<'_>) -> FsResult<()> {
        let mut hasher = blake3::Hasher::new();
        let mode = entry.stat.mode.to_be_bytes();
        match entry.stat.kind {
            Kind::Device | Kind::Unknown => return Ok(()),
            Kind::Directory => hasher.update(b"directory").update(&mode),
            Kind::Fifo => hasher.update(b"fifo").update(&mode),
            Kind::Socket => hasher.update(b"socket").update(&mode),
            Kind::Symlink => {
                let text = link_text(entry.at.dir, entry.at.name);
                let text = text.map_err(|errno| FsError::os(READING_STATE, entry.path, errno))?;
                hasher.update(b"link").update(text.as_bytes())
            }
            Kind::File => self.file(entry, &mut hasher)?,
        };
        let part = hasher.finalize().into();
        self.parts.insert(entry.path.to_vec(), part);
        Ok(())
    }

    fn file<'h>(
        &mut self,
        entry: &WalkEntry<'_>,
        hasher: &'h mut blake3::Hasher,
    ) -> FsResult<&'h mut blake3::Hasher> {
        let failed = |kind| FsError::new(READING_STATE, entry.path, kind);
        let name = entry.at.name.to_bytes();
        let file = match single(entry.at.dir, name, READING | OFlags::NOFOLLOW) {
            // No program inside can read or run it either.
            Err(FsErrorKind::Permission) => return Ok(hasher.update(b"unreadable")),
            file => file.map_err(failed)?,
        };
        let stat = regular(&file).map_err(failed)?;
        // By the descriptor: the name may stand for another file by now.
        hasher.update(b"file").update(&stat.mode.to_be_bytes());
        let mut file = File::from(file);
        loop {
            let length = file.read(&mut self.buffer).map_err(|error| {
                let errno = rustix::io::Errno::from_io_error(&error);
                FsError::os(
                    READING_STATE,
                    entry.path,
                    errno.unwrap_or(rustix::io::Errno::IO),
                )
            })?;
            if length == 0 {
                return Ok(hasher);
            }
            hasher.update(&self.buffer[..length]);
            self.bytes += length as u64;
        }
    }

    fn finish(self) -> TreeState {
        let mut hasher = blake3::Hasher::new();
        for (path, part) in &self.parts {
            hasher.update(&(path.len() as u64).to_be_bytes());
            hasher.update(path).update(part);
        }
        TreeState {
            digest: hasher.finalize().to_hex().to_string(),
            entries: self.parts.len() as u64,
            bytes: self.bytes,
            parts: self.parts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn contents_modes_kinds_and_names_count_and_times_do_not() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir(at("d")).unwrap();
        std::fs::write(at("d/a"), "one").unwrap();
        std::os::unix::fs::symlink("d/a", at("l")).unwrap();
        let state = || {
            TreeState::of(&Dir::open_trusted(place.path()).unwrap(), 100, &|_, _| {
                false
            })
            .unwrap()
        };
        let mut last = state();
        std::fs::write(at("d/a"), "one").unwrap();
        assert_eq!(state(), last);
        let chmod =
            |mode| std::fs::set_permissions(at("d/a"), std::fs::Permissions::from_mode(mode));
        let deeds: [(&dyn Fn(), &[&str]); 6] = [
            (&|| std::fs::write(at("d/a"), "two").unwrap(), &["d/a"]),
            (&|| chmod(0o755).unwrap(), &["d/a"]),
            (
                &|| std::fs::rename(at("d/a"), at("d/b")).unwrap(),
                &["d/a", "d/b"],
            ),
            (&|| std::fs::create_dir(at("e")).unwrap(), &["e"]),
            (
                &|| {
                    std::fs::remove_file(at("l")).unwrap();
                    std::os::unix::fs::symlink("d/b", at("l")).unwrap();
                },
                &["l"],
            ),
            (
                &|| {
                    std::fs::rename(at("d"), at("f")).unwrap();
                },
                &["d", "d/b", "f", "f/b"],
            ),
        ];
        for (deed, expected) in deeds {
            deed();
            let now = state();
            assert_ne!(now.digest, last.digest);
            let changed: Vec<_> = last.changed(&now).map(|it| it.display()).collect();
            assert_eq!(changed, expected);
            last = now;
        }
        assert!(
            TreeState::of(&Dir::open_trusted(place.path()).unwrap(), 2, &|_, _| false).is_err()
        );
    }
}
