//! The answer to «why»: the decision, what decided each field, and what would change it.

use std::fmt::Write;

use glovebox_model::{
    BackendName, Call, Capped, Code, Error, Permit, Reason, Result, Risk, RuleRef, Ruling, Upgrade,
};
use serde::{Deserialize, Serialize};

use crate::approvals::Elevated;
use crate::assess::{Assessed, assess};
use crate::config::Config;
use crate::decide::{DecisionContext, decide};
use crate::decided::Decided;
use crate::denied::{HeldBy, PathRule, denied_paths, path_rules};
use crate::grant::GrantKind;
use crate::resolve::resolve;
use crate::secret::GrantedSecret;
use crate::system::System;
use crate::tool::{ToolAnswer, ToolPolicy, ToolSource};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    /// A person decides.
    Ask,
    Deny,
}

/// What policy would decide about an exec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Explanation {
    pub decision: Decision,
    /// Why it is denied.
    pub code: Option<Code>,
    pub reason: Option<String>,
    /// Where the rule stands.
    pub rule: Option<RuleRef>,
    /// What would change the decision.
    pub hints: Vec<String>,
    pub risk: Option<Risk>,
    pub fields: Vec<Decided>,
    pub capped: Vec<Capped>,
    /// What the rules and the approval mode say, where the call fits the layers at all.
    pub permit: Option<Permit>,
    pub reasons: Vec<Reason>,
    pub upgrades: Vec<Upgrade>,
    /// The workspace is kept as it is before this runs.
    pub snapshot_before: bool,
    pub tools: Option<ToolsExplained>,
    pub elevated: Option<Elevated>,
    /// Each thing that would change the decision, the nearest first.
    pub fix_it: Vec<String>,
    /// The rules that deny paths, and who denies them.
    pub path_rules: Vec<PathRule>,
}

/// Which tools exist, and the keys of the configuration that say so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Tools))]
pub struct ToolsExplained {
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    pub sources: Vec<ListSource>,
    /// About the tool through which the call came.
    pub answer: ToolAnswer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ListSource {
    pub source: ToolSource,
    pub key: String,
}

/// Who asks, beside what the call itself says.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    pub tool: &'a str,
    pub grants: &'a [GrantKind],
    pub secrets: &'a [GrantedSecret],
    pub simulate: bool,
    pub backend: Option<BackendName>,
}

/// Everything that policy says about a call, without running anything. An error is a call that
/// makes no sense; a refusal is an explanation.
pub fn explain(
    config: &Config,
    system: &System,
    call: Call,
    asking: &Asking<'_>,
) -> Result<Explanation> {
    let ids = call.ids.clone();
    let layers = config.layers_for(&ids);
    let assessed = match resolve(call, system, &layers).map(assess) {
        Ok(assessed) => assessed,
        Err(error) if error.code == Code::PolicyDenied => return Ok(Explanation::of(Err(&error))),
        Err(error) => return Err(error),
    };
    let (rules, tools) = (config.rules_for(&ids), config.tools_for(&ids));
    let standing = DecisionContext {
        rules: &rules,
        tool: asking.tool,
        tools: &tools,
        grants: asking.grants,
        approvals: config.approvals(),
        simulate: asking.simulate,
        backend: asking.backend,
        secrets: asking.secrets,
        network: config.network(),
    };
    let ruling = decide(&assessed, &standing);
    let denied = denied_paths(&assessed, &rules, &[asking.tool], asking.backend);
    let host = &config.approvals().host;
    let elevated = host.elevated(&ids, assessed.profile().security);
    Ok(Explanation::of(Ok(&assessed))
        .ruled(&ruling)
        .with_field(config.sight_explained())
        .with_tools(&tools, asking.tool)
        .with_elevated(elevated)
        .with_path_rules(path_rules(&rules, &denied)))
}

impl Explanation {
    pub fn of(result: std::result::Result<&Assessed, &Error>) -> Self {
        let blank = Self {
            decision: Decision::Allow,
            code: None,
            reason: None,
            rule: None,
            hints: Vec::new(),
            risk: None,
            fields: Vec::new(),
            capped: Vec::new(),
            permit: None,
            reasons: Vec::new(),
            upgrades: Vec::new(),
            snapshot_before: false,
            tools: None,
            elevated: None,
            fix_it: Vec::new(),
            path_rules: Vec::new(),
        };
        match result {
            Ok(assessed) => Self {
                risk: Some(assessed.risk().clone()),
                fields: assessed.decisions(),
                capped: assessed.capped().to_vec(),
                upgrades: assessed.upgrades().to_vec(),
                ..blank
            },
            Err(error) => Self {
                decision: Decision::Deny,
                code: Some(error.code),
                reason: Some(error.to_string()),
                rule: error.rule.clone(),
                hints: error.hints.clone(),
                fix_it: error.hints.clone(),
                ..blank
            },
        }
    }

