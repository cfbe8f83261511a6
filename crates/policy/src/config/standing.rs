//! `[pool]` and `[sandbox]`: sandboxes that stand ready, and sandboxes that are kept.

use glovebox_model::{Lifetime, Millis, PoolConfig, Result, SandboxSettings};
use toml::de::DeTable;

use super::document::{Document, Key, Node, entries, shown};
use super::section::read_word;
use super::value::{read_bool, read_time, read_whole};

/// More than any host holds; a typing error is not to start a million.
const MOST: u64 = 4096;
const DAY: u64 = 24 * 3600;
const NOW: Millis = Millis(0);
/// Below a second a pool would do nothing but replace.
const SECOND: Millis = Millis::secs(1);
const YEAR: Millis = Millis::secs(365 * DAY);

const POOL_KEYS: [&str; 8] = [
    "enabled",
    "min",
    "max",
    "python",
    "node",
    "idle_timeout",
    "max_age",
    "acquire_timeout",
];

pub(super) fn read_pool(
    document: &Document<'_>,
    section: &Key<'_>,
    table: &DeTable<'_>,
) -> Result<PoolConfig> {
    let mut pool = PoolConfig::default();
    for (key, node) in entries(table) {
        let count = || read_whole(document, key, node, 0..=MOST).map(narrow);
        let time = |range| read_time(document, key, node, range);
        match key.get_ref().as_ref() {
            "enabled" => pool.enabled = read_bool(document, key, node)?,
            "min" => pool.min = count()?,
            "max" => pool.max = count()?,
            "python" => pool.python = count()?,
            "node" => pool.node = count()?,
            "idle_timeout" => pool.idle_timeout = time(SECOND..=YEAR)?,
            "max_age" => pool.max_age = time(SECOND..=YEAR)?,
            "acquire_timeout" => pool.acquire_timeout = time(NOW..=Millis::secs(60))?,
            other => {
                let message = format!("unknown key `{}` under `[pool]`", shown(other));
                return Err(document.unknown(key.span(), message, other, &POOL_KEYS));
            }
        }
    }
    let least = u64::from(pool.min) + u64::from(pool.python) + u64::from(pool.node);
    if pool.enabled && least > u64::from(pool.max) {
        let place = entries(table)
            .into_iter()
            .find(|(key, _)| key.get_ref() == "max")
            .map_or_else(|| section.span(), |(key, _)| key.span());
        let message = format!(
            "`min`, `python` and `node` together are {least}, above `max`, which is {}",
            pool.max
        );
        return Err(document
            .error(place, message)
            .hint(format!("set `max` to {least} or more, or lower the others"))
            .hint("`enabled = false` switches the pool off"));
    }
    Ok(pool)
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

const SANDBOX_KEYS: [&str; 6] = [
    "lifetime",
    "keep_root",
    "prune_idle",
    "prune_age",
    "hot_window",
    "acquire_timeout",
];
const AGENT_SANDBOX_KEYS: [&str; 2] = ["lifetime", "keep_root"];

/// What `[agent.NAME.sandbox]` may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct AgentSandbox {
    pub(super) lifetime: Option<Lifetime>,
    pub(super) keep_root: Option<bool>,
}

pub(super) fn read_sandbox(
    document: &Document<'_>,
    table: &DeTable<'_>,
) -> Result<SandboxSettings> {
    let mut settings = SandboxSettings::default();
    for (key, node) in entries(table) {
        let prune = || {
            let time = read_time(document, key, node, NOW..=YEAR)?;
            Ok(Some(time).filter(|it| *it > NOW))
        };
        match key.get_ref().as_ref() {
            "lifetime" => settings.lifetime = read_word(document, key, node)?,
            "keep_root" => settings.keep_root = read_bool(document, key, node)?,
            "prune_idle" => settings.prune_idle = prune()?,
            "prune_age" => settings.prune_age = prune()?,
            "hot_window" => settings.hot_window = read_time(document, key, node, NOW..=YEAR)?,
            "acquire_timeout" => {
                let most = Millis::secs(3600);
                settings.acquire_timeout = read_time(document, key, node, NOW..=most)?;
            }
            other => {
                let message = format!("unknown key `{}` under `[sandbox]`", shown(other));
                return Err(document.unknown(key.span(), message, other, &SANDBOX_KEYS));
            }
        }
    }
    Ok(settings)
}

pub(super) fn read_agent_sandbox(
    document: &Document<'_>,
    agent: &str,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<AgentSandbox> {
    let Some(table) = node.get_ref().as_table() else {
        return Err(document.expected(key, node, "a table"));
    };
    let mut own = AgentSandbox::default();
    for (key, node) in entries(table) {
        let name = key.get_ref().as_ref();
        match name {
            "lifetime" => own.lifetime = Some(read_word(document, key, node)?),
            "keep_root" => own.keep_root = Some(read_bool(document, key, node)?),
            _ => {
                let given = shown(name);
                let agent = shown(agent);
                let error = if SANDBOX_KEYS.contains(&name) {
                    let message = format!("`{given}` is the same for every agent");
                    document
                        .error(key.span(), message)
                        .hint("write it under `[sandbox]`")
                } else {
                    let message = format!("unknown key `{given}` under `[agent.{agent}.sandbox]`");
                    document.unknown(key.span(), message, name, &AGENT_SANDBOX_KEYS)
                };
                return Err(error);
            }
        }
    }
    Ok(own)
}
