//! Kinds of actions: what a person allows who allows «this kind in this conversation».

use glovebox_model::{BackendName, NetworkMode};
use glovebox_risk::read;
use serde::{Deserialize, Serialize};

use crate::assess::Assessed;
use crate::rule::facts::{Beside, Facts, Segment, Value, workspace};

/// `kind` is compared, `shown` is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GrantKind {
    pub kind: String,
    pub shown: String,
}

/// Programs whose first plain argument says what they do.
const WITH_VERBS: [&str; 20] = [
    "git",
    "npm",
    "pnpm",
    "yarn",
    "cargo",
    "go",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "pip",
    "pip3",
    "uv",
    "apt",
    "apt-get",
    "gh",
    "terraform",
    "make",
    "bundle",
    "composer",
];

/// Programs that run what their arguments say: a grant for one run of them is for that run alone.
const INTERPRETERS: [&str; 44] = [
    "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "pwsh", "busybox",
    "python", "pypy", "ipython", "node", "nodejs", "deno", "bun", "bunx", "npx", "uvx", "tsx",
    "ts-node", "perl", "ruby", "irb", "php", "lua", "luajit", "awk", "gawk", "mawk", "nawk", "sed",
    "gsed", "find", "gfind", "xargs", "ssh", "tclsh", "java", "Rscript", "julia",
];

/// `python3.11` is `python`.
fn is_interpreter(name: &str) -> bool {
    let version = |it: char| it.is_ascii_digit() || it == '.' || it == '-';
    let stem = name.trim_end_matches(version);
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&stem)
}

impl GrantKind {
    /// The same kind for these scripts alone: what they hold is part of what was allowed.
    #[must_use]
    pub fn bound_to(self, digests: &[String]) -> Self {
        if digests.is_empty() {
            return self;
        }
        let mut digests: Vec<&str> = digests.iter().map(String::as_str).collect();
        digests.sort_unstable();
        digests.dedup();
        // In brackets and quoted, so that no digest can look like two.
        let bound = format!("{}{digests:?}", self.kind);
        Self {
            kind: bound,
            shown: self.shown,
        }
    }
}

/// None when it cannot be told what would be allowed, or when it wants more than policy gives.
pub fn kind_of(assessed: &Assessed, backend: Option<BackendName>) -> Option<GrantKind> {
    if !assessed.upgrades().is_empty() || assessed.profile().network > NetworkMode::Retrieval {
        return None;
    }
    let call = assessed.call();
    let beside_it = !call.mounts.is_empty() || !call.secrets.is_empty();
    if backend == Some(BackendName::Host) || beside_it {
        return None;
    }
    let reading = read(&call.program);
    let beside = Beside {
        tool: "",
        backend,
        scripts: None,
    };
    let facts = Facts::of(assessed, &reading, beside);
    if facts.veil.is_some() || facts.segments.is_empty() {
        return None;
    }
    let mut parts = facts
        .segments
        .iter()
        .map(part)
        .collect::<Option<Vec<String>>>()?;
    parts.sort();
    parts.dedup();
    let backend = facts.backend.map_or("any", BackendName::as_str);
    let workspace = workspace(&call.workspace);
    // A call that is found riskier, or that another agent makes, is another kind.
    let kind = serde_json::to_string(&(
        &parts,
        backend,
        &workspace,
        call.writes.as_str(),
        facts.tier.as_str(),
        &call.ids.agent_id,
    ))
    .ok()?;
    let quoted: Vec<_> = parts.iter().map(|it| format!("`{it}`")).collect();
    let shown = format!(
        "{} in workspace `{workspace}` without network",
        quoted.join(", ")
    );
    Some(GrantKind { kind, shown })
}

fn part(segment: &Segment) -> Option<String> {
    let Value::Known(name) = &segment.program else {
        return None;
    };
    let through: String = segment.through.iter().map(|it| format!("{it} ")).collect();
    let words = segment.words();
    let known = if is_interpreter(name) || name.contains('/') {
        words
    } else if WITH_VERBS.contains(&name.as_str()) {
        match segment.args.first() {
            None => name.clone(),
            Some(Value::Known(verb)) if !verb.starts_with('-') => format!("{name} {verb}"),
            // Options before the verb may change what it means.
            Some(_) => words,
        }
    } else {
        name.clone()
    };
    Some(format!("{through}{known}"))
}
