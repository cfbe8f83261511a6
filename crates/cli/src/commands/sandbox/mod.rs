//! `glovebox sandbox`.

mod change;
mod create;
mod list;
mod page;

use glovebox_engine::SandboxRequest;
use glovebox_model::{Code, Correlation, Error, Lifetime, Result, Stage};

use crate::args::{Global, SandboxCommand, SandboxVerb, ScopeOptions};
use crate::commands::execute::standing_overrides;
use crate::context;
use crate::exit::Exit;

pub(crate) fn run(global: &Global, command: SandboxCommand) -> Result<Exit> {
    match command.verb {
        SandboxVerb::Create(args) => create::run(global, *args),
        SandboxVerb::Ls(args) => list::run(global, args),
        SandboxVerb::Info(args) => page::info(global, &args),
        SandboxVerb::Explain(args) => page::explain(global, *args),
        SandboxVerb::Recreate(args) => change::recreate(global, args),
        SandboxVerb::Prune(_) => change::prune(global),
        SandboxVerb::Rm(args) => change::remove(global, &args),
    }
}

/// Whoever names an agent or a session, and nothing else, means one of theirs.
fn request(scope: ScopeOptions) -> Result<SandboxRequest> {
    let invalid = |message: &str| Error::new(Code::InvalidArgument, Stage::Parse, message);
    let who = scope.who;
    let lifetime = match (scope.lifetime, &who.agent, &who.session) {
        (Some(lifetime), ..) => lifetime,
        (None, Some(_), None) => Lifetime::Agent,
        (None, _, Some(_)) => Lifetime::Session,
        (None, None, None) => {
            return Err(invalid("whose sandbox is not said")
                .hint("say `--agent ID`, `--session ID` or `--lifetime shared`"));
        }
    };
    let project = scope.project.ok_or_else(|| {
        invalid("a kept sandbox works on a workspace that Glovebox keeps")
            .hint("name one with `--project NAME`; it is made when it is not there")
    })?;
    Ok(SandboxRequest {
        overrides: standing_overrides(&scope.limits, &scope.backend)?,
        on_exceed: scope.limits.on_exceed,
        ids: Correlation {
            agent_id: who.agent,
            session_id: who.session,
            ..context::local_ids(None)
        },
        lifetime,
        project,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use glovebox_model::{BackendName, Bytes, Guarantee, LimitsDemand};

    fn parsed(line: &str) -> Result<SandboxRequest> {
        let words = "glovebox sandbox create".split(' ');
        let cli = Cli::try_parse_from(words.chain(line.split_ascii_whitespace())).unwrap();
        let Command::Sandbox(SandboxCommand {
            verb: SandboxVerb::Create(args),
        }) = cli.command
        else {
            panic!("another command");
        };
        request(args.scope)
    }

    #[test]
    fn a_sandbox_is_for_whoever_is_named() {
        let of = |line: &str| parsed(&format!("--project p {line}")).unwrap().lifetime;
        assert_eq!(of("--agent a"), Lifetime::Agent);
        assert_eq!(of("--session s --agent a"), Lifetime::Session);
        assert_eq!(of("--lifetime shared --agent a"), Lifetime::Shared);
        for wrong in ["--project p", "--agent a"] {
            let error = parsed(wrong).unwrap_err();
            assert!(!error.hints.is_empty(), "{error}");
        }
    }

    #[test]
    fn what_it_is_made_with_is_taken_as_given() {
        let request = parsed(
            "--project p --agent a --memory 64M --backend docker --runtime runsc --image i \
             --require own-kernel --require kernel-limits --on-exceed cap",
        )
        .unwrap();
        let wanted = request.overrides;
        assert_eq!(wanted.limits.memory_bytes, Some(Bytes::mib(64)));
        assert_eq!(wanted.backend, Some(BackendName::Docker));
        assert_eq!(wanted.runtime.as_deref(), Some("runsc"));
        assert_eq!(wanted.image.as_deref(), Some("i"));
        assert_eq!(wanted.require, [Guarantee::OwnKernel].into());
        assert_eq!(wanted.limits_demand, Some(LimitsDemand::Kernel));
        assert_eq!(request.on_exceed, glovebox_model::OnExceed::Cap);
    }
}
