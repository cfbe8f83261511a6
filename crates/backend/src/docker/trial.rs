//! A container that is made only to see whether one can be: does the engine run programs, and does
//! it see our files where we think?

use std::path::{Path, PathBuf};
use std::time::Duration;

use glovebox_model::{Access, Code, Error, Result, Stage};
use glovebox_workspace::adapter::{EngineView, HostPath};

use super::cli::{Cli, shorten};
use super::engine::Engine;
use super::inspect;
use super::mount::Mount;
use super::name::ContainerName;

/// Of somebody who wants to know whether it works.
pub(super) const PROBE: Duration = Duration::from_secs(5);
/// Of an exec, which cannot go on without.
const FIRST: Duration = Duration::from_secs(60);

/// Where the engine sees our directories.
pub(super) fn find_out(engine: &Engine, cli: &Cli, image: &str) -> Result<EngineView> {
    let config = &engine.settings.config;
    if let Some(theirs) = &config.host_state_dir {
        return EngineView::at(&engine.state, theirs);
    }
    let remote = cli
        .host()
        .and_then(|host| host.to_str())
        .is_some_and(|host| {
            ["tcp://", "ssh://", "http://", "https://"]
                .iter()
                .any(|scheme| host.starts_with(scheme))
        });
    let contained = Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists();
    if !remote && !contained {
        return Ok(EngineView::Same);
    }
    let seen = if contained {
        own_volumes(cli)?
    } else {
        EngineView::Same
    };
    // It looks as if it could be; only a file that comes through proves it.
    let trial = Trial {
        image,
        runtime: None,
        patience: FIRST,
    };
    trial.run(engine, cli, &seen)?;
    Ok(seen)
}

/// If the engine knows the container that we are in, its volumes are where our files are.
fn own_volumes(cli: &Cli) -> Result<EngineView> {
    for id in own_ids() {
        if let Some(us) = inspect::container(cli, &id)? {
            return seen_through(us.volumes());
        }
    }
    // An engine inside the same container as we are.
    Ok(EngineView::Same)
}

/// A volume in memory or of a driver has no directory on the host. What is in it is in no volume,
/// unless it lies in another one: there the same path leads to something else.
fn seen_through(volumes: Vec<(PathBuf, String)>) -> Result<EngineView> {
    let mut places = Vec::new();
    let mut hidden = Vec::new();
    for (ours, theirs) in volumes {
        match HostPath::parse(&theirs) {
            Ok(theirs) => places.push((ours, theirs)),
            Err(fault) => hidden.push((ours, fault)),
        }
    }
    for (ours, fault) in hidden {
        if let Some((around, _)) = places.iter().find(|(place, _)| ours.starts_with(place)) {
            return Err(Error::new(
                Code::BackendUnavailable,
                Stage::Open,
                "Glovebox runs in a container, and one of its volumes cannot be given to others",
            )
            .caused_by(format!(
                "what the engine says of `{}`, in the volume `{}`, {fault}",
                ours.display(),
                around.display()
            ))
            .hint("mount it outside of that volume, or set `host_state_dir` to where the state directory lies on the host"));
        }
    }
    Ok(EngineView::At(places))
}

fn own_ids() -> Vec<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let is_id = |text: &&str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let mut ids: Vec<String> = mounts
        .split(['/', ' ', '-'])
        .filter(is_id)
        .map(str::to_owned)
        .collect();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    if host.len() >= 12 && host.bytes().all(|b| b.is_ascii_hexdigit()) {
        ids.push(host.to_owned());
    }
    ids.dedup();
    ids
}

/// A trivial container that shows a file of ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial<'a> {
    pub(super) image: &'a str,
    pub(super) runtime: Option<&'a str>,
    pub(super) patience: Duration,
}

