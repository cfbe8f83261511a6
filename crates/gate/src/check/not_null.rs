//! `not_null`: something was put out. Zero, an empty text and `false` are something.

use glovebox_model::FailureCode;
use serde_json::Value;

use super::Found;
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::pointer::Pointer;

fn is_null(text: &[u8]) -> bool {
    let mut words = text
        .split(u8::is_ascii_whitespace)
        .filter(|it| !it.is_empty());
    words.next().is_none_or(|it| it == b"null")
}

/// Without a pointer: whatever stands on standard output, JSON or not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotNull {
    pub at: Option<Pointer>,
}

impl NotNull {
    pub(super) fn try_on(&self, evidence: &Evidence<'_>) -> Found {
        let subject = evidence.subject;
        let missing = match &self.at {
            // What is cut off may be nothing but blanks.
            None if !subject.stdout_is_whole() && is_null(subject.stdout) => {
                "what is kept of the output is blank or `null`".to_owned()
            }
            None => match evidence.subject.stdout.trim_ascii() {
                b"" => "there is no output".to_owned(),
                b"null" => "the output is `null`".to_owned(),
                _ => return Ok(Finding::good()),
            },
            Some(at) => match evidence.output_at(at)? {
                None => format!("{at} is not there"),
                Some(Value::Null) => format!("{at} is `null`"),
                Some(_) => return Ok(Finding::good()),
            },
        };
        Err(Finding::bad(
            FailureCode::MissingData,
            missing,
            "print the value to standard output; `0`, `\"\"` and `false` count as values",
        ))
    }
}
