//! `[[webhook]]`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

use glovebox_model::{Result, SecretName, SpaceId, WebhookEvent};
use toml::de::DeTable;

use super::document::{Document, Key, Node, entries, shown};
use super::section::unknown_key;
use super::value::{check_file, read_strings, read_text};
use crate::webhook::{WebhookKey, WebhookSettings};

const KEYS: [&str; 6] = ["name", "url", "events", "key_file", "secret", "space"];
const WEBHOOKS_MAX: usize = 100;
const URL_BYTES_MAX: usize = 8 << 10;

const APPROVAL: [WebhookEvent; 2] = [
    WebhookEvent::ApprovalRequested,
    WebhookEvent::ApprovalSettled,
];
const EXEC: [WebhookEvent; 1] = [WebhookEvent::ExecEnded];
const WORDS: [&str; 5] = [
    "approval",
    "approval.requested",
    "approval.settled",
    "exec",
    "exec.ended",
];

pub(super) fn read_webhooks(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<Vec<WebhookSettings>> {
    let what = "one or more tables; write `[[webhook]]`, with two brackets";
    let Some(list) = node.get_ref().as_array() else {
        return Err(document.expected(key, node, what));
    };
    let mut webhooks: Vec<WebhookSettings> = Vec::with_capacity(list.len());
    for item in list.iter() {
        let Some(table) = item.get_ref().as_table() else {
            return Err(document.expected(key, item, what));
        };
        if webhooks.len() == WEBHOOKS_MAX {
            let message = format!("there are more than {WEBHOOKS_MAX} webhooks");
            return Err(document.error(item.span(), message));
        }
        let webhook = read_webhook(document, item.span(), table)?;
        if webhooks.iter().any(|it| it.name == webhook.name) {
            let message = format!("two webhooks are called `{}`", webhook.name);
            return Err(document.error(item.span(), message).hint("rename one"));
        }
        webhooks.push(webhook);
    }
    Ok(webhooks)
}

fn read_webhook(
    document: &Document<'_>,
    span: Range<usize>,
    table: &DeTable<'_>,
) -> Result<WebhookSettings> {
    let (mut name, mut url, mut events, mut space) = (None, None, None, None);
    let (mut file, mut secret) = (None, None);
    for (key, node) in entries(table) {
        match key.get_ref().as_ref() {
            // Names follow the rule of secrets' names, which are file names as well.
            "name" => {
                let check = |text: &str| {
                    let parsed = text.parse::<SecretName>();
                    parsed.map(drop).map_err(|error| error.why.to_owned())
                };
                name = Some(read_text(document, key, node, check)?);
            }
            "url" => url = Some(read_url(document, key, node)?),
            "events" => events = Some(read_events(document, key, node)?),
            "key_file" => {
                let path = read_text(document, key, node, check_file)?;
                file = Some((PathBuf::from(path), key.span()));
            }
            "secret" => secret = Some(read_id::<SecretName>(document, key, node)?),
            "space" => space = Some(read_id::<SpaceId>(document, key, node)?),
            _ => return Err(unknown_key(document, "in `[[webhook]]`", key, &KEYS)),
        }
    }
    let missing = |key: &str, hint: &str| {
        let message = format!("the webhook has no `{key}`");
        document.error(span.clone(), message).hint(hint)
    };
    let key = match (file, secret) {
        (Some((path, _)), None) => WebhookKey::File(path),
        (None, Some(name)) => WebhookKey::Secret(name),
        (Some((_, span)), Some(_)) => {
            let message = "the webhook has both `key_file` and `secret`";
            return Err(document
                .error(span, message)
                .hint("leave out one of the two"));
        }
        (None, None) => {
            let hint = "or `secret`: whoever gets a message must be able to tell that it is ours";
            return Err(missing("key_file", hint));
        }
    };
    Ok(WebhookSettings {
        name: name.ok_or_else(|| missing("name", "messages and logs call it by its name"))?,
        url: url.ok_or_else(|| missing("url", "`url` says where messages go"))?,
        events: events
            .ok_or_else(|| missing("events", "for example `events = [\"approval\", \"exec\"]`"))?,
        key,
        space,
    })
}

/// Not shown in any complaint: some services put a password into it.
fn read_url(document: &Document<'_>, key: &Key<'_>, node: &Node<'_>) -> Result<String> {
    let Some(text) = node.get_ref().as_str() else {
        return Err(document.expected(key, node, "a string"));
    };
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    let why = if !is_web {
        "`url` does not begin with `https://` or `http://`"
    } else if text.len() > URL_BYTES_MAX {
        "`url` is longer than 8192 bytes"
    } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        "`url` holds a space or another character that no URL does"
    } else {
        return Ok(text.to_owned());
    };
    Err(document.error(node.span(), why))
}

fn read_events(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<BTreeSet<WebhookEvent>> {
    let mut events = BTreeSet::new();
    for (text, span) in read_strings(document, key, node)? {
        match text {
            "approval" => events.extend(APPROVAL),
            "exec" => events.extend(EXEC),
            _ => match WebhookEvent::parse(text).filter(|_| WORDS.contains(&text)) {
                Some(event) => {
                    events.insert(event);
                }
                None => {
                    let message = format!("`events`: `{}` is not an event", shown(text));
                    return Err(document.unknown(span, message, text, &WORDS));
                }
            },
        }
    }
    if events.is_empty() {
        let message = "`events` is empty, so the webhook would be told nothing";
        return Err(document
            .error(node.span(), message)
            .hint("name at least one, such as `approval` or `exec`"));
    }
    Ok(events)
}

fn read_id<T: std::str::FromStr<Err = glovebox_model::IdError>>(
    document: &Document<'_>,
    key: &Key<'_>,
    node: &Node<'_>,
) -> Result<T> {
    let Some(text) = node.get_ref().as_str() else {
        return Err(document.expected(key, node, "a string"));
    };
    text.parse()
        .map_err(|why| document.error(node.span(), format!("`{}`: {why}", key.get_ref())))
}
