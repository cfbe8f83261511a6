//! `[workspace.cache.NAME]`: what sandboxes may reuse, and where they find it.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use glovebox_model::Result;
use toml::de::DeTable;

use super::super::document::{Document, Key, Node, entries, shown};
use super::super::section::read_word;
use super::super::value::read_text;
use super::{WorkspaceSection, path};
use crate::word::Word;

const KEYS: [&str; 2] = ["mode", "at"];
const LONGEST: usize = 64;

/// Up to 64 of `a`–`z`, `0`–`9`, `.`, `_` and `-`, the first a letter or a digit, without `..` and a
/// dot at the end: one file name that is the same on every file system.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CacheName(String);

impl CacheName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CacheName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for CacheName {
    /// Follows the name in a message: "is not …".
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Self, &'static str> {
        let letter = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
        let fine = text.len() <= LONGEST
            && text.starts_with(letter)
            && text.chars().all(|it| letter(it) || "._-".contains(it))
            && !text.contains("..")
            && !text.ends_with('.');
        match fine {
            true => Ok(Self(text.to_owned())),
            false => Err(
                "is not up to 64 lower case letters, digits, `.`, `_` and `-`, beginning with a letter or a digit, without `..` and a dot at the end",
            ),
        }
    }
}

/// Who uses a cache. There is none that somebody writes and somebody else reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheSharing {
    /// Filled by the operator; everybody in the space reads it and nobody writes it.
    Shared,
    /// One for each user, who reads and writes it alone.
    PerUser,
}

impl Word for CacheSharing {
    const ALL: &'static [Self] = &[Self::Shared, Self::PerUser];
    fn word(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::PerUser => "per_user",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSettings {
    pub mode: CacheSharing,
    /// Inside a sandbox: below `/home/sandbox`, `/opt` or `/var/cache`.
    pub at: PathBuf,
}

pub(super) fn read_caches(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    section: &mut WorkspaceSection,
) -> Result<()> {
    let Some(caches) = node.get_ref().as_table() else {
        return Err(document.expected(key, node, "a table of caches"));
    };
    for (key, node) in entries(caches) {
        let text = key.get_ref().as_ref();
        let Some(table) = node.get_ref().as_table() else {
            let name = shown(text);
            let message =
                format!("`{name}` stands under `[workspace.cache]` without the name of a cache");
            return Err(document
                .error(key.span(), message)
                .hint("write it under `[workspace.cache.NAME]`"));
        };
        let name: CacheName = text.parse().map_err(|why| {
            let message = format!("the name of the cache `{}` {why}", shown(text));
            document
                .error(key.span(), message)
                .hint("call it as the tool whose cache it is, as `pip` or `npm`")
        })?;
        let (cache, span) = read_cache(document, key, &name, table)?;
        check_apart(document, section, &cache, span)?;
        let line = document.line(&key.span());
        section.lines.insert(format!("cache.{name}"), line);
        section.settings.caches.insert(name, cache);
    }
    Ok(())
}

/// With the place in the file that says where it is.
fn read_cache(
    document: &Document<'_>,
    section: &Key<'_>,
    name: &CacheName,
    table: &DeTable<'_>,
) -> Result<(CacheSettings, Range<usize>)> {
    let (mut mode, mut at) = (None, None);
    for (key, node) in entries(table) {
        match key.get_ref().as_ref() {
            "mode" => mode = Some(read_word(document, key, node)?),
            "at" => {
                let text = read_text(document, key, node, path::cache)?;
                at = Some((PathBuf::from(text), node.span()));
            }
            other => {
                let given = shown(other);
                let message = format!("unknown key `{given}` under `[workspace.cache.{name}]`");
                return Err(document.unknown(key.span(), message, other, &KEYS));
            }
        }
    }
    let Some(mode) = mode else {
        let message = format!("`[workspace.cache.{name}]` does not say its `mode`");
        return Err(document
            .error(section.span(), message)
            .hint("`mode = \"per_user\"`: one for each user; `mode = \"shared\"`: filled by you, read by all"));
    };
    let (at, span) = at.unwrap_or_else(|| (path::usual(name.as_str()), section.span()));
    Ok((CacheSettings { mode, at }, span))
}

/// One in another would hide a part of it, or let a user write into what all read.
fn check_apart(
    document: &Document<'_>,
    section: &WorkspaceSection,
    cache: &CacheSettings,
    span: Range<usize>,
) -> Result<()> {
    let meets =
        |other: &&CacheSettings| other.at.starts_with(&cache.at) || cache.at.starts_with(&other.at);
    let mut others = section.settings.caches.iter();
    let Some((name, other)) = others.find(|(_, other)| meets(other)) else {
        return Ok(());
    };
    let (at, taken) = (cache.at.display(), other.at.display());
    let message = match cache.at == other.at {
        true => format!("`at`: `{at}` is the place of the cache `{name}`"),
        false => format!("`at`: `{at}` and `{taken}`, of the cache `{name}`, lie in each other"),
    };
    Err(document
        .error(span, message)
        .hint("give each cache a place of its own"))
}
