//! Removing one hardening step at a time, for the tests that must notice. Not in release builds.

use std::sync::OnceLock;

use crate::plan::{Attribute, Plan, Step, Upper};
use crate::seccomp::Group;

/// What a test wants to be left out. Read once: keepers have it from before they forget their
/// environment.
#[cfg(debug_assertions)]
pub(crate) fn part() -> &'static str {
    static PART: OnceLock<String> = OnceLock::new();
    PART.get_or_init(|| std::env::var("GLOVEBOX_MUTATION").unwrap_or_default())
}

/// Whether this is left out of what is done to a sandbox that stands already.
pub fn leaves_out(step: &str) -> bool {
    part() == step
}

impl Plan {
    /// Every removable part of this plan, by name, at the finest grain.
    pub fn parts(&self) -> Vec<String> {
        let mut parts: Vec<String> = self
            .namespaces
            .iter()
            .map(|namespace| format!("namespace {namespace:?}"))
            .collect();
        for step in &self.steps {
            match step {
                Step::Filter(filter) => {
                    let groups = Group::ALL.iter().filter(|group| filter.denies(**group));
                    parts.extend(groups.map(|group| format!("filter {group:?}")));
                    parts.push("filter".into());
                }
                Step::NewRoot { bytes, files, .. } => {
                    parts.push("new root".into());
                    parts.extend(bytes.map(|_| "root bytes".into()));
                    parts.extend(files.map(|_| "root files".into()));
                }
                Step::Proc { .. } => {
                    parts.push("proc".into());
                    parts.push("proc hide".into());
                }
                Step::Layer { over, upper, .. } => {
                    parts.push(step.label());
                    let size = matches!(upper, Upper::Memory { .. });
                    parts.extend(size.then(|| "layer size".into()));
                    parts.extend(over.as_ref().map(|_| "layer over".into()));
                }
                Step::WayOut(steering) => {
                    parts.push(step.label());
                    parts.extend(steering.iter().map(|it| format!("way out {it:?}")));
                }
                // Furniture: without it something is missing, nothing is weaker.
                Step::Directory { .. }
                | Step::Symlink { .. }
                | Step::File { .. }
                | Step::Cover { .. }
                | Step::Effects(_)
                | Step::Observe { .. } => {}
                other => parts.push(other.label()),
            }
            if let Some((label, attributes)) = attributes(step) {
                parts.extend(attributes.iter().map(|it| format!("{label} {it:?}")));
            }
        }
        parts.extend(self.payload.iter().map(|step| step.label()));
        parts
    }

    /// The plan without that part.
    #[must_use]
    pub fn without(mut self, part: &str) -> Self {
        self.namespaces
            .retain(|namespace| format!("namespace {namespace:?}") != part);
        self.payload.retain(|step| step.label() != part);
        for step in &mut self.steps {
            remove_inside(step, part);
        }
        self.steps.retain(|step| step.label() != part);
        self
    }
}

fn attributes(step: &Step) -> Option<(String, &Vec<Attribute>)> {
    match step {
        Step::Mount { attributes, .. }
        | Step::Layer { attributes, .. }
        | Step::NewRoot { attributes, .. }
        | Step::Proc { attributes, .. }
        | Step::Terminals { attributes }
        | Step::Cupboard { attributes, .. }
        | Step::SealRoot { attributes } => Some((step.label(), attributes)),
        _ => None,
    }
}

fn remove_inside(step: &mut Step, part: &str) {
    let label = step.label();
    match step {
        Step::Layer {
            attributes,
            over,
            upper,
            ..
        } => {
            if part == "layer over" {
                *over = None;
            }
            attributes.retain(|it| format!("{label} {it:?}") != part);
            if let (Upper::Memory { bytes, files, .. }, "layer size") = (upper, part) {
                (*bytes, *files) = (1 << 40, 1 << 30);
            }
        }
        Step::Mount { attributes, .. }
        | Step::Terminals { attributes }
        | Step::Cupboard { attributes, .. }
        | Step::SealRoot { attributes } => {
            attributes.retain(|it| format!("{label} {it:?}") != part);
        }
        Step::NewRoot {
            bytes,
            files,
            attributes,
        } => {
            attributes.retain(|it| format!("{label} {it:?}") != part);
            match part {
                "root bytes" => *bytes = None,
                "root files" => *files = None,
                _ => {}
            }
        }
        Step::Proc {
            hide_others,
            attributes,
        } => {
            attributes.retain(|it| format!("{label} {it:?}") != part);
            *hide_others &= part != "proc hide";
        }
        Step::WayOut(steering) => steering.retain(|it| format!("way out {it:?}") != part),
        Step::Filter(filter) => {
            for group in Group::ALL {
                if format!("filter {group:?}") == part {
                    filter.allow(*group);
                }
            }
        }
        _ => {}
    }
}
