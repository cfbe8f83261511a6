//! Files that are sent along.

use std::collections::BTreeSet;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use glovebox_model::{Code, Error, Input, Result, Stage};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::program::bytes;
use crate::{InputPath, invalid};

/// A file below the inputs, as text or as base64.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum InputFile {
    Text(TextFile),
    Bytes(BytesFile),
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TextFile {
    pub path: InputPath,
    pub content: String,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BytesFile {
    pub path: InputPath,
    #[schema(pattern = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")]
    pub content_base64: String,
}

impl InputFile {
    fn input(self) -> Result<Input> {
        let (path, content) = match self {
            Self::Text(file) => (file.path, file.content.into_bytes()),
            Self::Bytes(file) => (file.path, decode("content_base64", &file.content_base64)?),
        };
        Ok(Input {
            path: bytes(&path.0.replace('\\', "/"))?,
            content,
        })
    }
}

pub(crate) fn decode(field: &str, text: &str) -> Result<Vec<u8>> {
    // The last digit may carry bits that mean nothing, as the pattern allows.
    let config = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(&STANDARD, config)
        .decode(text)
        .map_err(|error| invalid(format!("`{field}`: {error}")))
}

/// All of them, none in the place of another.
pub fn inputs(files: Vec<InputFile>) -> Result<Vec<Input>> {
    let inputs = files
        .into_iter()
        .map(InputFile::input)
        .collect::<Result<Vec<_>>>()?;
    let mut taken: BTreeSet<Vec<u8>> = BTreeSet::new();
    for input in &inputs {
        if !taken.insert(input.path.as_bytes().to_vec()) {
            return Err(clash(input, "is given twice"));
        }
    }
    for input in &inputs {
        let path = input.path.as_bytes();
        let above = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        if above
            .into_iter()
            .any(|(end, _)| taken.contains(&path[..end]))
        {
            return Err(clash(input, "lies below another input that is a file"));
        }
    }
    Ok(inputs)
}

fn clash(input: &Input, why: &str) -> Error {
    let message = format!("the input `{}` {why}", input.path.one_line());
    Error::new(Code::Conflict, Stage::Parse, message).hint("give each input a path of its own")
}
