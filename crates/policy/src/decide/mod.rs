//! Whether an assessed call may run: hard limits have passed by now; then tool policy, rules that
//! deny, rules that ask, rules and grants that allow, and last the approval mode's own default.

mod compare;
mod reason;
mod upgrade;

use std::fmt::Write as _;

use glovebox_model::{
    ApprovalMode, BackendName, Correlation, HostPattern, NetworkMode, Permit, Program, Reason,
    ReasonKind, Ruling, Tier, WorkspaceRef,
};
use glovebox_risk::{Reading, read};

use crate::approvals::ApprovalSettings;
use crate::assess::Assessed;
use crate::grant::{GrantKind, kind_of};
use crate::network::NetworkSettings;
use crate::rule::facts::{Beside, Facts};
use crate::rule::{Rules, Scripts, Verdict, judge};
use crate::secret::GrantedSecret;
use crate::tool::ToolPolicy;

pub use compare::{Change, compare};
use reason::{of_rule, plain, tool_denied};

/// More than anybody reads.
const REASONS_MAX: usize = 32;

/// What holds for the caller at this moment.
#[derive(Debug, Clone, Copy)]
pub struct DecisionContext<'a> {
    pub rules: &'a Rules,
    /// The tool through which the call came, such as `run_command`.
    pub tool: &'a str,
    pub tools: &'a ToolPolicy,
    /// The grants of this conversation.
    pub grants: &'a [GrantKind],
    pub approvals: &'a ApprovalSettings,
    /// Nothing of it is to last.
    pub simulate: bool,
    /// Where it will run, once that is chosen.
    pub backend: Option<BackendName>,
    /// The secrets that are granted to this conversation or agent; grants that ended are not here.
    pub secrets: &'a [GrantedSecret],
    pub network: &'a NetworkSettings,
}

/// What a tool does that runs no program.
#[derive(Debug, Clone, Copy)]
pub struct Action<'a> {
    pub ids: &'a Correlation,
    /// Relative to the workspace, or absolute.
    pub paths: &'a [String],
    /// `host:port` each.
    pub hosts: &'a [String],
    pub changes: bool,
    pub mode: ApprovalMode,
}

pub fn decide(assessed: &Assessed, standing: &DecisionContext<'_>) -> Ruling {
    decide_reading(assessed, &read(&assessed.call().program), standing)
}

/// As `decide`, for a program that has been read already.
pub fn decide_reading(
    assessed: &Assessed,
    reading: &Reading,
    standing: &DecisionContext<'_>,
) -> Ruling {
    ruling(assessed, reading, standing, None)
}

/// As `decide`, knowing what is in the scripts that the program names: rules that deny or ask look
/// at their commands and paths too, and a script that nobody read may hold any command.
pub fn decide_with(
    assessed: &Assessed,
    standing: &DecisionContext<'_>,
    scripts: Scripts<'_>,
) -> Ruling {
    let reading = read(&assessed.call().program);
    ruling(assessed, &reading, standing, Some(scripts))
}

fn ruling(
    assessed: &Assessed,
    reading: &Reading,
    standing: &DecisionContext<'_>,
    scripts: Option<Scripts<'_>>,
) -> Ruling {
    let beside = Beside {
        tool: standing.tool,
        backend: standing.backend,
        scripts,
    };
    let facts = Facts::of(assessed, reading, beside);
    let verdict = judge(standing.rules, &facts);
    let mode = assessed.profile().approval;
    let case = Case {
        assessed,
        facts: &facts,
        verdict: &verdict,
        standing,
        mode,
    };
    let (permit, mut reasons) = case.rule_on();
    reasons.sort_by_key(|it| std::cmp::Reverse(it.permit));
    reasons.truncate(REASONS_MAX);
    let assessed_high = assessed_tier(&facts) >= Tier::High;
    Ruling {
        permit,
        reasons,
        upgrades: case.upgrades(),
        snapshot_before: permit != Permit::Deny
            && !standing.simulate
            && assessed_high
            && case.is_kept()
            && mode >= ApprovalMode::Cowork,
        mode,
    }
}

