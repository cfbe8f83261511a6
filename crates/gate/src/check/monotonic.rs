//! `monotonic`: a version does not go back against what was kept last.

use std::cmp::Ordering;

use glovebox_model::FailureCode;
use serde_json::{Number, Value};

use super::Found;
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::pointer::Pointer;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Monotonic {
    pub at: Pointer,
    /// The same version again is not enough.
    pub strict: bool,
}

impl Monotonic {
    pub(super) fn try_on(&self, evidence: &Evidence<'_>) -> Found {
        let at = &self.at;
        let conflict = |reason: String, way_out: &str| {
            Err(Finding::bad(FailureCode::Conflict, reason, way_out))
        };
        let Some(now) = evidence.output_at(at)?.filter(|it| !it.is_null()) else {
            let reason = format!("{at} is not there");
            let way_out = "print the version with the output";
            return Err(Finding::bad(FailureCode::MissingData, reason, way_out));
        };
        if version(now).is_none() {
            let reason = format!("{at} is not a number, nor a version such as `1.4.2`");
            return conflict(reason, "print a version that can be compared");
        }
        let previous = evidence.subject.history.previous;
        // The first one cannot go back.
        let Some(before) = previous
            .and_then(|it| at.find(it))
            .filter(|it| !it.is_null())
        else {
            return Ok(Finding::good());
        };
        match compare(now, before) {
            Some(Ordering::Greater) => Ok(Finding::good()),
            Some(Ordering::Equal) if !self.strict => Ok(Finding::good()),
            Some(Ordering::Equal) => conflict(
                format!("{at} is {now} as before, where it must grow"),
                "raise the version, and try again",
            ),
            Some(Ordering::Less) => conflict(
                format!("{at} is {now} and was {before} before"),
                "start from the latest version, and try again",
            ),
            None => conflict(
                format!("{at} is {now} and was {before} before, which cannot be compared"),
                "keep to one kind of version",
            ),
        }
    }
}

enum Version {
    Number(Number),
    Dotted(Vec<u64>),
}

fn version(value: &Value) -> Option<Version> {
    match value {
        Value::Number(number) => Some(Version::Number(number.clone())),
        Value::String(text) => {
            let text = text.strip_prefix('v').unwrap_or(text);
            let digits = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit());
            let parts = text.split('.');
            let parts: Option<Vec<u64>> = parts
                .map(|it| it.parse().ok().filter(|_| digits(it)))
                .collect();
            parts.map(Version::Dotted)
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn compare(now: &Value, before: &Value) -> Option<Ordering> {
    match (version(now)?, version(before)?) {
        (Version::Number(now), Version::Number(before)) => numbers(&now, &before),
        (Version::Dotted(now), Version::Dotted(before)) => {
            // `1.2` is `1.2.0`.
            let length = now.len().max(before.len());
            let part = |list: &[u64], at: usize| list.get(at).copied().unwrap_or(0);
            let pairs = (0..length).map(|at| part(&now, at).cmp(&part(&before, at)));
            Some(pairs.fold(Ordering::Equal, Ordering::then))
        }
        (Version::Number(_), Version::Dotted(_)) | (Version::Dotted(_), Version::Number(_)) => None,
    }
}

fn numbers(now: &Number, before: &Number) -> Option<Ordering> {
    // Whole numbers of any size are compared as they are: a decimal would round them.
    match (now.as_i128(), before.as_i128()) {
        (Some(now), Some(before)) => Some(now.cmp(&before)),
        (Some(_), None) | (None, _) => now.as_f64()?.partial_cmp(&before.as_f64()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (now, before, expected) in [
            (json!(2), json!(1), Some(Ordering::Greater)),
            (json!(1.5), json!(2), Some(Ordering::Less)),
            (
                json!(u64::MAX),
                json!(u64::MAX - 1),
                Some(Ordering::Greater),
            ),
            (json!("1.10.0"), json!("1.9.9"), Some(Ordering::Greater)),
            (json!("v1.2"), json!("1.2.0"), Some(Ordering::Equal)),
            (json!("1"), json!(1), None),
            (json!("1.x"), json!("1.0"), None),
            (json!("+1"), json!("1"), None),
            (json!(""), json!("1"), None),
        ] {
            assert_eq!(compare(&now, &before), expected, "{now} {before}");
        }
    }
}