impl Trial<'_> {
    /// Says which kernel it saw inside.
    pub(super) fn run(&self, engine: &Engine, cli: &Cli, seen: &EngineView) -> Result<String> {
        let config = &engine.settings.config;
        let failed = |why: &dyn std::fmt::Display| {
            Error::new(
                Code::BackendUnavailable,
                Stage::Open,
                "a trial container could not be run",
            )
            .caused_by(why)
        };
        let mut random = [0u8; 16];
        getrandom::fill(&mut random).map_err(|error| failed(&error))?;
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let dir = tempdir(&engine.state, &token).map_err(|error| failed(&error))?;
        let mount = Mount::new(&seen.translate(&dir.0)?, "/token", Access::Ro)?;
        let name = ContainerName::of(&config.container_prefix, &format!("trial-{token}"))?;
        let user = engine.settings.user;
        let mut args = vec![
            "run".to_owned(),
            "--rm".to_owned(),
            "--pull=never".to_owned(),
            format!("--name={name}"),
            "--label=glovebox.trial=1".to_owned(),
            "--network=none".to_owned(),
            "--read-only".to_owned(),
            "--cap-drop=ALL".to_owned(),
            "--security-opt=no-new-privileges".to_owned(),
            "--log-driver=none".to_owned(),
            format!("--user={}:{}", user.uid, user.gid),
            "--entrypoint=sh".to_owned(),
        ];
        // Unlike a volume, it makes no directory where there is none.
        args.extend(mount.map(|it| format!("--mount={}", it.option())));
        args.extend(self.runtime.map(|it| format!("--runtime={it}")));
        args.push(self.image.to_owned());
        args.push("-c".to_owned());
        args.push("cat /token/token; uname -r".to_owned());
        let outcome = cli.call(&args, self.patience);
        let answer = match outcome {
            Ok(answer) => answer,
            Err(error) => {
                let _ = engine.remove(cli, name.as_str());
                return Err(error);
            }
        };
        let said = String::from_utf8_lossy(&answer.stdout).into_owned();
        let mut lines = said.lines();
        if lines.next() == Some(token.as_str()) {
            return Ok(lines.next().unwrap_or_default().to_owned());
        }
        let unseen = [
            "/token",
            "bind source path does not exist",
            "no such file or directory",
        ];
        if said.is_empty() && !unseen.iter().any(|it| answer.stderr.contains(it)) {
            return Err(failed(&shorten(&answer.stderr)));
        }
        Err(failed(&format!(
            "the engine does not see `{}` as we do",
            engine.state.display()
        ))
        .hint("set `host_state_dir` to where the state directory lies for the engine")
        .hint("an engine on another machine cannot be used: containers need our directories"))
    }
}

/// Readable by whoever is inside, in a directory that nobody else finds.
fn tempdir(state: &Path, token: &str) -> std::io::Result<TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir(state.join(format!("trial-{token}")));
    std::fs::create_dir(&dir.0)?;
    std::fs::set_permissions(&dir.0, PermissionsExt::from_mode(0o755))?;
    let file = dir.0.join("token");
    std::fs::write(&file, format!("{token}\n"))?;
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644))?;
    Ok(dir)
}

struct TempDir(PathBuf);

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(volumes: &[(&str, &str)]) -> Result<EngineView> {
        let pair = |(ours, theirs): &(&str, &str)| (PathBuf::from(ours), (*theirs).to_owned());
        seen_through(volumes.iter().map(pair).collect())
    }

    #[test]
    fn the_nearest_volume_decides() -> Result<()> {
        let view = seen(&[
            ("/data", "/srv/volumes/data"),
            ("/data/deep", "/mnt/deep"),
            ("/c", r"C:\work"),
        ])?;
        for (ours, theirs) in [
            ("/data", "/srv/volumes/data"),
            ("/data/x/y", "/srv/volumes/data/x/y"),
            ("/data/deep/z", "/mnt/deep/z"),
            ("/c/z", r"C:\work\z"),
        ] {
            assert_eq!(view.translate(Path::new(ours))?.to_string(), theirs);
        }
        let refused = view.translate(Path::new("/database")).err();
        assert_eq!(refused.map(|it| it.code), Some(Code::BackendUnavailable));
        Ok(())
    }

    #[test]
    fn what_lies_in_memory_is_not_looked_for_on_the_host() -> Result<()> {
        let view = seen(&[("/data", "/srv/data"), ("/cache", "")])?;
        assert!(view.translate(Path::new("/cache/x")).is_err());
        let error = seen(&[("/data/tmp", ""), ("/data", "/srv/data")]).unwrap_err();
        assert_eq!(error.code, Code::BackendUnavailable);
        assert!(error.causes.iter().any(|it| it.contains("/data/tmp")));
        Ok(())
    }
}
