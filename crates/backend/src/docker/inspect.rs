//! What the engine says about its containers, as far as docker and podman say it in the same way.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use glovebox_model::{Code, Error, Result, Stage};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::cli::{Cli, refused};
use super::name::Found;

const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Container {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) created: String,
    pub(super) state: State,
    pub(super) config: Config,
    #[serde(default)]
    network_settings: NetworkSettings,
    #[serde(default)]
    mounts: Vec<Volume>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Volume {
    source: String,
    destination: PathBuf,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct State {
    pub(super) status: String,
    pub(super) running: bool,
    pub(super) paused: bool,
    #[serde(rename = "OOMKilled")]
    pub(super) oom_killed: bool,
    pub(super) exit_code: i64,
    pub(super) error: String,
    pub(super) started_at: String,
    pub(super) finished_at: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Config {
    pub(super) image: String,
    pub(super) labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct NetworkSettings {
    ports: Option<BTreeMap<String, Option<Vec<Binding>>>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Binding {
    host_ip: String,
    host_port: String,
}

impl State {
    /// Whether its program ever ran.
    pub(super) fn was_started(&self) -> bool {
        !self.started_at.is_empty() && !self.started_at.starts_with("0001-")
    }

    /// From its own start to its end, by the engine's clock.
    pub(super) fn lasted(&self) -> Option<Duration> {
        let at = |text: &str| text.parse::<jiff::Timestamp>().ok();
        let span = at(&self.finished_at)?.duration_since(at(&self.started_at)?);
        Duration::try_from(span).ok()
    }
}

impl Container {
    pub(super) fn label(&self, name: &str) -> Option<&str> {
        self.config.labels.as_ref()?.get(name).map(String::as_str)
    }

    /// Where it sees something, and where that lies for the engine.
    pub(super) fn volumes(&self) -> Vec<(PathBuf, String)> {
        let pair = |it: &Volume| (it.destination.clone(), it.source.clone());
        self.mounts.iter().map(pair).collect()
    }

    /// Ports that are published on the host's loopback.
    pub(super) fn ports(&self) -> Vec<(u16, SocketAddr)> {
        let ports = self.network_settings.ports.iter().flatten();
        let bound = ports.flat_map(|(inside, bindings)| {
            let inside = inside.strip_suffix("/tcp").and_then(|it| it.parse().ok());
            let bindings = bindings.iter().flatten();
            bindings.filter_map(move |binding| {
                let address: IpAddr = binding.host_ip.parse().ok()?;
                let port = binding.host_port.parse().ok()?;
                let at = SocketAddr::new(address, port);
                address.is_loopback().then_some((inside?, at))
            })
        });
        bound.collect()
    }

    pub(super) fn found(self) -> Found {
        Found {
            name: self.name.trim_start_matches('/').to_owned(),
            id: self.id,
            running: self.state.running && !self.state.paused,
            image: self.config.image,
            labels: self.config.labels.unwrap_or_default(),
            created: self.created,
        }
    }
}

/// None when the engine does not know it.
pub(super) fn container(cli: &Cli, name: &str) -> Result<Option<Container>> {
    let answer = cli.call(&["container", "inspect", name], PATIENCE)?;
    if answer.status.success() {
        let mut found: Vec<Container> = read(&answer.stdout)?;
        return Ok(found.pop());
    }
    if is_absent(&answer.stderr) {
        return Ok(None);
    }
    Err(refused(&answer.stderr))
}

pub(super) fn is_absent(stderr: &str) -> bool {
    let said = stderr.to_ascii_lowercase();
    said.contains("no such container") || said.contains("no container with name or id")
}

/// All that carry the label, running or not.
pub(super) fn labelled(cli: &Cli, label: &str) -> Result<Vec<Found>> {
    let filter = format!("--filter=label={label}");
    let ids = cli.ask(&["ps", "--all", "--quiet", "--no-trunc", &filter], PATIENCE)?;
    let ids = String::from_utf8_lossy(&ids).into_owned();
    let ids: Vec<&str> = ids.split_whitespace().collect();
    let mut all = Vec::new();
    for some in ids.chunks(100) {
        let args: Vec<&str> = ["container", "inspect"]
            .iter()
            .chain(some)
            .copied()
            .collect();
        let answer = cli.call(&args, PATIENCE)?;
        // One that was removed meanwhile is told on the side; the others are there.
        if !answer.status.success() && !is_absent(&answer.stderr) {
            return Err(refused(&answer.stderr));
        }
        let found: Vec<Container> = read(&answer.stdout)?;
        all.extend(found.into_iter().map(Container::found));
    }
    Ok(all)
}

pub(super) fn image_present(cli: &Cli, image: &str) -> Result<bool> {
    let args = ["image", "inspect", "--format={{.Id}}", image];
    let answer = cli.call(&args, PATIENCE)?;
    if answer.status.success() {
        return Ok(true);
    }
    let said = answer.stderr.to_ascii_lowercase();
    if said.contains("no such image") || said.contains("image not known") {
        return Ok(false);
    }
    Err(refused(&answer.stderr))
}

pub(super) fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T> {
    serde_json::from_slice(answer).map_err(|error| {
        Error::new(
            Code::BackendUnavailable,
            Stage::Open,
            "the container engine's answer is not understood",
        )
        .caused_by(error)
        .hint("Docker 20.10 or podman 4 and newer are known to work")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_the_loopback_alone() -> Result<()> {
        let text = r#"{"Id":"a","Name":"/n","Created":"","State":{},"Config":{"Image":"i","Labels":null},
            "NetworkSettings":{"Ports":{"80/tcp":[{"HostIp":"127.0.0.1","HostPort":"32768"}],
            "81/tcp":[{"HostIp":"0.0.0.0","HostPort":"81"}],"82/tcp":null,"83/udp":[]}}}"#;
        let container: Container = read(text.as_bytes())?;
        let expected = SocketAddr::from(([127, 0, 0, 1], 32768));
        assert_eq!(container.ports(), [(80, expected)]);
        assert_eq!(container.found().name, "n");
        Ok(())
    }

    #[test]
    fn how_long_it_ran() {
        let mut state = State {
            started_at: "0001-01-01T00:00:00Z".into(),
            ..State::default()
        };
        assert!(!state.was_started());
        state.started_at = "2026-01-01T00:00:00.25Z".into();
        state.finished_at = "2026-01-01T00:00:01.5Z".into();
        assert!(state.was_started());
        assert_eq!(state.lasted(), Some(Duration::from_millis(1250)));
    }
}
