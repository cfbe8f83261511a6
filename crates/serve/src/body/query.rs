//! Query strings, as strict as bodies: each parameter once, and none that is not known.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use utoipa::IntoParams;
use utoipa::openapi::path::ParameterIn;

use super::json::refused;
use super::schema;
use crate::app::App;
use crate::document;
use crate::failure::{Answer, Failure};

#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned + IntoParams> FromRequestParts<App> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Answer<Self> {
        parse(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

pub(super) fn parse<T: DeserializeOwned + IntoParams>(query: &str) -> Answer<T> {
    let schema = described::<T>();
    let mut fields = Map::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decode(name)?, decode(value)?);
        let value = read(&schema["properties"][&name], value);
        if fields.insert(name.clone(), value).is_some() {
            return Err(Failure::invalid(format!(
                "the parameter `{name}` is given twice"
            )));
        }
    }
    let value = Value::Object(fields);
    schema::check(document::value(), &schema, &value)
        .map_err(|wrong| refused("parameter", wrong))?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        Failure::invalid(format!("parameter `{}`: {}", error.path(), error.inner()))
    })
}

/// The parameters as the fields of an object.
fn described<T: IntoParams>() -> Value {
    let mut properties = Map::new();
    for parameter in T::into_params(|| Some(ParameterIn::Query)) {
        let schema = serde_json::to_value(&parameter.schema).unwrap_or_default();
        properties.insert(parameter.name, document::without_null(schema));
    }
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn decode(text: &str) -> Answer<String> {
    let text = text.replace('+', " ");
    percent_decode_str(&text)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| Failure::invalid("the query string is not UTF-8"))
}

/// Everything in a query is text; what is described as a number or a truth value is read as one.
fn read(schema: &Value, text: String) -> Value {
    match schema.get("type").and_then(Value::as_str) {
        Some("integer") => match text.parse::<u64>() {
            Ok(number) if text.bytes().all(|b| b.is_ascii_digit()) => number.into(),
            _ => Value::String(text),
        },
        Some("boolean") => match text.as_str() {
            "true" | "1" => Value::Bool(true),
            "false" | "0" => Value::Bool(false),
            _ => Value::String(text),
        },
        _ => Value::String(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, IntoParams)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        #[param(minimum = 1, maximum = 10)]
        limit: Option<u32>,
        #[param(min_length = 1)]
        task_id: Option<String>,
        probe: Option<bool>,
    }

    #[test]
    fn what_is_described_is_taken_and_nothing_else() {
        let asked: Asked = parse("limit=10&task_id=a%20b+c&probe=1").unwrap();
        assert_eq!((asked.limit, asked.probe), (Some(10), Some(true)));
        assert_eq!(asked.task_id.unwrap(), "a b c");
        for query in [
            "limit=0",
            "limit=11",
            "limit=x",
            "limit=",
            "limit=1&limit=1",
            "limit=+1",
            "limit=1.0",
            "limit=null",
            "task_id=",
            "task_id=%ff",
            "token=x",
            "Limit=1",
            "probe=yes",
            "limit",
        ] {
            assert!(parse::<Asked>(query).is_err(), "{query}");
        }
    }
}
