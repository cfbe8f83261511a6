//! What the rules in force say about a request.

use glovebox_model::Permit;

use super::condition::variables;
use super::facts::{Facts, Veil};
use super::path::PathFact;
use super::{Rule, Rules};

/// A rule that matched, and on what.
#[derive(Debug, Clone)]
pub(crate) struct Hit<'r> {
    pub(crate) rule: &'r Rule,
    pub(crate) part: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Verdict<'r> {
    pub(crate) denies: Vec<Hit<'r>>,
    pub(crate) asks: Vec<Hit<'r>>,
    /// The allow rules that cover all of it; empty when something is left over.
    pub(crate) allows: Vec<Hit<'r>>,
    /// Rules forbid commands, and commands may be in it that nobody sees.
    pub(crate) hidden: Option<Veil>,
    /// Rules forbid paths, and files may be opened in it that nobody sees.
    pub(crate) unnamed_files: Option<Veil>,
    /// What no allow rule covers.
    pub(crate) uncovered: Option<String>,
}

pub(crate) fn judge<'r>(rules: &'r Rules, facts: &Facts) -> Verdict<'r> {
    let mut verdict = Verdict::default();
    let mut allows = Vec::new();
    let mut context = None;
    for rule in rules.sets.iter().flat_map(|set| set.candidates(facts)) {
        let guards = rule.permit > Permit::Allow;
        let Some(part) = matched(rule, facts, guards) else {
            continue;
        };
        if let Some(when) = &rule.matchers.when {
            let context = context.get_or_insert_with(|| variables(facts));
            // What cannot be evaluated forbids and does not permit.
            if !when.holds(context).unwrap_or(guards) {
                continue;
            }
        }
        let hit = Hit { rule, part };
        match rule.permit {
            Permit::Deny => verdict.denies.push(hit),
            Permit::Ask => verdict.asks.push(hit),
            Permit::Allow => allows.push(hit),
        }
    }
    if rules.sets.iter().any(|set| set.guards_commands()) {
        verdict.hidden.clone_from(&facts.hidden);
    }
    if rules.sets.iter().any(|set| set.guards_paths()) {
        verdict.unnamed_files.clone_from(&facts.unnamed_files);
    }
    cover(&mut verdict, allows, facts);
    verdict
}

/// The matchers that hold for a call as a whole, whatever its program does; not `when`.
pub(crate) fn concerns(rule: &Rule, facts: &Facts) -> bool {
    let it = &rule.matchers;
    let guards = rule.permit > Permit::Allow;
    // A backend that is yet to be chosen may be any.
    let backend = |name| it.backend.contains(&name);
    (it.tool.is_empty() || it.tool.iter().any(|glob| glob.matches(&facts.tool)))
        && it.tier.is_none_or(|least| facts.tier >= least)
        && (it.network.is_empty() || it.network.contains(&facts.network))
        && (it.backend.is_empty() || facts.backend.map_or(guards, backend))
}

/// Every matcher but `when`. For a rule that denies or asks: the part that it is about.
#[expect(
    clippy::option_option,
    reason = "whether it matched, and on which part if on one"
)]
fn matched(rule: &Rule, facts: &Facts, guards: bool) -> Option<Option<String>> {
    let it = &rule.matchers;
    if !concerns(rule, facts) {
        return None;
    }
    if guards {
        touched(rule, facts)
    } else {
        let paths = it.path.is_empty()
            || (!facts.paths.is_empty()
                && facts.veil.is_none()
                && facts
                    .paths
                    .iter()
                    .all(|path| it.path.iter().any(|glob| glob.covers(path))));
        let hosts = it.host.is_empty()
            || (!facts.hosts.is_empty()
                && !facts.any_host
                && facts
                    .hosts
                    .iter()
                    .all(|host| it.host.iter().any(|glob| glob.covers(host))));
        let secrets = it.secret.is_empty()
            || (!facts.secrets.is_empty()
                && facts
                    .secrets
                    .iter()
                    .all(|name| it.secret.iter().any(|glob| glob.matches(name))));
        (paths && hosts && secrets).then_some(None)
    }
}

#[expect(
    clippy::option_option,
    reason = "whether it matched, and on which part if on one"
)]
fn touched(rule: &Rule, facts: &Facts) -> Option<Option<String>> {
    let it = &rule.matchers;
    let mut part = None;
    if !it.command.is_empty() {
        let segment = facts
            .segments
            .iter()
            .chain(&facts.inner)
            .find(|segment| it.command.iter().any(|glob| glob.touches(segment)))?;
        part = Some(segment.source.clone());
    }
    if !it.path.is_empty() {
        let touches = |path: &&PathFact| it.path.iter().any(|glob| glob.touches(path));
        let holds = |path: &&PathFact| it.path.iter().any(|glob| glob.is_below(path));
        let mut named = facts.paths.iter().chain(&facts.perhaps);
        let path = named
            .find(touches)
            .or_else(|| facts.trees.iter().find(holds))?;
        part = part.or_else(|| Some(path.shown().to_owned()));
    }
    if !it.host.is_empty() {
        let host = facts
            .hosts
            .iter()
            .find(|host| it.host.iter().any(|glob| glob.overlaps(host)));
        let host = match host {
            Some(host) => host.text().to_owned(),
            None if facts.any_host => "any destination".to_owned(),
            None => return None,
        };
        part = part.or(Some(host));
    }
    if !it.secret.is_empty() {
        let name = facts
            .secrets
            .iter()
            .find(|name| it.secret.iter().any(|glob| glob.matches(name)))?;
        part = part.or_else(|| Some(name.clone()));
    }
    Some(part)
}

/// Rules that name no command cover the whole; those that do cover segments, and together they
/// must cover all.
fn cover<'r>(verdict: &mut Verdict<'r>, allows: Vec<Hit<'r>>, facts: &Facts) {
    let (by_command, whole): (Vec<_>, Vec<_>) = allows
        .into_iter()
        .partition(|hit| !hit.rule.matchers.command.is_empty());
    if !whole.is_empty() {
        verdict.allows = whole;
        return;
    }
    if let Some(veil) = &facts.veil {
        verdict.uncovered = Some(format!("{}: `{}`", veil.why, veil.source));
        return;
    }
    // A wrapper may do more than run what is behind it; one that is allowed does not allow others.
    if let Some(segment) = facts.segments.iter().find(|it| !it.is_plainly_run()) {
        verdict.uncovered = Some(format!("no allow rule covers `{}`", segment.source));
        return;
    }
    let mut used: Vec<Hit<'r>> = Vec::new();
    for segment in &facts.told {
        let covers = |hit: &&Hit<'r>| {
            hit.rule
                .matchers
                .command
                .iter()
                .any(|it| it.covers(segment))
        };
        match by_command.iter().find(covers) {
            Some(hit) if used.iter().any(|it| std::ptr::eq(it.rule, hit.rule)) => {}
            Some(hit) => used.push(Hit {
                rule: hit.rule,
                part: Some(segment.source.clone()),
            }),
            None => {
                verdict.uncovered = Some(format!("no allow rule covers `{}`", segment.source));
                return;
            }
        }
    }
    verdict.allows = used;
}
