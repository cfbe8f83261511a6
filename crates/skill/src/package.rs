//! The files of a skill, read once: what is checked, digested and used are the very same bytes.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::problem::{Problems, shown};

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const SKILL_MD: &str = "SKILL.md";

const MANIFEST_BYTES_MAX: u64 = 256 << 10;
const FILE_BYTES_MAX: u64 = 4 << 20;
const TOTAL_BYTES_MAX: u64 = 8 << 20;
const FILES_MAX: usize = 500;
const DEPTH_MAX: usize = 8;
const PATH_BYTES_MAX: usize = 512;
/// How often it is read again when somebody writes it meanwhile.
const ATTEMPTS: usize = 3;
/// Filesystems' clocks tick this seldom at worst: what was written later than that before we
/// looked could be written again without a sign.
const TICK: Duration = Duration::from_secs(2);

const SECOND: i128 = 1_000_000_000;

/// By their paths below the skill's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    files: BTreeMap<String, Vec<u8>>,
}

/// When and what a file was: another one has another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    path: String,
    facts: [i128; 5],
}

/// How a directory looked when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamps(Vec<Stamp>);

impl Package {
    /// Of files that were not read from a directory.
    pub fn of(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Self, Problems> {
        let files: BTreeMap<String, Vec<u8>> = files.into_iter().collect();
        let package = Self { files };
        package.check()?;
        Ok(package)
    }

    /// Links are not followed, and only regular files are opened.
    pub fn read(dir: &Path) -> Result<Self, Problems> {
        let fd = open(CWD, dir).map_err(|errno| unreadable("", errno))?;
        Self::read_stamped(&fd).map(|(package, _)| package)
    }

    /// The package and, if it has rested for a while, what says that it is still the same.
    pub(crate) fn read_stamped(dir: &OwnedFd) -> Result<(Self, Option<Stamps>), Problems> {
        let mut found = Self::walk(dir)?;
        for _ in 0..ATTEMPTS {
            let again = Stamps::of(dir)?;
            if again == found.1 {
                let (package, stamps) = found;
                package.check()?;
                let stamps = stamps.have_rested().then_some(stamps);
                return Ok((package, stamps));
            }
            found = Self::walk(dir)?;
        }
        Err(Problems::one("", "its files change while they are read"))
    }

    fn walk(dir: &OwnedFd) -> Result<(Self, Stamps), Problems> {
        let (mut files, mut stamps, mut total) = (BTreeMap::new(), Vec::new(), 0);
        visit(dir, "", 0, &mut |path, fd, stat| {
            let most = match path {
                MANIFEST => MANIFEST_BYTES_MAX,
                _ => FILE_BYTES_MAX,
            };
            let contents = contents(fd, path, most)?;
            total += contents.len() as u64;
            if total > TOTAL_BYTES_MAX {
                return Err(too_much());
            }
            stamps.push(Stamp::of(path, stat));
            files.insert(path.to_owned(), contents);
            Ok(())
        })?;
        stamps.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((Self { files }, Stamps(stamps)))
    }

    fn check(&self) -> Result<(), Problems> {
        if self.files.len() > FILES_MAX {
            return Err(too_many());
        }
        let total: u64 = self.files.values().map(|it| it.len() as u64).sum();
        if total > TOTAL_BYTES_MAX {
            return Err(too_much());
        }
        for (path, contents) in &self.files {
            check_path(path)?;
            let most = match path.as_str() {
                MANIFEST => MANIFEST_BYTES_MAX,
                _ => FILE_BYTES_MAX,
            };
            if contents.len() as u64 > most {
                return Err(too_large(path, most));
            }
        }
        Ok(())
    }

    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    pub fn entries(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let entries = self.files.iter();
        entries.map(|(path, contents)| (path.as_str(), contents.as_slice()))
    }

    pub(crate) fn put(&mut self, path: &str, contents: Vec<u8>) {
        self.files.insert(path.to_owned(), contents);
    }

    /// SHA-256 over the lines `SHA-256  PATH`, sorted by path: what `sha256sum` prints of the files,
    /// once more through `sha256sum`.
    pub fn digest(&self) -> String {
        let mut listing = Sha256::new();
        for (path, contents) in &self.files {
            listing.update(format!("{}  {path}\n", hex(&Sha256::digest(contents))));
        }
        format!("sha256:{}", hex(&listing.finalize()))
    }
}

impl Stamp {
    fn of(path: &str, stat: &Stat) -> Self {
        let time = |seconds: i64, nanos: u64| i128::from(seconds) * SECOND + i128::from(nanos);
        Self {
            path: path.to_owned(),
            facts: [
                i128::from(stat.st_dev),
                i128::from(stat.st_ino),
                i128::from(stat.st_size),
                time(stat.st_mtime, stat.st_mtime_nsec),
                time(stat.st_ctime, stat.st_ctime_nsec),
            ],
        }
    }
}

impl Stamps {
    pub(crate) fn of(dir: &OwnedFd) -> Result<Self, Problems> {
        let mut stamps = Vec::new();
        look(dir, "", 0, &mut |path, stat| {
            stamps.push(Stamp::of(path, stat))
        })?;
        stamps.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self(stamps))
    }

