//! Removing one hardening step at a time, for the tests that must notice. Not in release builds.

use crate::plan::{Attribute, Plan, Step};
use crate::seccomp::Group;

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
                // Furniture: without it something is missing, nothing is weaker.
                Step::Directory { .. } | Step::Symlink { .. } => {}
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
        | Step::NewRoot { attributes, .. }
        | Step::Proc { attributes, .. }
        | Step::Terminals { attributes }
        | Step::SealRoot { attributes } => Some((step.label(), attributes)),
        _ => None,
    }
}

fn remove_inside(step: &mut Step, part: &str) {
    let label = step.label();
    match step {
        Step::Mount { attributes, .. }
        | Step::Terminals { attributes }
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
