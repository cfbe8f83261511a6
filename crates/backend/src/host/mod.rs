//! The elevated backend: a program without any sandbox, as the user that Glovebox runs as.
//!
//! It is for what only the host itself can do. Whoever calls this has asked a person before; here
//! nothing is asked and nothing is isolated. What is kept even so: a complete environment of its own,
//! no descriptor and no terminal of ours, time and limits by watching, and an end for everybody that
//! the program started, as far as [`family`] can find them.

mod attend;
mod family;
mod places;
mod start;
mod variables;

use std::ffi::CString;

use glovebox_model::{
    BackendName, Code, Error, Evidence, Grade, Guarantee, Isolation, LimitsDemand, Result,
    SecurityMode, Stage, Stream,
};

use self::attend::{Attend, attend};
use self::places::Places;
use self::start::{Launch, Program};
use self::variables::Variables;
use crate::disk::Disk;
use crate::ended::Ended;
use crate::native::pump::{Inlet, Outlet};
use crate::sandbox::{Run, Sandbox, TeardownGuard, no_observation, no_secrets, no_session};
use crate::spec::{Spec, c_string};

const MARK: &str = "GLOVEBOX_RUN";

/// The host itself, for one program.
#[derive(Debug)]
pub struct Host {
    places: Places,
    isolation: Isolation,
    largest_file: Option<u64>,
}

impl Host {
    /// What whoever reads a record must know.
    pub const NOTE: &'static str = "ran on the host, without a sandbox";

    /// Refuses whatever only a sandbox gives. Nothing is started yet.
    pub fn open(spec: &Spec<'_>) -> Result<Box<dyn Sandbox>> {
        no_observation("host", spec)?;
        check(spec)?;
        let kept = Self::evidence().into_iter();
        Ok(Box::new(Self {
            places: Places::new(spec)?,
            isolation: Isolation(kept.map(|it| (it.guarantee, it.grade)).collect()),
            largest_file: spec.largest_file,
        }))
    }

    /// What it gives on any host: limits by watching, and of all else nothing.
    pub fn evidence() -> Vec<Evidence> {
        let evidence = |guarantee: Guarantee| match guarantee.is_limit() {
            true => Evidence {
                guarantee,
                grade: Grade::Supervised,
                evidence: "watched, as far as its processes are found".to_owned(),
                fix: None,
            },
            false => Evidence {
                guarantee,
                grade: Grade::Unavailable,
                evidence: "there is no sandbox".to_owned(),
                fix: None,
            },
        };
        Guarantee::ALL.into_iter().map(evidence).collect()
    }

    /// Whether a call may not set this variable for a program on the host.
    pub fn refuses_variable(name: &str) -> bool {
        variables::is_refused(name)
    }

    fn execute(&self, run: Run<'_>) -> Result<Ended> {
        let order = run.order;
        let mark = mark()?;
        let variables = Variables::new(&order.env, &self.places, &mark)?;
        let cwd = self.places.directory(&order.cwd)?;
        let command = order.argv.first().map_or(&b""[..], |it| it.as_bytes());
        let no_pipe = |errno| start::failed("no pipe is left").caused_by(errno);
        let (inlet, input) = Inlet::new(run.stdin).map_err(no_pipe)?;
        let (stdout, output) = Outlet::new(Stream::Stdout).map_err(no_pipe)?;
        let (stderr, error) = Outlet::new(Stream::Stderr).map_err(no_pipe)?;
        let disk = Disk::new(run.watched, &run.profile.limits);
        let program = Program::start(Launch {
            command: self.places.command(command)?,
            argv: order.argv.iter().map(c_string).collect::<Vec<CString>>(),
            env: &variables.pairs,
            path: &variables.path,
            cwd: &cwd,
            stdio: [input, output, error],
            limits: &run.profile.limits,
            largest_file: self.largest_file,
            mark,
        })?;
        let asked = Attend {
            program,
            profile: run.profile,
            inlet,
            outlets: [stdout, stderr],
            disk,
        };
        attend(asked, run.sink, run.cancel)
    }
}

impl Sandbox for Host {
    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn run(self: Box<Self>, run: Run<'_>) -> (Result<Ended>, TeardownGuard) {
        let ended = no_secrets("host", run.secrets)
            .and_then(|()| no_session("host", &run))
            .and_then(|()| self.execute(run));
        (ended, TeardownGuard::nothing())
    }

    /// Nothing was made yet.
    fn dismiss(self: Box<Self>) -> TeardownGuard {
        TeardownGuard::nothing()
    }
}

/// Nobody can guess it, so nobody else has it.
fn mark() -> Result<Vec<u8>> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|error| start::failed("no random numbers").caused_by(error))?;
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{MARK}={digits}").into_bytes())
}

/// Policy has said all this before; what runs without a sandbox is asked twice.
fn check(spec: &Spec<'_>) -> Result<()> {
    let profile = spec.profile;
    let refuse = |code, message: String, hint: &str| {
        Err(Error::new(code, Stage::Admit, message).hint(hint.to_owned()))
    };
    if profile.backend != Some(BackendName::Host) {
        let message = "the `host` backend runs only what names it".to_owned();
        return refuse(Code::PolicyDenied, message, "name it: `--backend host`");
    }
    if profile.security == SecurityMode::Strict {
        let message = "strict security runs nothing on the host without a sandbox".to_owned();
        return refuse(
            Code::PolicyDenied,
            message,
            "leave out `--backend host`, or let the operator set `security = \"permissive\"`",
        );
    }
    let cannot = |what: &str| {
        refuse(
            Code::BackendUnavailable,
            format!("the `host` backend cannot give {what}"),
            "leave out `--backend host`, or what asks for it; `glovebox policy explain` shows what does",
        )
    };
    if let Some(guarantee) = profile.require.first() {
        return cannot(&format!("`{guarantee}`, which is demanded of the kernel"));
    }
    if profile.limits_demand == LimitsDemand::Kernel {
        return cannot("limits that the kernel enforces");
    }
    if let Some(image) = &profile.image {
        return cannot(&format!("the image `{image}`"));
    }
    if let Some(runtime) = &profile.runtime {
        return cannot(&format!("the container runtime `{runtime}`"));
    }
    if profile.limits.gpus.get() > 0 || profile.limits.tpus.get() > 0 {
        return cannot("graphics or tensor processors");
    }
    if spec.image.is_some() || spec.home.is_some() {
        return cannot("a root or a home directory of its own");
    }
    if !spec.toolchains.is_empty() || !spec.links.is_empty() || !spec.caches.is_empty() {
        return cannot("toolchains or caches at paths of their own");
    }
    if !spec.mounts.is_empty() {
        return cannot("directories of the host at paths of their own");
    }
    Ok(())
}
