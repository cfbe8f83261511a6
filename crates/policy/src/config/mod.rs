//! The operator's configuration: TOML text to layers, with a place for every complaint. Reading
//! the file is the caller's business.

mod agents;
mod approvals;
mod docker;
mod document;
mod gate;
mod network;
mod rule;
mod section;
mod skills;
mod standing;
mod tools;
mod value;
mod webhook;
mod workspace;

use std::collections::BTreeMap;
use std::sync::Arc;

use glovebox_model::{
    Correlation, DockerConfig, Lifetime, NetworkMode, PoolConfig, Result, SandboxSettings, SpaceId,
};
use toml::de::DeTable;

use crate::approvals::ApprovalSettings;
use crate::decided::Decided;
use crate::field::Field;
use crate::layer::{Layer, Origin};
use crate::network::NetworkSettings;
use crate::preset::TierPresets;
use crate::rule::{RuleSet, Rules};
use crate::skill::SkillSettings;
use crate::system::{HostFacts, Surface, System};
use crate::tool::{ToolPolicy, ToolSection};
use crate::webhook::WebhookSettings;
use crate::word::Word;
use agents::{AgentsSection, read_agents};
use approvals::{ApprovalSection, read_approvals};
use docker::{DockerSection, Whose, merged, read_docker, sources};
use document::{Document, Key, Node, entries, shown};
use gate::{ScopedGate, read_gates};
use network::read_network;
use rule::read_rules;
use section::{Ceilings, Own, Section, read_ceilings, read_profile, read_word, unknown_key};
use skills::read_skills;
use standing::{AgentSandbox, read_pool, read_sandbox};
use tools::read_tools;
use webhook::read_webhooks;
use workspace::{WorkspaceSection, read_workspace};

pub use workspace::{
    CacheName, CacheSettings, CacheSharing, FileAudit, PathRuntime, WorkspaceSettings,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SectionName {
    Settings,
    Ceilings,
    Docker,
    Pool,
    Sandbox,
    Workspace,
    Approvals,
    Tools,
    Skills,
    Network,
    Agents,
    /// Arrays of tables, unlike the others.
    Rule,
    Gate,
    Webhook,
    /// A table with one layer for each name in it.
    Each(Subject),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Space,
    User,
    Agent,
    Conversation,
}

impl Subject {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Space => "space",
            Self::User => "user",
            Self::Agent => "agent",
            Self::Conversation => "conversation",
        }
    }
}

impl Word for SectionName {
    const ALL: &'static [Self] = &[
        Self::Settings,
        Self::Ceilings,
        Self::Docker,
        Self::Pool,
        Self::Sandbox,
        Self::Workspace,
        Self::Approvals,
        Self::Tools,
        Self::Skills,
        Self::Network,
        Self::Agents,
        Self::Rule,
        Self::Gate,
        Self::Webhook,
        Self::Each(Subject::Space),
        Self::Each(Subject::User),
        Self::Each(Subject::Agent),
        Self::Each(Subject::Conversation),
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Ceilings => "ceilings",
            Self::Docker => "docker",
            Self::Pool => "pool",
            Self::Sandbox => "sandbox",
            Self::Workspace => "workspace",
            Self::Approvals => "approvals",
            Self::Tools => "tools",
            Self::Skills => "skills",
            Self::Network => "network",
            Self::Agents => "agents",
            Self::Rule => RULE,
            Self::Gate => GATE,
            Self::Webhook => "webhook",
            Self::Each(subject) => subject.as_str(),
        }
    }
}

const TIER_PRESETS: &str = "tier_presets";
const DOCKER: &str = "docker";
const SANDBOX: &str = "sandbox";
const TOOLS: &str = "tools";
const RULE: &str = "rule";
const GATE: &str = "gate";

