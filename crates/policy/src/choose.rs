//! Which backend an exec runs on. A demand comes from policy alone: naming a backend, a runtime or
//! an image chooses among those that satisfy it and never lowers it.

use std::collections::{BTreeMap, BTreeSet};

use glovebox_model::{
    BackendName, Code, Error, Evidence, Grade, Guarantee, Isolation, LimitsDemand, NetworkMode,
    Profile, Result, SecurityMode, Stage,
};

/// What every exec gets, whatever was asked for.
const ALWAYS: [Guarantee; 12] = [
    Guarantee::OwnPids,
    Guarantee::OwnMounts,
    Guarantee::OwnIpc,
    Guarantee::OwnHostname,
    Guarantee::ReadOnlyRoot,
    Guarantee::NoCapabilities,
    Guarantee::NoNewPrivileges,
    Guarantee::SyscallFilter,
    Guarantee::NoSurvivors,
    Guarantee::MemoryLimit,
    Guarantee::PidsLimit,
    Guarantee::CpuLimit,
];

/// What is watched even where there is no sandbox.
const WATCHED: [Guarantee; 3] = [
    Guarantee::MemoryLimit,
    Guarantee::PidsLimit,
    Guarantee::CpuLimit,
];

/// The guarantees without which the exec is refused. Both security modes demand the same, but for
/// what names the host itself, which strict security does not run at all, and for an unrestricted
/// network, which in strict security still reaches nothing private.
pub fn demand(profile: &Profile) -> BTreeSet<Guarantee> {
    if is_unsandboxed(profile) && profile.security == SecurityMode::Permissive {
        return profile.require.iter().copied().chain(WATCHED).collect();
    }
    let mut demanded = BTreeSet::from(ALWAYS);
    demanded.extend(&profile.require);
    match profile.network {
        // What is retrieved is retrieved from outside, for a sandbox without a network.
        NetworkMode::None | NetworkMode::Retrieval => {
            demanded.insert(Guarantee::NoNetwork);
        }
        // A list that only some connections pass is none.
        NetworkMode::Allowlist => {
            demanded.insert(Guarantee::EgressOnly);
        }
        NetworkMode::Unrestricted => {
            if profile.security == SecurityMode::Strict {
                demanded.insert(Guarantee::EgressOnly);
            }
        }
    }
    demanded
}

fn is_unsandboxed(profile: &Profile) -> bool {
    profile.backend == Some(BackendName::Host)
}

/// One way to run an exec on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub backend: BackendName,
    /// A container runtime by its name; `None` is the backend's own way.
    pub runtime: Option<String>,
    /// What a probe saw, or why it could not look.
    pub evidence: std::result::Result<Vec<Evidence>, String>,
    /// Less is taken first.
    pub cost: u32,
}

/// The offer that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub backend: BackendName,
    pub runtime: Option<String>,
    /// How each demanded guarantee is kept there.
    pub isolation: Isolation,
}

/// What one offer lacks.
#[derive(Debug)]
struct Missing<'o> {
    guarantee: Guarantee,
    grade: Grade,
    evidence: &'o str,
    fix: Option<&'o str>,
}

/// The cheapest offer that satisfies the whole demand. One that was named is taken or refused:
/// there is no falling back to another.
pub fn choose(profile: &Profile, offers: &[Offer]) -> Result<Choice> {
    if is_unsandboxed(profile) && profile.security == SecurityMode::Strict {
        return Err(strict_refuses_the_host());
    }
    let demanded = demand(profile);
    // The host itself is never a choice: it is named, or it is not there.
    let may = |offer: &&Offer| offer.backend != BackendName::Host || is_unsandboxed(profile);
    let named = |offer: &&Offer| {
        may(offer)
            && profile.backend.is_none_or(|it| it == offer.backend)
            && (profile.runtime.is_none() || profile.runtime == offer.runtime)
    };
    let mut candidates: Vec<&Offer> = offers.iter().filter(named).collect();
    // Among equals the given order stands.
    candidates.sort_by_key(|offer| offer.cost);
    let satisfying = |offer: &&Offer| satisfies(profile, &demanded, offer).is_ok();
    let mut refused = Vec::new();
    for offer in candidates {
        match satisfies(profile, &demanded, offer) {
            Ok(isolation) => {
                return Ok(Choice {
                    backend: offer.backend,
                    runtime: offer.runtime.clone(),
                    isolation,
                });
            }
            Err(missing) => refused.push((offer, missing)),
        }
    }
    let other = offers.iter().filter(may).find(satisfying);
    Err(refusal(profile, offers, &refused, other))
}

/// How the offer keeps each demanded guarantee, or everything that it lacks. `Err` with an empty
/// list: nobody could look.
fn satisfies<'o>(
    profile: &Profile,
    demanded: &BTreeSet<Guarantee>,
    offer: &'o Offer,
) -> std::result::Result<Isolation, Vec<Missing<'o>>> {
    let Ok(evidence) = &offer.evidence else {
        return Err(Vec::new());
    };
    let mut kept = BTreeMap::new();
    let mut missing = Vec::new();
    for &guarantee in demanded {
        // Of two findings on one guarantee the worse counts.
        let seen = evidence
            .iter()
            .filter(|it| it.guarantee == guarantee)
            .min_by_key(|it| it.grade);
        let grade = seen.map_or(Grade::Unavailable, |it| it.grade);
        if accepted(profile, guarantee, grade) {
            kept.insert(guarantee, grade);
        } else {
            missing.push(Missing {
                guarantee,
                grade,
                evidence: seen.map_or("nobody looked for it", |it| &it.evidence),
                fix: seen.and_then(|it| it.fix.as_deref()),
            });
        }
    }
    if missing.is_empty() {
        Ok(Isolation(kept))
    } else {
        Err(missing)
    }
}

