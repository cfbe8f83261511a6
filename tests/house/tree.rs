//! The repository's files.

use std::path::{Path, PathBuf};

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .find(|path| path.join("Cargo.lock").exists() && path.join("crates").exists())
        .expect("the repository is above this crate")
        .to_owned()
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = repository().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below a directory with this ending, by its path from the repository's root, sorted.
/// What is built or hidden is not part of the repository.
pub(crate) fn files(below: &str, ending: &str) -> Vec<PathBuf> {
    let root = repository();
    let mut found = Vec::new();
    let mut waiting = vec![root.join(below)];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || name == "target" {
                continue;
            }
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if kind.is_file() && name.ends_with(ending) {
                found.push(entry.path().strip_prefix(&root).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The product's own sources.
pub(crate) fn sources() -> Vec<PathBuf> {
    let mut sources = files("crates", ".rs");
    sources.retain(|path| {
        path.components()
            .nth(2)
            .is_some_and(|it| it.as_os_str() == "src")
    });
    assert!(sources.len() > 50, "the sources were not found");
    sources
}

/// A source without its unit tests, which stand at its end.
pub(crate) fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or(text)
}
