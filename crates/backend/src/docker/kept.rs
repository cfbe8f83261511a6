//! A container that stands between execs. Its main process only waits, as a user of its own; execs
//! come and go beside it, as another user. Whatever an exec leaves running is that user's, and is
//! ended by one signal to all its processes, which cannot reach the main one.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use glovebox_model::{ByteString, Code, Error, Isolation, Result, Stage};
use glovebox_workspace::Dir;

use super::attend::{Attend, Attended, attend};
use super::cli::{Cli, refused, shorten, unreachable};
use super::ending::{ended, lost, refusal};
use super::engine::{Engine, Removal};
use super::environment::{Environment, text};
use super::fresh::{Design, Words, not_started, os};
use super::guard::Guarded;
use super::inspect;
use super::place::{ARTIFACTS, INPUTS, Places, WORK, give, path_of};
use super::settings::User;
use crate::ended::Ended;
use crate::sandbox::{Kept, Run, TeardownGuard, no_secrets, no_session};
use crate::spec::{ExecDirs, Place, Spec};

/// Where the directories of its execs are attached, on our side.
const LABEL_ARTIFACTS: &str = "glovebox.room.artifacts";
const LABEL_INPUTS: &str = "glovebox.room.inputs";
const LABEL_WORK: &str = "glovebox.room.work";
const LABEL_USER: &str = "glovebox.user";
const LABEL_SETUP: &str = "glovebox.setup";

/// How an engine tells of SIGKILL.
const KILLED: i32 = 128 + 9;
/// What an engine's command ends with when the runtime lost the program under it.
const ENGINE_LOST_IT: i32 = 128;
/// From the end of a container to the engine's knowing of it, and how often it is asked.
const LAG: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(50);
const START: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_secs(10);
const SETUP: Duration = Duration::from_secs(600);
/// Two processes that are not of any exec: the init and the one that waits.
const STANDING: u64 = 2;

/// Ends everything of the caller's user but itself, and says so only when nothing is left.
const SWEEP: &str = "n=0; while :; do kill -9 -1 2>/dev/null; left=; \
    for p in /proc/[0-9]*; do [ -O \"$p\" ] && [ \"$p\" != \"/proc/$$\" ] && left=1; done; \
    [ -z \"$left\" ] && exit 0; n=$((n+1)); [ $n -ge 100 ] && exit 3; sleep 0.02; done";

#[derive(Debug)]
pub(super) struct Container {
    engine: Arc<Engine>,
    cli: Cli,
    name: String,
    id: String,
    user: User,
    isolation: Isolation,
    inputs: Option<Dir>,
    artifacts: Dir,
    work: Option<Dir>,
    /// Processes can be counted from here: the runtime shares our kernel.
    countable: bool,
    /// Of one that goes with this process.
    guard: Option<Guarded>,
}

/// The user of the main process: nobody, or another when that is the exec's.
fn idle_user(user: User) -> User {
    let id = if user.uid == 65534 { 65533 } else { 65534 };
    User { uid: id, gid: id }
}

/// Makes, starts and sets up.
pub(super) fn keep(mut design: Design, spec: &Spec<'_>, countable: bool) -> Result<Container> {
    let (Place::Tree(artifacts), inputs) = (&spec.artifacts, tree(&spec.inputs)) else {
        return Err(Error::new(
            Code::Internal,
            Stage::Open,
            "a kept container needs a directory for artifacts when it is made",
        ));
    };
    let label = |dir: &Dir| Ok::<_, Error>(path_of(dir)?.display().to_string());
    let user = design.places.user;
    let labels = &mut design.labels;
    labels.insert(LABEL_ARTIFACTS.to_owned(), label(artifacts.directory)?);
    for (name, dir) in [(LABEL_INPUTS, inputs), (LABEL_WORK, tree(&spec.work))] {
        if let Some(dir) = dir {
            labels.insert(name.to_owned(), label(dir)?);
        }
    }
    labels.insert(LABEL_USER.to_owned(), format!("{}:{}", user.uid, user.gid));
    let setup = design.engine.settings.config.setup_command.clone();
    if setup.is_some() {
        labels.insert(LABEL_SETUP.to_owned(), "once".to_owned());
    }
    let environment = Environment::new(&[], &design.engine.settings.config.env)?;
    let waits = ["sleep".to_owned(), "infinity".to_owned()];
    let mut blueprint = design.blueprint(&environment, &waits, "/", false);
    blueprint.user = idle_user(user);
    let id = design.engine.create(&design.cli, &blueprint)?;
    let own = |dir: Option<&Dir>| {
        dir.map(Dir::try_clone)
            .transpose()
            .map_err(|it| unusable(&it))
    };
    let container = Container {
        inputs: own(inputs)?,
        work: own(tree(&spec.work))?,
        artifacts: artifacts
            .directory
            .try_clone()
            .map_err(|it| unusable(&it))?,
        engine: design.engine,
        cli: design.cli,
        name: design.name.to_string(),
        id,
        user,
        isolation: design.isolation,
        countable,
        guard: None,
    };
    let ready = container.start().and_then(|()| match &setup {
        Some(command) => container.set_up(command),
        None => Ok(()),
    });
    if let Err(error) = ready {
        let _ = container.engine.remove(&container.cli, &container.name);
        return Err(error);
    }
    Ok(container)
}

