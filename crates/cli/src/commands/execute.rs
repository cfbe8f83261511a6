//! From flags to a call, through the engine or a server, to an exit code: what `run` and `code`
//! share.

mod there;

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use glovebox_engine::{Io, Keeper, Sink, ToolchainSettings};
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
use crate::interrupt::Asker;
use crate::output::{PassThrough, Silent};
use crate::{interrupt, output, render};

/// Larger inputs belong into the workspace.
const INPUT_MAX: u64 = 64 << 20;

pub(crate) fn execute(global: &Global, options: RunOptions, program: Program) -> Result<Exit> {
    let report = options.report.as_deref().map(Report::open).transpose()?;
    if !options.stdin {
        note_unread_stdin(global);
    }
    let record = match Context::new(global).server()? {
        Some(remote) => there::run(global, &remote, options, program)?,
        None => Some(here(global, options, program)?),
    };
    let Some(record) = record else {
        return Ok(Exit::CANCELED);
    };
    if let Some(report) = report {
        report.write(&record)?;
    }
    tell(global, &record);
    Ok(Exit::of_record(&record))
}

/// In this process.
fn here(global: &Global, options: RunOptions, program: Program) -> Result<Exec> {
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
    let (cancel, asker) = interrupt::listen()?;
    let mut live = Live::new(global, asker);
    let io = Io {
        stdin,
        live: live.sink(),
        cancel: &cancel,
        stopped: None,
    };
    let ran = engine.run(seat, call, &toolchains, io);
    live.finish();
    context.report_recovered(engine.recovered());
    ran
}

/// Output while it runs: passed through, or kept for the record alone.
enum Live {
    Shown(PassThrough),
    Kept(Silent),
}

impl Live {
    fn new(global: &Global, asker: Asker) -> Self {
        match global.json {
            true => Self::Kept(Silent),
            false => Self::Shown(PassThrough::new(asker)),
        }
    }

    fn sink(&mut self) -> &mut dyn Sink {
        match self {
            Self::Shown(shown) => shown,
            Self::Kept(kept) => kept,
        }
    }

    fn finish(self) {
        match self {
            Self::Shown(shown) => shown.finish(),
            Self::Kept(Silent) => {}
        }
    }
}

fn tell(global: &Global, record: &Exec) {
    if global.json {
        // A closed stdout changes nothing about what happened; the exit code says it too.
        let _ = output::json(record);
        return;
    }
    if record.artifacts_dropped > 0 && !global.quiet {
        let (count, id) = (record.artifacts_dropped, &record.exec_id);
        render::note(&format!(
            "{count} artifacts were not kept; `manifest.json` of `{id}` says which and why"
        ));
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

/// Opened before anything runs: a report that cannot be written must not cost a run.
struct Report {
    path: PathBuf,
    file: std::fs::File,
}

impl Report {
    fn open(path: &Path) -> Result<Self> {
        let file = std::fs::File::create(path).map_err(|error| {
            let shown = path.display();
            invalid(format!("cannot write the report `{shown}`")).caused_by(error)
        })?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    fn write(mut self, record: &Exec) -> Result<()> {
        let text = serde_json::to_vec(record).map_err(std::io::Error::other);
        text.and_then(|text| self.file.write_all(&text))
            .map_err(|error| {
                let shown = self.path.display();
                let message = format!("the exec is recorded, but not in the report `{shown}`");
                Error::new(Code::DiskFull, Stage::Close, message)
                    .caused_by(error)
                    .of_exec(record.exec_id.clone())
            })
    }
}

/// For a person who pipes something in and wonders where it went.
fn note_unread_stdin(global: &Global) {
    let kind = rustix::fs::fstat(rustix::stdio::stdin())
        .map(|facts| rustix::fs::FileType::from_raw_mode(facts.st_mode));
    let data = matches!(
        kind,
        Ok(rustix::fs::FileType::Fifo | rustix::fs::FileType::RegularFile)
    );
    if data && !global.quiet && std::io::stderr().is_terminal() {
        render::note("standard input is not passed on; `--stdin` does that");
    }
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
