//! Flags to a call, exactly as they were given.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use glovebox_model::{
    ByteString, Call, Correlation, Delivery, EnvVar, ExecId, Input, LimitsDemand, OnExceed,
    PartialLimits, PartialProfile, Placement, Program, Result, SecretUse, Simulation, WorkspaceRef,
    Writes,
};

use super::invalid;
use crate::args::{
    BackendOptions, LimitOptions, PlaceOptions, Requirement, RunOptions, SimulationOptions,
};
use crate::context;

/// Larger inputs belong into the workspace.
const INPUT_MAX: u64 = 64 << 20;

/// The operating system never passes a NUL, so this cannot fail from a command line.
pub(crate) fn argument(word: OsString) -> Result<ByteString> {
    ByteString::new(word.into_vec()).ok_or_else(|| invalid("an argument holds a NUL byte"))
}

pub(crate) fn call(options: RunOptions, program: Program) -> Result<Call> {
    let overrides = overrides(&options)?;
    let RunOptions {
        place,
        limits,
        who,
        exec,
        simulation,
        ..
    } = options;
    let over = match &simulation.over {
        Some(name) => Some(over(name)?),
        None => None,
    };
    let writes = match &over {
        Some(_) => Writes::Dropped,
        None => exec.writes(),
    };
    Ok(Call {
        placement: placement(&place),
        client_id: exec.client_id,
        cwd: exec.cwd.map(argument).transpose()?,
        env: exec.env.into_iter().map(variable).collect::<Result<_>>()?,
        inputs: exec
            .input
            .iter()
            .map(|it| input(it))
            .collect::<Result<_>>()?,
        mode: simulation.mode(),
        on_exceed: match exec.ask {
            true => OnExceed::Ask,
            false => limits.on_exceed,
        },
        mounts: exec.mount,
        secrets: exec
            .secret
            .iter()
            .map(|it| secret(it))
            .collect::<Result<_>>()?,
        justification: exec.because,
        writes,
        simulation: told(&simulation)?,
        over,
        overrides,
        ..Call::new(
            Correlation {
                agent_id: who.agent,
                session_id: who.session,
                conversation_id: who.conversation,
                ..context::local_ids(exec.task_id)
            },
            glovebox_model::Vouched::People,
            workspace(place),
            program,
        )
    })
}

/// The whole id: nothing is looked up before anything runs.
fn over(name: &str) -> Result<ExecId> {
    name.parse().map_err(|_| {
        invalid(format!(
            "`--over` wants the whole id of an exec, and `{name}` is none"
        ))
        .hint("`glovebox ps --all` lists them; `glovebox show` has the whole id")
    })
}

/// What a simulated program is told.
fn told(options: &SimulationOptions) -> Result<Option<Simulation>> {
    if !options.simulate {
        return Ok(None);
    }
    let mut simulation = match &options.responses {
        None => Simulation::default(),
        Some(path) => {
            let shown = path.display();
            let text = std::fs::read(path)
                .map_err(|error| invalid(format!("cannot read `{shown}`")).caused_by(error))?;
            serde_json::from_slice(&text).map_err(|error| {
                invalid(format!(
                    "`{shown}` says nothing that a simulation understands: {error}"
                ))
                .hint("write `{\"responses\": [{\"host\": \"api.example.com\", \"json\": {}}]}`")
            })?
        }
    };
    simulation.reads |= options.reads;
    Ok(Some(simulation))
}

fn placement(place: &PlaceOptions) -> Placement {
    match (&place.sandbox, place.lifetime) {
        (Some(name), _) => Placement::Named(name.clone()),
        (None, Some(lifetime)) => Placement::Scope(lifetime),
        (None, None) => Placement::Fresh,
    }
}

fn workspace(place: PlaceOptions) -> WorkspaceRef {
    match (place.project, place.scratch, place.sandbox) {
        (Some(id), ..) => WorkspaceRef::Project(id),
        // A sandbox that is named has a workspace already, and that one is taken.
        (None, true, _) | (None, false, Some(_)) => WorkspaceRef::Scratch,
        // By its own handle, not by its name: whoever exchanges a directory above it changes
        // nothing about where we stand.
        (None, false, None) => WorkspaceRef::Adopted(PathBuf::from(".")),
    }
}

fn overrides(options: &RunOptions) -> Result<PartialProfile> {
    let exec = &options.exec;
    let standing = standing_overrides(&options.limits, &options.backend)?;
    Ok(PartialProfile {
        limits: PartialLimits {
            wall_ms: exec.timeout,
            stdout_bytes: exec.max_output,
            stderr_bytes: exec.max_output,
            artifacts_bytes: exec.max_artifacts,
            ..standing.limits
        },
        network: exec.net,
        allow_net: (!exec.allow_net.is_empty()).then(|| exec.allow_net.iter().cloned().collect()),
        workspace: options.place.workspace,
        tier: exec.tier,
        ..standing
    })
}

