//! What one check found.

use glovebox_model::{Confidence, FailureCode, Validation};

/// Records hold many of them.
const TEXT_CHARS_MAX: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    failure: Option<FailureCode>,
    confidence: Confidence,
    /// The confidence is low because something was not looked at, and not for want of experience.
    unseen: bool,
    reason: Option<String>,
    remediation: Option<String>,
}

impl Finding {
    pub(crate) fn good() -> Self {
        Self {
            failure: None,
            confidence: Confidence::FULL,
            unseen: false,
            reason: None,
            remediation: None,
        }
    }

    /// Good as far as can be told, and why that is not all the way.
    pub(crate) fn unsure(confidence: Confidence, reason: impl AsRef<str>) -> Self {
        Self {
            confidence,
            reason: Some(one_line(reason.as_ref())),
            ..Self::good()
        }
    }

    /// Nothing is wrong in the part that was looked at, and why that is not everything.
    pub(crate) fn unseen(confidence: Confidence, reason: impl AsRef<str>) -> Self {
        Self {
            unseen: true,
            ..Self::unsure(confidence, reason)
        }
    }

    pub(crate) fn bad(
        code: FailureCode,
        reason: impl AsRef<str>,
        remediation: impl AsRef<str>,
    ) -> Self {
        Self {
            failure: Some(code),
            reason: Some(one_line(reason.as_ref())),
            remediation: Some(one_line(remediation.as_ref())),
            ..Self::good()
        }
    }

    /// With what a program that judges said of it, the only thing that may be several lines.
    pub(crate) fn quoting(self, said: &str) -> Self {
        let lines: Vec<String> = said.lines().map(one_line).collect();
        match lines.is_empty() {
            true => self,
            false => Self {
                reason: self
                    .reason
                    .map(|it| format!("{it}; it printed:\n{}", lines.join("\n"))),
                ..self
            },
        }
    }

    pub(crate) fn with_confidence(self, confidence: Confidence) -> Self {
        Self { confidence, ..self }
    }

    /// No confidence at all is compared as well: it is below everything that is required. Where
    /// nobody said what is, all must have been looked at.
    pub(crate) fn requiring(self, required: Option<Confidence>) -> Self {
        let Some(required) = required else {
            return match self.unseen && self.failure.is_none() {
                true => Self {
                    failure: Some(FailureCode::MissingData),
                    remediation: Some(
                        "let a person look at the rest, or say with `required_confidence` how much \
                         of it the gate must see"
                            .to_owned(),
                    ),
                    ..self
                },
                false => self,
            };
        };
        if self.failure.is_some() || self.confidence >= required {
            return self;
        }
        let (has, needs) = (self.confidence.value(), required.value());
        let why = self
            .reason
            .as_ref()
            .map(|it| format!(": {it}"))
            .unwrap_or_default();
        Self {
            failure: Some(FailureCode::LowConfidence),
            reason: Some(format!(
                "nothing is wrong as far as can be told, but with a confidence of {has} where {needs} is required{why}"
            )),
            remediation: Some(
                "let a person look at it, or lower `required_confidence` of the gate".to_owned(),
            ),
            ..self
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

/// Text of programs and of configurations as it may be printed, and no more of it than is read. The
/// name of a file may hold a line break, and what stands behind it would look like a verdict.
fn one_line(text: &str) -> String {
    let mut shown = String::new();
    for char in text.chars().take(TEXT_CHARS_MAX) {
        match char {
            char if char.is_control() => shown.extend(char.escape_debug()),
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
        let low = finding.clone().requiring(Some(half)).into_validation("x");
        assert!(!low.valid);
        assert_eq!(low.failure_code, Some(FailureCode::LowConfidence));
        assert_eq!(low.confidence, Confidence::NONE);
        assert!(
            finding
                .requiring(Some(Confidence::NONE))
                .into_validation("x")
                .valid
        );
        let bad = Finding::bad(FailureCode::Conflict, "a", "b").with_confidence(Confidence::NONE);
        assert_eq!(bad.clone().requiring(Some(half)), bad);
    }

    #[test]
    fn where_nobody_says_how_much_must_be_seen_it_is_everything() {
        let half = Confidence::new(0.5).unwrap();
        let young = Finding::unsure(half, "few earlier runs");
        assert!(young.requiring(None).into_validation("x").valid);
        let partly = Finding::unseen(half, "half of it");
        let missing = partly.clone().requiring(None).into_validation("x");
        assert_eq!(missing.failure_code, Some(FailureCode::MissingData));
        assert!(partly.requiring(Some(half)).into_validation("x").valid);
    }

    #[test]
    fn what_was_not_seen_is_never_rounded_away() {
        assert_eq!(share(0, 0), Confidence::FULL);
        assert_eq!(share(1, 4), Confidence::new(0.25).unwrap());
        assert!(share(u64::MAX - 1, u64::MAX) < Confidence::FULL);
    }

    #[test]
    fn texts_are_one_bounded_line_without_control_characters() {
        assert_eq!(one_line("a\x1b[31m\nb"), "a\\u{1b}[31m\\nb");
        assert_eq!(one_line(&"é".repeat(5000)).chars().count(), 1001);
        let bad = Finding::bad(FailureCode::ToolError, "a\nb", "c").quoting("1\x07\n2\n");
        assert_eq!(bad.reason.unwrap(), "a\\nb; it printed:\n1\\u{7}\n2");
    }
}
