//! Whether policy would let an effect happen when its exec is run for real. A simulation asks
//! nobody, so only what policy denies counts against it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use glovebox_model::{ApprovalMode, ByteString, Call, Permit, Program};
use glovebox_policy::{Action, DecisionContext, Rules, ToolPolicy, decide_action};

use crate::approvals::{refused, tool_of};
use crate::policy::ActivePolicy;

/// Programs run the same few commands over and over.
const REMEMBERED: usize = 4096;

/// Where a sandbox has something that is gone with it, and what is no file at all.
const SCRATCH: [&str; 7] = [
    "/tmp",
    "/var/tmp",
    "/home",
    "/dev",
    "/proc",
    "/run",
    "/workspace/artifacts",
];
const WORK: &str = "/workspace/work";

pub(crate) struct Permissions<'engine> {
    policy: &'engine ActivePolicy,
    call: Call,
    tool: std::borrow::Cow<'static, str>,
    rules: Rules,
    tools: ToolPolicy,
    writable: bool,
    commands: Mutex<HashMap<Vec<ByteString>, Option<String>>>,
}

/// Where a path lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Relative to it.
    Workspace(String),
    /// Gone with the sandbox.
    Scratch,
    EgressRuntime,
}

/// `path` is absolute and normal.
pub(crate) fn place(path: &str) -> Place {
    if let Some(rest) = below(path, WORK) {
        return Place::Workspace(rest.to_owned());
    }
    match SCRATCH.iter().any(|it| below(path, it).is_some()) {
        true => Place::Scratch,
        false => Place::EgressRuntime,
    }
}

fn below<'p>(path: &'p str, top: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(top)?;
    match rest.strip_prefix('/') {
        Some(rest) => Some(rest),
        None => rest.is_empty().then_some("."),
    }
}

impl<'engine> Permissions<'engine> {
    pub(crate) fn new(policy: &'engine ActivePolicy, call: &Call, writable: bool) -> Self {
        let config = policy.config();
        Self {
            tool: tool_of(call),
            rules: config.rules_for(&call.ids),
            tools: config.tools_for(&call.ids),
            // Of many and large inputs a command says nothing.
            call: Call {
                inputs: Vec::new(),
                ..call.clone()
            },
            policy,
            writable,
            commands: Mutex::default(),
        }
    }

    /// Why these paths of the workspace may not be written.
    pub(crate) fn of_write(&self, paths: impl Iterator<Item = String>) -> Option<String> {
        self.not_writable()
            .or_else(|| self.of_paths(paths.collect()))
    }

    pub(crate) fn not_writable(&self) -> Option<String> {
        let why = "the workspace is not writable for this exec";
        (!self.writable).then(|| why.to_owned())
    }

    /// Why these may not be read.
    pub(crate) fn of_read(&self, path: String) -> Option<String> {
        self.of_paths(vec![path])
    }

    fn of_paths(&self, paths: Vec<String>) -> Option<String> {
        if self.rules.is_empty() {
            return None;
        }
        let action = Action {
            ids: &self.call.ids,
            paths: &paths,
            hosts: &[],
            changes: true,
            mode: ApprovalMode::Evolution,
        };
        self.with_standing(|standing| denial(&decide_action(&action, standing)))
    }

    /// Why this command may not be run, whoever started it.
    pub(crate) fn of_command(&self, argv: &[ByteString]) -> Option<String> {
        if self.rules.is_empty() {
            return None;
        }
        let remembered = || self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = remembered().get(argv) {
            return known.clone();
        }
        let (command, args) = argv.split_first()?;
        let call = Call {
            program: Program::Argv {
                command: command.clone(),
                args: args.to_vec(),
            },
            ..self.call.clone()
        };
        let said = self.policy.denied_command(call);
        let mut commands = remembered();
        if commands.len() < REMEMBERED {
            commands.insert(argv.to_vec(), said.clone());
        }
        said
    }

    fn with_standing<T>(&self, then: impl FnOnce(&DecisionContext<'_>) -> T) -> T {
        let config = self.policy.config();
        then(&DecisionContext {
            rules: &self.rules,
            tool: &self.tool,
            tools: &self.tools,
            grants: &[],
            approvals: config.approvals(),
            simulate: true,
            backend: None,
            secrets: &[],
            network: config.network(),
        })
    }
}

impl ActivePolicy {
    fn denied_command(&self, call: Call) -> Option<String> {
        let (assessed, _) = self.assess_call(call, None, None).ok()?;
        denial(&self.say(&assessed))
    }
}

fn denial(ruling: &glovebox_model::Ruling) -> Option<String> {
    (ruling.permit == Permit::Deny).then(|| refused(ruling).message)
}

impl std::fmt::Debug for Permissions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Permissions")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_in_the_workspace_in_what_goes_away_or_outside() {
        let inside = |rest: &str| Place::Workspace(rest.to_owned());
        for (path, expected) in [
            ("/workspace/work", inside(".")),
            ("/workspace/work/a/b", inside("a/b")),
            ("/workspace/workshop", Place::EgressRuntime),
            ("/workspace/inputs/x", Place::EgressRuntime),
            ("/workspace/artifacts/x", Place::Scratch),
            ("/tmp/x", Place::Scratch),
            ("/tmpx", Place::EgressRuntime),
            ("/etc/passwd", Place::EgressRuntime),
            ("/", Place::EgressRuntime),
        ] {
            assert_eq!(place(path), expected, "{path}");
        }
    }
}
