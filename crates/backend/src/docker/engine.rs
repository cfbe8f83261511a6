//! One engine, as this process knows it: its command, what it said about itself, where it sees our
//! files, and containers that could not be removed while it was away.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use glovebox_cage::seccomp::{Arch, container_profile};
use glovebox_model::{Code, Error, Pull, Result, Stage};
use glovebox_workspace::adapter::EngineView;

use super::account::Parents;
use super::cli::{Cli, Program, refused, shorten};
use super::create::{Blueprint, create_args};
use super::facts::EngineFacts;
use super::inspect;
use super::settings::Settings;
use super::trial;
use crate::keepers::Keepers;

const CREATE: Duration = Duration::from_secs(60);
const REMOVE: Duration = Duration::from_secs(20);
const PULL: Duration = Duration::from_secs(600);
/// An engine is seldom changed while it runs.
const FRESH: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Engine {
    pub(super) settings: Settings,
    pub(super) state: PathBuf,
    pub(super) host: Option<String>,
    pub(super) parents: Parents,
    pub(super) keepers: Keepers,
    facts: Mutex<Option<(Instant, EngineFacts)>>,
    seen: Mutex<Option<EngineView>>,
    images: Mutex<BTreeMap<String, Instant>>,
    filter: Mutex<Option<PathBuf>>,
    orphans: Mutex<BTreeSet<String>>,
    /// One at a time removes them: a name may be another container's afterwards.
    sweeping: Mutex<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    pub(super) fn new(settings: Settings, state: &Path) -> Self {
        Self {
            settings,
            state: state.to_path_buf(),
            host: None,
            parents: Parents::default(),
            keepers: Keepers::default(),
            facts: Mutex::new(None),
            seen: Mutex::new(None),
            images: Mutex::new(BTreeMap::new()),
            filter: Mutex::new(None),
            orphans: Mutex::new(BTreeSet::new()),
            sweeping: Mutex::new(()),
        }
    }

    /// Where the filter of system calls lies that containers get; written once for each process.
    pub(super) fn filter(&self) -> Result<PathBuf> {
        let mut known = lock(&self.filter);
        if let Some(path) = &*known {
            return Ok(path.clone());
        }
        let failed = |error: std::io::Error| {
            let message = "the filter of system calls cannot be written for the engine";
            Error::new(Code::SetupFailed, Stage::Open, message).caused_by(error)
        };
        let path = self.state.join("container-filter.json");
        let fresh = self.state.join(format!(".filter-{}", std::process::id()));
        // Another process writes the same, and no reader gets half of it.
        std::fs::write(&fresh, container_profile(Arch::HOST)).map_err(failed)?;
        std::fs::rename(&fresh, &path).map_err(failed)?;
        *known = Some(path.clone());
        Ok(path)
    }

    pub(super) fn cli(&self) -> Result<Cli> {
        Cli::find(&self.settings.config.cli, self.host.as_deref())
    }

    pub(super) fn facts(&self, cli: &Cli) -> Result<EngineFacts> {
        if let Some((at, facts)) = &*lock(&self.facts)
            && at.elapsed() < FRESH
        {
            return Ok(facts.clone());
        }
        self.ask(cli)
    }

    pub(super) fn ask(&self, cli: &Cli) -> Result<EngineFacts> {
        let facts = EngineFacts::ask(cli);
        *lock(&self.facts) = facts.as_ref().ok().map(|it| (Instant::now(), it.clone()));
        facts
    }

    /// Found out once; what an engine outside sees of us does not change while we run.
    pub(super) fn seen(&self, cli: &Cli, image: &str) -> Result<EngineView> {
        let mut known = lock(&self.seen);
        if let Some(seen) = &*known {
            return Ok(seen.clone());
        }
        let seen = trial::find_out(self, cli, image)?;
        *known = Some(seen.clone());
        Ok(seen)
    }

    /// There, or fetched if the settings say so.
    pub(super) fn need_image(&self, cli: &Cli, image: &str) -> Result<()> {
        let known = lock(&self.images).get(image).copied();
        if known.is_some_and(|at| at.elapsed() < FRESH) {
            return Ok(());
        }
        if !inspect::image_present(cli, image)? {
            match self.settings.config.pull {
                Pull::Never => return Err(self.no_image(cli, image)),
                Pull::Missing => self.pull(cli, image)?,
            }
        }
        lock(&self.images).insert(image.to_owned(), Instant::now());
        Ok(())
    }

    fn pull(&self, cli: &Cli, image: &str) -> Result<()> {
        let platform = self.settings.config.platform.as_ref();
        let platform = platform.map(|it| format!("--platform={it}"));
        let mut args = vec!["pull", "--quiet"];
        args.extend(platform.as_deref());
        args.push(image);
        let answer = cli.call(&args, PULL)?;
        if answer.status.success() {
            return Ok(());
        }
        Err(self.no_image(cli, image).caused_by(shorten(&answer.stderr)))
    }

    fn no_image(&self, cli: &Cli, image: &str) -> Error {
        let command = match cli.program {
            Program::Docker => "docker",
            Program::Podman => "podman",
        };
        let error = Error::new(
            Code::BackendUnavailable,
            Stage::Open,
            format!("the container engine has no image `{image}`"),
        );
        if image.starts_with("glovebox-sandbox") {
            error
                .hint(format!(
                    "make it: `images/sandbox/build --tag {image}` in Glovebox's source"
                ))
                .hint(format!(
                    "or from any root: `{command} import rootfs.tar {image}`"
                ))
        } else {
            error
                .hint(format!(
                    "fetch it: `{command} pull {image}`; the engine fetches by itself what the \
                     configuration names: `[docker] image = \"{image}\"` with `pull = \"missing\"`"
                ))
                .hint(format!(
                    "or from a file: `{command} load -i FILE`, `{command} import FILE {image}`"
                ))
        }
    }

    /// The new container's id.
    pub(super) fn create(&self, cli: &Cli, asked: &Blueprint<'_>) -> Result<String> {
        self.remove_orphans(cli);
        let args = create_args(asked);
        let answer = cli.call_with(&args, asked.environment.values(), CREATE)?;
        if answer.status.success() {
            let id = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
            return Ok(id);
        }
        let said = answer.stderr.as_str();
        let lower = said.to_ascii_lowercase();
        if lower.contains("no such image") || lower.contains("image not known") {
            lock(&self.images).remove(asked.image);
            return Err(self.no_image(cli, asked.image));
        }
        if lower.contains("already in use") {
            return Err(Error::new(
                Code::Conflict,
                Stage::Open,
                format!("there is a container `{}` already", asked.name),
            )
            .caused_by(shorten(said)));
        }
        if lower.contains("init binary") || lower.contains("catatonit") {
            return Err(
                refused(said).hint("podman needs `catatonit` for an init inside: install it")
            );
        }
        Err(refused(said))
    }

    /// Holds the id of the container whose set-up was finished.
    pub(super) fn ready_mark(&self, name: &str) -> PathBuf {
        self.state.join(format!("container-ready-{name}"))
    }

    /// Locked by whatever may still end the container for an exec of an earlier process.
    pub(super) fn guard_lock(&self, name: &str) -> PathBuf {
        self.state.join(format!("container-guard-{name}"))
    }

    /// With its anonymous volumes; absent is fine.
    pub(super) fn remove(&self, cli: &Cli, name: &str) -> Result<()> {
        let _ = std::fs::remove_file(self.ready_mark(name));
        let _ = std::fs::remove_file(self.guard_lock(name));
        let args = ["rm", "--force", "--volumes", name];
        let outcome = cli.call(&args, REMOVE).and_then(|answer| {
            let said = answer.stderr.as_str();
            let fine = answer.status.success()
                || inspect::is_absent(said)
                || said.contains("is already in progress");
            if fine { Ok(()) } else { Err(refused(said)) }
        });
        let mut orphans = lock(&self.orphans);
        match &outcome {
            Ok(()) => orphans.remove(name),
            Err(_) => orphans.insert(name.to_owned()),
        };
        outcome
    }

    /// To be removed when the engine answers again.
    pub(super) fn orphan(&self, name: &str) {
        lock(&self.orphans).insert(name.to_owned());
    }

    pub(super) fn is_orphan(&self, name: &str) -> bool {
        lock(&self.orphans).contains(name)
    }

    pub(super) fn has_orphans(&self) -> bool {
        !lock(&self.orphans).is_empty()
    }

    /// The engine was away or did not want to; now it answers.
    pub(super) fn remove_orphans(&self, cli: &Cli) {
        let _alone = lock(&self.sweeping);
        let orphans: Vec<String> = lock(&self.orphans).iter().cloned().collect();
        for name in orphans {
            let _ = self.remove(cli, &name);
        }
    }
}

/// A container on its way out.
#[derive(Debug)]
pub(super) struct Removal(Option<JoinHandle<()>>);

impl Removal {
    pub(super) fn start(engine: &Arc<Engine>, cli: &Cli, name: &str) -> Self {
        let (engine, cli, name) = (Arc::clone(engine), cli.clone(), name.to_owned());
        let removing = std::thread::Builder::new()
            .name("container-removal".to_owned())
            .spawn({
                let (engine, cli, name) = (Arc::clone(&engine), cli.clone(), name.clone());
                move || drop(engine.remove(&cli, &name))
            });
        match removing {
            Ok(thread) => Self(Some(thread)),
            Err(_) => {
                let _ = engine.remove(&cli, &name);
                Self(None)
            }
        }
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}