/// A tool that runs no program: reading is automatic; changing asks in `manual`.
pub fn decide_action(action: &Action<'_>, standing: &DecisionContext<'_>) -> Ruling {
    let mut facts = Facts::of_action(action.ids, standing.tool, action.paths);
    for host in action.hosts {
        match HostPattern::of_destination(host) {
            Ok(pattern) => facts.hosts.push(pattern),
            // What cannot be compared may be any: rules that deny or ask hold, none that allows.
            Err(_) => facts.any_host = true,
        }
    }
    let verdict = judge(standing.rules, &facts);
    let (permit, reasons) = rule_on_action(action, &verdict, standing);
    Ruling {
        permit,
        reasons,
        upgrades: Vec::new(),
        snapshot_before: false,
        mode: action.mode,
    }
}

fn rule_on_action(
    action: &Action<'_>,
    verdict: &Verdict<'_>,
    standing: &DecisionContext<'_>,
) -> (Permit, Vec<Reason>) {
    let answer = standing.tools.check(standing.tool);
    if !answer.allowed {
        return (Permit::Deny, vec![tool_denied(&answer)]);
    }
    for (permit, hits) in [
        (Permit::Deny, &verdict.denies),
        (Permit::Ask, &verdict.asks),
    ] {
        if !hits.is_empty() && (permit == Permit::Deny || !standing.simulate) {
            return (permit, hits.iter().map(of_rule).collect());
        }
    }
    if !verdict.allows.is_empty() {
        return (Permit::Allow, verdict.allows.iter().map(of_rule).collect());
    }
    let mode = action.mode;
    if mode == ApprovalMode::Manual && action.changes && !standing.simulate {
        let text = "mode `manual` asks before anything is changed".to_owned();
        let way = "an allow rule for this tool or path would let it pass";
        return (
            Permit::Ask,
            vec![plain(Permit::Ask, ReasonKind::Mode, text, way)],
        );
    }
    let text = format!("mode `{mode}` lets it pass");
    let way = "a rule that asks or denies would stop it";
    (
        Permit::Allow,
        vec![plain(Permit::Allow, ReasonKind::Mode, text, way)],
    )
}

struct Case<'a> {
    assessed: &'a Assessed,
    facts: &'a Facts,
    verdict: &'a Verdict<'a>,
    standing: &'a DecisionContext<'a>,
    mode: ApprovalMode,
}

