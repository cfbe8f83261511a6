//! What a gate is about.

use glovebox_model::{Correlation, Mode, Result, SpaceId, Tier};

use super::Whose;
use crate::config::Subject;
use crate::config::document::{Document, Key, Node, shown};
use crate::config::rule::{globs, one_or_more, words};
use crate::tool::ToolGlob;
use crate::word::Word;

/// An empty list has no opinion. All that have one must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Scope {
    spaces: Vec<String>,
    users: Vec<String>,
    agents: Vec<String>,
    conversations: Vec<String>,
    tools: Vec<ToolGlob>,
    tiers: Vec<Tier>,
    modes: Vec<Judged>,
}

/// The modes in which something is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    Run,
    Simulate,
    Transactional,
}

impl Judged {
    const fn mode(self) -> Mode {
        match self {
            Self::Run => Mode::Run,
            Self::Simulate => Mode::Simulate,
            Self::Transactional => Mode::Transactional,
        }
    }
}

impl Word for Judged {
    const ALL: &'static [Self] = &[Self::Run, Self::Simulate, Self::Transactional];
    fn word(self) -> &'static str {
        self.mode().as_str()
    }
}

/// Whether an exec can be made by such a tool: a gate that judges nothing is a mistake.
fn may_run(glob: &ToolGlob) -> bool {
    let named = ["run_command", "run_code", "shell", "python", "javascript"];
    let is_one = |tool: String| tool.starts_with("skill.") || named.contains(&tool.as_str());
    glob.exact().is_none_or(is_one)
}

impl Scope {
    pub(super) fn of(whose: Whose<'_>) -> Self {
        let mut scope = Self::default();
        if let Some((subject, name)) = whose {
            *scope.names(subject) = vec![name.to_owned()];
        }
        scope
    }

    fn names(&mut self, subject: Subject) -> &mut Vec<String> {
        match subject {
            Subject::Space => &mut self.spaces,
            Subject::User => &mut self.users,
            Subject::Agent => &mut self.agents,
            Subject::Conversation => &mut self.conversations,
        }
    }

    /// Whether the key is one of its own.
    pub(super) fn read(
        &mut self,
        document: &Document<'_>,
        key: &Key<'_>,
        node: &Node<'_>,
        whose: Whose<'_>,
    ) -> Result<bool> {
        let subject = match key.get_ref().as_ref() {
            "tools" => {
                self.tools = globs(document, key, node, ToolGlob::new)?;
                if let Some(tool) = self.tools.iter().find(|it| !may_run(it)) {
                    let tool = tool.text();
                    let message = format!("no exec is made by a tool that is called `{tool}`");
                    return Err(document.error(node.span(), message).hint(
                        "`run_command` (or `shell`), `run_code` (or `python`, `javascript`), `skill.NAME`",
                    ));
                }
                return Ok(true);
            }
            "tiers" => {
                self.tiers = words(document, key, node)?;
                return Ok(true);
            }
            "modes" => {
                self.modes = words(document, key, node)?;
                return Ok(true);
            }
            "spaces" => Subject::Space,
            "users" => Subject::User,
            "agents" => Subject::Agent,
            "conversations" => Subject::Conversation,
            _ => return Ok(false),
        };
        if let Some((layer, name)) = whose
            && layer == subject
        {
            let (kind, name) = (layer.as_str(), shown(name));
            let message = format!("`{}` has no meaning under `[{kind}.{name}]`", key.get_ref());
            return Err(document
                .error(key.span(), message)
                .hint(format!("leave it out: the gate is about this {kind} alone")));
        }
        let listed = one_or_more(document, key, node)?;
        for (text, span) in &listed {
            let why = match subject {
                Subject::Space => text.parse::<SpaceId>().err().map(|it| it.to_string()),
                Subject::User | Subject::Agent | Subject::Conversation => text
                    .is_empty()
                    .then(|| format!("`{}` holds an empty name", key.get_ref())),
            };
            if let Some(why) = why {
                return Err(document.error(span.clone(), why));
            }
        }
        *self.names(subject) = listed
            .into_iter()
            .map(|(text, _)| text.to_owned())
            .collect();
        Ok(true)
    }

    /// `tools` are all names of the tool. A tier that is not known may be any.
    pub(super) fn holds(
        &self,
        ids: &Correlation,
        tools: &[&str],
        tier: Option<Tier>,
        mode: Mode,
    ) -> bool {
        let listed = |list: &[String], id: Option<&str>| {
            list.is_empty() || id.is_some_and(|id| list.iter().any(|it| it == id))
        };
        listed(&self.spaces, Some(ids.space_id.as_str()))
            && listed(&self.users, ids.user_id.as_deref())
            && listed(&self.agents, ids.agent_id.as_deref())
            && listed(&self.conversations, ids.conversation_id.as_deref())
            && (self.tools.is_empty()
                || self
                    .tools
                    .iter()
                    .any(|it| tools.iter().any(|tool| it.matches(tool))))
            && (self.tiers.is_empty() || tier.is_none_or(|tier| self.tiers.contains(&tier)))
            && (self.modes.is_empty() || self.modes.iter().any(|it| it.mode() == mode))
    }
}
