//! What a program printed.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Output with what is known about it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Output)]
pub struct OutputAnswer {
    pub content: String,
    pub encoding: OutputEncoding,
    /// The program printed more than was kept.
    pub truncated: bool,
    /// How much was printed.
    pub bytes: u64,
    /// Nothing was kept: the exec never ran, or its files are gone.
    pub missing_file: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Encoding)]
pub enum OutputEncoding {
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "base64")]
    Base64,
}

impl OutputEncoding {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Base64 => "base64",
        }
    }
}