/// One that is there already. None when there is none, or one that was never finished.
pub(super) fn adopt(
    engine: &Arc<Engine>,
    cli: Cli,
    name: &str,
    isolation: Isolation,
    countable: bool,
) -> Result<Option<Container>> {
    Guarded::wait_for_none(engine, name)?;
    let Some(found) = inspect::container(&cli, name)? else {
        return Ok(None);
    };
    let dir = |label: &str| match found.label(label) {
        Some(path) => Dir::open_trusted(Path::new(path)).map(Some),
        None => Ok(None),
    };
    let user = found.label(LABEL_USER).and_then(|text| {
        let (uid, gid) = text.split_once(':')?;
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        (uid != 0 && gid != 0).then_some(User { uid, gid })
    });
    let (Some(user), Ok(Some(artifacts))) = (user, dir(LABEL_ARTIFACTS)) else {
        return Err(Error::new(
            Code::Conflict,
            Stage::Open,
            format!("the container `{name}` was not made by Glovebox, or its directories are gone"),
        )
        .hint(format!("remove it: `docker rm --force {name}`")));
    };
    let container = Container {
        engine: Arc::clone(engine),
        name: name.to_owned(),
        id: found.id.clone(),
        user,
        isolation,
        inputs: dir(LABEL_INPUTS).map_err(|it| unusable(&it))?,
        work: dir(LABEL_WORK).map_err(|it| unusable(&it))?,
        artifacts,
        countable,
        cli,
        guard: None,
    };
    let ready = std::fs::read_to_string(engine.ready_mark(name));
    if found.label(LABEL_SETUP).is_some() && ready.ok() != Some(found.id) {
        // Its set-up was cut short, and may not be one that can be done twice.
        container.engine.remove(&container.cli, name)?;
        return Ok(None);
    }
    let mut container = container;
    if !container.is_alive() {
        container.start()?;
    }
    // What still runs in it was somebody's who is gone.
    container.sweep()?;
    Ok(Some(container))
}

fn tree<'dir>(place: &Place<'dir>) -> Option<&'dir Dir> {
    match place {
        Place::Tree(tree) => Some(tree.directory),
        Place::Empty | Place::Later(_) => None,
    }
}

fn unusable(why: &dyn std::fmt::Display) -> Error {
    Error::new(
        Code::WorkspaceRefused,
        Stage::Open,
        "a directory of the sandbox cannot be used",
    )
    .caused_by(why)
}

impl Container {
    pub(super) fn with_guard(mut self, guard: Option<Guarded>) -> Self {
        self.guard = guard;
        self
    }

    fn start(&self) -> Result<()> {
        let answer = self.cli.call(&["start", &self.name], START)?;
        if !answer.status.success() {
            let said = answer.stderr.as_str();
            return Err(refusal(said).unwrap_or_else(|| refused(said)));
        }
        // An image without `sleep`, or one for another machine, ends at once.
        let ended = match inspect::container(&self.cli, &self.name)? {
            Some(found) if found.state.running => None,
            Some(found) => Some(format!(
                "it ended with code {} {}",
                found.state.exit_code, found.state.error
            )),
            None => Some("it is not there any more".to_owned()),
        };
        match ended {
            None => Ok(()),
            Some(why) => Err(not_started(&why).hint(
                "kept containers need `sleep` and `sh` in their image, made for this machine",
            )),
        }
    }

    fn set_up(&self, command: &str) -> Result<()> {
        let user = format!("--user={}:{}", self.user.uid, self.user.gid);
        let args = ["exec", &user, &self.name, "sh", "-lc", command];
        let failed = |why: &dyn std::fmt::Display| {
            Error::new(
                Code::SetupFailed,
                Stage::Open,
                "the `setup_command` of the container failed",
            )
            .caused_by(why)
            .hint("the container was removed; the command runs as the user of the settings")
        };
        let answer = self.cli.call(&args, SETUP)?;
        if !answer.status.success() {
            let said = format!(
                "{} {}",
                String::from_utf8_lossy(&answer.stdout),
                answer.stderr
            );
            let tail: String = said.chars().rev().take(400).collect();
            let tail: String = tail.chars().rev().collect();
            return Err(failed(&format!("{}: {}", answer.status, shorten(&tail))));
        }
        self.sweep()?;
        std::fs::write(self.engine.ready_mark(&self.name), &self.id).map_err(|error| failed(&error))
    }

