//! `[network]`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Range;
use std::path::PathBuf;

use glovebox_model::{Bytes, HostPort, Millis, Result};
use toml::de::DeTable;

use super::document::{Document, Key, Node, entries};
use super::section::unknown_key;
use super::value::{check_file, read_size, read_strings, read_text, read_time, read_whole, refuse};
use crate::network::{Endpoint, InspectSettings, NetworkSettings, RetrievalSettings};

const KEYS: [&str; 5] = ["private", "hosts", "extra_ca", "inspect", "retrieval"];
const INSPECT_KEYS: [&str; 3] = ["host", "methods", "paths"];
const RETRIEVAL_KEYS: [&str; 11] = [
    "allow",
    "ports",
    "max_bytes",
    "timeout",
    "connect_timeout",
    "redirects",
    "concurrent",
    "concurrent_total",
    "per_minute",
    "json_depth",
    "json_nodes",
];
/// Of any list here.
const ENTRIES_MAX: usize = 1000;
const PATH_BYTES_MAX: usize = 1024;
const METHOD_BYTES_MAX: usize = 32;

const BYTES_MOST: Bytes = Bytes::mib(64);
const MOMENT: Millis = Millis(100);
const REDIRECTS_MOST: u64 = 5;

pub(super) fn read_network(
    document: &Document<'_>,
    table: &DeTable<'_>,
) -> Result<NetworkSettings> {
    let mut settings = NetworkSettings::default();
    for (key, node) in entries(table) {
        match key.get_ref().as_ref() {
            "private" => settings.private = read_endpoints(document, key, node)?,
            "hosts" => settings.hosts = read_hosts(document, key, node)?,
            "extra_ca" => {
                let path = read_text(document, key, node, check_file)?;
                settings.extra_ca = Some(PathBuf::from(path));
            }
            "inspect" => settings.inspect = read_inspect(document, key, node)?,
            "retrieval" => {
                let Some(table) = node.get_ref().as_table() else {
                    return Err(document.expected(key, node, "a table"));
                };
                settings.retrieval = read_retrieval(document, table)?;
            }
            "network" | "allow_net" => {
                let message = format!("`{}` is not said under `[network]`", key.get_ref());
                return Err(document
                    .error(key.span(), message)
                    .hint("what sandboxes may reach stands under `[settings]`"));
            }
            _ => return Err(unknown_key(document, "under `[network]`", key, &KEYS)),
        }
    }
    Ok(settings)
}

fn bounded<'n>(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &'n Node<'_>,
) -> Result<Vec<(&'n str, Range<usize>)>> {
    let listed = read_strings(document, key, node)?;
    if listed.len() > ENTRIES_MAX {
        let message = format!("`{}` holds more than {ENTRIES_MAX} entries", key.get_ref());
        return Err(document.error(node.span(), message));
    }
    Ok(listed)
}