    /// Whether a change from now on shows.
    fn have_rested(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let Some(then) = now.ok().and_then(|now| now.checked_sub(TICK)) else {
            return false;
        };
        let newest = self.0.iter().map(|it| it.facts[4]).max();
        newest.is_some_and(|it| it < i128::try_from(then.as_nanos()).unwrap_or(0))
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// A directory by its path, where a link may lead: whoever names it says which they mean.
pub(crate) fn open(at: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    openat(at, path, DIRECTORY, Mode::empty())
}

/// A directory in another, which is no link.
pub(crate) fn open_name(at: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    openat(at, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
}

type Visitor<'v> = dyn FnMut(&str, OwnedFd, &Stat) -> Result<(), Problems> + 'v;

/// Every regular file, open. What is no file and no directory is refused.
fn visit(dir: &OwnedFd, above: &str, depth: usize, each: &mut Visitor<'_>) -> Result<(), Problems> {
    let mut count = 0;
    walk(dir, above, depth, &mut count, &mut |at, name, path, _| {
        // Should it have become a fifo since, opening does not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = openat(at, name, flags, Mode::empty()).map_err(|errno| unreadable(path, errno))?;
        let stat = fstat(&fd).map_err(|errno| unreadable(path, errno))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => each(path, fd, &stat),
            kind => Err(not_a_file(path, kind)),
        }
    })
}

fn look(
    dir: &OwnedFd,
    above: &str,
    depth: usize,
    each: &mut dyn FnMut(&str, &Stat),
) -> Result<(), Problems> {
    let mut count = 0;
    walk(dir, above, depth, &mut count, &mut |_, _, path, stat| {
        each(path, stat);
        Ok(())
    })
}

type Each<'v> = dyn FnMut(&OwnedFd, &CStr, &str, &Stat) -> Result<(), Problems> + 'v;

fn walk(
    dir: &OwnedFd,
    above: &str,
    depth: usize,
    count: &mut usize,
    each: &mut Each<'_>,
) -> Result<(), Problems> {
    if depth > DEPTH_MAX {
        return Err(Problems::one(
            above,
            format!("directories are nested deeper than {DEPTH_MAX}"),
        ));
    }
    let entries = Dir::read_from(dir).map_err(|errno| unreadable(above, errno))?;
    for entry in entries {
        let entry = entry.map_err(|errno| unreadable(above, errno))?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        *count += 1;
        if *count > FILES_MAX {
            return Err(too_many());
        }
        let text = name.to_str().map_err(|_| {
            let message = format!("the name `{}` is not UTF-8", name.to_string_lossy());
            Problems::one(above, message)
        })?;
        let path = match above {
            "" => text.to_owned(),
            above => format!("{above}/{text}"),
        };
        check_path(&path)?;
        let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| unreadable(&path, errno))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => each(dir, name, &path, &stat)?,
            FileType::Directory => {
                let inner = open_name(dir, text).map_err(|errno| unreadable(&path, errno))?;
                walk(&inner, &path, depth + 1, count, each)?;
            }
            kind => return Err(not_a_file(&path, kind)),
        }
    }
    Ok(())
}

fn contents(fd: OwnedFd, path: &str, most: u64) -> Result<Vec<u8>, Problems> {
    let mut contents = Vec::new();
    let read = File::from(fd).take(most + 1).read_to_end(&mut contents);
    read.map_err(|error| Problems::one(path, format!("cannot be read: {error}")))?;
    match contents.len() as u64 > most {
        true => Err(too_large(path, most)),
        false => Ok(contents),
    }
}

fn check_path(path: &str) -> Result<(), Problems> {
    let good = |part: &str| !part.is_empty() && part != "." && part != "..";
    if path.len() > PATH_BYTES_MAX || path.starts_with('/') || !path.split('/').all(good) {
        return Err(Problems::one(
            "",
            format!("`{}` is no path of a file", shown(path)),
        ));
    }
    if path.contains(char::is_control) {
        let message = format!("the name `{}` holds a control character", shown(path));
        return Err(Problems::one("", message));
    }
    Ok(())
}

fn unreadable(path: &str, errno: Errno) -> Problems {
    match errno {
        Errno::LOOP => Problems::one(path, "is a link, and links are not followed"),
        errno => Problems::one(path, format!("cannot be read: {errno}")),
    }
}

fn not_a_file(path: &str, kind: FileType) -> Problems {
    Problems::one(
        path,
        match kind {
            FileType::Symlink => "is a link, and links are not followed",
            FileType::Fifo => "is a fifo, not a file",
            FileType::Socket => "is a socket, not a file",
            _ => "is not a regular file",
        },
    )
}

fn too_large(path: &str, most: u64) -> Problems {
    Problems::one(path, format!("is larger than {most} bytes"))
}

fn too_much() -> Problems {
    Problems::one(
        "",
        format!("its files are larger than {TOTAL_BYTES_MAX} bytes together"),
    )
}

fn too_many() -> Problems {
    Problems::one("", format!("it has more than {FILES_MAX} files"))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
