//! Whose eyes a sandbox is looked at with, and what of it they are shown.

use glovebox_engine::{Dispatcher, SandboxExplanation, SandboxRequest, Seen, Viewer};
use glovebox_model::{
    Code, DockerConfig, Error, Lifetime, PartialProfile, Result, Role, Sandbox, SandboxConfig,
    Stage,
};

use crate::auth::Caller;

#[derive(Debug, Clone)]
pub(super) struct Visibility {
    eyes: Viewer,
    admin: bool,
    operator: bool,
}

impl Visibility {
    pub(super) fn of(caller: &Caller) -> Self {
        Self {
            eyes: caller.eyes(),
            admin: caller.token().role == Role::Admin,
            operator: caller.operator().is_ok(),
        }
    }

    pub(super) fn eyes(&self) -> &Viewer {
        &self.eyes
    }

    pub(super) fn is_admin(&self) -> bool {
        self.admin && self.eyes.agent().is_none()
    }

    /// Whether it speaks for this agent.
    pub(super) fn is(&self, agent: &str) -> bool {
        self.eyes.agent().is_none_or(|own| own == agent)
    }

    /// One that it may take down: a single agent does not do that to what all share.
    pub(super) fn own(&self, dispatcher: &Dispatcher, name: &str) -> Result<Seen<Sandbox>> {
        let row = dispatcher.find_sandbox(&self.eyes, name)?;
        if row.lifetime == Lifetime::Shared && self.eyes.agent().is_some() {
            let message = "a shared sandbox is not one agent's to take down";
            return Err(Error::new(Code::Forbidden, Stage::Parse, message)
                .hint("use a token that is no agent's"));
        }
        Ok(row)
    }

    /// What one agent asked for would hold for everybody in a sandbox that all share.
    pub(super) fn may_decide(&self, request: &SandboxRequest) -> Result<()> {
        let decides = request.overrides != PartialProfile::default();
        if request.lifetime != Lifetime::Shared || self.eyes.agent().is_none() || !decides {
            return Ok(());
        }
        let message = "one agent does not decide about a sandbox that all share";
        Err(Error::new(Code::Forbidden, Stage::Parse, message)
            .hint("leave out `policy_overrides`, or use a token that is no agent's"))
    }

    /// Without what it tells about the host, unless the operator looks.
    pub(super) fn show(&self, row: Sandbox) -> Sandbox {
        if self.operator {
            return row;
        }
        Sandbox {
            config: hide(row.config),
            trouble: row.trouble.map(|_| "it did not survive an exec".to_owned()),
            ..row
        }
    }

    pub(super) fn show_explanation(&self, explained: SandboxExplanation) -> SandboxExplanation {
        if self.operator {
            return explained;
        }
        let troubled = explained
            .sandbox
            .as_ref()
            .is_some_and(|row| row.trouble.is_some());
        let mut fix_it = explained.fix_it;
        if troubled {
            // The last one tells the trouble, which is hidden above.
            fix_it.pop();
        }
        SandboxExplanation {
            sandbox: explained.sandbox.map(|row| self.show(row)),
            config: hide(explained.config),
            sources: Vec::new(),
            fix_it,
            ..explained
        }
    }
}

/// Paths of the host, and what an operator wrote that may hold secrets.
fn hide(config: SandboxConfig) -> SandboxConfig {
    let docker = config.docker.map(|docker| DockerConfig {
        cli: last(&docker.cli).to_owned(),
        env: docker
            .env
            .into_keys()
            .map(|key| (key, String::new()))
            .collect(),
        setup_command: docker.setup_command.map(|_| String::new()),
        seccomp_profile: docker.seccomp_profile.map(|_| String::new()),
        binds: docker.binds.iter().map(|bind| target(bind)).collect(),
        bind_roots: Vec::new(),
        host_state_dir: None,
        ..docker
    });
    SandboxConfig { docker, ..config }
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Where it is inside.
fn target(bind: &str) -> String {
    match bind.split_once(':') {
        Some((_, inside)) => format!(":{inside}"),
        None => String::new(),
    }
}

pub(super) fn unknown() -> Error {
    Error::new(Code::NotFound, Stage::Parse, "there is no such sandbox")
        .hint("`GET /v1/sandboxes` lists those that are there for the token")
}
