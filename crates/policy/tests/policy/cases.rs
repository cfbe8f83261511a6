//! The folders of `tests/policy`: a call, a policy and the decision, written by hand, and the
//! explanation as it is shown. A decision that differs always fails. An explanation that differs
//! fails too, unless `GLOVEBOX_UPDATE_EXPLANATIONS=1` has it written anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use glovebox_model::{
    Access, ApprovalMode, BackendName, ByteString, Call, HostPort, LimitField, NetworkMode,
    OnExceed, PartialProfile, Program, SecretUse, SecurityMode, Tier, WorkspaceRef,
};
use glovebox_policy::{
    Asking, Config, Decision, Explanation, GrantKind, GrantedSecret, Surface, assess, explain,
    kind_of, resolve,
};
use serde::Deserialize;

use crate::fixture::{HOST, call, silent, variable};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    decision: Decision,
    snapshot: Option<bool>,
    #[serde(default)]
    policy: String,
    tool: Option<String>,
    #[serde(default)]
    simulate: bool,
    /// A script whose kind was granted for this conversation.
    grant: Option<String>,
    /// Secrets that were granted, each in one way.
    #[serde(default)]
    granted: Vec<SecretUse>,
    call: Wanted,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    shell: Option<String>,
    argv: Option<Vec<String>>,
    python: Option<String>,
    javascript: Option<String>,
    user: Option<String>,
    agent: Option<String>,
    conversation: Option<String>,
    project: Option<String>,
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    on_exceed: OnExceed,
    memory: Option<String>,
    timeout: Option<String>,
    network_time: Option<String>,
    egress_bytes: Option<String>,
    network: Option<NetworkMode>,
    allow_net: Option<Vec<HostPort>>,
    workspace: Option<Access>,
    tier: Option<Tier>,
    security: Option<SecurityMode>,
    approval: Option<ApprovalMode>,
    backend: Option<BackendName>,
    #[serde(default)]
    mounts: Vec<String>,
    #[serde(default)]
    secrets: Vec<SecretUse>,
}

fn text(text: &str) -> ByteString {
    ByteString::try_from(text).unwrap()
}

impl Wanted {
    fn program(&self) -> Program {
        if let Some(script) = &self.shell {
            return Program::Shell {
                script: text(script),
            };
        }
        if let Some(code) = &self.python {
            return Program::Python { code: text(code) };
        }
        if let Some(code) = &self.javascript {
            return Program::Javascript { code: text(code) };
        }
        let words = self.argv.as_ref().unwrap();
        Program::Argv {
            command: text(&words[0]),
            args: words[1..].iter().map(|it| text(it)).collect(),
        }
    }

    fn call(&self) -> Call {
        let mut overrides = PartialProfile {
            network: self.network,
            allow_net: self.allow_net.clone().map(|it| it.into_iter().collect()),
            workspace: self.workspace,
            tier: self.tier,
            security: self.security,
            approval: self.approval,
            backend: self.backend,
            ..silent()
        };
        for (field, value) in [
            (LimitField::Memory, &self.memory),
            (LimitField::Wall, &self.timeout),
            (LimitField::NetworkTime, &self.network_time),
            (LimitField::EgressBytes, &self.egress_bytes),
        ] {
            if let Some(value) = value {
                field.set(&mut overrides.limits, field.parse(value).unwrap());
            }
        }
        let mut call = call(overrides);
        call.ids.user_id.clone_from(&self.user);
        call.ids.agent_id.clone_from(&self.agent);
        call.ids.conversation_id.clone_from(&self.conversation);
        call.program = self.program();
        call.cwd = self.cwd.as_deref().map(text);
        call.env = self
            .env
            .iter()
            .map(|(key, value)| variable(key, value))
            .collect();
        call.on_exceed = self.on_exceed;
        call.mounts.clone_from(&self.mounts);
        call.secrets.clone_from(&self.secrets);
        let project = self.project.as_deref().unwrap_or("demo");
        call.workspace = WorkspaceRef::Project(project.parse().unwrap());
        call
    }
}

