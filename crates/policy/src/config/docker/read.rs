//! From TOML to what one section says.

use glovebox_model::{Bytes, Result, Ulimit};
use toml::de::{DeTable, DeValue};

use super::super::document::{Document, Key, Node, entries, shown};
use super::super::section::read_word;
use super::super::value::{
    read_bool, read_size, read_text, read_texts, read_variables, read_whole, refuse,
};
use super::{DockerSection, FOR_ALL, MERGED, REPLACED, check};

/// Whose section it is.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Whose<'n> {
    Everyone,
    Agent(&'n str),
}

impl Whose<'_> {
    fn label(self) -> String {
        match self {
            Self::Everyone => "`[docker]`".to_owned(),
            Self::Agent(name) => format!("`[agent.{}.docker]`", shown(name)),
        }
    }

    fn keys(self) -> Vec<&'static str> {
        let all = REPLACED.iter().chain(&MERGED).copied();
        match self {
            Self::Everyone => all.collect(),
            Self::Agent(_) => all.filter(|key| !FOR_ALL.contains(key)).collect(),
        }
    }
}

pub(in super::super) fn read_docker(
    document: &Document<'_>,
    whose: Whose<'_>,
    table: &DeTable<'_>,
) -> Result<DockerSection> {
    let mut section = DockerSection {
        file: document.file.to_owned(),
        ..DockerSection::default()
    };
    for (key, node) in entries(table) {
        let name = key.get_ref().as_ref();
        let keys = whose.keys();
        if !keys.contains(&name) {
            return Err(not_a_key(document, whose, key, &keys));
        }
        match name {
            "env" => read_env(document, key, node, &mut section)?,
            "ulimits" => read_ulimits(document, key, node, &mut section)?,
            _ => read_one(document, name, key, node, &mut section)?,
        }
        let line = document.line(&key.span());
        section.lines.insert(name.to_owned(), line);
    }
    Ok(section)
}

fn not_a_key(
    document: &Document<'_>,
    whose: Whose<'_>,
    key: &Key<'_>,
    keys: &[&str],
) -> glovebox_model::Error {
    let name = key.get_ref().as_ref();
    if FOR_ALL.contains(&name) {
        let message = format!("`{name}` is the same for every agent");
        return document
            .error(key.span(), message)
            .hint("write it under `[docker]`");
    }
    let message = format!("unknown key `{}` under {}", shown(name), whose.label());
    document.unknown(key.span(), message, name, keys)
}

fn read_one(
    document: &Document<'_>,
    name: &str,
    key: &Key<'_>,
    node: &Node<'_>,
    section: &mut DockerSection,
) -> Result<()> {
    type Check = fn(&str) -> std::result::Result<(), String>;
    let text = |check: Check| read_text(document, key, node, check).map(Some);
    let texts = |check: Check| read_texts(document, key, node, check).map(Some);
    let size = |least: Bytes| read_size(document, key, node, least).map(Some);
    match name {
        "cli" => section.cli = text(check::program)?,
        "image" => section.image = text(check::image)?,
        "pull" => section.pull = Some(read_word(document, key, node)?),
        "platform" => section.platform = text(check::platform)?,
        "runtime" => section.runtime = text(check::runtime)?,
        "container_prefix" => section.container_prefix = text(check::prefix)?,
        "read_only_root" => section.read_only_root = Some(read_bool(document, key, node)?),
        "tmpfs" => section.tmpfs = texts(check::tmpfs)?,
        "network" => section.network = text(check::network)?,
        "user" => section.user = text(check::user)?,
        "cap_drop" => section.cap_drop = texts(check::capability)?,
        "setup_command" => section.setup_command = text(check::command)?,
        "memory_swap" => section.memory_swap = size(Bytes::mib(8))?,
        "seccomp_profile" => section.seccomp_profile = text(check::seccomp_profile)?,
        "apparmor_profile" => section.apparmor_profile = text(check::apparmor_profile)?,
        "selinux_label" => section.selinux_label = text(check::selinux_label)?,
        "dns" => section.dns = texts(check::address)?,
        "extra_hosts" => section.extra_hosts = texts(check::extra_host)?,
        "binds" => section.binds = read_texts(document, key, node, check::bind)?,
        "bind_roots" => section.bind_roots = texts(check::path)?,
        "publish" => section.publish = Some(read_ports(document, key, node)?),
        "shm_size" => section.shm_size = size(Bytes(64 << 10))?,
        "host_state_dir" => section.host_state_dir = text(check::path)?,
        _ => {
            // The list of keys and this match are kept together by a test.
            let message = format!("`{}` cannot be read", shown(name));
            return Err(document.error(key.span(), message));
        }
    }
    Ok(())
}

