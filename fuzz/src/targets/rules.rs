//! The operator's rules: whatever the text, it is read or refused with a place, and a decision by
//! what was read neither fails nor forgets a rule that denies everything.

use glovebox_model::{
    ByteString, Call, Correlation, Mode, OnExceed, PartialProfile, Permit, Placement, Program,
    SpaceId, WorkspaceRef, Writes,
};
use glovebox_policy::{Config, DecisionContext, HostFacts, Surface, assess, decide, resolve};

use super::{Target, as_it_is};

pub const TARGET: Target = Target {
    name: "rules",
    run,
    seeds,
    mend: as_it_is,
    words: &[
        b"[[rule]]\n",
        b"decision = \"deny\"\n",
        b"decision = \"allow\"\n",
        b"command = \"",
        b"path = \"/**/*\"\n",
        b"host = \"*.x:1\"\n",
        b"tool = \"group:fs\"\n",
        b"when = \"tier == 'high'\"\n",
        b"match = [\"ls\"]\n",
        b"[tools]\n",
        b"[approvals]\n",
        b"[[agent.a.rule]]\n",
        b"**",
        b"?",
        b"*",
        b"\n---\n",
        b"$(",
        b";",
    ],
};

fn seeds() -> Vec<Vec<u8>> {
    [
        "[[rule]]\ndecision = \"deny\"\ncommand = \"git push *\"\nmatch = \"git push\"\n\n---\nls; git -C . push",
        "[approvals]\nmode = \"manual\"\ndeny_from = \"critical\"\n[[rule]]\ndecision = \"allow\"\npath = [\"/a/**/b\", \"**/c\"]\n\n---\ncat /a/x/b > c",
        "[tools]\nallow = [\"run_*\"]\ndeny = [\"group:ui\"]\n[[rule]]\nname = \"n\"\ndecision = \"ask\"\nwhen = \"size(commands) > 1\"\nbecause = \"b\"\n\n---\nx | y",
        "[[rule]]\ndecision = \"ask\"\nhost = [\"*.x.org:443\", \"*\"]\ntier = \"high\"\nnetwork = \"none\"\nbackend = \"native\"\n\n---\ncurl https://a.x.org/",
    ]
    .map(|it| it.as_bytes().to_vec())
    .into()
}

/// The policy, a line of three dashes, the script.
fn run(bytes: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(bytes);
    let (policy, script) = text.split_once("\n---\n").unwrap_or((&text, "ls"));
    let config = match Config::parse(policy, "rules") {
        Ok(config) => config,
        Err(error) => {
            assert!(error.rule.is_some(), "no place: {error}");
            return Err(error.message);
        }
    };
    let permit = decided(&config, script)?;
    let closed = format!("{policy}\n[[space.local.rule]]\ndecision = \"deny\"\ntool = \"*\"\n");
    if let Ok(config) = Config::parse(&closed, "rules") {
        assert_eq!(
            decided(&config, script)?,
            Permit::Deny,
            "a deny was forgotten"
        );
    }
    Ok(permit.to_string())
}

fn decided(config: &Config, script: &str) -> Result<Permit, String> {
    let host = HostFacts {
        memory_bytes: 8 << 30,
        cpus: 4,
    };
    let system = config
        .system(Surface::Server, host)
        .map_err(|error| error.message)?;
    let ids = Correlation::of_space(SpaceId::local());
    let call = Call {
        ids: ids.clone(),
        vouched: glovebox_model::Vouched::People,
        client_id: None,
        workspace: WorkspaceRef::Scratch,
        placement: Placement::Fresh,
        program: Program::Shell {
            script: ByteString::try_from(script).map_err(str::to_owned)?,
        },
        cwd: None,
        env: Vec::new(),
        inputs: Vec::new(),
        mode: Mode::Run,
        on_exceed: OnExceed::Cap,
        mounts: Vec::new(),
        secrets: Vec::new(),
        justification: None,
        writes: Writes::Direct,
        simulation: None,
        over: None,
        preview: None,
        skill: None,
        session: None,
        overrides: PartialProfile::default(),
    };
    let layers = config.layers_for(&ids);
    let resolved = resolve(call, &system, &layers).map_err(|error| error.message)?;
    let assessed = assess(resolved);
    let (rules, tools) = (config.rules_for(&ids), config.tools_for(&ids));
    let standing = DecisionContext {
        rules: &rules,
        tool: "run_command",
        tools: &tools,
        grants: &[],
        approvals: config.approvals(),
        simulate: false,
        backend: None,
        secrets: &[],
        network: config.network(),
    };
    Ok(decide(&assessed, &standing).permit)
}