    fn exec_args(
        &self,
        environment: &Environment,
        words: &Words<'_>,
        stdin: bool,
    ) -> Vec<OsString> {
        let mut args = os(&["exec"]);
        if stdin {
            args.push("--interactive".into());
        }
        args.push(format!("--user={}:{}", self.user.uid, self.user.gid).into());
        args.push(format!("--workdir={}", words.cwd).into());
        args.extend(environment.args());
        args.push((&self.name).into());
        args.extend(words.argv.iter().map(OsString::from));
        args
    }

    /// Ends what is left of an exec; the whole container, if that is what it takes.
    fn sweep(&self) -> Result<()> {
        if self.countable {
            let account = self.engine.parents.find(&self.id);
            let sum = account.and_then(|account| account.sum());
            if sum.is_some_and(|sum| sum.pids <= STANDING) {
                return Ok(());
            }
        }
        let user = format!("--user={}:{}", self.user.uid, self.user.gid);
        let args = ["exec", &user, &self.name, "sh", "-c", SWEEP];
        let swept = self.cli.call(&args, SHORT);
        if swept.is_ok_and(|answer| answer.status.success()) {
            return Ok(());
        }
        self.restart()
    }

    /// What is in memory is lost, what is on its root stays, and nothing runs on.
    fn restart(&self) -> Result<()> {
        let deadline = Instant::now() + START;
        loop {
            match inspect::container(&self.cli, &self.name)? {
                None => return Err(lost("it is not there any more")),
                Some(found) if !found.state.running => return self.start(),
                Some(found) => {
                    if Instant::now() > deadline {
                        return Err(unreachable("it cannot end a container"));
                    }
                    if found.state.paused {
                        let _ = self.cli.call(&["unpause", &self.name], SHORT);
                    }
                    let _ = self.cli.call(&["kill", &self.name], SHORT);
                    // Returns when it has ended.
                    let _ = self.cli.call(&["wait", &self.name], SHORT);
                }
            }
        }
    }

    /// Before an exec: its inputs where the container sees them, and no artifacts of another's.
    fn furnish(&self, room: ExecDirs<'_>) -> Result<()> {
        let failed = |error: &dyn std::fmt::Display| unusable(error);
        self.artifacts.clear().map_err(|it| failed(&it))?;
        give(&self.artifacts, self.user)?;
        let Some(inputs) = &self.inputs else {
            return match room.inputs {
                Some(_) => Err(unusable(&"the container was made without inputs")),
                None => Ok(()),
            };
        };
        // Without inputs of its own an exec sees the workspace's, which are not ours to remove.
        let Some(given) = room.inputs else {
            return Ok(());
        };
        inputs.clear().map_err(|it| failed(&it))?;
        move_all(given, inputs)
    }

    /// After it: everything where it belongs. Links are moved, never followed.
    fn clear_out(&self, room: ExecDirs<'_>) -> Result<()> {
        let collected = move_all(&self.artifacts, room.artifacts);
        if let (Some(inputs), Some(given)) = (&self.inputs, room.inputs) {
            move_all(inputs, given)?;
        }
        collected
    }

    fn check_cwd(&self, cwd: &str) -> Result<()> {
        let trees = [
            (WORK, self.work.as_ref()),
            (INPUTS, self.inputs.as_ref()),
            (ARTIFACTS, Some(&self.artifacts)),
        ];
        Places::check_below(
            trees.into_iter().filter_map(|(at, dir)| Some((at, dir?))),
            cwd,
        )
    }