fn read_ports(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<Vec<u16>> {
    let Some(list) = node.get_ref().as_array() else {
        return Err(document.expected(key, node, "an array of ports"));
    };
    list.iter()
        .map(|item| {
            let port = read_whole(document, key, item, 1..=u64::from(u16::MAX))?;
            Ok(u16::try_from(port).unwrap_or(u16::MAX))
        })
        .collect()
}

fn read_env(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    section: &mut DockerSection,
) -> Result<()> {
    // The engine reads its variables from lines.
    let unfit = (&['\0', '\n', '\r'][..], "a NUL or a new line");
    for variable in read_variables(document, key, node, unfit)? {
        let (name, line) = (variable.key, document.line(&variable.span));
        section.lines.insert(format!("env.{name}"), line);
        section.env.insert(name.to_string(), variable.value);
    }
    Ok(())
}

fn read_ulimits(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
    section: &mut DockerSection,
) -> Result<()> {
    let Some(table) = node.get_ref().as_table() else {
        return Err(document.expected(key, node, "a table of limits"));
    };
    for (name, value) in entries(table) {
        let limit = name.get_ref().as_ref();
        check::ulimit(limit).map_err(|why| refuse(document, key, limit, name.span(), &why))?;
        let read = read_ulimit(document, name, value)?;
        if read.soft > read.hard {
            let why = format!(
                "`{limit}`: the soft limit {} is above the hard limit {}",
                read.soft, read.hard
            );
            return Err(document.error(value.span(), why));
        }
        let line = document.line(&name.span());
        section.lines.insert(format!("ulimits.{limit}"), line);
        section.ulimits.insert(limit.to_owned(), read);
    }
    Ok(())
}

/// `1024`, `"1024:4096"` or `{ soft = 1024, hard = 4096 }`.
fn read_ulimit(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<Ulimit> {
    let wrong = || {
        let what = "a number, `\"soft:hard\"` or `{ soft = …, hard = … }`";
        document.expected(key, node, what)
    };
    let most = 0..=u64::from(u32::MAX) << 16;
    match node.get_ref() {
        DeValue::Integer(_) => {
            let both = read_whole(document, key, node, most)?;
            Ok(Ulimit {
                soft: both,
                hard: both,
            })
        }
        DeValue::String(text) => {
            let (soft, hard) = text.split_once(':').unwrap_or((text, text));
            let digits = |it: &str| {
                let plain = !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
                it.parse::<u64>()
                    .ok()
                    .filter(|it| plain && most.contains(it))
            };
            match (digits(soft), digits(hard)) {
                (Some(soft), Some(hard)) => Ok(Ulimit { soft, hard }),
                _ => Err(wrong()),
            }
        }
        DeValue::Table(table) => {
            let (mut soft, mut hard) = (None, None);
            for (name, value) in entries(table) {
                let read = || read_whole(document, name, value, most.clone()).map(Some);
                match name.get_ref().as_ref() {
                    "soft" => soft = read()?,
                    "hard" => hard = read()?,
                    other => {
                        let message = format!("unknown key `{}` of a limit", shown(other));
                        let span = name.span();
                        return Err(document.unknown(span, message, other, &["soft", "hard"]));
                    }
                }
            }
            match (soft, hard) {
                (Some(soft), Some(hard)) => Ok(Ulimit { soft, hard }),
                (None, _) | (_, None) => Err(wrong()),
            }
        }
        DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) => {
            Err(wrong())
        }
    }
}
