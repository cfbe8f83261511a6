//! What one check found.

use glovebox_model::{Confidence, FailureCode, Validation};

/// Records hold many of them.
const TEXT_CHARS_MAX: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    failure: Option<FailureCode>,
    confidence: Confidence,
    reason: Option<String>,
    remediation: Option<String>,
}

impl Finding {
    pub(crate) fn good() -> Self {
        Self {
            failure: None,
            confidence: Confidence::FULL,
            reason: None,
            remediation: None,
        }
    }

    /// Good as far as can be told, and why that is not all the way.
    pub(crate) fn unsure(confidence: Confidence, reason: impl AsRef<str>) -> Self {
        Self {
            confidence,
            reason: Some(plain(reason.as_ref())),
            ..Self::good()
        }
    }

    pub(crate) fn bad(
        code: FailureCode,
        reason: impl AsRef<str>,
        remediation: impl AsRef<str>,
    ) -> Self {
        Self {
            failure: Some(code),
            reason: Some(plain(reason.as_ref())),
            remediation: Some(plain(remediation.as_ref())),
            ..Self::good()
        }
    }

    pub(crate) fn with_confidence(self, confidence: Confidence) -> Self {
        Self { confidence, ..self }
    }

    /// No confidence at all is compared as well: it is below everything that is required.
    pub(crate) fn requiring(self, required: Confidence) -> Self {
        if self.failure.is_some() || self.confidence >= required {
            return self;
        }
        let (has, needs) = (self.confidence.value(), required.value());
        let why = self.reason.map(|it| format!(": {it}")).unwrap_or_default();
        Self {
            failure: Some(FailureCode::LowConfidence),
            confidence: self.confidence,
            reason: Some(format!(
                "nothing is wrong as far as can be told, but with a confidence of {has} where {needs} is required{why}"
            )),
            remediation: Some(
                "let a person look at it, or lower `required_confidence` of the gate".to_owned(),
            ),
        }
    }

    pub(crate) fn into_validation(self, validator: &str) -> Validation {
        Validation {
            validator: validator.to_owned(),
            valid: self.failure.is_none(),
            confidence: self.confidence,
            reason: self.reason,
            failure_code: self.failure,
            remediation: self.remediation,
        }
    }
}

/// A part of a whole as a confidence; nothing of nothing is all of it.
pub(crate) fn share(part: u64, whole: u64) -> Confidence {
    if part >= whole {
        return Confidence::FULL;
    }
    #[allow(clippy::cast_precision_loss, reason = "thousandths are enough")]
    let share = part as f64 / whole as f64;
    // What is rounded up to everything would hide that something was not seen.
    Confidence::new(share.min(0.999)).unwrap_or(Confidence::NONE)
}

/// Text of programs and of configurations as it may be printed, and no more of it than is read.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::new();
    let odd = |char: char| char.is_control() && char != '\n';
    for char in text.chars().take(TEXT_CHARS_MAX) {
        match char {
            char if odd(char) => shown.extend(char.escape_debug()),
            char => shown.push(char),
        }
    }
    if text.chars().nth(TEXT_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_confidence_is_below_what_is_required() {
        let half = Confidence::new(0.5).unwrap();
        let finding = Finding::unsure(Confidence::NONE, "nothing to compare with");
        let low = finding.clone().requiring(half).into_validation("x");
        assert!(!low.valid);
        assert_eq!(low.failure_code, Some(FailureCode::LowConfidence));
        assert_eq!(low.confidence, Confidence::NONE);
        assert!(
            finding
                .requiring(Confidence::NONE)
                .into_validation("x")
                .valid
        );
        let bad = Finding::bad(FailureCode::Conflict, "a", "b").with_confidence(Confidence::NONE);
        assert_eq!(bad.clone().requiring(half), bad);
    }

    #[test]
    fn what_was_not_seen_is_never_rounded_away() {
        assert_eq!(share(0, 0), Confidence::FULL);
        assert_eq!(share(1, 4), Confidence::new(0.25).unwrap());
        assert!(share(u64::MAX - 1, u64::MAX) < Confidence::FULL);
    }

    #[test]
    fn texts_are_bounded_and_hold_no_control_characters() {
        assert_eq!(plain("a\x1b[31m\nb"), "a\\u{1b}[31m\nb");
        assert_eq!(plain(&"é".repeat(5000)).chars().count(), 1001);
    }
}
