//! What an engine of one test's own has: a place in memory, and as little of the image of the
//! sandboxes as such a test runs. The whole image takes longer to unpack and to delete than all else.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What an engine and its containers take here, with room to spare.
const ENOUGH: u64 = 256 << 20;

/// The shell, a few programs, and what they are linked with; by their paths in the image.
const PARTS: &[&str] = &[
    "./bin",
    "./lib*",
    "./sbin",
    "./etc/group",
    "./etc/passwd",
    "./home",
    "./usr/bin/cat",
    "./usr/bin/dash",
    "./usr/bin/dd",
    "./usr/bin/echo",
    "./usr/bin/sh",
    "./usr/bin/sleep",
    "./usr/bin/true",
    "./usr/lib*/ld-linux*",
    "./usr/lib*/libc.so.6",
    "./workspace",
];

/// `$1` is the whole, `$2` a directory that is empty; the rest are the parts.
const IMPORT: &str = r#"set -eu
tar=$1 root=$2; shift 2
tar --extract --file="$tar" --directory="$root" --wildcards "$@"
mkdir -p "$root/dev" "$root/proc" "$root/sys" "$root/run" "$root/tmp" "$root/var/tmp"
tar --create --directory="$root" --numeric-owner . | docker import \
    --change 'ENV PATH=/usr/local/bin:/usr/bin:/bin' --change 'ENV LANG=C.UTF-8' \
    --change 'USER 1000:1000' --change 'WORKDIR /workspace/work' \
    - glovebox-sandbox:latest >/dev/null"#;

/// Where such an engine lives: in memory, where nobody else's disk holds it up. The path of its socket
/// must be short.
pub(crate) fn place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let free = rustix::fs::statvfs(memory).map_or(0, |it| it.f_bavail.saturating_mul(it.f_frsize));
    let place = if free >= ENOUGH {
        memory
    } else {
        "/tmp".as_ref()
    };
    place.to_owned()
}

/// Gives the engine its image, from what `images/sandbox/build` has kept of the whole.
pub(crate) fn furnish(host: &str, repository: &Path) {
    let cache = std::env::var_os("GLOVEBOX_TEST_IMAGE_CACHE")
        .map_or_else(|| repository.join("target/images"), PathBuf::from);
    let output = match newest(&cache) {
        Some(whole) => {
            let root = tempfile::tempdir_in(place()).expect("a directory");
            Command::new("sh")
                .args(["-c", IMPORT, "import"])
                .arg(whole)
                .arg(root.path())
                .args(PARTS)
                .env("DOCKER_HOST", host)
                .output()
        }
        None => Command::new(repository.join("images/sandbox/build"))
            .args(["--bootstrap", "--cache"])
            .arg(cache)
            .env("DOCKER_HOST", host)
            .output(),
    };
    let output = output.expect("make an image");
    assert!(output.status.success(), "{output:?}");
}

fn newest(cache: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(cache).ok()?.flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "tar"))
        .max_by_key(|path| path.metadata().and_then(|it| it.modified()).ok())
}
