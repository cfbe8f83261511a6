//! `[approvals]`.

use std::ops::Range;

use glovebox_model::{ApprovalMode, Millis, Result};
use toml::de::DeTable;

use super::document::{Document, Key, Node, entries, shown};
use super::section::{read_word, unknown_key};
use super::value::{read_bool, read_strings, read_time, read_whole, refuse};
use crate::approvals::{AllowedMount, ApprovalSettings, HostSettings, MountMode};
use crate::word::Word;

const KEYS: [&str; 10] = [
    "mode",
    "deny_from",
    "expire",
    "grant_expire",
    "grant_expire_max",
    "quorum",
    "auto",
    "elicitation",
    "host",
    "host_mounts",
];
const HOST_KEYS: [&str; 3] = ["enabled", "agents", "users"];
const MOUNT_KEYS: [&str; 3] = ["source", "target", "mode"];
/// More people than that are never there at once.
const QUORUM_MAX: u64 = 16;
const DAY: Millis = Millis::secs(24 * 3600);
const YEAR: Millis = Millis::secs(365 * 24 * 3600);

/// What a mount of the host's never shows, whoever agrees.
const FORBIDDEN_SOURCES: [&str; 8] = [
    "/etc", "/proc", "/sys", "/dev", "/boot", "/root", "/run", "/var/run",
];
/// What belongs to the sandbox.
const RESERVED_TARGETS: [&str; 7] = [
    "/workspace",
    "/proc",
    "/sys",
    "/dev",
    "/etc",
    "/usr",
    "/run",
];

impl Word for MountMode {
    const ALL: &'static [Self] = &[Self::Ro, Self::Rw];
    fn word(self) -> &'static str {
        match self {
            Self::Ro => "ro",
            Self::Rw => "rw",
        }
    }
}

/// The section, and the mode with its place, which belongs to the settings' layer.
#[derive(Debug, Default)]
pub(super) struct ApprovalSection {
    pub(super) settings: ApprovalSettings,
    pub(super) mode: Option<(ApprovalMode, Range<usize>)>,
}

pub(super) fn read_approvals(
    document: &Document<'_>,
    table: &DeTable<'_>,
) -> Result<ApprovalSection> {
    let mut section = ApprovalSection::default();
    let settings = &mut section.settings;
    let mut grant_expire = None;
    for (key, node) in entries(table) {
        match key.get_ref().as_ref() {
            "mode" => section.mode = Some((read_word(document, key, node)?, key.span())),
            "deny_from" => settings.deny_from = Some(read_word(document, key, node)?),
            "expire" => {
                settings.expire = read_time(document, key, node, Millis::secs(1)..=DAY)?;
            }
            "grant_expire" => {
                settings.grant_expire = read_time(document, key, node, Millis::secs(1)..=YEAR)?;
                grant_expire = Some(node.span());
            }
            "grant_expire_max" => {
                settings.grant_expire_max = read_time(document, key, node, Millis::secs(1)..=YEAR)?;
            }
            "quorum" => {
                let number = read_whole(document, key, node, 1..=QUORUM_MAX)?;
                settings.quorum = u32::try_from(number).unwrap_or(1);
            }
            "auto" => settings.auto = read_bool(document, key, node)?,
            "elicitation" => settings.elicitation = Some(read_bool(document, key, node)?),
            "host" => settings.host = read_host(document, key, node)?,
            "host_mounts" => settings.host_mounts = read_mounts(document, key, node)?,
            _ => return Err(unknown_key(document, "under `[approvals]`", key, &KEYS)),
        }
    }
    if settings.grant_expire > settings.grant_expire_max {
        if let Some(span) = grant_expire {
            let most = settings.grant_expire_max;
            let message = format!("`grant_expire` is more than `grant_expire_max`, `{most}`");
            return Err(document.error(span, &message));
        }
        // Where only the most is said, it also holds for those who say nothing.
        settings.grant_expire = settings.grant_expire_max;
    }
    Ok(section)
}

fn read_host(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<HostSettings> {
    let Some(table) = node.get_ref().as_table() else {
        return Err(document.expected(key, node, "a table such as `{ enabled = false }`"));
    };
    let mut host = HostSettings::default();
    for (key, node) in entries(table) {
        let names = || {
            let list = read_strings(document, key, node)?;
            Ok(list.into_iter().map(|it| it.0.to_owned()).collect())
        };
        match key.get_ref().as_ref() {
            "enabled" => host.enabled = read_bool(document, key, node)?,
            "agents" => host.agents = names()?,
            "users" => host.users = names()?,
            _ => {
                return Err(unknown_key(
                    document,
                    "in `approvals.host`",
                    key,
                    &HOST_KEYS,
                ));
            }
        }
    }
    Ok(host)
}

fn read_mounts(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<Vec<AllowedMount>> {
    let what = "an array of tables such as `{ source = \"/data\", target = \"/data\" }`";
    let Some(list) = node.get_ref().as_array() else {
        return Err(document.expected(key, node, what));
    };
    list.iter()
        .map(|item| match item.get_ref().as_table() {
            Some(table) => read_mount(document, item.span(), table),
            None => Err(document.expected(key, item, what)),
        })
        .collect()
}

fn read_mount(
    document: &Document<'_>,
    span: Range<usize>,
    table: &DeTable<'_>,
) -> Result<AllowedMount> {
    let (mut source, mut target, mut mode) = (None, None, MountMode::Ro);
    for (key, node) in entries(table) {
        let path = |inner: &[&str]| {
            let Some(text) = node.get_ref().as_str() else {
                return Err(document.expected(key, node, "a string"));
            };
            check_path(text, inner)
                .map_err(|why| refuse(document, key, text, node.span(), &why))?;
            Ok(Some(text.to_owned()))
        };
        match key.get_ref().as_ref() {
            "source" => source = path(&FORBIDDEN_SOURCES)?,
            "target" => target = path(&RESERVED_TARGETS)?,
            "mode" => mode = read_word(document, key, node)?,
            _ => {
                let label = "in `approvals.host_mounts`";
                return Err(unknown_key(document, label, key, &MOUNT_KEYS));
            }
        }
    }
    match (source, target) {
        (Some(source), Some(target)) => Ok(AllowedMount {
            source,
            target,
            mode,
        }),
        (None, _) => Err(document.error(span, "the mount has no `source`")),
        (Some(_), None) => Err(document.error(span, "the mount has no `target`")),
    }
}

/// By its text alone; links are looked at when it is mounted.
fn check_path(text: &str, forbidden: &[&str]) -> std::result::Result<(), String> {
    let odd = |part: &str| part == "." || part == "..";
    if !text.starts_with('/') {
        return Err("is not an absolute path".to_owned());
    }
    if text.split('/').any(odd) || text.contains("//") || text.contains(char::is_control) {
        return Err("is not a clean path".to_owned());
    }
    let path = text.trim_end_matches('/');
    if path.is_empty() {
        return Err("is the whole file system".to_owned());
    }
    let inside = |outer: &str, inner: &str| {
        inner == outer
            || inner
                .strip_prefix(outer)
                .is_some_and(|it| it.starts_with('/'))
    };
    match forbidden
        .iter()
        .find(|it| inside(it, path) || inside(path, it))
    {
        Some(it) => Err(format!(
            "is, holds or lies in `{}`, which is reserved",
            shown(it)
        )),
        None => Ok(()),
    }
}
