//! Texts with a shape of their own. The pattern is checked before a value gets here, so that one
//! place says what is taken.

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Names inside a path. ASCII up to what a file system takes; others, of up to four bytes for each
/// character, up to a quarter. None begins with two dots, and `.` alone is none.
macro_rules! part {
    () => {
        r"(?:\.?[\x01-\-0-\[\]-\x7f][\x01-.0-\[\]-\x7f]{0,253}|\.?[^./\\\x00][^/\\\x00]{0,61})"
    };
}

macro_rules! label {
    ($first:literal) => {
        concat!("[", $first, "](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
    };
}

const INPUT: &str = concat!("^", part!(), r"(?:[/\\]", part!(), ")*$");
const GUEST_DIR: &str = concat!(
    r"^(?:\.|",
    part!(),
    "(?:/",
    part!(),
    ")*/?|/workspace(?:/",
    part!(),
    ")*/?)$"
);
const BACKEND: &str = "^(?:native|host|docker(?::[A-Za-z0-9][A-Za-z0-9._-]{0,254})?)$";
const DESTINATION: &str = concat!(
    r"^(?:\*\.)?(?:",
    label!("A-Za-z0-9_"),
    r"\.)*",
    label!("A-Za-z_"),
    ":(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$"
);

macro_rules! texts {
    ($($(#[doc = $doc:literal])+ $name:ident: $pattern:expr, $least:literal..=$most:literal, $example:literal;)+) => {
        $($(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .pattern(Some($pattern))
                    .min_length(Some($least))
                    .max_length(Some($most))
                    .description(Some(concat!($($doc),+).trim()))
                    .examples([$example])
                    .into()
            }
        }
        impl ToSchema for $name {})+
    };
}

texts! {
    /// The caller's own text, kept as given.
    Id: r"^[^\x00]+$", 1..=255, "task-7";
    /// Tags, separated by commas.
    Tags: r"^[^,\x00]{1,255}(?:,[^,\x00]{1,255}){0,15}$", 1..=4095, "simulation_mode,success";
    /// Any text without NUL that is not empty.
    Plain: r"^[^\x00]+$", 1..=4096, "bash";
    /// Any text without NUL.
    Free: r"^[^\x00]*$", 0..=16777216, "value";
    /// What one person says to another.
    Words: r"^[^\x00]*$", 0..=2000, "the report needs it";
    /// A path below the inputs. `/` and `\` both separate.
    InputPath: INPUT, 1..=1000, "data/table.csv";
    /// A directory of the sandbox: relative to `/workspace/work`, or absolute below `/workspace`.
    GuestDir: GUEST_DIR, 1..=1000, "/workspace/work";
    /// A name, never an address, with its port; `*.` in front stands for everything below.
    Destination: DESTINATION, 3..=255, "api.example.com:443";
    /// An environment key, or the beginning of one followed by `*`.
    EnvPattern: r"^(?:\*|[A-Za-z_][A-Za-z0-9_]{0,127}\*?)$", 1..=129, "APP_*";
    /// The name of an image.
    ImageName: "^[A-Za-z0-9][A-Za-z0-9._/:@+-]*$", 1..=255, "debian:12";
    /// A backend: `native`, `docker` or `host`. `docker:runsc` names a runtime too.
    BackendText: BACKEND, 4..=262, "docker:runsc";
    /// The name of a container runtime.
    RuntimeName: "^[A-Za-z0-9][A-Za-z0-9._-]*$", 1..=255, "runsc";
    /// The name of a tool.
    ToolName: r"^[!-~]+$", 1..=255, "run_code";
    /// The name of a kept sandbox.
    SandboxName: "^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$", 1..=63, "glovebox-ann-0123abcd";
}
