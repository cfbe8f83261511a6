//! The sandbox's /etc: a small directory of our own, made once and shown read-only. Nothing of the
//! host's is mounted; a few public files that programs cannot do without are copied, and only where
//! any user of the host may read them.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

/// Counts up whenever what is written here changes.
const VERSION: u32 = 2;
const FILE_MAX: u64 = 1 << 20;
const ENTRIES_MAX: usize = 4096;

const OWN_FILES: [(&str, &str); 5] = [
    (
        "passwd",
        "sandbox:x:1000:1000:sandbox:/home/sandbox:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    ),
    ("group", "sandbox:x:1000:\nnogroup:x:65534:\n"),
    ("hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"),
    ("hostname", "sandbox\n"),
    (
        "nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    ),
];

/// Names mean nothing without a network.
const NO_NAMES: &str = "";
/// Whoever is asked, the sandbox's way out answers.
const NAMES: &str = "nameserver 198.18.0.1\n";
/// Where certificates are shown, if the host has none there.
const TRUSTED: &str = "ssl/certs/ca-certificates.crt";

/// What is taken over from the host: how commands and libraries are found, and public tables.
const COPIED: [&str; 7] = [
    "alternatives",
    "ld.so.cache",
    "mime.types",
    "protocols",
    "services",
    "ssl/certs/ca-certificates.crt",
    "ssl/openssl.cnf",
];

static MAKING: Mutex<()> = Mutex::new(());

/// A directory ready to be shown as /etc.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Etc(PathBuf);

impl Etc {
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Finds or makes it below `parent`; keyed by what it was made from, so a changed host gets a
    /// new one.
    pub fn below(parent: &Path) -> io::Result<Self> {
        Self::made_from(parent, Path::new("/etc"), NO_NAMES)
    }

    /// The same for a sandbox with a way out.
    pub fn with_names(parent: &Path) -> io::Result<Self> {
        Self::made_from(parent, Path::new("/etc"), NAMES)
    }

    fn made_from(parent: &Path, host: &Path, names: &str) -> io::Result<Self> {
        let place = parent.join(format!("etc-{}", key(host, names)));
        if place.is_dir() {
            return Ok(Self(place));
        }
        // Hundreds of links: of many threads one makes it and the others wait.
        let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        if place.is_dir() {
            return Ok(Self(place));
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let draft = parent.join(format!("etc-draft-{:016x}", u64::from_ne_bytes(random)));
        let made = fill(&draft, host, names).and_then(|()| match fs::rename(&draft, &place) {
            // Another process was quicker and made the same.
            Err(_) if place.is_dir() => fs::remove_dir_all(&draft),
            other => other,
        });
        if made.is_err() {
            let _ = fs::remove_dir_all(&draft);
        }
        made.map(|()| Self(place))
    }
}

fn key(host: &Path, names: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(VERSION.to_le_bytes());
    hash.update(names);
    for (name, content) in OWN_FILES {
        hash.update(name);
        hash.update(content);
    }
    for name in COPIED {
        hash.update(name);
        if let Ok(facts) = fs::symlink_metadata(host.join(name)) {
            for number in [
                facts.ino(),
                facts.size(),
                facts.mtime() as u64,
                facts.mtime_nsec() as u64,
            ] {
                hash.update(number.to_le_bytes());
            }
        }
    }
    hash.finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn fill(draft: &Path, host: &Path, names: &str) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o755).create(draft)?;
    for (name, content) in OWN_FILES {
        write(&draft.join(name), content.as_bytes())?;
    }
    write(&draft.join("resolv.conf"), names.as_bytes())?;
    for name in COPIED {
        if let Some(parent) = Path::new(name).parent() {
            fs::DirBuilder::new()
                .mode(0o755)
                .recursive(true)
                .create(draft.join(parent))?;
        }
        copy(&host.join(name), &draft.join(name))?;
    }
    let trusted = draft.join(TRUSTED);
    match fs::symlink_metadata(&trusted) {
        Err(_) if names != NO_NAMES => write(&trusted, b""),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    use std::io::Write;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)?;
    file.write_all(content)?;
    // The caller's umask must not hide the file from the sandbox's user.
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

/// A public regular file, a link, or one directory of those. Anything else is left out.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(facts) = fs::symlink_metadata(from) else {
        return Ok(());
    };
    if facts.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if facts.is_dir() {
        fs::DirBuilder::new().mode(0o755).create(to)?;
        for entry in fs::read_dir(from)?.take(ENTRIES_MAX) {
            let entry = entry?;
            if entry.file_type()?.is_symlink() {
                symlink(fs::read_link(entry.path())?, to.join(entry.file_name()))?;
            }
        }
        return Ok(());
    }
    let public = facts.is_file() && facts.mode() & 0o004 != 0 && facts.len() <= FILE_MAX;
    if !public {
        return Ok(());
    }
    let mut content = Vec::new();
    fs::File::open(from)?
        .take(FILE_MAX)
        .read_to_end(&mut content)?;
    write(to, &content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> tempfile::TempDir {
        let host = tempfile::tempdir().unwrap();
        fs::create_dir(host.path().join("alternatives")).unwrap();
        symlink("/usr/bin/mawk", host.path().join("alternatives/awk")).unwrap();
        fs::write(host.path().join("alternatives/README"), "text").unwrap();
        fs::write(host.path().join("shadow"), "root:secret").unwrap();
        fs::write(host.path().join("services"), "http 80/tcp\n").unwrap();
        fs::write(host.path().join("protocols"), "private").unwrap();
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(host.path().join("protocols"), private).unwrap();
        host
    }

    #[test]
    fn only_public_and_listed_things_are_taken_over() {
        let (host, parent) = (host(), tempfile::tempdir().unwrap());
        let etc = Etc::made_from(parent.path(), host.path(), NO_NAMES).unwrap();
        let has = |name: &str| fs::symlink_metadata(etc.path().join(name)).is_ok();
        assert!(has("passwd") && has("services") && has("alternatives/awk"));
        assert!(!has("shadow") && !has("protocols") && !has("alternatives/README"));
        let passwd = fs::read_to_string(etc.path().join("passwd")).unwrap();
        assert!(!passwd.contains("root"));
    }

    #[test]
    fn it_is_made_once_and_again_when_the_host_changes() {
        let (host, parent) = (host(), tempfile::tempdir().unwrap());
        let first = Etc::made_from(parent.path(), host.path(), NO_NAMES).unwrap();
        assert_eq!(
            first,
            Etc::made_from(parent.path(), host.path(), NO_NAMES).unwrap()
        );
        fs::write(host.path().join("services"), "https 443/tcp and more\n").unwrap();
        assert_ne!(
            first,
            Etc::made_from(parent.path(), host.path(), NO_NAMES).unwrap()
        );
        let drafts = fs::read_dir(parent.path()).unwrap().flatten();
        assert_eq!(
            drafts
                .filter(|it| it.file_name().to_string_lossy().contains("draft"))
                .count(),
            0
        );
    }
}
