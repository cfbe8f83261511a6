//! Small files that somebody else may have written, and paths made safe to show.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

/// Version files are a few bytes and the largest settings file a few kilobytes.
const LIMIT: u64 = 64 * 1024;
/// Deeper than any project, and an end for a file system that has none.
const LEVELS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    Follow,
    /// For files that untrusted programs can write: a link would make us read, and perhaps repeat,
    /// something else.
    Refuse,
}

/// The text of a small regular file; anything else is `None`. Never blocks on a FIFO.
pub(super) fn read(path: &Path, links: Links) -> Option<String> {
    let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    let file = openat(CWD, path, flags, Mode::empty()).ok()?;
    let stat = fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut text = String::new();
    File::from(file)
        .take(LIMIT + 1)
        .read_to_string(&mut text)
        .ok()?;
    (text.len() as u64 <= LIMIT).then_some(text)
}

/// The directories in which a version file counts, nearest first.
pub(super) fn upwards(from: &Path) -> impl Iterator<Item = &Path> {
    from.ancestors().take(LEVELS)
}

/// The nearest of these files, with its text.
pub(super) fn nearest(from: &Path, names: &[&str]) -> Option<(PathBuf, String)> {
    upwards(from).find_map(|dir| {
        names.iter().find_map(|name| {
            let file = dir.join(name);
            let text = read(&file, Links::Refuse)?;
            Some((file, text))
        })
    })
}

/// `key = value` lines of one `[section]` (of the top when empty), quotes and comments taken off.
/// Not TOML: the files read with it are read for one plain word, and a word that is not an
/// installed version changes nothing.
pub(super) fn assignments<'t>(
    text: &'t str,
    section: &str,
) -> impl Iterator<Item = (&'t str, &'t str)> {
    let mut inside = section.is_empty();
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            inside = header.split(']').next().map(str::trim) == Some(section);
            return None;
        }
        let (key, value) = line.split_once('=')?;
        let (key, value) = (key.trim(), unquote(value.trim()));
        (inside && !key.starts_with('#')).then_some((key.trim_matches(['"', '\'']), value))
    })
}

fn unquote(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote) {
            return rest.split(quote).next().unwrap_or_default();
        }
    }
    value.split('#').next().unwrap_or_default().trim()
}

/// For messages: one line, no control characters, not endless.
pub(super) fn show(path: &Path) -> String {
    const LONGEST: usize = 200;
    let text = path.to_string_lossy();
    let mut shown = String::with_capacity(text.len());
    for (at, letter) in text.chars().enumerate() {
        if at == LONGEST {
            shown.push('…');
            break;
        }
        if letter.is_control() {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_found_in_their_section_alone() {
        let text = "channel = \"no\"\n[toolchain] # x\nchannel = \"1.95\" # pinned\n\
                    # path = \"/\"\n[other]\nchannel = 'x'\n";
        let found: Vec<_> = assignments(text, "toolchain").collect();
        assert_eq!(found, [("channel", "1.95")]);
        assert_eq!(assignments(text, "").next(), Some(("channel", "no")));
    }

    #[test]
    fn a_shown_path_is_one_line_of_bounded_length() {
        let shown = show(Path::new(&format!("/a\n\x1b[31m{}", "x".repeat(5000))));
        assert!(!shown.chars().any(char::is_control));
        assert!(shown.chars().count() < 300);
    }
}