/// What a sandbox is made with, whoever runs something in it.
pub(crate) fn standing_overrides(
    limits: &LimitOptions,
    backend: &BackendOptions,
) -> Result<PartialProfile> {
    let guarantees = limits.require.iter().filter_map(|it| match it {
        Requirement::KernelLimits => None,
        Requirement::Guarantee(guarantee) => Some(*guarantee),
    });
    let kernel = limits.require.contains(&Requirement::KernelLimits);
    let mut asked = PartialProfile {
        limits: PartialLimits {
            cpu_ms: limits.cpu_time,
            memory_bytes: limits.memory,
            pids: limits.pids,
            cpus_milli: limits.cpus,
            disk_bytes: limits.disk,
            disk_files: limits.files,
            open_files: limits.open_files,
            gpus: limits.gpus,
            tpus: limits.tpus,
            egress_bytes: limits.egress_bytes,
            egress_connections: limits.egress_connections,
            network_ms: limits.network_time,
            ..PartialLimits::default()
        },
        limits_demand: kernel.then_some(LimitsDemand::Kernel),
        require: guarantees.collect(),
        runtime: backend.runtime.clone(),
        image: backend.image.clone(),
        ..PartialProfile::default()
    };
    if let Some(named) = backend.backend.clone() {
        asked.name_backend(named).map_err(invalid)?;
    }
    Ok(asked)
}

/// `NAME`, `NAME=HOW`, `NAME:VARIABLE` or `NAME=HOW:VARIABLE`.
fn secret(text: &OsStr) -> Result<SecretUse> {
    // Not shown: what stands after the `=` may be a value.
    let wrong = |what: &str| {
        invalid(format!("a `--secret` {what}"))
            .hint("write `--secret NAME`, or `NAME=file`, `descriptor`, `broker` or `env`")
            .hint("a value is never given here: `glovebox secret set NAME` reads it from standard input")
    };
    let text = text.to_str().ok_or_else(|| wrong("is not UTF-8"))?;
    let (rest, variable) = match text.split_once(':') {
        Some((rest, variable)) => (rest, Some(variable)),
        None => (text, None),
    };
    let (name, how) = match rest.split_once('=') {
        Some((name, how)) => (name, Some(how)),
        None => (rest, None),
    };
    let delivery = match how {
        None => Delivery::default(),
        Some(how) => Delivery::ALL
            .into_iter()
            .find(|it| it.as_str() == how)
            .ok_or_else(|| wrong("says in no known way how it is given"))?,
    };
    let variable = variable.map(str::parse).transpose();
    Ok(SecretUse {
        name: name
            .parse()
            .map_err(|_| wrong("does not begin with a secret's name"))?,
        delivery,
        variable: variable.map_err(|_| wrong("names no variable after the `:`"))?,
    })
}

fn variable(text: OsString) -> Result<EnvVar> {
    let bytes = text.into_vec();
    let Some(equals) = bytes.iter().position(|byte| *byte == b'=') else {
        // Not shown: it may be a value whose key was forgotten.
        return Err(invalid("an `--env` has no `=`")
            .hint("write `--env KEY=VALUE`; nothing is taken over from your own environment"));
    };
    let key = std::str::from_utf8(&bytes[..equals])
        .map_err(|_| invalid("an environment key is not UTF-8"))?
        .parse()
        .map_err(|error| invalid(format!("{error}")))?;
    let value = argument(OsStr::from_bytes(&bytes[equals + 1..]).to_owned())?;
    Ok(EnvVar { key, value })
}

/// `FILE` or `FILE:NAME`. A file whose own name holds a colon is taken as it is if it exists.
fn input(text: &OsStr) -> Result<Input> {
    let bytes = text.as_bytes();
    let (file, name) = match bytes.iter().rposition(|byte| *byte == b':') {
        Some(colon) if !Path::new(text).exists() => (
            Path::new(OsStr::from_bytes(&bytes[..colon])),
            OsStr::from_bytes(&bytes[colon + 1..]),
        ),
        _ => {
            let path = Path::new(text);
            (path, path.file_name().unwrap_or_default())
        }
    };
    let shown = file.display();
    let failed = |error: std::io::Error| {
        invalid(format!("cannot read the input `{shown}`")).caused_by(error)
    };
    let facts = std::fs::metadata(file).map_err(failed)?;
    if !facts.is_file() {
        return Err(
            invalid(format!("the input `{shown}` is not a regular file"))
                .hint("directories belong into the workspace; a stream goes in with `--stdin`"),
        );
    }
    if facts.len() > INPUT_MAX {
        return Err(
            invalid(format!("the input `{shown}` is larger than 64 MiB"))
                .hint("larger data belongs into the workspace"),
        );
    }
    let content = std::fs::read(file).map_err(failed)?;
    Ok(Input {
        path: argument(name.to_owned())?,
        content,
    })
}
