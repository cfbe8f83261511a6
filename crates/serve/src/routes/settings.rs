//! What the operator may change while the server runs.

use std::collections::BTreeMap;

use axum::Json as Answered;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use glovebox_model::{Code, Error, Settings, Stage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::app::App;
use crate::auth::{ReadsSettings, WritesSettings};
use crate::body::{Json, Limit, Sent};
use crate::failure::{Answer, Failure};
use crate::idempotency::{Outcome, once};
use glovebox_api::{Id, SettingsAnswer};

/// A JSON merge patch: what is left out stays, and null goes back to the default.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SettingsPatch {
    #[serde(default, skip_serializing_if = "Said::is_not")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 4294967295u32)]
    max_concurrent_execs: Said<u32>,
    #[serde(default, skip_serializing_if = "Said::is_not")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 4294967295u32)]
    max_concurrent_per_space: Said<u32>,
    #[serde(default, skip_serializing_if = "Said::is_not")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 4294967295u32)]
    max_concurrent_per_user: Said<u32>,
    #[serde(default, skip_serializing_if = "Said::is_not")]
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 4294967295u32)]
    max_queued: Said<u32>,
    #[serde(default, skip_serializing_if = "Said::is_not")]
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 4294967295u32)]
    max_queued_per_space: Said<u32>,
    #[serde(default, skip_serializing_if = "Said::is_not")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 4294967295u32)]
    max_sessions: Said<u32>,
    #[serde(default, skip_serializing_if = "Said::is_not")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 4294967295u32)]
    max_sessions_per_space: Said<u32>,
    #[serde(default, skip_serializing_if = "Said::is_not")]
    #[schema(value_type = Option<BudgetPatch>)]
    budget: Said<BudgetPatch>,
    /// By agent id; null removes an agent's own.
    #[serde(default, skip_serializing_if = "Said::is_not")]
    #[schema(value_type = Option<AgentBudgets>)]
    agent_budgets: Said<AgentBudgets>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(transparent)]
struct AgentBudgets(BTreeMap<Id, Option<BudgetPatch>>);

impl PartialSchema for AgentBudgets {
    fn schema() -> RefOr<Schema> {
        let name = match Id::schema() {
            RefOr::T(schema) => Some(schema),
            RefOr::Ref(_) => None,
        };
        let budget = OneOfBuilder::new()
            .item(ObjectBuilder::new().schema_type(Type::Null))
            .item(Ref::from_schema_name(BudgetPatch::name()));
        ObjectBuilder::new()
            .property_names(name)
            .additional_properties(Some(Schema::from(budget)))
            .into()
    }
}

impl ToSchema for AgentBudgets {
    fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
        all.push((BudgetPatch::name().into_owned(), BudgetPatch::schema()));
    }
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BudgetPatch {
    #[serde(default, skip_serializing_if = "Said::is_not")]
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 4294967295u32)]
    execs_per_hour: Said<u32>,
    #[serde(default, skip_serializing_if = "Said::is_not")]
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 4294967295u32)]
    cpu_seconds_per_hour: Said<u32>,
    #[serde(default, skip_serializing_if = "Said::is_not")]
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 4294967295u32)]
    bytes_out_per_hour: Said<u32>,
}

/// Left out, null, or a value: three different things in a merge patch.
#[derive(Debug, Default, Serialize)]
#[serde(untagged)]
enum Said<T> {
    #[default]
    Nothing,
    Something(Option<T>),
}

impl<T> Said<T> {
    fn is_not(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Said<T> {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        Option::deserialize(reader).map(Self::Something)
    }
}

impl Sent for SettingsPatch {
    const LIMIT: Limit = Limit::Plain;
    const MEDIA_TYPES: &'static [&'static str] =
        &["application/merge-patch+json", "application/json"];
}

/// Get settings
#[utoipa::path(
    get, path = "/v1/settings", operation_id = "get_settings", tag = "settings",
    responses((status = 200, description = "Those in force.", body = SettingsAnswer)),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsSettings(caller): ReadsSettings,
) -> Answer<Answered<SettingsAnswer>> {
    caller.operator()?;
    let (settings, version) = app.dispatcher().settings();
    Ok(Answered(SettingsAnswer {
        version,
        settings,
        ceiling: app.dispatcher().ceiling(),
    }))
}