fn strict_refuses_the_host() -> Error {
    Error::new(
        Code::PolicyDenied,
        Stage::Admit,
        "strict security runs nothing on the host without a sandbox",
    )
    .hint("leave out `--backend host`: a sandbox is chosen then")
    .hint(
        "an operator can set `security = \"permissive\"`; a person is asked for each exec even so",
    )
}

fn accepted(profile: &Profile, guarantee: Guarantee, grade: Grade) -> bool {
    match grade {
        Grade::Kernel => true,
        Grade::Supervised => {
            guarantee.is_limit()
                && profile.limits_demand == LimitsDemand::Supervised
                && !profile.require.contains(&guarantee)
        }
        Grade::Unavailable => false,
    }
}

fn name(backend: BackendName, runtime: Option<&str>) -> String {
    match runtime {
        Some(runtime) => format!("`{backend}` with the runtime `{runtime}`"),
        None => format!("`{backend}`"),
    }
}

fn name_of(offer: &Offer) -> String {
    name(offer.backend, offer.runtime.as_deref())
}

/// What was asked for, as far as it names anything.
fn asked(profile: &Profile) -> Option<String> {
    let runtime = profile.runtime.as_deref();
    match (profile.backend, runtime) {
        (Some(backend), runtime) => Some(name(backend, runtime)),
        (None, Some(runtime)) => Some(format!("the runtime `{runtime}`")),
        (None, None) => None,
    }
}

/// Why the offer will not do, in one sentence part.
fn shortcoming(offer: &Offer, missing: &[Missing<'_>]) -> String {
    if let Err(why) = &offer.evidence {
        return why.clone();
    }
    let each = |it: &Missing<'_>| {
        let Missing {
            guarantee,
            grade,
            evidence,
            ..
        } = it;
        match grade {
            Grade::Supervised => format!("`{guarantee}` is only supervised ({evidence})"),
            Grade::Unavailable | Grade::Kernel => format!("no `{guarantee}` ({evidence})"),
        }
    };
    missing.iter().map(each).collect::<Vec<_>>().join(", ")
}

fn refusal(
    profile: &Profile,
    offers: &[Offer],
    refused: &[(&Offer, Vec<Missing<'_>>)],
    other: Option<&Offer>,
) -> Error {
    let asked = asked(profile);
    let message = match (&asked, refused) {
        (Some(asked), []) => format!("{asked} is not there"),
        (None, []) => "there is no backend on this host".to_owned(),
        (_, [(only, missing)]) => {
            format!(
                "{} cannot run this: {}",
                name_of(only),
                shortcoming(only, missing)
            )
        }
        (Some(asked), _) => format!("{asked} does not give what policy demands"),
        (None, _) => "no backend on this host gives what policy demands".to_owned(),
    };
    let mut error = Error::new(Code::BackendUnavailable, Stage::Admit, message);
    if refused.len() > 1 {
        for (offer, missing) in refused {
            let why = shortcoming(offer, missing);
            error = error.hint(format!("{}: {why}", name_of(offer)));
        }
    }
    if refused.is_empty() && !offers.is_empty() {
        let names: Vec<_> = offers.iter().map(name_of).collect();
        error = error.hint(format!("there is {}", names.join(", ")));
    }
    let mut fixes = BTreeSet::new();
    for it in refused.iter().flat_map(|(_, missing)| missing) {
        if let Some(fix) = it.fix
            && fixes.insert((it.guarantee, fix))
        {
            error = error.hint(format!("for `{}`: {fix}", it.guarantee));
        }
    }
    let is_native = |offer: &&Offer| offer.backend == BackendName::Native;
    if refused.iter().any(|(offer, missing)| {
        is_native(offer)
            && missing
                .iter()
                .any(|it| it.guarantee == Guarantee::DiskLimit)
    }) {
        error = error.hint(
            "for `disk_limit`: hold back what it writes, in memory that the kernel limits: \
             `--hold` or `--keep-if-ok` (`writes`)",
        );
    }
    if refused.iter().any(|(_, missing)| only_supervised(missing)) {
        error = error.hint(
            "leave out `--require kernel-limits` (`limits_demand`, and the limit under `require`) \
             to accept limits that are watched",
        );
    }
    match (asked, other) {
        (Some(_), Some(other)) => error.hint(format!(
            "{} gives it: name that, or leave the choice open",
            name_of(other)
        )),
        (Some(_), None) | (None, _) => error
            .hint("`glovebox doctor` shows what this host can give, and what would make it more")
            .hint("`glovebox policy explain` shows which layer demands what"),
    }
}

fn only_supervised(missing: &[Missing<'_>]) -> bool {
    !missing.is_empty()
        && missing
            .iter()
            .all(|it| it.grade == Grade::Supervised && it.guarantee.is_limit())
}
