//! What a skill may do and use that the one before it may not.

use std::path::Path;

use crate::manifest::Manifest;
use crate::shipped;
use crate::skill::{Skill, check};

/// One line of a manifest's permissions, limits or runtime that is another than before.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Changed {
    pub field: &'static str,
    pub before: String,
    pub after: String,
    /// More than before, or something that cannot be compared.
    pub wider: bool,
}

/// Whose place a new skill takes.
#[derive(Debug, Clone)]
pub enum Before {
    /// One of the operator's own, in the directory of skills.
    Own(Box<Skill>),
    /// One that cannot be read: what it was allowed is not known.
    Broken,
    /// It came with Glovebox, and is hidden by the new one.
    Shipped(Box<Skill>),
}

impl Before {
    /// None: nothing of this id is there.
    pub fn of(id: &str, root: &Path) -> Option<Self> {
        let place = root.join(id);
        if std::fs::symlink_metadata(&place).is_ok() {
            let own = check(&place).map(|it| Self::Own(Box::new(it)));
            return Some(own.unwrap_or(Self::Broken));
        }
        shipped::find(id).map(|it| Self::Shipped(Box::new(it.clone())))
    }

    /// All that differs, in the order of the manifest.
    pub fn compared(&self, after: &Skill) -> Vec<Changed> {
        match self {
            Self::Own(before) | Self::Shipped(before) => {
                changes(before.manifest(), after.manifest())
            }
            Self::Broken => Vec::new(),
        }
    }

    /// Whether a person has to agree to what is put there.
    pub fn asks(&self, changed: &[Changed]) -> bool {
        match self {
            Self::Own(_) => changed.iter().any(|it| it.wider),
            Self::Broken | Self::Shipped(_) => true,
        }
    }
}

fn changes(before: &Manifest, after: &Manifest) -> Vec<Changed> {
    let mut all = Vec::new();
    let mut add = |field, before: String, after: String, wider: bool| {
        if before != after {
            all.push(Changed {
                field,
                before,
                after,
                wider,
            });
        }
    };
    let (old, new) = (&before.runtime, &after.runtime);
    add("runs in", word(&old.kind), word(&new.kind), true);
    let image = |it: &Option<String>| it.clone().unwrap_or_else(|| "-".to_owned());
    add("image", image(&old.image), image(&new.image), true);
    let (old, new) = (&before.permissions, &after.permissions);
    for (field, old, new) in [
        ("reads", &old.fs.read, &new.fs.read),
        ("writes", &old.fs.write, &new.fs.write),
    ] {
        let more = new.iter().any(|it| !old.contains(it));
        add(field, list(old), list(new), more);
    }
    add("network", word(&old.net.mode), word(&new.net.mode), true);
    let (old, new) = (&before.limits, &after.limits);
    for (field, old, new) in [
        ("timeout ms", old.timeout_ms, new.timeout_ms),
        ("memory mb", old.memory_mb, new.memory_mb),
        ("pids", old.pids, new.pids),
        ("stdout bytes", old.max_stdout_bytes, new.max_stdout_bytes),
        ("stderr bytes", old.max_stderr_bytes, new.max_stderr_bytes),
        (
            "artifacts bytes",
            old.max_artifacts_bytes_total,
            new.max_artifacts_bytes_total,
        ),
    ] {
        add(field, old.to_string(), new.to_string(), new > old);
    }
    let (old, new) = (old.cpu_cores, new.cpu_cores);
    add("cpu cores", old.to_string(), new.to_string(), new > old);
    all
}

/// As the manifest spells it.
fn word(it: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(it).unwrap_or_default();
    value.as_str().unwrap_or("-").to_owned()
}

fn list(all: &[String]) -> String {
    match all.is_empty() {
        true => "-".to_owned(),
        false => all.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_more_is_wider() {
        let skill = shipped::find("text.search").unwrap();
        let same = changes(skill.manifest(), skill.manifest());
        assert_eq!(same, []);
        type Change = fn(&mut Manifest);
        let cases: [(Change, &str, bool); 9] = [
            (|it| it.limits.timeout_ms += 1, "timeout ms", true),
            (|it| it.limits.timeout_ms -= 1, "timeout ms", false),
            (|it| it.limits.cpu_cores *= 2.0, "cpu cores", true),
            (|it| it.limits.max_stdout_bytes *= 2, "stdout bytes", true),
            (
                |it| it.permissions.fs.write.push("work/**".into()),
                "writes",
                true,
            ),
            (|it| it.permissions.fs.read.clear(), "reads", false),
            (|it| it.runtime.image = Some("x".into()), "image", true),
            (
                |it| it.runtime.kind = crate::RuntimeKind::Docker,
                "runs in",
                true,
            ),
            (|it| it.limits.pids = 1, "pids", false),
        ];
        for (change, field, wider) in cases {
            let mut after = skill.manifest().clone();
            change(&mut after);
            let found = changes(skill.manifest(), &after);
            let told: Vec<_> = found.iter().map(|it| (it.field, it.wider)).collect();
            assert_eq!(told, [(field, wider)]);
        }
    }
}
