//! The trace: each field's value, who decided it, and what would change it.

use glovebox_model::{EnvKey, LimitField};
use serde::{Deserialize, Serialize};

use crate::bound::Bound;
use crate::effective::{Effective, Held};
use crate::field::Field;
use crate::layer::{Decider, LayerName};
use crate::system::System;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The friendly name, as in the configuration and in messages.
    pub field: String,
    /// Where the field stands in the serialised profile.
    pub path: String,
    /// `-` when nothing was chosen. The value of an environment key is never shown.
    pub value: String,
    #[serde(flatten)]
    pub by: Decider,
    /// What would change it.
    pub change: String,
}

/// One object, as it is written: what `by` holds stands beside the other fields.
#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Decided {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::ObjectBuilder;
        use utoipa::openapi::schema::{SchemaType, Type};
        let subject =
            ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]));
        let object = ObjectBuilder::new()
            .description(Some("One field, who decided it, and what would change it."));
        ["field", "path", "value", "layer", "change"]
            .into_iter()
            .fold(object, |object, name| {
                object.property(name, String::schema()).required(name)
            })
            .property("subject", subject)
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Decided {}

pub(crate) fn decisions(
    effective: &Effective,
    env: &[(EnvKey, Decider)],
    system: &System,
) -> Vec<Decided> {
    let mut all = Vec::new();
    let mut add = |field: Field, value: String, by: &Decider, most: Option<&str>| {
        all.push(Decided {
            path: field.path(),
            change: way_up(&field, by, most, system),
            field: field.to_string(),
            value,
            by: by.clone(),
        });
    };
    macro_rules! bounded {
        ($field:expr, $held:expr) => {{
            let held: &Held<_> = $held;
            add($field, held.value.show(), &held.by, held.most.as_deref());
        }};
    }
    for (field, held) in LimitField::ALL.into_iter().zip(&effective.limits) {
        bounded!(Field::Limit(field), held);
    }
    bounded!(Field::Network, &effective.network);
    bounded!(Field::AllowNet, &effective.allow_net);
    bounded!(Field::Workspace, &effective.workspace);
    bounded!(Field::EnvAllow, &effective.env_allow);
    bounded!(Field::Tier, &effective.tier);
    bounded!(Field::Security, &effective.security);
    bounded!(Field::LimitsDemand, &effective.limits_demand);
    bounded!(Field::Approval, &effective.approval);
    let none = || "-".to_owned();
    for held in &effective.require {
        let names: Vec<_> = held.value.iter().map(|it| it.as_str()).collect();
        add(Field::Require, names.join(", "), &held.by, None);
    }
    if effective.require.is_empty() {
        let by = Decider::plain(LayerName::System);
        add(Field::Require, none(), &by, None);
    }
    let backend = &effective.backend;
    let shown = backend.value.map_or_else(none, |it| it.to_string());
    add(Field::Backend, shown, &backend.by, None);
    let runtime = &effective.runtime;
    let shown = runtime.value.clone().unwrap_or_else(none);
    add(Field::Runtime, shown, &runtime.by, None);
    let image = &effective.image;
    let shown = image.value.clone().unwrap_or_else(none);
    add(Field::Image, shown, &image.by, None);
    for (key, by) in env {
        add(Field::Env(key.clone()), "set".to_owned(), by, None);
    }
    all
}

/// What somebody would do to get another value. `most` is how far the request could have gone.
pub(crate) fn way_up(field: &Field, by: &Decider, most: Option<&str>, system: &System) -> String {
    if let Some(source) = &by.source {
        return format!("change `{field}` at `{}:{}`", source.file, source.line);
    }
    match by.layer {
        LayerName::System => above_the_defaults(field, system),
        LayerName::Settings
        | LayerName::Space
        | LayerName::User
        | LayerName::Agent
        | LayerName::Conversation
        | LayerName::Skill => format!("change `{field}` of {by}"),
        LayerName::Request if *field == Field::Require => "the request may require less".to_owned(),
        LayerName::Request => match most {
            Some(most) => format!("the request may go as far as `{most}`"),
            None => "the request may choose another".to_owned(),
        },
        LayerName::Tier => "declare a lower `tier`".to_owned(),
        LayerName::Approval => "ask again: whoever approved it allowed no more".to_owned(),
    }
}

fn above_the_defaults(field: &Field, system: &System) -> String {
    match field {
        Field::Limit(limit) => {
            let key = limit.key();
            let (held, most) = (limit.get(system.defaults()), limit.get(system.ceilings()));
            if held < most {
                let most = limit.show(most);
                format!("set `{key}` under `[settings]`, up to `{most}`")
            } else {
                format!("raise `{key}` under `[ceilings]` and set it under `[settings]`")
            }
        }
        Field::AllowNet => {
            "set `network = \"allowlist\"` and `allow_net` under `[settings]`".to_owned()
        }
        Field::Network
        | Field::Workspace
        | Field::EnvAllow
        | Field::Security
        | Field::LimitsDemand
        | Field::Approval => format!("set `{field}` under `[settings]`"),
        Field::Tier
        | Field::Require
        | Field::Backend
        | Field::Runtime
        | Field::Image
        | Field::Env(_) => {
            format!("the request, or any layer, may state `{field}`")
        }
    }
}
