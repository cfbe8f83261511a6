//! What the doctor found, for people and for programs.

use std::fmt::Write as _;

use glovebox_model::{BackendName, Error, Evidence, Grade, Guarantee, Isolation};
use serde::Serialize;

use crate::human::duration;
use crate::paint::{Paint, Tone};
use crate::table::{Cell, Table};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Health {
    Ok,
    /// Kept by watching, not by the kernel.
    Supervised,
    /// Not there, and not needed by what is used by itself.
    Absent,
    Failed,
}

impl Health {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Supervised => "supervised",
            Self::Absent => "absent",
            Self::Failed => "failed",
        }
    }

    const fn tone(self) -> Tone {
        match self {
            Self::Ok => Tone::Good,
            Self::Supervised | Self::Absent => Tone::Caution,
            Self::Failed => Tone::Bad,
        }
    }
}

impl Health {
    /// Of one guarantee. What is not there is `otherwise`.
    pub(crate) const fn of(grade: Grade, otherwise: Self) -> Self {
        match grade {
            Grade::Kernel => Self::Ok,
            Grade::Supervised => Self::Supervised,
            Grade::Unavailable => otherwise,
        }
    }
}

/// Every exec here has it; a kernel of its own is for those who demand one.
fn is_usual(guarantee: Guarantee) -> bool {
    !matches!(guarantee, Guarantee::OwnKernel | Guarantee::EgressOnly)
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) health: Health,
    pub(super) evidence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

impl Check {
    pub(super) fn ok(name: &'static str, evidence: impl Into<String>) -> Self {
        Self {
            name,
            health: Health::Ok,
            evidence: evidence.into(),
            fix: None,
        }
    }

    pub(super) fn absent(
        name: &'static str,
        evidence: impl Into<String>,
        fix: Option<String>,
    ) -> Self {
        Self {
            health: Health::Absent,
            fix,
            ..Self::ok(name, evidence)
        }
    }

    pub(super) fn failed(
        name: &'static str,
        evidence: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            health: Health::Failed,
            fix: Some(fix.into()),
            ..Self::ok(name, evidence)
        }
    }
}

/// A real program in a real sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Trial {
    pub(crate) health: Health,
    pub(crate) command: &'static str,
    pub(crate) duration_ms: Option<u64>,
    /// What the program saw of its own confinement.
    pub(crate) seen: Vec<String>,
    /// What the record says was enforced.
    pub(crate) isolation: Isolation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Error>,
}

impl Trial {
    fn evidence(&self) -> String {
        let command = self.command;
        match (&self.error, self.duration_ms) {
            (Some(error), _) => format!("`{command}` did not run: {error}"),
            (None, Some(took)) => {
                let (took, seen) = (duration(took), self.seen.join(", "));
                let grades = self.isolation.0.values();
                let by_kernel = grades.filter(|grade| **grade == Grade::Kernel).count();
                let all = self.isolation.0.len();
                format!(
                    "`{command}` ran for {took} and saw: {seen}; its record: {by_kernel} of {all} \
                     guarantees by the kernel"
                )
            }
            (None, None) => format!("`{command}` did not end"),
        }
    }

