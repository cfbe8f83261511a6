//! The environment that the program will see: values of the layers and of the call, key by key,
//! the nearest winning, after every check.
//!
//! Keys that change how tools load code (`PATH`, `LD_PRELOAD`, `PYTHONPATH`, `BASH_ENV` …) may be
//! set: they reach only the program, inside the sandbox, where it could load that code anyway.
//! Nothing of ours that runs before it sees them. Keys beginning with `GLOVEBOX` are ours to set.

use std::collections::BTreeMap;

use glovebox_model::credential::{Source, credential_in, is_credential_variable};
use glovebox_model::{ByteString, Call, Code, EnvKey, EnvVar, Error, Result, Stage};

use crate::effective::{Exceeded, Held, env_allow};
use crate::field::Field;
use crate::layer::{Decider, Layer, LayerName};
use crate::pattern::EnvPatterns;
use crate::request::Beyond;

pub(crate) const RESERVED_PREFIX: &str = "GLOVEBOX";
/// A quarter of what the kernel takes in one string; configuration is small, data is a file.
const VALUE_BYTES_MAX: usize = 32 << 10;
/// Well under a kernel's total for arguments and environment with the smallest usual stack.
const TOTAL_BYTES_MAX: usize = 256 << 10;
const KEYS_MAX: usize = 512;

#[derive(Debug)]
pub(crate) struct Environment {
    /// Sorted by key.
    pub(crate) vars: Vec<EnvVar>,
    pub(crate) deciders: Vec<(EnvKey, Decider)>,
    /// Keys of the request that no layer lets it set; they are in `vars` only as an escalation.
    pub(crate) exceeded: Vec<Exceeded>,
}

/// `layers` in their order of application; `allow` is what the request may set.
pub(crate) fn settle(
    call: &Call,
    layers: &[&Layer],
    allow: &Held<EnvPatterns>,
    beyond: Beyond,
) -> Result<Environment> {
    let mut settled: BTreeMap<EnvKey, (ByteString, Decider)> = BTreeMap::new();
    for (index, layer) in layers.iter().enumerate() {
        if layer.profile().env.is_empty() {
            continue;
        }
        let above = &layers[..=index];
        let allow = env_allow(above);
        for (key, value) in &layer.profile().env {
            let by = layer.decider(&Field::Env(key.clone()));
            let value = layer_value(key, value, &by)?;
            check(key, &value, &by, above)?;
            if !allow.value.allows(key) {
                return Err(layer_key_not_allowed(key, &by, &allow));
            }
            settled.insert(key.clone(), (value, by));
        }
    }
    let mut exceeded = Vec::new();
    for (key, value) in asked(call)? {
        let by = Decider::plain(LayerName::Request);
        check(&key, &value, &by, layers)?;
        let allowed = allow.value.allows(&key);
        if !allowed {
            exceeded.push(not_allowed(&key, allow));
        }
        if allowed || beyond == Beyond::Keep {
            settled.insert(key, (value, by));
        }
    }
    check_total(&settled)?;
    let deciders = settled
        .iter()
        .map(|(key, (_, by))| (key.clone(), by.clone()));
    Ok(Environment {
        deciders: deciders.collect(),
        vars: settled
            .into_iter()
            .map(|(key, (value, _))| EnvVar { key, value })
            .collect(),
        exceeded,
    })
}

/// The request's own variables, from both places where it may name them, each key once.
fn asked(call: &Call) -> Result<BTreeMap<EnvKey, ByteString>> {
    let mut asked = BTreeMap::new();
    let by = Decider::plain(LayerName::Request);
    for (key, value) in &call.overrides.env {
        asked.insert(key.clone(), layer_value(key, value, &by)?);
    }
    for EnvVar { key, value } in &call.env {
        if asked.insert(key.clone(), value.clone()).is_some() {
            return Err(
                invalid(&by, format!("environment key `{key}` is set twice"))
                    .hint(format!("set `{key}` once")),
            );
        }
    }
    Ok(asked)
}

fn layer_value(key: &EnvKey, value: &str, by: &Decider) -> Result<ByteString> {
    ByteString::try_from(value)
        .map_err(|why| invalid(by, format!("the value of environment key `{key}` {why}")))
}

/// A mistake of the caller's when it stands in the request, of the configuration's elsewhere.
fn invalid(by: &Decider, message: String) -> Error {
    let code = match by.layer {
        LayerName::Request | LayerName::Approval => Code::InvalidArgument,
        LayerName::System
        | LayerName::Settings
        | LayerName::Space
        | LayerName::User
        | LayerName::Agent
        | LayerName::Conversation
        | LayerName::Skill
        | LayerName::Tier => Code::InvalidConfig,
    };
    at_source(Error::new(code, Stage::Resolve, message), by)
}

