//! Names of installed versions, as version files write them.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// A name that is exactly one path component and nothing special: no `..`, no `/`.
pub(super) fn name(text: &str) -> Option<&str> {
    let text = text.trim();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-@".contains(&byte);
    let first = text.bytes().next()?;
    (text.len() <= 100 && text.bytes().all(plain) && !b".-".contains(&first)).then_some(text)
}

/// The newest directory of `dir` whose name is `wanted` or begins with it at a dot, as in `3.12`
/// for `3.12.1`. Exact names are found without listing.
pub(super) fn installed(dir: &Path, wanted: &str) -> Option<PathBuf> {
    let exact = dir.join(wanted);
    if exact.is_dir() {
        return Some(exact);
    }
    let begin = format!("{wanted}.");
    newest(dir, |name| name.starts_with(&begin))
}

/// The newest directory whose name is accepted.
pub(super) fn newest(dir: &Path, accept: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let names = dir.read_dir().ok()?.flatten().take(1000);
    names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|found| name(found).is_some() && accept(found) && dir.join(found).is_dir())
        .max_by(|a, b| compare(a, b))
        .map(|found| dir.join(found))
}

/// Numbers as numbers, a pre-release before its release.
fn compare(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| -> Vec<(u64, bool)> {
        text.trim_start_matches('v')
            .split('.')
            .map(|part| {
                let digits = part.bytes().take_while(u8::is_ascii_digit).count();
                (part[..digits].parse().unwrap_or(0), digits == part.len())
            })
            .collect()
    };
    parts(a).cmp(&parts(b)).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_their_directory_are_not_names() {
        for bad in ["", ".", "..", "../..", "a/b", "/", "-x", "a\nb", "a b", "é"] {
            assert_eq!(name(bad), None, "{bad:?}");
        }
        assert_eq!(name(" 3.12.1\r\n"), Some("3.12.1"));
        assert_eq!(name(&"1".repeat(101)), None);
    }

    #[test]
    fn versions_are_ordered_as_numbers() {
        assert_eq!(compare("3.9.18", "3.12.1"), Ordering::Less);
        assert_eq!(compare("v20.1.0", "v8.17.0"), Ordering::Greater);
        assert_eq!(compare("3.13.0rc1", "3.13.0"), Ordering::Less);
    }
}
