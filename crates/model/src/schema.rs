//! The shapes of the types that have a written form of their own, for the API's description.

use utoipa::openapi::schema::{
    AdditionalProperties, KnownFormat, Object, ObjectBuilder, OneOfBuilder, SchemaFormat, Type,
};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::{ByteString, Bytes, Count, Cpus, HostPort, Isolation, Millis};

/// One ordinary file name: no two dots in a row.
pub(crate) const SLUG: &str = r"^[A-Za-z0-9](?:\.?[A-Za-z0-9_-])*\.?$";
pub(crate) const ENV_KEY: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

pub(crate) fn text(pattern: &str, longest: usize, description: &str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern))
        .min_length(Some(1))
        .max_length(Some(longest))
        .description(Some(description))
        .into()
}

fn whole(description: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(0))
        .description(Some(description))
        .build()
}

macro_rules! shape {
    ($($name:ident => $schema:expr;)+) => {
        $(impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                $schema
            }
        }
        impl ToSchema for $name {})+
    };
}

shape! {
    Bytes => whole("Bytes.").into();
    Millis => whole("Milliseconds.").into();
    Count => whole("How many.").into();
    Cpus => whole("Thousandths of one processor.").into();
    ByteString => OneOfBuilder::new()
        .description(Some("Bytes without NUL: a string when they are UTF-8, else their digits"))
        .item(ObjectBuilder::new().schema_type(Type::String).pattern(Some(r"^[^\x00]*$")))
        .item(
            ObjectBuilder::new()
                .property(
                    "hex",
                    ObjectBuilder::new()
                        .schema_type(Type::String)
                        .pattern(Some("^(?:[1-9a-f][0-9a-f]|0[1-9a-f])*$")),
                )
                .required("hex")
                .additional_properties(Some(AdditionalProperties::FreeForm(false))),
        )
        .into();
    HostPort => text(
        r"^(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?:[1-9][0-9]{0,4}$",
        261,
        "A destination: a name, never an address, with its port.",
    );
    Isolation => ObjectBuilder::new()
        .description(Some("What was enforced, and how: by the kernel, or watched from outside"))
        .property_names(Some(crate::Guarantee::shape()))
        .additional_properties(Some(crate::Grade::shape()))
        .into();
}

macro_rules! words {
    ($($name:ident => $description:literal;)+) => {
        $(impl PartialSchema for crate::$name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .enum_values(Some(Self::ALL.iter().map(|it| it.as_str())))
                    .description(Some($description))
                    .into()
            }
        }
        impl ToSchema for crate::$name {})+
    };
}

// Their names are made by a macro, which a derive cannot look into.
words! {
    Code => "Stable names: clients may match on them.";
    Scope => "One thing that a token lets its holder do.";
}

impl crate::Guarantee {
    fn shape() -> Schema {
        let names = Self::ALL.map(Self::as_str);
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(names))
            .into()
    }
}

impl crate::Grade {
    fn shape() -> Schema {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(["unavailable", "supervised", "kernel"]))
            .into()
    }
}