/// A configuration that was read without complaint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    settings: Option<Layer>,
    ceilings: Ceilings,
    presets: TierPresets,
    spaces: BTreeMap<SpaceId, Layer>,
    users: BTreeMap<String, Layer>,
    agents: BTreeMap<String, Layer>,
    conversations: BTreeMap<String, Layer>,
    rules: Arc<RuleSet>,
    /// By the kind of subject and its name.
    subject_rules: BTreeMap<(Subject, String), Arc<RuleSet>>,
    rule_count: usize,
    gates: Vec<ScopedGate>,
    tools: ToolSection,
    agent_tools: BTreeMap<String, ToolSection>,
    skills: SkillSettings,
    approvals: ApprovalSettings,
    docker: DockerSection,
    agent_docker: BTreeMap<String, DockerSection>,
    pool: PoolConfig,
    sandbox: SandboxSettings,
    agent_sandbox: BTreeMap<String, AgentSandbox>,
    workspace: WorkspaceSection,
    network: NetworkSettings,
    sight: AgentsSection,
    webhooks: Vec<WebhookSettings>,
    digest: TextDigest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TextDigest(String);

impl TextDigest {
    fn of(text: &str) -> Self {
        Self(blake3::hash(text.as_bytes()).to_hex().to_string())
    }
}

/// No file is the same as an empty one.
impl Default for TextDigest {
    fn default() -> Self {
        Self::of("")
    }
}

impl Config {
    /// `file_name` is only for messages.
    pub fn parse(text: &str, file_name: &str) -> Result<Self> {
        let document = Document::new(text, file_name);
        let root = document.parse()?;
        let mut config = Self {
            digest: TextDigest::of(text),
            ..Self::default()
        };
        let mut approvals = ApprovalSection::default();
        for (key, node) in entries(&root) {
            config.read(&document, key, node, &mut approvals)?;
        }
        config.settle_approvals(&document, approvals)?;
        Ok(config)
    }

    /// The layers of the file that apply to these ids, the widest first. The ids must be known to
    /// be true: a caller who may leave out its agent's name escapes that agent's layer.
    pub fn layers_for(&self, ids: &Correlation) -> Vec<Layer> {
        let space = self.spaces.get(&ids.space_id);
        let user = ids.user_id.as_ref().and_then(|id| self.users.get(id));
        let agent = ids.agent_id.as_ref().and_then(|id| self.agents.get(id));
        let conversation = ids.conversation_id.as_ref();
        let conversation = conversation.and_then(|id| self.conversations.get(id));
        [self.settings.as_ref(), space, user, agent, conversation]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// The rules that apply to these ids, which must be known to be true.
    pub fn rules_for(&self, ids: &Correlation) -> Rules {
        let of = |subject, id: Option<&str>| {
            let key = (subject, id?.to_owned());
            self.subject_rules.get(&key)
        };
        let sets = [
            Some(&self.rules),
            of(Subject::Space, Some(ids.space_id.as_str())),
            of(Subject::User, ids.user_id.as_deref()),
            of(Subject::Agent, ids.agent_id.as_deref()),
            of(Subject::Conversation, ids.conversation_id.as_deref()),
        ];
        let some = |set: &&Arc<RuleSet>| set.len() > 0;
        Rules {
            sets: sets.into_iter().flatten().filter(some).cloned().collect(),
        }
    }

    /// Which tools exist for these ids.
    pub fn tools_for(&self, ids: &Correlation) -> ToolPolicy {
        let agent = ids.agent_id.as_deref();
        let own = agent.and_then(|id| Some((id, self.agent_tools.get(id)?)));
        ToolPolicy::of(&self.tools, own)
    }

    pub fn skills(&self) -> &SkillSettings {
        &self.skills
    }

    /// A directory that was named when the program was started counts, whatever the file says.
    #[must_use]
    pub fn with_skills_in(mut self, dir: std::path::PathBuf) -> Self {
        self.skills.dir = Some(dir);
        self
    }

    pub fn approvals(&self) -> &ApprovalSettings {
        &self.approvals
    }

    /// Of the text that it was read from: another policy has another one.
    pub fn digest(&self) -> &str {
        &self.digest.0
    }

    /// How containers are made for these ids. What an agent's own section says does not count for
    /// a sandbox that all share: else one agent would decide for the others.
    pub fn docker_for(&self, ids: &Correlation, lifetime: Lifetime) -> DockerConfig {
        let sections = self.docker_sections(ids, lifetime);
        merged(sections.into_iter().map(|(_, section)| section))
    }

    /// Where each value of `docker_for` came from.
    pub fn docker_sources(&self, ids: &Correlation, lifetime: Lifetime) -> Vec<Decided> {
        sources(&self.docker_sections(ids, lifetime))
    }

    fn docker_sections<'c>(
        &'c self,
        ids: &'c Correlation,
        lifetime: Lifetime,
    ) -> Vec<(Option<&'c str>, &'c DockerSection)> {
        let own = match lifetime {
            Lifetime::Shared => None,
            Lifetime::Exec | Lifetime::Session | Lifetime::Agent => ids.agent_id.as_deref(),
        };
        let own = own.and_then(|id| Some((Some(id), self.agent_docker.get(id)?)));
        std::iter::once((None, &self.docker)).chain(own).collect()
    }

