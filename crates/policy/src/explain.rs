//! The answer to «why»: the decision, what decided each field, and what would change it.

use std::fmt::Write;

use glovebox_model::{Capped, Code, Error, Risk, RuleRef};
use serde::{Deserialize, Serialize};

use crate::assess::Assessed;
use crate::decided::Decided;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Deny,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    pub decision: Decision,
    /// Why it is denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRef>,
    /// What would change the decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Decided>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capped: Vec<Capped>,
}

impl Explanation {
    pub fn of(result: Result<&Assessed, &Error>) -> Self {
        match result {
            Ok(assessed) => Self {
                decision: Decision::Allow,
                code: None,
                reason: None,
                rule: None,
                hints: Vec::new(),
                risk: Some(assessed.risk().clone()),
                fields: assessed.decisions(),
                capped: assessed.capped().to_vec(),
            },
            Err(error) => Self {
                decision: Decision::Deny,
                code: Some(error.code),
                reason: Some(error.to_string()),
                rule: error.rule.clone(),
                hints: error.hints.clone(),
                risk: None,
                fields: Vec::new(),
                capped: Vec::new(),
            },
        }
    }

    pub fn render_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, text: &mut String) -> std::fmt::Result {
        match self.decision {
            Decision::Allow => writeln!(text, "decision: allow")?,
            Decision::Deny => writeln!(text, "decision: deny")?,
        }
        if let Some(reason) = &self.reason {
            writeln!(text, "reason: {reason}")?;
        }
        if let Some(rule) = &self.rule {
            writeln!(text, "  --> {}:{}", rule.file, rule.line)?;
        }
        if let Some(risk) = &self.risk {
            writeln!(text, "risk: {}", risk.tier)?;
        }
        for capped in &self.capped {
            writeln!(
                text,
                "capped: {} from {} to {} by {}",
                capped.field, capped.asked, capped.granted, capped.layer
            )?;
        }
        self.write_table(text)?;
        for hint in &self.hints {
            writeln!(text, "hint: {hint}")?;
        }
        Ok(())
    }

    fn write_table(&self, text: &mut String) -> std::fmt::Result {
        if self.fields.is_empty() {
            return Ok(());
        }
        let header = ["FIELD", "VALUE", "DECIDED BY", "TO CHANGE IT"].map(str::to_owned);
        let rows = self.fields.iter().map(|it| {
            let by = match &it.by.source {
                Some(source) => format!("{} ({}:{})", it.by, source.file, source.line),
                None => it.by.to_string(),
            };
            [it.field.clone(), it.value.clone(), by, it.change.clone()]
        });
        let rows: Vec<[String; 4]> = std::iter::once(header).chain(rows).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let [field, value, by] = [0, 1, 2].map(|column| width(column).unwrap_or(0));
        writeln!(text)?;
        for row in &rows {
            writeln!(
                text,
                "{:field$}  {:value$}  {:by$}  {}",
                row[0], row[1], row[2], row[3]
            )?;
        }
        Ok(())
    }
}
