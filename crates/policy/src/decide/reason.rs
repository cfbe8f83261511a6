//! The sentences of a ruling.

use glovebox_model::{Permit, Reason, ReasonKind};

use crate::rule::Hit;
use crate::tool::ToolAnswer;

pub(super) fn plain(permit: Permit, kind: ReasonKind, text: String, way: &str) -> Reason {
    Reason {
        permit,
        kind,
        text,
        code: None,
        part: None,
        rule: None,
        rule_name: None,
        way: Some(way.to_owned()),
    }
}

pub(super) fn of_rule(hit: &Hit<'_>) -> Reason {
    let rule = hit.rule;
    let name = match &rule.name {
        Some(name) => format!("rule `{name}`"),
        None => "a rule".to_owned(),
    };
    let does = match rule.permit {
        Permit::Allow => "allows it",
        Permit::Ask => "asks for approval",
        Permit::Deny => "denies it",
    };
    let because = rule
        .because
        .as_ref()
        .map_or(String::new(), |it| format!(": {it}"));
    let way = format!("change the rule at `{}:{}`", rule.at.file, rule.at.line);
    Reason {
        permit: rule.permit,
        kind: ReasonKind::Rule,
        text: format!("{name} {does}{because}"),
        code: None,
        part: hit.part.clone(),
        rule: Some(rule.at.clone()),
        rule_name: rule.name.clone(),
        way: Some(way),
    }
}

pub(super) fn tool_denied(answer: &ToolAnswer) -> Reason {
    let text = match &answer.entry {
        Some(entry) => format!(
            "tool `{}` is denied by `{entry}` in `{}`",
            answer.tool, answer.key
        ),
        None => format!("tool `{}` is not in `{}`", answer.tool, answer.key),
    };
    Reason {
        permit: Permit::Deny,
        kind: ReasonKind::ToolPolicy,
        text,
        code: None,
        part: Some(answer.tool.clone()),
        rule: answer.rule.clone(),
        rule_name: None,
        way: Some(answer.fix.clone()),
    }
}
