//! Tool policy: which tools exist for somebody. It says nothing about where they run, and no
//! approval and no elevation overrides it.

mod group;

use glovebox_model::{Glob, RuleRef};
use serde::{Deserialize, Serialize};

pub(crate) use group::Group;

/// A tool's name with `*` and `?`, whatever its case, or a group of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolGlob {
    Name(Glob),
    Group(Group),
}

impl ToolGlob {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().strip_prefix("group:") {
            Some(name) => Group::from_name(name).map(Self::Group).ok_or_else(|| {
                format!(
                    "names a group that does not exist; there are {}",
                    Group::names()
                )
            }),
            None if text.is_empty() || text.contains(char::is_whitespace) => {
                Err("is not the name of a tool".to_owned())
            }
            None => Ok(Self::Name(Glob::new(&text.to_ascii_lowercase(), None))),
        }
    }

    pub(crate) fn matches(&self, tool: &str) -> bool {
        let tool = tool.to_ascii_lowercase();
        match self {
            Self::Name(glob) => glob.matches(&tool),
            Self::Group(group) => group.holds(&tool),
        }
    }

    /// The one tool that it means, if there is no more than one.
    pub(crate) fn exact(&self) -> Option<String> {
        match self {
            Self::Name(glob) => glob.literal().map(str::to_owned),
            Self::Group(_) => None,
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Name(glob) => glob.text().to_owned(),
            Self::Group(group) => group.to_string(),
        }
    }
}

/// Where a list of tools was written; its key says for which agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolSource {
    Default,
    Global,
    Agent,
}

/// One list as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolList {
    pub(crate) globs: Vec<ToolGlob>,
    pub(crate) at: Option<RuleRef>,
}

/// What one section says. An agent's list replaces the global one, which replaces the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ToolSection {
    pub(crate) allow: Option<ToolList>,
    pub(crate) deny: Option<ToolList>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Chosen {
    list: ToolList,
    source: ToolSource,
    key: String,
}

/// The lists that hold for somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPolicy {
    allow: Chosen,
    deny: Chosen,
}

/// Whether a tool exists, and what says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ToolAnswer {
    pub tool: String,
    pub allowed: bool,
    pub source: ToolSource,
    /// The key of the configuration that decides.
    pub key: String,
    /// The entry that decides, if one does.
    pub entry: Option<String>,
    pub rule: Option<RuleRef>,
    /// What would change it.
    pub fix: String,
}

/// Tools that act outside a sandbox stay away until an operator lists what is denied.
const DENIED_BY_DEFAULT: [&str; 4] = [
    "group:ui",
    "group:automation",
    "group:messaging",
    "group:nodes",
];

impl Default for ToolPolicy {
    fn default() -> Self {
        Self::of(&ToolSection::default(), None)
    }
}

impl ToolPolicy {
    pub(crate) fn of(global: &ToolSection, agent: Option<(&str, &ToolSection)>) -> Self {
        let choose = |name: &str, default: &[&str], of: fn(&ToolSection) -> &Option<ToolList>| {
            if let Some((agent, section)) = agent
                && let Some(list) = of(section)
            {
                return Chosen {
                    list: list.clone(),
                    source: ToolSource::Agent,
                    key: format!("agent.{agent}.tools.{name}"),
                };
            }
            let key = format!("tools.{name}");
            match of(global) {
                Some(list) => Chosen {
                    list: list.clone(),
                    source: ToolSource::Global,
                    key,
                },
                None => Chosen {
                    list: ToolList {
                        globs: default
                            .iter()
                            .filter_map(|it| ToolGlob::new(it).ok())
                            .collect(),
                        at: None,
                    },
                    source: ToolSource::Default,
                    key,
                },
            }
        };
        Self {
            allow: choose("allow", &[], |it| &it.allow),
            deny: choose("deny", &DENIED_BY_DEFAULT, |it| &it.deny),
        }
    }

    pub fn check(&self, tool: &str) -> ToolAnswer {
        let find = |it: &Chosen| {
            let entry = it.list.globs.iter().find(|glob| glob.matches(tool));
            entry.map(ToolGlob::text)
        };
        let answer = |allowed, it: &Chosen, entry: Option<String>, fix: String| ToolAnswer {
            tool: tool.to_owned(),
            allowed,
            source: it.source,
            key: it.key.clone(),
            entry,
            rule: it.list.at.clone(),
            fix,
        };
        let (allow, deny) = (&self.allow, &self.deny);
        if let Some(entry) = find(deny) {
            let key = &deny.key;
            let fix = match deny.source {
                ToolSource::Default => {
                    format!(
                        "the default denies `{entry}`; a list of your own as `{key}` replaces it"
                    )
                }
                ToolSource::Global | ToolSource::Agent => {
                    format!("take `{entry}` out of `{key}`")
                }
            };
            return answer(false, deny, Some(entry), fix);
        }
        if allow.list.globs.is_empty() {
            let fix = format!("add `{tool}` to `{}` to deny it", deny.key);
            return answer(true, allow, None, fix);
        }
        match find(allow) {
            Some(entry) => {
                let fix = format!("add `{tool}` to `{}` to deny it", deny.key);
                answer(true, allow, Some(entry), fix)
            }
            None => {
                let fix = format!("add `{tool}` to `{}`", allow.key);
                answer(false, allow, None, fix)
            }
        }
    }

    pub fn allow(&self) -> Vec<String> {
        self.allow.list.globs.iter().map(ToolGlob::text).collect()
    }

    pub fn deny(&self) -> Vec<String> {
        self.deny.list.globs.iter().map(ToolGlob::text).collect()
    }

    /// The keys of the configuration that decide, for `allow` and for `deny`.
    pub fn sources(&self) -> [(ToolSource, String); 2] {
        [&self.allow, &self.deny].map(|it| (it.source, it.key.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Option<ToolList> {
        Some(ToolList {
            globs: names.iter().map(|it| ToolGlob::new(it).unwrap()).collect(),
            at: None,
        })
    }

    #[test]
    fn deny_wins_and_a_list_of_the_allowed_blocks_the_rest() {
        let global = ToolSection {
            allow: list(&["file.*", "run_code"]),
            deny: list(&["file.delete"]),
        };
        let policy = ToolPolicy::of(&global, None);
        for (tool, allowed) in [
            ("file.read", true),
            ("FILE.Read", true),
            ("file.delete", false),
            ("File.Delete", false),
            ("run_code", true),
            ("run_command", false),
        ] {
            assert_eq!(policy.check(tool).allowed, allowed, "{tool}");
        }
        assert_eq!(policy.check("file.delete").key, "tools.deny");
        assert_eq!(policy.check("run_command").key, "tools.allow");
    }

    #[test]
    fn the_nearest_list_replaces_the_others() {
        let global = ToolSection {
            allow: None,
            deny: list(&["group:runtime"]),
        };
        let agent = ToolSection {
            allow: None,
            deny: list(&[]),
        };
        let policy = ToolPolicy::of(&global, Some(("a", &agent)));
        assert!(policy.check("run_code").allowed);
        assert!(!ToolPolicy::of(&global, None).check("run_code").allowed);
        let answer = ToolPolicy::default().check("browser.open");
        assert!(!answer.allowed);
        assert_eq!(answer.source, ToolSource::Default);
        assert_eq!(answer.entry.as_deref(), Some("group:ui"));
    }
}
