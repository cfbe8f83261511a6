//! Where each value came from, in the form that every other field is explained in.

use glovebox_model::{Bytes, Pull, RuleRef};

use super::{DockerSection, MERGED, merged, shown};
use crate::decided::Decided;
use crate::layer::{Decider, LayerName};
use crate::word::Word;

/// A value as a report shows it.
pub(super) trait Shown {
    fn show(&self) -> String;
}

impl Shown for String {
    fn show(&self) -> String {
        self.clone()
    }
}

impl Shown for bool {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Shown for u16 {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Shown for Pull {
    fn show(&self) -> String {
        self.word().to_owned()
    }
}

impl Shown for Bytes {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl<T: Shown> Shown for Vec<T> {
    fn show(&self) -> String {
        if self.is_empty() {
            return "-".to_owned();
        }
        self.iter().map(T::show).collect::<Vec<_>>().join(", ")
    }
}

impl<T: Shown> Shown for Option<T> {
    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "-".to_owned(), T::show)
    }
}

/// One row for each key; `env`, `ulimits` and `binds` one for each entry, since those are merged.
/// `sections` go from the widest to the nearest, with the agent whose section it is. The value of
/// a variable is never shown.
pub(in super::super) fn sources(sections: &[(Option<&str>, &DockerSection)]) -> Vec<Decided> {
    let config = merged(sections.iter().map(|(_, section)| *section));
    let mut rows = Vec::new();
    let mut add = |key: &str, value: String| {
        let by = decider(sections, key);
        rows.push(row(key, value, by));
    };
    for (key, value) in shown(&config) {
        add(key, value);
    }
    for key in config.env.keys() {
        add(&format!("env.{key}"), "set".to_owned());
    }
    for (key, limit) in &config.ulimits {
        add(
            &format!("ulimits.{key}"),
            format!("{}:{}", limit.soft, limit.hard),
        );
    }
    let [.., binds] = MERGED;
    for (agent, section) in sections {
        for bind in &section.binds {
            rows.push(row(binds, bind.clone(), said(*agent, section, binds)));
        }
    }
    rows
}

fn row(key: &str, value: String, by: Decider) -> Decided {
    let change = match &by.source {
        Some(source) => format!("change `{key}` at `{}:{}`", source.file, source.line),
        None => format!("set `{key}` under `[docker]`"),
    };
    Decided {
        field: format!("docker.{key}"),
        path: format!("docker.{key}"),
        value,
        by,
        change,
    }
}

/// The nearest section that says it.
fn decider(sections: &[(Option<&str>, &DockerSection)], key: &str) -> Decider {
    sections
        .iter()
        .rev()
        .find(|(_, section)| section.lines.contains_key(key))
        .map_or_else(
            || Decider::plain(LayerName::System),
            |(agent, section)| said(*agent, section, key),
        )
}

fn said(agent: Option<&str>, section: &DockerSection, key: &str) -> Decider {
    let layer = match agent {
        Some(_) => LayerName::Agent,
        None => LayerName::Settings,
    };
    Decider {
        layer,
        subject: agent.map(str::to_owned),
        source: section.lines.get(key).map(|&line| RuleRef {
            file: section.file.clone(),
            line,
        }),
    }
}