/// The version that a change is meant for. What is no version at all is that of nothing.
#[derive(Debug)]
pub(super) struct IfMatch(Option<String>);

impl FromRequestParts<App> for IfMatch {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Answer<Self> {
        let given = parts.headers.get("if-match");
        Ok(Self(given.map(|value| {
            String::from_utf8_lossy(value.as_bytes()).into_owned()
        })))
    }
}

impl IfMatch {
    fn fits(&self, version: u64) -> bool {
        match self.0.as_deref() {
            None | Some("*") => true,
            Some(text) => text == format!("\"{version}\""),
        }
    }
}

/// Change settings
///
/// Applied at once to whoever comes next; what runs goes on.
#[utoipa::path(
    patch, path = "/v1/settings", operation_id = "change_settings", tag = "settings",
    params(("If-Match" = Option<String>, Header,
        description = "The version that the change is meant for, in quotation marks; while another is in force it is a 409.")),
    request_body(content(
        (SettingsPatch = "application/merge-patch+json"), (SettingsPatch = "application/json"))),
    responses((status = 200, description = "Those in force now.", body = SettingsAnswer)),
)]
pub(super) async fn patch(
    State(app): State<App>,
    WritesSettings(caller): WritesSettings,
    expected: IfMatch,
    Json { value, mutation }: Json<SettingsPatch>,
) -> Answer<Response> {
    caller.operator()?;
    let patch = serde_json::to_value(value).map_err(|_| Failure::internal())?;
    let (by, work_app) = (caller.actor(), app.clone());
    let work = async move {
        let changed = work_app.ask("settings", move |dispatcher| {
            let changed = dispatcher.change_settings(&by, move |settings, known| {
                if expected.fits(known) {
                    return merge(&settings, patch);
                }
                let message = format!("the settings are at version {known}");
                Err(Error::new(Code::Conflict, Stage::Parse, message)
                    .hint("get them again, and decide again"))
            })?;
            Ok((changed, dispatcher.ceiling()))
        });
        let ((settings, version), ceiling) = changed.await?;
        let answer = SettingsAnswer {
            version,
            settings,
            ceiling,
        };
        Outcome::json(StatusCode::OK, &answer)
    };
    once(&app, &caller, &mutation, work).await
}

fn merge(settings: &Settings, patch: Value) -> glovebox_model::Result<Settings> {
    let refused = |error: serde_json::Error| {
        Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            "the settings would not be valid",
        )
        .caused_by(error)
    };
    let mut merged = serde_json::to_value(settings).map_err(refused)?;
    merge_patch(&mut merged, patch);
    serde_json::from_value(merged).map_err(refused)
}

/// RFC 7396.
fn merge_patch(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (name, value) in patch {
                match value {
                    Value::Null => {
                        target.remove(&name);
                    }
                    value => merge_patch(target.entry(name).or_insert(Value::Null), value),
                }
            }
        }
        (target, Value::Object(patch)) => {
            *target = Value::Object(serde_json::Map::new());
            merge_patch(target, Value::Object(patch));
        }
        (target, patch) => *target = patch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn null_goes_back_to_the_default_and_silence_changes_nothing() {
        let patch = json!({"max_concurrent_execs": 9, "budget": {"execs_per_hour": 5},
                           "agent_budgets": {"a": {"execs_per_hour": 1}}});
        let changed = merge(&Settings::default(), patch).unwrap();
        assert_eq!(changed.max_concurrent_execs, 9);
        assert_eq!(changed.agent_budgets["a"].execs_per_hour, Some(1));
        let patch = json!({"max_concurrent_execs": null, "agent_budgets": {"a": null}});
        let back = merge(&changed, patch).unwrap();
        assert_eq!(back.max_concurrent_execs, Settings::CONCURRENT);
        assert_eq!(back.budget.execs_per_hour, Some(5));
        assert!(back.agent_budgets.is_empty());
    }

    #[test]
    fn a_patch_says_what_it_said() {
        let text = json!({"max_queued": null, "budget": {"execs_per_hour": null}});
        let patch: SettingsPatch = serde_json::from_value(text.clone()).unwrap();
        assert_eq!(serde_json::to_value(patch).unwrap(), text);
    }
}