    /// Adds what `decide` said. The first reason becomes the reason of a call that does not pass.
    #[must_use]
    pub fn ruled(mut self, ruling: &Ruling) -> Self {
        self.decision = match ruling.permit {
            Permit::Allow => Decision::Allow,
            Permit::Ask => Decision::Ask,
            Permit::Deny => Decision::Deny,
        };
        self.permit = Some(ruling.permit);
        self.reasons.clone_from(&ruling.reasons);
        self.upgrades.clone_from(&ruling.upgrades);
        self.snapshot_before = ruling.snapshot_before;
        let first = ruling.reasons.first();
        if ruling.permit > Permit::Allow {
            self.reason = first.map(|it| it.text.clone());
            self.rule = first.and_then(|it| it.rule.clone());
        }
        if ruling.permit == Permit::Deny {
            self.code = Some(Code::PolicyDenied);
        }
        let same = |it: &&Reason| it.permit == ruling.permit;
        for way in ruling
            .reasons
            .iter()
            .filter(same)
            .filter_map(|it| it.way.as_ref())
        {
            if !self.fix_it.contains(way) {
                self.fix_it.push(way.clone());
            }
        }
        self
    }

    #[must_use]
    fn with_field(mut self, field: Decided) -> Self {
        self.fields.push(field);
        self
    }

    #[must_use]
    pub fn with_tools(mut self, tools: &ToolPolicy, tool: &str) -> Self {
        let sources = tools
            .sources()
            .map(|(source, key)| ListSource { source, key });
        self.tools = Some(ToolsExplained {
            allow: tools.allow(),
            deny: tools.deny(),
            sources: sources.into(),
            answer: tools.check(tool),
        });
        self
    }

    #[must_use]
    pub fn with_elevated(mut self, elevated: Elevated) -> Self {
        self.elevated = Some(elevated);
        self
    }

    #[must_use]
    pub fn with_path_rules(mut self, rules: Vec<PathRule>) -> Self {
        self.path_rules = rules;
        self
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
            Decision::Ask => writeln!(text, "decision: ask")?,
            Decision::Deny => writeln!(text, "decision: deny")?,
        }
        if self.reasons.is_empty()
            && let Some(reason) = &self.reason
        {
            writeln!(text, "reason: {reason}")?;
            if let Some(rule) = &self.rule {
                writeln!(text, "  --> {}:{}", rule.file, rule.line)?;
            }
        }
        self.write_reasons(text)?;
        if self.snapshot_before {
            writeln!(text, "snapshot: before it runs")?;
        }
        if let Some(risk) = &self.risk {
            writeln!(text, "risk: {}", risk.tier)?;
            for signal in &risk.signals {
                let at = signal
                    .at
                    .as_ref()
                    .map_or(String::new(), |at| format!(" at {at}"));
                writeln!(text, "  {} {}{at}", signal.tier, signal.name)?;
            }
        }
        for capped in &self.capped {
            writeln!(
                text,
                "capped: {} from {} to {} by {}",
                capped.field, capped.asked, capped.granted, capped.layer
            )?;
        }
        for upgrade in &self.upgrades {
            writeln!(
                text,
                "upgrade: {} from {} to {}, beyond {}",
                upgrade.field, upgrade.given, upgrade.asked, upgrade.layer
            )?;
        }
        self.write_table(text)?;
        self.write_path_rules(text)?;
        if self.fix_it.is_empty() || self.reasons.is_empty() {
            for hint in &self.hints {
                writeln!(text, "hint: {hint}")?;
            }
        }
        Ok(())
    }

    fn write_reasons(&self, text: &mut String) -> std::fmt::Result {
        for reason in &self.reasons {
            writeln!(text, "{}: {}", reason.permit, reason.text)?;
            if let Some(code) = reason.code {
                writeln!(text, "  code: {code}")?;
            }
            if let Some(part) = &reason.part {
                writeln!(text, "  in: {part}")?;
            }
            if let Some(rule) = &reason.rule {
                writeln!(text, "  --> {}:{}", rule.file, rule.line)?;
            }
            if let Some(way) = &reason.way {
                writeln!(text, "  to change it: {way}")?;
            }
        }
        Ok(())
    }

    fn write_path_rules(&self, text: &mut String) -> std::fmt::Result {
        for rule in &self.path_rules {
            let (paths, at) = (rule.paths.join("`, `"), &rule.rule);
            let held = match rule.held_by {
                HeldBy::Sandbox => "denied by the sandbox, whatever the program is",
                HeldBy::Text => "denied by the text of commands alone",
                HeldBy::Nothing => "not denied to this call",
            };
            writeln!(text, "\npath: `{paths}` is {held}")?;
            writeln!(text, "  --> {}:{}", at.file, at.line)?;
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
