//! Where the binaries under test are. The tests never build them: a stale or missing one is said.

use std::path::{Path, PathBuf};

fn target_directory() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => PathBuf::from(directory),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
    }
}

/// The debug binary, which has the switches that the mutation tests need.
///
/// # Panics
/// When it is not there.
pub fn glovebox() -> PathBuf {
    let path = std::env::var_os("GLOVEBOX_BIN")
        .map_or_else(|| target_directory().join("debug/glovebox"), PathBuf::from);
    path.canonicalize().unwrap_or_else(|error| {
        panic!(
            "no binary to test at `{}` ({error}); run `cargo build -p glovebox` first, or set \
             GLOVEBOX_BIN",
            path.display()
        )
    })
}

/// The release binary, if one was built.
pub fn release_glovebox() -> Option<PathBuf> {
    let path = std::env::var_os("GLOVEBOX_RELEASE_BIN").map_or_else(
        || target_directory().join("release/glovebox"),
        PathBuf::from,
    );
    path.canonicalize().ok()
}

/// A file of the corpora that may lie beside the repository.
pub fn beside_the_repository(relative: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(relative).canonicalize().ok()
}
