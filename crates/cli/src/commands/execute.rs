//! From flags to a call, through the engine, to an exit code: what `run` and `code` share.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use glovebox_engine::{Io, Keeper, ToolchainSettings};
use glovebox_model::{
    Access, BackendName, ByteString, Call, Code, EnvVar, Error, Exec, Input, LimitsDemand, Mode,
    NetworkMode, OnExceed, PartialLimits, PartialProfile, Program, Result, Stage, Tier,
    WorkspaceRef,
};
use glovebox_workspace::toolchain;

use crate::args::{
    AccessArg, BackendArg, Global, NetArg, OnExceedArg, Requirement, RunOptions, TierArg,
};
use crate::context::{self, Context};
use crate::exit::Exit;
use crate::output::{PassThrough, Silent};
use crate::{interrupt, output, render};

/// Larger inputs belong into the workspace.
const INPUT_MAX: u64 = 64 << 20;

pub(crate) fn execute(global: &Global, options: RunOptions, program: Program) -> Result<Exit> {
    let report = options.report.clone();
    let stdin = options.stdin.then(own_stdin).transpose()?;
    let toolchains = toolchains(global, &options)?;
    let call = call(options, program)?;

    // Before anything that might start a thread.
    let keeper = Keeper::fork().map_err(|errno| {
        Error::new(
            Code::SetupFailed,
            Stage::Admit,
            "cannot start the sandbox's keeper",
        )
        .caused_by(errno)
    })?;
    let context = Context::new(global);
    let (engine, seat) = context.engine_with_seat(keeper)?;
    let (cancel, canceler) = interrupt::listen()?;
    let record = if global.json {
        let io = Io {
            stdin,
            live: &mut Silent,
            cancel: &cancel,
        };
        engine.run(seat, call, &toolchains, io)?
    } else {
        let mut live = PassThrough::new(canceler);
        let io = Io {
            stdin,
            live: &mut live,
            cancel: &cancel,
        };
        engine.run(seat, call, &toolchains, io)?
    };
    if let Some(file) = report {
        write_report(&file, &record)?;
    }
    context.report_recovered(&engine);
    tell(global, &record);
    Ok(Exit::of_record(&record))
}

fn tell(global: &Global, record: &Exec) {
    if global.json {
        // A closed stdout changes nothing about what happened; the exit code says it too.
        let _ = output::json(record);
        return;
    }
    if let Some(error) = &record.error {
        render::error(error, false);
    } else if let (Some(limit), false) = (record.limit_hit, global.quiet) {
        let id = &record.exec_id;
        let what = if record.timed_out {
            "timed out"
        } else if record.killed {
            "was ended"
        } else {
            "ran into a limit"
        };
        render::note(&format!(
            "`{id}` {what} (limit: {limit}); `glovebox show {id}` has the record"
        ));
    }
}

fn write_report(file: &Path, record: &Exec) -> Result<()> {
    let written = serde_json::to_vec(record)
        .map_err(std::io::Error::other)
        .and_then(|text| std::fs::write(file, text));
    written.map_err(|error| {
        let shown = file.display();
        Error::new(
            Code::InvalidArgument,
            Stage::Close,
            format!("cannot write the report `{shown}`"),
        )
        .caused_by(error)
        .of_exec(record.exec_id.clone())
    })
}

fn own_stdin() -> Result<std::os::fd::OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)
        .map_err(|errno| invalid("standard input is closed").caused_by(errno))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

/// The operating system never passes a NUL, so this cannot fail from a command line.
pub(super) fn argument(word: OsString) -> Result<ByteString> {
    ByteString::new(word.into_vec()).ok_or_else(|| invalid("an argument holds a NUL byte"))
}

pub(super) fn call(options: RunOptions, program: Program) -> Result<Call> {
    let overrides = overrides(&options);
    let workspace = match (options.project, options.scratch) {
        (Some(id), _) => WorkspaceRef::Project(id),
        (None, true) => WorkspaceRef::Scratch,
        // By its own handle, not by its name: whoever exchanges a directory above it changes
        // nothing about where we stand.
        (None, false) => WorkspaceRef::Adopted(PathBuf::from(".")),
    };
    Ok(Call {
        ids: context::local_ids(options.task_id),
        client_id: options.client_id,
        workspace,
        program,
        cwd: options.cwd.map(argument).transpose()?,
        env: options
            .env
            .into_iter()
            .map(variable)
            .collect::<Result<_>>()?,
        inputs: options
            .input
            .iter()
            .map(|it| input(it))
            .collect::<Result<_>>()?,
        mode: Mode::Run,
        on_exceed: match options.on_exceed {
            OnExceedArg::Refuse => OnExceed::Refuse,
            OnExceedArg::Cap => OnExceed::Cap,
        },
        overrides,
    })
}

fn overrides(options: &RunOptions) -> PartialProfile {
    PartialProfile {
        limits: PartialLimits {
            wall_ms: options.timeout,
            cpu_ms: options.cpu_time,
            memory_bytes: options.memory,
            pids: options.pids,
            cpus_milli: options.cpus,
            disk_bytes: options.disk,
            disk_files: options.files,
            stdout_bytes: options.max_output,
            stderr_bytes: options.max_output,
            artifacts_bytes: options.max_artifacts,
            open_files: options.open_files,
        },
        network: options.net.map(|net| match net {
            NetArg::None => NetworkMode::None,
            NetArg::Retrieval => NetworkMode::Retrieval,
            NetArg::Allowlist => NetworkMode::Allowlist,
            NetArg::Unrestricted => NetworkMode::Unrestricted,
        }),
        allow_net: (!options.allow_net.is_empty())
            .then(|| options.allow_net.iter().cloned().collect()),
        workspace: options.workspace.map(|access| match access {
            AccessArg::None => Access::None,
            AccessArg::Ro => Access::Ro,
            AccessArg::Rw => Access::Rw,
        }),
        tier: options.tier.map(|tier| match tier {
            TierArg::Safe => Tier::Safe,
            TierArg::Low => Tier::Low,
            TierArg::Medium => Tier::Medium,
            TierArg::High => Tier::High,
            TierArg::Critical => Tier::Critical,
        }),
        limits_demand: options.require.map(|require| match require {
            Requirement::KernelLimits => LimitsDemand::Kernel,
        }),
        backend: options.backend.map(|backend| match backend {
            BackendArg::Native => BackendName::Native,
        }),
        ..PartialProfile::default()
    }
}

fn variable(text: OsString) -> Result<EnvVar> {
    let bytes = text.into_vec();
    let Some(equals) = bytes.iter().position(|byte| *byte == b'=') else {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        return Err(invalid(format!("`--env {shown}` has no `=`"))
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
    if !facts.is_file() || facts.len() > INPUT_MAX {
        return Err(invalid(format!(
            "the input `{shown}` is not a file of at most 64 MiB"
        ))
        .hint("larger data belongs into the workspace"));
    }
    let content = std::fs::read(file).map_err(failed)?;
    Ok(Input {
        path: argument(name.to_owned())?,
        content,
    })
}

/// On by itself where the caller's own directory is worked on; elsewhere only when asked for.
fn toolchains(global: &Global, options: &RunOptions) -> Result<ToolchainSettings> {
    let adopted = options.project.is_none() && !options.scratch;
    let usual = if adopted {
        toolchain::Mode::Auto
    } else {
        toolchain::Mode::Off
    };
    let mode = toolchain::Mode::parse(&options.toolchain)?.unwrap_or(usual);
    let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let host = toolchain::Host::of_process(cwd, Context::new(global).state_path().ok());
    Ok(ToolchainSettings { host, mode })
}