    fn fix(&self) -> Option<String> {
        let hints = &self.error.as_ref()?.hints;
        (!hints.is_empty()).then(|| hints.join("; "))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Backend {
    name: BackendName,
    default: bool,
    usable: bool,
    guarantees: Vec<Evidence>,
    trial: Trial,
}

impl Backend {
    pub(super) fn new(name: BackendName, mut guarantees: Vec<Evidence>, trial: Trial) -> Self {
        guarantees.iter_mut().for_each(with_remedy);
        let is_kept = |guarantee, grade| grade != Grade::Unavailable || !is_usual(guarantee);
        let kept = guarantees.iter().all(|it| is_kept(it.guarantee, it.grade));
        let mut enforced = trial.isolation.0.iter();
        let enforced = enforced.all(|(guarantee, grade)| is_kept(*guarantee, *grade));
        Self {
            name,
            default: true,
            usable: kept && enforced && trial.health == Health::Ok,
            guarantees,
            trial,
        }
    }
}

/// What is always supervised has no fix on the host, and still a way out.
fn with_remedy(evidence: &mut Evidence) {
    if evidence.guarantee == Guarantee::DiskLimit && evidence.grade == Grade::Supervised {
        evidence.fix.get_or_insert_with(|| {
            "`glovebox run --scratch` has a workspace that the kernel limits".to_owned()
        });
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Report {
    version: &'static str,
    usable: bool,
    host: Vec<Check>,
    backends: [Backend; 1],
}

impl Report {
    pub(super) fn new(host: Vec<Check>, backend: Backend) -> Self {
        let sound = host.iter().all(|check| check.health != Health::Failed);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            usable: sound && backend.usable,
            host,
            backends: [backend],
        }
    }

    pub(super) fn usable(&self) -> bool {
        self.usable
    }

    pub(super) fn text(&self, paint: Paint) -> String {
        let mut text = format!("glovebox {}\n", self.version);
        let heading = |title: &str| paint.apply(Tone::Heading, title);
        let mut lines = Lines::new();
        for check in &self.host {
            lines.add(
                check.health,
                check.name,
                &check.evidence,
                check.fix.as_deref(),
            );
        }
        let _ = write!(text, "\n{}\n{}", heading("host"), lines.text(paint));
        for backend in &self.backends {
            let mut lines = Lines::new();
            for it in &backend.guarantees {
                let missing = match is_usual(it.guarantee) {
                    true => Health::Failed,
                    false => Health::Absent,
                };
                let health = Health::of(it.grade, missing);
                let name = it.guarantee.as_str();
                lines.add(health, name, &it.evidence, it.fix.as_deref());
            }
            lines.add_trial(&backend.trial);
            let title = heading(&format!("backend {} (default)", backend.name));
            let _ = write!(text, "\n{title}\n{}", lines.text(paint));
        }
        let (tone, end) = match self.usable {
            true => (Tone::Good, "everything runs isolated here"),
            false => (
                Tone::Bad,
                "not everything works: see the lines marked `failed`",
            ),
        };
        let _ = writeln!(text, "\n{}", paint.apply(tone, end));
        text
    }
}

/// A line for each finding, with its fix below it.
pub(crate) struct Lines(Table<3>);

impl Lines {
    pub(crate) fn new() -> Self {
        Self(Table::new(["", "", ""]))
    }

    pub(crate) fn add(&mut self, health: Health, name: &str, evidence: &str, fix: Option<&str>) {
        self.0.push([
            Cell::toned(health.tone(), health.word()),
            Cell::from(name),
            Cell::from(evidence),
        ]);
        if let Some(fix) = fix {
            let fix = format!("fix: {fix}");
            self.0.push([
                Cell::from(""),
                Cell::from(""),
                Cell::toned(Tone::Hint, &fix),
            ]);
        }
    }

    /// How a real program fared.
    pub(crate) fn add_trial(&mut self, trial: &Trial) {
        let (evidence, fix) = (trial.evidence(), trial.fix());
        self.add(trial.health, "a real run", &evidence, fix.as_deref());
    }

    pub(crate) fn text(&self, paint: Paint) -> String {
        self.0.body(paint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::{Code, Stage};

    fn evidence(guarantee: Guarantee, grade: Grade, fix: Option<&str>) -> Evidence {
        Evidence {
            guarantee,
            grade,
            evidence: "seen".to_owned(),
            fix: fix.map(str::to_owned),
        }
    }

    fn good_trial() -> Trial {
        Trial {
            health: Health::Ok,
            command: "cat",
            duration_ms: Some(7),
            seen: vec!["no capabilities".to_owned(), "pid 2".to_owned()],
            isolation: Isolation([(Guarantee::NoNetwork, Grade::Kernel)].into()),
            error: None,
        }
    }

    #[test]
    fn watched_limits_are_usable_and_come_with_their_fix() {
        let guarantees = vec![
            evidence(Guarantee::NoNetwork, Grade::Kernel, None),
            evidence(Guarantee::MemoryLimit, Grade::Supervised, Some("be root")),
        ];
        let host = vec![Check::ok("kernel", "Linux 6.1")];
        let report = Report::new(
            host,
            Backend::new(BackendName::Native, guarantees, good_trial()),
        );
        assert!(report.usable());
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!(
            "glovebox {version}

host
ok  kernel  Linux 6.1

backend native (default)
ok          no_network    seen
supervised  memory_limit  seen
                          fix: be root
ok          a real run    `cat` ran for 7ms and saw: no capabilities, pid 2; its record: 1 of 1 guarantees by the kernel

everything runs isolated here
"
        );
        assert_eq!(report.text(Paint::Plain), expected);
    }

    #[test]
    fn one_missing_guarantee_or_a_failed_run_is_not_usable() {
        let missing = vec![evidence(
            Guarantee::FileRules,
            Grade::Unavailable,
            Some("newer"),
        )];
        assert!(!Backend::new(BackendName::Native, missing, good_trial()).usable);
        let shared = vec![evidence(Guarantee::OwnKernel, Grade::Unavailable, None)];
        assert!(Backend::new(BackendName::Native, shared, good_trial()).usable);

        let error = Error::new(Code::SetupFailed, Stage::Run, "cannot mount").hint("be root");
        let failed = Trial {
            health: Health::Failed,
            duration_ms: None,
            error: Some(error),
            ..good_trial()
        };
        let report = Report::new(
            Vec::new(),
            Backend::new(BackendName::Native, Vec::new(), failed),
        );
        assert!(!report.usable());
        let text = report.text(Paint::Plain);
        assert!(
            text.contains("failed  a real run  `cat` did not run: cannot mount\n"),
            "{text}"
        );
        assert!(text.contains("fix: be root\n"), "{text}");

        let mut unenforced = good_trial();
        unenforced.isolation = Isolation([(Guarantee::FileRules, Grade::Unavailable)].into());
        assert!(!Backend::new(BackendName::Native, Vec::new(), unenforced).usable);

        let host = vec![Check::failed("state", "read-only", "another")];
        let backend = Backend::new(BackendName::Native, Vec::new(), good_trial());
        assert!(!Report::new(host, backend).usable());
    }
}