    fn execute(&self, run: Run<'_>) -> Result<Ended> {
        let words = Words::new(run.order)?;
        self.check_cwd(words.cwd)?;
        // The operator's are the container's own already.
        let environment = Environment::new(&run.order.env, &Default::default())?;
        let stdin = run.stdin.is_some();
        let mut command = self
            .cli
            .command(&self.exec_args(&environment, &words, stdin));
        command.envs(environment.values());
        let user = format!("--user={}:{}", self.user.uid, self.user.gid);
        let sink = run.sink;
        let guard = Guarded::kept(&self.engine, &self.cli, &self.name, &self.id)?;
        let mut attended = attend(Attend {
            cli: &self.cli,
            command,
            profile: run.profile,
            watched: run.watched,
            stdin: run.stdin,
            terminal: None,
            control: None,
            sink: &mut *sink,
            cancel: run.cancel,
            parents: &self.engine.parents,
            id: &self.id,
            standing: true,
            guard: guard.as_ref(),
            term: os(&["exec", &user, &self.name, "sh", "-c", "kill -TERM -1"]),
            kill: os(&["kill", &self.name]),
            signal: os(&["kill", &self.name]),
        })?;
        if attended.status.is_none() {
            return Err(unreachable(
                "it did not end the program that it was told to end",
            ));
        }
        let guard = match (guard, attended.reason) {
            // Its deadline is over: what is started again must not be ended for it.
            (Some(guard), Some(_)) => {
                guard.release();
                Guarded::kept(&self.engine, &self.cli, &self.name, &self.id)?
            }
            (guard, _) => guard,
        };
        let settled = self.settle(&attended);
        // A container that was taken away, or started again, has nothing of the program in it.
        if !matches!(&settled, Err(error) if error.code != Code::Lost) {
            guard.into_iter().for_each(Guarded::release);
        }
        let starved = settled?;
        let code = match attended.status.and_then(|status| status.code()) {
            // Whatever the engine's command makes of it: all of the container was ended at once.
            _ if starved => KILLED,
            Some(code) => code,
            // Nobody knows how the program ended.
            None if attended.reason.is_none() => {
                return Err(unreachable("its own command was killed"));
            }
            None => 255,
        };
        if attended.reason.is_none() && matches!(code, 126..=128) {
            let said = [attended.outlets[0].held(), attended.outlets[1].held()].join("");
            let engine = said.starts_with("OCI runtime") || said.starts_with("Error");
            if let Some(refusal) = refusal(&said).filter(|_| engine) {
                return Err(refusal);
            }
        }
        for outlet in &mut attended.outlets {
            outlet.release(sink);
        }
        let limits = &run.profile.limits;
        Ok(ended(&attended, code, starved, limits, attended.lasted))
    }

    /// The container after an exec: standing, with nothing of the exec in it. True when the kernel
    /// ended even the process that waits, for the memory that the exec took.
    fn settle(&self, attended: &Attended) -> Result<bool> {
        if attended.killed {
            return self.restart().map(|()| false);
        }
        let mut found = inspect::container(&self.cli, &self.name)?;
        // Where a kernel of its own was ended for memory, its engine may not have heard of it yet.
        let code = attended.status.and_then(|status| status.code());
        let is_ending = attended.used.oom_kills > 0 && code == Some(ENGINE_LOST_IT);
        let deadline = Instant::now() + LAG;
        while is_ending
            && found.as_ref().is_some_and(|it| it.state.running)
            && Instant::now() < deadline
        {
            std::thread::sleep(LOOK);
            found = inspect::container(&self.cli, &self.name)?;
        }
        match found {
            None => Err(lost("it was removed")),
            Some(found) if !found.state.running => {
                self.start()?;
                if found.state.oom_killed || attended.used.oom_kills > 0 {
                    return Ok(true);
                }
                // This run cannot be told from one that was cut off.
                Err(lost("it was stopped"))
            }
            Some(found) if found.state.paused => self.restart().map(|()| false),
            Some(_) => self.sweep().map(|()| false),
        }
    }
}

/// By name, each entry as it is itself.
fn move_all(from: &Dir, to: &Dir) -> Result<()> {
    loop {
        let listing = from.list(10_000).map_err(|error| unusable(&error))?;
        for entry in &listing.entries {
            let name = c_name(&entry.name);
            let name = name.as_c_str();
            rustix::fs::renameat(from, name, to, name).map_err(|errno| unusable(&errno))?;
        }
        if !listing.truncated {
            return Ok(());
        }
    }
}

fn c_name(name: &ByteString) -> std::ffi::CString {
    crate::spec::c_string(name)
}

/// Guarded until it is removed.
struct Closing(Option<Removal>, Option<Guarded>);

impl Drop for Closing {
    fn drop(&mut self) {
        drop(self.0.take());
        self.1.take().into_iter().for_each(Guarded::release);
    }
}

impl Kept for Container {
    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn is_alive(&mut self) -> bool {
        let Ok(Some(found)) = inspect::container(&self.cli, &self.name) else {
            return false;
        };
        if found.id != self.id {
            return false;
        }
        if found.state.paused {
            let unpaused = self.cli.call(&["unpause", &self.name], SHORT);
            return unpaused.is_ok_and(|answer| answer.status.success());
        }
        found.state.running
    }

    fn run(&mut self, room: ExecDirs<'_>, run: Run<'_>) -> Result<Ended> {
        no_secrets("docker", run.secrets)?;
        no_session("docker", &run)?;
        // A path that no engine can take is refused before anything is moved.
        text(&run.order.cwd, "the working directory")?;
        self.furnish(room)?;
        let outcome = self.execute(run);
        let cleared = self.clear_out(room);
        let ended = outcome?;
        cleared?;
        Ok(ended)
    }

    fn close(self: Box<Self>) -> TeardownGuard {
        let removal = Removal::start(&self.engine, &self.cli, &self.name);
        TeardownGuard::of(Closing(Some(removal), self.guard))
    }
}
