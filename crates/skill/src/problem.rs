//! What is wrong with a skill: everything at once, each with its place.

use std::fmt;

use glovebox_model::{Code, Error, Stage};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestProblem {
    /// The file, relative to the skill's directory; empty for the directory itself.
    pub file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The JSON Pointer of the value, in a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    pub message: String,
}

impl fmt::Display for ManifestProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => {}
            (file, Some(line)) => write!(f, "{file}:{line}: ")?,
            (file, None) => write!(f, "{file}: ")?,
        }
        if let Some(pointer) = self.pointer.as_deref().filter(|it| !it.is_empty()) {
            write!(f, "`{pointer}` ")?;
        }
        f.write_str(&self.message)
    }
}

/// At least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub(crate) Vec<ManifestProblem>);

/// Of a manifest that is wrong everywhere nobody reads more.
const SHOWN: usize = 50;

impl Problems {
    pub(crate) fn one(file: &str, message: impl Into<String>) -> Self {
        Self(vec![ManifestProblem {
            file: file.to_owned(),
            line: None,
            pointer: None,
            message: message.into(),
        }])
    }

    pub fn list(&self) -> &[ManifestProblem] {
        &self.0
    }

    /// As the one error that whoever calls the skill is told.
    pub fn error(&self, name: &str) -> Error {
        let name = shown(name);
        let first = self.0.first().map(ToString::to_string).unwrap_or_default();
        let message = format!("skill `{name}` cannot be used: {first}");
        let mut error = Error::new(Code::InvalidManifest, Stage::Parse, message);
        for other in self.0.iter().skip(1).take(SHOWN) {
            error = error.hint(format!("also: {other}"));
        }
        error.hint(format!(
            "`glovebox skill check DIR` shows all that is wrong with `{name}`"
        ))
    }
}

/// A text from outside, as part of a sentence.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}