fn at_source(error: Error, by: &Decider) -> Error {
    match &by.source {
        Some(source) => error.at_rule(source.file.clone(), source.line),
        None => error,
    }
}

fn check(key: &EnvKey, value: &ByteString, by: &Decider, above: &[&Layer]) -> Result<()> {
    if key.as_str().starts_with(RESERVED_PREFIX) {
        return Err(invalid(
            by,
            format!("environment key `{key}` is reserved: keys beginning with `{RESERVED_PREFIX}` are set by Glovebox"),
        )
        .hint("choose another name"));
    }
    let bytes = value.as_bytes();
    if bytes.len() > VALUE_BYTES_MAX {
        return Err(invalid(
            by,
            format!(
                "the value of environment key `{key}` has {} bytes, more than {VALUE_BYTES_MAX}",
                bytes.len()
            ),
        )
        .hint("pass large data as an input file"));
    }
    let finding = if is_credential_variable(key.as_str()) {
        format!("environment key `{key}` looks like a credential")
    } else if let Some(what) = credential_in(bytes, Source::Value) {
        format!("the value of environment key `{key}` looks like {what}")
    } else {
        return Ok(());
    };
    match undeclared(key, above) {
        None => Ok(()),
        Some(place) => Err(credential(key, finding, place, by)),
    }
}

/// Where the operator would have to list the key by its exact name; `None` when they did. Every
/// operator's layer that has an `env_allow` must list it, since a nearer one never widens.
fn undeclared(key: &EnvKey, above: &[&Layer]) -> Option<Decider> {
    let mut declared = false;
    for layer in above.iter().filter(|it| it.name().is_operator()) {
        let Some(patterns) = &layer.profile().env_allow else {
            continue;
        };
        if !patterns.contains(key.as_str()) {
            return Some(layer.decider(&Field::EnvAllow));
        }
        declared = true;
    }
    (!declared).then(|| Decider::plain(LayerName::Settings))
}

fn credential(key: &EnvKey, finding: String, place: Decider, by: &Decider) -> Error {
    let where_to = match &place.source {
        Some(source) => format!("at `{}:{}`", source.file, source.line),
        None => format!("of {place}"),
    };
    let error = Error::new(
        Code::PolicyDenied,
        Stage::Resolve,
        format!("{finding}, and no operator allows it"),
    )
    .hint(kept_as_secret(key))
    .hint(format!(
        "an operator can allow it by listing exactly `{key}` in `env_allow` {where_to}; `[\"*\", \"{key}\"]` keeps every other key"
    ));
    match by.source {
        Some(_) => at_source(error, by),
        None => at_source(error, &place),
    }
}

/// The name is one that gives the same variable again.
fn kept_as_secret(key: &EnvKey) -> String {
    let name = key.as_str().trim_start_matches('_').to_ascii_lowercase();
    let name = match name.is_empty() || name.len() > 64 {
        true => "NAME",
        false => &name,
    };
    format!(
        "keep it as a secret: `glovebox secret set {name}` reads the value, and `--secret {name}` (in a request `secrets`) gives it to a program"
    )
}

fn not_allowed(key: &EnvKey, allow: &Held<EnvPatterns>) -> Exceeded {
    use crate::bound::Bound;
    Exceeded {
        field: Field::Env(key.clone()),
        asked: "set".to_owned(),
        beyond: "set".to_owned(),
        allowed: allow.value.show(),
        granted: "unset".to_owned(),
        by: allow.by.clone(),
    }
}

fn layer_key_not_allowed(key: &EnvKey, by: &Decider, allow: &Held<EnvPatterns>) -> Error {
    let error = Error::new(
        Code::PolicyDenied,
        Stage::Resolve,
        format!(
            "{by} {} environment key `{key}`, which the `env_allow` of {} leaves out",
            by.verb("sets", "set"),
            allow.by
        ),
    )
    .hint(format!(
        "add `{key}` to that `env_allow`, or stop setting it"
    ));
    at_source(error, by)
}

fn check_total(settled: &BTreeMap<EnvKey, (ByteString, Decider)>) -> Result<()> {
    let by = Decider::plain(LayerName::Request);
    if settled.len() > KEYS_MAX {
        let message = format!(
            "the environment has {} keys, more than {KEYS_MAX}",
            settled.len()
        );
        return Err(invalid(&by, message).hint("set fewer environment keys"));
    }
    // What the kernel counts: `KEY=value` and its NUL.
    let total: usize = settled
        .iter()
        .map(|(key, (value, _))| key.as_str().len() + value.as_bytes().len() + 2)
        .sum();
    if total > TOTAL_BYTES_MAX {
        let message = format!("the environment has {total} bytes, more than {TOTAL_BYTES_MAX}");
        return Err(invalid(&by, message).hint("pass large data as an input file"));
    }
    Ok(())
}
