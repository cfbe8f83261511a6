//! Limits as people write them, and as numbers.

use glovebox_model::{Code, Error, LimitField, Result, Stage};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A duration, as text or as seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Duration {
    Text(String),
    Seconds(f64),
}

/// A size, as text or as bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Size {
    Text(String),
    Bytes(u64),
}

/// A number of processors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Processors(f64);

fn written(pattern: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern))
}

impl PartialSchema for Duration {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new()
            .schema_type(Type::Number)
            .minimum(Some(0.001))
            .maximum(Some(2_592_000));
        OneOfBuilder::new()
            .description(Some("`30s`, `250ms`, `5m`, `1h`, or a number of seconds."))
            .item(written(
                r"^[0-9]{1,12}(?:\.[0-9]{1,3})?(?:ms|s|m|min|h|d)?$",
            ))
            .item(number)
            .into()
    }
}

impl PartialSchema for Size {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0))
            .maximum(Some(1_i64 << 50));
        let about = "`512M`, `1G`, or a number of bytes; `K`, `M`, `G` and `T` are powers of 1024.";
        OneOfBuilder::new()
            .description(Some(about))
            .item(written(
                r"^[0-9]{1,12}(?:\.[0-9]{1,3})?(?:[KkMmGgTt](?:[Ii]?[Bb])?|[Bb])?$",
            ))
            .item(number)
            .into()
    }
}

impl PartialSchema for Processors {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Number)
            .minimum(Some(0.1))
            .maximum(Some(1024))
            .description(Some("A number of processors."))
            .into()
    }
}

impl ToSchema for Duration {}
impl ToSchema for Size {}
impl ToSchema for Processors {}

/// What no policy could grant is refused as one that policy does not grant.
fn beyond(field: LimitField, shown: &str) -> Error {
    let key = field.key();
    let message = format!("`{key}` `{shown}` is outside of what makes sense for any exec");
    let (least, most) = field.range();
    let hint = format!("between `{}` and `{}`", field.show(least), field.show(most));
    Error::new(Code::PolicyDenied, Stage::Parse, message).hint(hint)
}

fn within(field: LimitField, raw: u64) -> Result<u64> {
    let (least, most) = field.range();
    match (least..=most).contains(&raw) {
        true => Ok(raw),
        false => Err(beyond(field, &field.show(raw))),
    }
}

impl Duration {
    pub fn raw(&self, field: LimitField) -> Result<u64> {
        match self {
            Self::Text(text) => read(field, text),
            Self::Seconds(seconds) => within(field, thousandths(*seconds)),
        }
    }
}

impl Size {
    pub fn raw(&self, field: LimitField) -> Result<u64> {
        match self {
            Self::Text(text) => read(field, text),
            Self::Bytes(bytes) => within(field, *bytes),
        }
    }
}

fn read(field: LimitField, text: &str) -> Result<u64> {
    let raw = field.parse(text).map_err(|_| beyond(field, text))?;
    within(field, raw)
}

impl Processors {
    pub fn milli(self) -> u64 {
        thousandths(self.0)
    }

    pub fn of_milli(milli: u32) -> Self {
        Self(f64::from(milli) / 1000.0)
    }
}

fn thousandths(number: f64) -> u64 {
    // In range by the description: at least a thousandth, and far below what a number holds.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = (number * 1000.0).round() as u64;
    whole.max(1)
}