    pub fn pool(&self) -> PoolConfig {
        self.pool
    }

    /// How sandboxes are kept, whoever they are for.
    pub fn sandbox_settings(&self) -> SandboxSettings {
        self.sandbox
    }

    /// How sandboxes are kept for calls with these ids that do not name a lifetime.
    pub fn sandbox_for(&self, ids: &Correlation) -> SandboxSettings {
        self.sandbox_kept(ids, None)
    }

    /// How a sandbox of this lifetime is kept for these ids. As with containers, an agent decides
    /// nothing about a sandbox that all share.
    pub fn sandbox_of(&self, ids: &Correlation, lifetime: Lifetime) -> SandboxSettings {
        self.sandbox_kept(ids, Some(lifetime))
    }

    fn sandbox_kept(&self, ids: &Correlation, asked: Option<Lifetime>) -> SandboxSettings {
        let own = ids
            .agent_id
            .as_ref()
            .and_then(|id| self.agent_sandbox.get(id).copied())
            .unwrap_or_default();
        let lifetime = asked.or(own.lifetime).unwrap_or(self.sandbox.lifetime);
        let keep_root = match lifetime {
            Lifetime::Shared => None,
            Lifetime::Exec | Lifetime::Session | Lifetime::Agent => own.keep_root,
        };
        SandboxSettings {
            lifetime,
            keep_root: keep_root.unwrap_or(self.sandbox.keep_root),
            ..self.sandbox
        }
    }

    /// How workspaces are bounded, kept and begun.
    pub fn workspace(&self) -> &WorkspaceSettings {
        self.workspace.settings()
    }

    /// Where each value of `workspace` came from.
    pub fn workspace_sources(&self) -> Vec<Decided> {
        self.workspace.sources()
    }

    /// The ways out, for sandboxes and for ourselves.
    pub fn network(&self) -> &NetworkSettings {
        &self.network
    }

    pub fn webhooks(&self) -> &[WebhookSettings] {
        &self.webhooks
    }

    /// The system layer with this file's ceilings and presets; refuses settings above a ceiling.
    pub fn system(&self, surface: Surface, host: HostFacts) -> Result<System> {
        // On their own machine people may give themselves a list of names; who serves others says so.
        let usual = match surface {
            Surface::Local => NetworkMode::Allowlist,
            Surface::Server => NetworkMode::None,
        };
        let system = System::new(surface, host)
            .with_ceilings(&self.ceilings.limits)
            .with_network_ceiling(self.ceilings.network.unwrap_or(usual))
            .with_presets(self.presets);
        system.check(&self.settings)?;
        Ok(system)
    }

