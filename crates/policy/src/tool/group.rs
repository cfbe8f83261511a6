//! Groups of tools, so that a list need not name each.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Group {
    Runtime,
    Fs,
    Sessions,
    Memory,
    Ui,
    Automation,
    Messaging,
    Nodes,
}

impl Group {
    const ALL: [Self; 8] = [
        Self::Runtime,
        Self::Fs,
        Self::Sessions,
        Self::Memory,
        Self::Ui,
        Self::Automation,
        Self::Messaging,
        Self::Nodes,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Fs => "fs",
            Self::Sessions => "sessions",
            Self::Memory => "memory",
            Self::Ui => "ui",
            Self::Automation => "automation",
            Self::Messaging => "messaging",
            Self::Nodes => "nodes",
        }
    }

    /// Names of tools; one that ends with a dot means all that begin so, also with `_` in its place,
    /// as hosts want the names of tools.
    const fn tools(self) -> &'static [&'static str] {
        match self {
            Self::Runtime => &[
                "run_code",
                "run_command",
                "exec",
                "exec.",
                "sandbox.",
                "skill.",
                "simulate",
                "effects",
                "apply",
                "discard",
            ],
            Self::Fs => &["file.", "snapshot.", "workspace.", "artifact.", "undo"],
            Self::Sessions => &["session.", "process."],
            Self::Memory => &["memory.", "retrieve", "fetch"],
            Self::Ui => &["browser.", "canvas.", "browser", "canvas"],
            Self::Automation => &["cron.", "gateway.", "cron", "gateway"],
            Self::Messaging => &["message.", "channel."],
            Self::Nodes => &["node.", "nodes"],
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    pub(crate) fn names() -> String {
        let quoted = Self::ALL.map(|it| format!("`{it}`"));
        quoted.join(", ")
    }

    /// `tool` is in lower case.
    pub(crate) fn holds(self, tool: &str) -> bool {
        self.tools().iter().any(|it| match it.ends_with('.') {
            true => tool
                .strip_prefix(&it[..it.len() - 1])
                .is_some_and(|rest| rest.starts_with(['.', '_'])),
            false => tool == *it,
        })
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group:{}", self.name())
    }
}