impl Case {
    fn explain(&self) -> Explanation {
        let config = Config::parse(&self.policy, "policy.toml").unwrap();
        let system = config.system(Surface::Server, HOST).unwrap();
        let grants: Vec<GrantKind> = self.grant.iter().map(|it| granted(&config, it)).collect();
        let secret = |it: &SecretUse| GrantedSecret {
            name: it.name.clone(),
            deliveries: [it.delivery].into(),
        };
        let secrets: Vec<_> = self.granted.iter().map(secret).collect();
        let call = self.call.call();
        let usual = match call.program {
            Program::Argv { .. } | Program::Shell { .. } => "run_command",
            Program::Python { .. } | Program::Javascript { .. } => "run_code",
        };
        let asking = Asking {
            tool: self.tool.as_deref().unwrap_or(usual),
            grants: &grants,
            secrets: &secrets,
            simulate: self.simulate,
            backend: None,
        };
        explain(&config, &system, call, &asking).unwrap()
    }
}

fn granted(config: &Config, script: &str) -> GrantKind {
    let mut call = call(silent());
    call.program = Program::Shell {
        script: text(script),
    };
    call.workspace = WorkspaceRef::Project("demo".parse().unwrap());
    let system = config.system(Surface::Server, HOST).unwrap();
    let assessed = assess(resolve(call, &system, &config.layers_for(&ids())).unwrap());
    kind_of(&assessed, None).unwrap()
}

fn ids() -> glovebox_model::Correlation {
    call(silent()).ids
}

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/policy");
    let below = |path: &Path| -> Vec<PathBuf> {
        let mut found: Vec<_> = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect();
        found.sort();
        found
    };
    below(&root).iter().flat_map(|it| below(it)).collect()
}

/// Without the table of fields, which has its own tests.
fn shown(explanation: &Explanation) -> String {
    let text = explanation.render_text();
    let end = text.find("\n\nFIELD").map_or(text.len(), |at| at + 1);
    text[..end].to_owned()
}

fn difference(old: &str, new: &str) -> String {
    let mut text = String::new();
    for line in old
        .lines()
        .filter(|line| !new.lines().any(|it| it == *line))
    {
        let _ = writeln!(text, "    - {line}");
    }
    for line in new
        .lines()
        .filter(|line| !old.lines().any(|it| it == *line))
    {
        let _ = writeln!(text, "    + {line}");
    }
    text
}

#[test]
fn every_case_is_decided_and_explained_as_written() {
    let update = std::env::var_os("GLOVEBOX_UPDATE_EXPLANATIONS").is_some_and(|it| it == "1");
    let folders = folders();
    assert!(
        folders.len() >= 150,
        "only {} cases were found",
        folders.len()
    );
    let mut failures = String::new();
    for folder in folders {
        let name = {
            let mut parts = folder.iter().rev();
            let case = parts.next().unwrap().to_string_lossy().into_owned();
            format!("{}/{case}", parts.next().unwrap().to_string_lossy())
        };
        let case: Case = toml::from_str(&fs::read_to_string(folder.join("case.toml")).unwrap())
            .unwrap_or_else(|why| panic!("{name}: {why}"));
        let explanation = case.explain();
        let new = shown(&explanation);
        if explanation.decision != case.decision {
            let (is, wanted) = (explanation.decision, case.decision);
            let _ = writeln!(failures, "{name}: {is:?}, not {wanted:?}\n{new}");
            continue;
        }
        if let Some(wanted) = case.snapshot
            && explanation.snapshot_before != wanted
        {
            let _ = writeln!(failures, "{name}: snapshot_before is not {wanted}");
            continue;
        }
        let file = folder.join("explain.txt");
        let old = fs::read_to_string(&file).unwrap_or_default();
        if old == new {
            continue;
        }
        if update {
            fs::write(&file, new).unwrap();
        } else {
            let _ = writeln!(
                failures,
                "{name}: explained differently\n{}",
                difference(&old, &new)
            );
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}