impl Case<'_> {
    fn rule_on(&self) -> (Permit, Vec<Reason>) {
        let denied = self.denied();
        if !denied.is_empty() {
            return (Permit::Deny, denied);
        }
        let upgrades = self.upgrade_reasons();
        let asked_by_upgrade = !upgrades.is_empty() && !self.upgrade_allowed();
        if self.standing.simulate && !asked_by_upgrade {
            let text = "a simulation leaves nothing behind".to_owned();
            let way = "without `simulate` the approval mode and the rules that ask decide";
            let reason = plain(Permit::Allow, ReasonKind::Simulation, text, way);
            return (Permit::Allow, vec![reason]);
        }
        let mut asks: Vec<Reason> = self.verdict.asks.iter().map(of_rule).collect();
        asks.extend(self.hidden());
        if asked_by_upgrade {
            asks.extend(upgrades);
        }
        if !asks.is_empty() {
            asks.extend(self.by_default());
            return (Permit::Ask, asks);
        }
        let by_default = self.by_default();
        let allowed = match by_default.is_empty() {
            true => Some(self.automatic()),
            false => self.let_through(),
        };
        match allowed {
            Some(mut reasons) => {
                reasons.extend(self.secrets_by_grant());
                (Permit::Allow, reasons)
            }
            None => (Permit::Ask, by_default),
        }
    }

    fn denied(&self) -> Vec<Reason> {
        let answer = self.standing.tools.check(self.standing.tool);
        if !answer.allowed {
            return vec![tool_denied(&answer)];
        }
        let mut reasons: Vec<Reason> = self.verdict.denies.iter().map(of_rule).collect();
        reasons.extend(self.closed_gates());
        let commands = matches!(
            self.assessed.call().program,
            Program::Shell { .. } | Program::Argv { .. }
        );
        let tier = self.facts.tier;
        if let Some(from) = self.standing.approvals.deny_from
            && commands
            && tier >= from
        {
            let text = format!("commands of tier `{tier}` are denied without asking");
            let way = "raise or leave out `deny_from` under `[approvals]`";
            let mut reason = plain(Permit::Deny, ReasonKind::DenyFrom, text, way);
            reason.part = self.riskiest();
            reasons.push(reason);
        }
        reasons
    }

    /// Where the highest signal lies.
    fn riskiest(&self) -> Option<String> {
        let highest = self
            .facts
            .signals
            .iter()
            .filter(|it| it.tier == self.facts.tier && it.at.is_some())
            .find_map(|it| self.facts.segment_at(it.at.as_deref()?))?;
        Some(highest.source.clone())
    }

    /// A rule forbids some command or path, and nobody can say that it is not in here.
    fn hidden(&self) -> impl Iterator<Item = Reason> {
        let commands = self.verdict.hidden.as_ref().map(|veil| {
            let text = "rules deny or ask about commands, and it cannot be told which are in this";
            (veil, text, "write the commands out")
        });
        let paths = self.verdict.unnamed_files.as_ref().map(|veil| {
            let text =
                "rules deny or ask about paths, and it cannot be told which are opened in this";
            (veil, text, "write the names of its files out")
        });
        // What may hold any command may open any file as well.
        commands.or(paths).into_iter().map(|(veil, text, way)| {
            let text = format!("{text}: {}", veil.why);
            let mut reason = plain(Permit::Ask, ReasonKind::Rule, text, way);
            reason.part = Some(veil.source.clone());
            reason
        })
    }

    /// A directory of the caller's own may be a whole home, and scratch is gone anyway.
    fn is_kept(&self) -> bool {
        matches!(self.assessed.call().workspace, WorkspaceRef::Project(_))
    }

    fn is_unsandboxed(&self) -> bool {
        let named = self.assessed.profile().backend;
        self.standing.backend.or(named) == Some(BackendName::Host)
    }

    /// What the operator has not opened, nobody can be asked for.
    fn closed_gates(&self) -> Vec<Reason> {
        let (call, approvals) = (self.assessed.call(), self.standing.approvals);
        let mut reasons = Vec::new();
        if self.is_unsandboxed() {
            let security = self.assessed.profile().security;
            for gate in approvals.host.elevated(&call.ids, security).failures {
                let text = format!(
                    "running without a sandbox is not open to this caller: `{}` stands against it",
                    gate.gate
                );
                let way = format!("the operator sets `{}`", gate.key);
                reasons.push(plain(Permit::Deny, ReasonKind::HardLimit, text, &way));
            }
        }
        for target in &call.mounts {
            if approvals.host_mounts.iter().all(|it| it.target != *target) {
                let text = format!("no directory of the host may be mounted at `{target}`");
                let way = "the operator lists it under `host_mounts` in `[approvals]`";
                reasons.push(plain(Permit::Deny, ReasonKind::HardLimit, text, way));
            }
        }
        reasons
    }

    /// Why the approval mode asks, if it does.
    fn by_default(&self) -> Vec<Reason> {
        let mode = self.mode;
        let way = "an allow rule that covers every command, or a grant, would let it pass";
        let declared = self.assessed.profile().tier;
        let mut reasons = Vec::new();
        if declared >= Tier::High {
            let text = format!("tier `{declared}` is declared, which asks in every mode");
            let way = "an allow rule that covers every command, a grant or a lower `tier` would let it pass";
            reasons.push(plain(Permit::Ask, ReasonKind::Tier, text, way));
        }
        if mode < ApprovalMode::Manual {
            return reasons;
        }
        let assessed = assessed_tier(self.facts);
        if assessed >= Tier::High {
            for signal in self.facts.signals.iter().filter(|it| is_found(it)) {
                if signal.tier < Tier::High {
                    continue;
                }
                let place = signal
                    .at
                    .as_deref()
                    .map_or(String::new(), |at| format!(" at {at}"));
                let text = format!("signal `{}` is `{}`{place}", signal.name, signal.tier);
                let mut reason = plain(Permit::Ask, ReasonKind::Assessed, text, way);
                let at = signal.at.as_deref();
                let segment = at.and_then(|at| self.facts.segment_at(at));
                reason.part = segment.map(|it| it.source.clone());
                reasons.push(reason);
            }
        } else if !self.is_read() {
            let mut text = "mode `manual` asks for everything but reads".to_owned();
            if let (Tier::Safe, Err(veil)) = (self.facts.tier, &self.facts.reads) {
                let _ = write!(text, "; {}: `{}`", veil.why, veil.source);
            }
            reasons.push(plain(Permit::Ask, ReasonKind::Mode, text, way));
        }
        if let (Some(uncovered), Some(last)) = (&self.verdict.uncovered, reasons.last_mut())
            && !self.standing.rules.is_empty()
        {
            last.text = format!("{}; {uncovered}", last.text);
        }
        reasons
    }

    /// Nothing was found or declared, nothing is reached, and it is certain that nothing is changed.
    fn is_read(&self) -> bool {
        self.facts.tier == Tier::Safe
            && self.facts.network <= NetworkMode::Retrieval
            && self.facts.reads.is_ok()
    }

    /// An allow rule or a grant that answers what the mode would have asked.
    fn let_through(&self) -> Option<Vec<Reason>> {
        if !self.verdict.allows.is_empty() {
            return Some(self.verdict.allows.iter().map(of_rule).collect());
        }
        if self.standing.grants.is_empty() {
            return None;
        }
        let kind = kind_of(self.assessed, self.standing.backend)?;
        let granted = |it: &&GrantKind| it.kind == kind.kind;
        let grant = self.standing.grants.iter().find(granted)?;
        let text = format!("granted for this conversation: {}", grant.shown);
        let way = "revoke the grant to be asked again";
        Some(vec![plain(Permit::Allow, ReasonKind::Grant, text, way)])
    }

    fn automatic(&self) -> Vec<Reason> {
        let mode = self.mode;
        if !self.upgrades().is_empty()
            && let Some(hit) = self.verdict.allows.first()
        {
            return vec![of_rule(hit)];
        }
        if mode == ApprovalMode::Cowork && assessed_tier(self.facts) >= Tier::High {
            let text = match self.is_kept() {
                true => "signals of a high tier were found: the workspace is kept as it is first",
                false => {
                    "signals of a high tier were found, in a workspace that is not ours to keep"
                }
            };
            let way = "mode `manual` would ask";
            let kept = plain(Permit::Allow, ReasonKind::Assessed, text.to_owned(), way);
            return std::iter::once(kept).chain(self.risky_parts()).collect();
        }
        let (text, way) = match mode {
            ApprovalMode::Manual => ("reads pass in mode `manual`", "a rule may ask or deny"),
            ApprovalMode::Cowork => (
                "a standard action passes in mode `cowork`",
                "mode `manual`, or a rule, would ask",
            ),
            ApprovalMode::Evolution => (
                "a standard action passes in mode `evolution`",
                "mode `manual`, or a rule, would ask",
            ),
        };
        vec![plain(Permit::Allow, ReasonKind::Mode, text.to_owned(), way)]
    }

    /// Each segment with the signals of a high tier in it.
    fn risky_parts(&self) -> Vec<Reason> {
        let mut parts: Vec<(Option<String>, Vec<String>)> = Vec::new();
        let high = self.facts.signals.iter();
        for signal in high.filter(|it| is_found(it) && it.tier >= Tier::High) {
            let at = signal.at.as_deref();
            let segment = at.and_then(|at| self.facts.segment_at(at));
            let source = segment.map(|it| it.source.clone());
            let said = format!("`{}` ({})", signal.name, signal.tier);
            match parts.iter_mut().find(|(part, _)| *part == source) {
                Some((_, signals)) => signals.push(said),
                None => parts.push((source, vec![said])),
            }
        }
        let reason = |(part, signals): (Option<String>, Vec<String>)| {
            let text = format!("found {}", signals.join(", "));
            let way = "a rule that asks or denies it would decide";
            let mut reason = plain(Permit::Allow, ReasonKind::Assessed, text, way);
            reason.part = part;
            reason
        };
        parts.into_iter().map(reason).collect()
    }
}

fn is_found(signal: &glovebox_model::RiskSignal) -> bool {
    signal.name != crate::assess::DECLARED
}

/// The highest tier of what was found, not declared.
fn assessed_tier(facts: &Facts) -> Tier {
    let found = facts.signals.iter().filter(|it| is_found(it));
    found.map(|it| it.tier).max().unwrap_or(Tier::Safe)
}
