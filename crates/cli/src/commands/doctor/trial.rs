//! A real run of a small program through the whole path, in a state directory of its own, and what
//! that program saw.

use glovebox_engine::{
    Cancel, Engine, Io, Keeper, KeeperSlot, KeySource, Settings, ToolchainSettings, host_facts,
};
use glovebox_model::{
    ByteString, Call, Code, Error, Exec, Grade, Guarantee, Isolation, Lifetime, PartialProfile,
    Placement, Program, Result, Stage, Status, WorkspaceRef,
};
use glovebox_policy::{Config, Surface};
use glovebox_store::StateDir;
use glovebox_workspace::toolchain;

use super::report::{Health, Trial};
use crate::context;
use crate::output::Silent;

const COMMAND: [&str; 2] = ["cat", "/proc/self/status"];
const SHOWN: &str = "cat /proc/self/status";

/// In a state directory of its own.
pub(super) fn run(keeper: rustix::io::Result<Keeper>) -> Trial {
    told(execute(keeper))
}

/// With an engine as it is set up, on the backend that is asked for.
pub(crate) fn run_in(engine: &Engine, seat: KeeperSlot, overrides: PartialProfile) -> Trial {
    told(carry_out(engine, seat, overrides))
}

fn told(ran: Result<Exec>) -> Trial {
    match ran {
        Ok(record) => judge(record),
        Err(error) => Trial {
            health: Health::Failed,
            command: SHOWN,
            duration_ms: None,
            seen: Vec::new(),
            isolation: Isolation::default(),
            error: Some(error),
        },
    }
}

fn setup(message: &str) -> Error {
    Error::new(Code::SetupFailed, Stage::Admit, message)
}

fn execute(keeper: rustix::io::Result<Keeper>) -> Result<Exec> {
    let keeper =
        keeper.map_err(|errno| setup("cannot start the sandbox's keeper").caused_by(errno))?;
    let place = tempfile::Builder::new()
        .prefix("glovebox-doctor-")
        .tempdir()
        .map_err(|error| {
            setup("cannot make a temporary directory")
                .caused_by(error)
                .hint("set `TMPDIR` to a directory that you may write")
        })?;
    let settings = Settings {
        state: StateDir::open(place.path())?,
        database: None,
        config: Config::default(),
        shadow: None,
        surface: Surface::Local,
        host: host_facts(),
        homes: Vec::new(),
        secrets_key: KeySource::Usual,
    };
    let engine = Engine::open(settings)?;
    let seat = engine.sandboxes.seat(keeper)?;
    carry_out(&engine, seat, PartialProfile::default())
}

fn carry_out(engine: &Engine, seat: KeeperSlot, overrides: PartialProfile) -> Result<Exec> {
    let toolchains = ToolchainSettings {
        host: toolchain::Host::of_process("/", None),
        mode: toolchain::Mode::Off,
    };
    let (cancel, _canceler) =
        Cancel::new().map_err(|errno| setup("cannot make a pipe").caused_by(errno))?;
    let mut silent = Silent;
    let io = Io::new(&mut silent, &cancel);
    engine.run(seat, call(overrides)?, &toolchains, io)
}

fn call(overrides: PartialProfile) -> Result<Call> {
    let word = |text: &str| {
        ByteString::try_from(text).map_err(|why| Error::new(Code::Internal, Stage::Parse, why))
    };
    Ok(Call {
        placement: Placement::Scope(Lifetime::Exec),
        overrides,
        ..Call::new(
            context::local_ids(None),
            glovebox_model::Vouched::People,
            WorkspaceRef::Scratch,
            Program::Argv {
                command: word(COMMAND[0])?,
                args: vec![word(COMMAND[1])?],
            },
        )
    })
}

fn judge(record: Exec) -> Trial {
    let (seen, mut wrong) = confinement(&record.stdout);
    // A kernel of its own tells of itself what it likes.
    if record.isolation.0.get(&Guarantee::OwnKernel) == Some(&Grade::Kernel) {
        wrong.clear();
    }
    let error = match (record.error, record.status) {
        (Some(error), _) => Some(error),
        (None, Status::Succeeded) if wrong.is_empty() => None,
        (None, Status::Succeeded) => Some(Error::new(
            Code::SetupFailed,
            Stage::Run,
            format!("the sandbox is not what it should be: {}", wrong.join(", ")),
        )),
        (None, status) => Some(Error::new(
            Code::SetupFailed,
            Stage::Run,
            format!("it ended as `{status}`: {}", record.stderr.trim_end()),
        )),
    };
    Trial {
        health: if error.is_none() {
            Health::Ok
        } else {
            Health::Failed
        },
        command: SHOWN,
        duration_ms: record.duration_ms,
        seen,
        isolation: record.isolation,
        error,
    }
}

/// What the kernel told the program about itself: as it should be, and otherwise.
fn confinement(status: &str) -> (Vec<String>, Vec<String>) {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.strip_prefix(':').map(str::trim)
    };
    let none = |sets: &[&str]| sets.iter().all(|set| field(set).is_some_and(is_zero));
    let own_pids = field("NSpid").is_some_and(|pids| !pids.contains(char::is_whitespace));
    let unprivileged = field("Uid").is_some_and(|ids| !ids.split_whitespace().any(is_zero));
    let checks = [
        (own_pids, "its own pids", "other pids are visible"),
        (unprivileged, "no root", "it runs as root"),
        (
            none(&["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]),
            "no capabilities",
            "it has capabilities",
        ),
        (
            field("NoNewPrivs") == Some("1"),
            "no new privileges",
            "it can gain privileges",
        ),
        (
            field("Seccomp") == Some("2"),
            "a system call filter",
            "it has no system call filter",
        ),
    ];
    let (mut seen, mut wrong) = (Vec::new(), Vec::new());
    for (holds, as_it_should, otherwise) in checks {
        if holds {
            seen.push(as_it_should.to_owned());
        } else {
            wrong.push(otherwise.to_owned());
        }
    }
    (seen, wrong)
}

fn is_zero(number: &str) -> bool {
    !number.is_empty() && number.bytes().all(|digit| digit == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDE: &str = "Name:\tcat\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t2\n\
        CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n\
        CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n";

    #[test]
    fn a_confined_program_sees_all_of_it() {
        let (seen, wrong) = confinement(INSIDE);
        assert_eq!(wrong, Vec::<String>::new());
        assert_eq!(seen.len(), 5);
    }

    #[test]
    fn each_missing_part_is_named() {
        for (from, to, named) in [
            ("NSpid:\t2", "NSpid:\t77\t2", "other pids are visible"),
            ("Uid:\t1000", "Uid:\t0", "it runs as root"),
            ("CapBnd:\t0", "CapBnd:\t8", "it has capabilities"),
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0", "it can gain privileges"),
            ("Seccomp:\t2", "Seccomp:\t0", "it has no system call filter"),
            ("Seccomp:\t2\n", "", "it has no system call filter"),
        ] {
            let (_, wrong) = confinement(&INSIDE.replace(from, to));
            assert_eq!(wrong, [named], "{from}");
        }
        assert_eq!(confinement("").1.len(), 5);
    }
}