    fn read<'i>(
        &mut self,
        document: &Document<'i>,
        key: &Key<'i>,
        node: &Node<'i>,
        approvals: &mut ApprovalSection,
    ) -> Result<()> {
        let Some(name) = SectionName::from_word(key.get_ref()) else {
            return Err(not_a_section(document, key, node));
        };
        if name == SectionName::Rule {
            let rules = read_rules(document, key, node, &mut self.rule_count)?;
            self.rules = Arc::new(RuleSet::new(rules));
            return Ok(());
        }
        if name == SectionName::Gate {
            return read_gates(document, key, node, None, &mut self.gates);
        }
        if name == SectionName::Webhook {
            self.webhooks = read_webhooks(document, key, node)?;
            return Ok(());
        }
        let Some(table) = node.get_ref().as_table() else {
            let error = document.expected(key, node, "a table");
            let hint = match name {
                SectionName::Workspace => {
                    "what sandboxes may do with it is `workspace` under `[settings]`"
                }
                SectionName::Network => "what sandboxes may reach is `network` under `[settings]`",
                _ => return Err(error),
            };
            return Err(error.hint(hint));
        };
        match name {
            SectionName::Settings => self.read_settings(document, table)?,
            SectionName::Ceilings => {
                self.ceilings = read_ceilings(document, "under `[ceilings]`", table)?;
            }
            SectionName::Docker => {
                self.docker = read_docker(document, Whose::Everyone, table)?;
            }
            SectionName::Pool => self.pool = read_pool(document, key, table)?,
            SectionName::Sandbox => self.sandbox = read_sandbox(document, table)?,
            SectionName::Workspace => self.workspace = read_workspace(document, table)?,
            SectionName::Approvals => *approvals = read_approvals(document, table)?,
            SectionName::Tools => self.tools = read_tools(document, "under `[tools]`", table)?,
            SectionName::Skills => self.skills = read_skills(document, table)?,
            SectionName::Network => self.network = read_network(document, table)?,
            SectionName::Agents => self.sight = read_agents(document, table)?,
            SectionName::Rule | SectionName::Gate | SectionName::Webhook => {}
            SectionName::Each(subject) => {
                for (key, node) in entries(table) {
                    self.read_subject(document, subject, key, node)?;
                }
            }
        }
        Ok(())
    }

    /// The mode is a field like any other of the settings' layer, whichever section names it.
    fn settle_approvals(
        &mut self,
        document: &Document<'_>,
        section: ApprovalSection,
    ) -> Result<()> {
        self.approvals = section.settings;
        let Some((mode, span)) = section.mode else {
            return Ok(());
        };
        let settings = self.settings.take();
        let mut profile = settings.as_ref().map(|it| it.profile().clone());
        let profile = profile.get_or_insert_default();
        if profile.approval.is_some() {
            let message = "`mode` says again what `approval` under `[settings]` says";
            return Err(document
                .error(span, message)
                .hint("leave out one of the two"));
        }
        profile.approval = Some(mode);
        let mut lines = settings
            .and_then(Layer::into_origin)
            .map(|it| it.lines)
            .unwrap_or_default();
        lines.insert(Field::Approval, document.line(&span));
        self.settings = Some(Layer::settings(profile.clone()).read_from(Origin {
            file: document.file.to_owned(),
            lines,
        }));
        Ok(())
    }

    fn read_settings<'i>(&mut self, document: &Document<'i>, table: &DeTable<'i>) -> Result<()> {
        let presets = &mut self.presets;
        let own = |key: &Key<'i>, node: &Node<'i>| {
            if key.get_ref() != TIER_PRESETS {
                return Ok(Own::NotMine);
            }
            *presets = read_word(document, key, node)?;
            Ok(Own::Taken)
        };
        let label = "under `[settings]`";
        let section = read_profile(document, label, table, &[TIER_PRESETS], own)?;
        check_granted(document, &section)?;
        let origin = origin(document, &section);
        self.settings = Some(Layer::settings(section.profile).read_from(origin));
        Ok(())
    }

    fn read_subject<'i>(
        &mut self,
        document: &Document<'i>,
        subject: Subject,
        key: &Key<'i>,
        node: &Node<'i>,
    ) -> Result<()> {
        let (kind, id) = (subject.as_str(), key.get_ref().as_ref());
        let name = shown(id);
        let Some(table) = node.get_ref().as_table() else {
            let message = format!("`{name}` stands under `[{kind}]` without the name of a {kind}");
            return Err(document
                .error(key.span(), message)
                .hint(format!("write it under `[{kind}.NAME]`")));
        };
        if id.is_empty() {
            let message = format!("the name of the {kind} is empty");
            return Err(document.error(key.span(), message));
        }
        let label = format!("under `[{kind}.{name}]`");
        let own_keys: &[&str] = match subject {
            Subject::Agent => &[DOCKER, SANDBOX, TOOLS, RULE, GATE],
            Subject::Space | Subject::User | Subject::Conversation => &[RULE, GATE],
        };
        let own = |key: &Key<'i>, node: &Node<'i>| {
            if !own_keys.contains(&key.get_ref().as_ref()) {
                return Ok(Own::NotMine);
            }
            if key.get_ref() == RULE {
                let rules = read_rules(document, key, node, &mut self.rule_count)?;
                let place = (subject, id.to_owned());
                self.subject_rules
                    .insert(place, Arc::new(RuleSet::new(rules)));
                return Ok(Own::Taken);
            }
            if key.get_ref() == GATE {
                read_gates(document, key, node, Some((subject, id)), &mut self.gates)?;
                return Ok(Own::Taken);
            }
            self.read_agent(document, id, key, node)?;
            Ok(Own::Taken)
        };
        let section = read_profile(document, &label, table, own_keys, own)?;
        let origin = origin(document, &section);
        let profile = section.profile;
        match subject {
            Subject::Space => {
                let space: SpaceId = id
                    .parse()
                    .map_err(|why| document.error(key.span(), format!("{why}")))?;
                let layer = Layer::space(&space, profile).read_from(origin);
                self.spaces.insert(space, layer);
            }
            Subject::User => {
                let layer = Layer::user(id, profile).read_from(origin);
                self.users.insert(id.to_owned(), layer);
            }
            Subject::Agent => {
                let layer = Layer::agent(id, profile).read_from(origin);
                self.agents.insert(id.to_owned(), layer);
            }
            Subject::Conversation => {
                let layer = Layer::conversation(id, profile).read_from(origin);
                self.conversations.insert(id.to_owned(), layer);
            }
        }
        Ok(())
    }
}

fn origin(document: &Document<'_>, section: &Section) -> Origin {
    let line = |(field, span): (&Field, _)| (field.clone(), document.line(span));
    Origin {
        file: document.file.to_owned(),
        lines: section.spans.iter().map(line).collect(),
    }
}

/// A key that would be right under `[settings]` is told so.
fn not_a_section<'i>(
    document: &Document<'i>,
    key: &Key<'i>,
    node: &Node<'i>,
) -> glovebox_model::Error {
    if !node.get_ref().is_table() {
        let name = shown(key.get_ref());
        let message = format!("`{name}` stands outside any section");
        return document
            .error(key.span(), message)
            .hint("write it under `[settings]`");
    }
    unknown_key(document, "at the top", key, &SectionName::words())
}

/// In the settings a list grants nothing without its mode, and whoever wrote it thinks it does.
fn check_granted(document: &Document<'_>, section: &Section) -> Result<()> {
    match (section.lists_destinations(), section.profile.network) {
        (Some(span), None) => Err(document
            .error(span, "`allow_net` has no effect without `network`")
            .hint("set `network = \"allowlist\"` beside it")),
        (Some(_), Some(_)) | (None, _) => Ok(()),
    }
}