fn read_endpoints(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<BTreeSet<Endpoint>> {
    let read = |(text, span): (&str, Range<usize>)| {
        text.parse().map_err(|why: String| {
            refuse(document, key, text, span, &why)
                .hint("write a host or an address with its port, such as `127.0.0.1:5000`")
        })
    };
    bounded(document, key, node)?
        .into_iter()
        .map(read)
        .collect()
}

/// `"name" = "address"`.
fn read_hosts(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<BTreeMap<String, IpAddr>> {
    let Some(table) = node.get_ref().as_table() else {
        return Err(document.expected(key, node, "a table"));
    };
    let mut hosts = BTreeMap::new();
    for (name, node) in entries(table) {
        let shown = name.get_ref();
        // A name as a destination has it, whatever its port.
        let parsed = format!("{shown}:1").parse::<HostPort>();
        let host = match parsed {
            Ok(host) if host.below().is_none() => host.host().to_owned(),
            _ => {
                let message = format!("`hosts`: `{shown}` is not the name of a host");
                return Err(document.error(name.span(), message));
            }
        };
        let address = node.get_ref().as_str().and_then(|it| it.parse().ok());
        let address = address.ok_or_else(|| {
            document
                .error(node.span(), format!("`hosts`: `{shown}` has no address"))
                .hint("write `\"name\" = \"10.0.0.5\"`")
        })?;
        hosts.insert(host, address);
    }
    Ok(hosts)
}

fn read_patterns(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<BTreeSet<HostPort>> {
    let name = key.get_ref();
    let read = |(text, span): (&str, Range<usize>)| {
        text.parse().map_err(|why| {
            document
                .error(span, format!("`{name}`: {why}"))
                .hint("write `host:port`, or `*.host:port` for every name below it")
        })
    };
    bounded(document, key, node)?
        .into_iter()
        .map(read)
        .collect()
}

fn read_inspect(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<Vec<InspectSettings>> {
    let what = "an array of tables such as `{ host = \"api.example.com:443\" }`";
    let Some(list) = node.get_ref().as_array() else {
        return Err(document.expected(key, node, what));
    };
    if list.len() > ENTRIES_MAX {
        let message = format!("`inspect` holds more than {ENTRIES_MAX} entries");
        return Err(document.error(node.span(), message));
    }
    list.iter()
        .map(|item| match item.get_ref().as_table() {
            Some(table) => read_inspected(document, item.span(), table),
            None => Err(document.expected(key, item, what)),
        })
        .collect()
}

fn read_inspected(
    document: &Document<'_>,
    span: Range<usize>,
    table: &DeTable<'_>,
) -> Result<InspectSettings> {
    let (mut host, mut methods, mut paths) = (None, None, None);
    for (key, node) in entries(table) {
        match key.get_ref().as_ref() {
            "host" => {
                let Some(text) = node.get_ref().as_str() else {
                    return Err(document.expected(key, node, "a string"));
                };
                let parsed = text.parse::<HostPort>();
                host = Some(
                    parsed.map_err(|why| document.error(node.span(), format!("`host`: {why}")))?,
                );
            }
            "methods" => methods = Some(read_methods(document, key, node)?),
            "paths" => paths = Some(read_paths(document, key, node)?),
            _ => return Err(unknown_key(document, "in `inspect`", key, &INSPECT_KEYS)),
        }
    }
    let Some(host) = host else {
        return Err(document
            .error(span, "the entry has no `host`")
            .hint("`host = \"api.example.com:443\"` says whose requests are read"));
    };
    Ok(InspectSettings {
        host,
        methods,
        paths,
    })
}

/// A list that allows nothing is a mistake: whoever means it leaves the host out of `allow_net`.
fn some<T>(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>, list: &[T]) -> Result<()> {
    if !list.is_empty() {
        return Ok(());
    }
    let message = format!("`{}` is empty, so nothing would pass", key.get_ref());
    Err(document
        .error(node.span(), message)
        .hint("leave it out to let all pass"))
}

fn read_methods(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<BTreeSet<String>> {
    let listed = bounded(document, key, node)?;
    some(document, key, node, &listed)?;
    let read = |(text, span): (&str, Range<usize>)| {
        let fits = (1..=METHOD_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_uppercase());
        match fits {
            true => Ok(text.to_owned()),
            false => {
                let why = "is not a method; write it in capitals, such as `GET`";
                Err(refuse(document, key, text, span, why))
            }
        }
    };
    listed.into_iter().map(read).collect()
}

fn read_paths(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<Vec<String>> {
    let listed = bounded(document, key, node)?;
    some(document, key, node, &listed)?;
    let read = |(text, span): (&str, Range<usize>)| match check_glob(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(why) => Err(refuse(document, key, text, span, why)),
    };
    listed.into_iter().map(read).collect()
}

/// Requests are compared in one form only, so a glob in another form would never match.
fn check_glob(text: &str) -> std::result::Result<(), &'static str> {
    let dots = |part: &str| part == "." || part == "..";
    if !text.starts_with('/') {
        Err("does not begin with `/`")
    } else if text.len() > PATH_BYTES_MAX {
        Err("is longer than 1024 bytes")
    } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Err("holds a character that no path does; write it as `%` and two digits")
    } else if text.contains(['?', '#', '\\']) {
        Err("holds `?`, `#` or `\\`; only the path is compared")
    } else if text.contains("//") || text.split('/').any(dots) {
        Err("is not a clean path")
    } else {
        Ok(())
    }
}

fn read_retrieval(document: &Document<'_>, table: &DeTable<'_>) -> Result<RetrievalSettings> {
    let mut it = RetrievalSettings::default();
    let mut places = (None, None);
    for (key, node) in entries(table) {
        let whole = |range| read_whole(document, key, node, range);
        let count = |range| whole(range).map(narrow);
        match key.get_ref().as_ref() {
            "allow" => it.allow = read_patterns(document, key, node)?,
            "ports" => it.ports = read_endpoints(document, key, node)?,
            "max_bytes" => {
                let size = read_size(document, key, node, Bytes(1024))?;
                if size > BYTES_MOST {
                    let why = format!("is above `{BYTES_MOST}`, the most that makes sense");
                    let shown = size.to_string();
                    return Err(refuse(document, key, &shown, node.span(), &why));
                }
                it.max_bytes = size;
            }
            "timeout" => {
                it.timeout = read_time(document, key, node, MOMENT..=Millis::secs(300))?;
                places.0 = Some(node.span());
            }
            "connect_timeout" => {
                it.connect_timeout = read_time(document, key, node, MOMENT..=Millis::secs(60))?;
                places.1 = Some(node.span());
            }
            "redirects" => it.redirects = count(0..=REDIRECTS_MOST)?,
            "concurrent" => it.concurrent = count(1..=1000)?,
            "concurrent_total" => it.concurrent_total = count(1..=10_000)?,
            "per_minute" => it.per_minute = count(1..=100_000)?,
            "json_depth" => it.json_depth = count(1..=1000)?,
            "json_nodes" => it.json_nodes = whole(1..=10_000_000)?,
            _ => {
                let label = "under `[network.retrieval]`";
                return Err(unknown_key(document, label, key, &RETRIEVAL_KEYS));
            }
        }
    }
    if it.connect_timeout > it.timeout {
        let span = places.1.or(places.0).unwrap_or_default();
        let message = format!(
            "`connect_timeout` of `{}` is longer than `timeout`, which is `{}`",
            it.connect_timeout, it.timeout
        );
        return Err(document
            .error(span, message)
            .hint("lower one, or raise the other"));
    }
    Ok(it)
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
