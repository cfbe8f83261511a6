//! Containers of this installation: how they are labelled, made, found again and removed.

use std::net::SocketAddr;
use std::sync::Arc;

use glovebox_backend::{ContainerName, Docker, Found, Kept, Labels, Sandbox, Spec};
use glovebox_model::{
    Code, DockerConfig, Error, ExecId, Profile, Published, Result, Sandbox as Row, SandboxId, Stage,
};

use crate::backends::Backends;
use crate::path::Plan;

/// Whose state directory it belongs to.
const HOUSE: &str = "glovebox.house";
/// The process that made it.
const OWNER: &str = "glovebox.owner";
const SANDBOX: &str = "glovebox.sandbox";
/// On those that are one exec's alone.
const EXEC: &str = "glovebox.exec";
/// On kept ones: the hash of what it was made with. It wins over the registry, which may have been
/// written before or after.
const CONFIG: &str = "glovebox.config";
/// On kept ones: whether the inputs in it are its agent's own.
const INPUTS: &str = "glovebox.inputs";

/// In the state directory: containers were made from here, so a start looks for them.
const MARK: &str = "containers.used";

/// A container of ours, as its labels tell.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) name: String,
    /// Of those that are kept.
    pub(crate) sandbox: Option<SandboxId>,
    pub(crate) owner: Option<String>,
    pub(crate) is_running: bool,
}

impl Backends {
    /// The container of one exec.
    pub(crate) fn open_container(
        &self,
        plan: &Plan,
        spec: &Spec<'_>,
        owner: &str,
    ) -> Result<Box<dyn Sandbox>> {
        let config = plan.chosen().docker.as_ref().ok_or_else(unconfigured)?;
        let docker = self.marked(config)?;
        let exec = &plan.draft().exec_id;
        let name = ContainerName::of(&config.container_prefix, exec.as_str())?;
        docker.open(spec, &name, &self.labels(owner, exec))
    }

    /// A container that is made before its exec is known, for one use.
    pub(crate) fn spare_container(
        &self,
        config: &DockerConfig,
        id: &SandboxId,
        spec: &Spec<'_>,
        owner: &str,
    ) -> Result<Box<dyn Kept>> {
        let docker = self.marked(config)?;
        let name = ContainerName::of(&config.container_prefix, id.as_str())?;
        let mut labels = self.house_labels(owner);
        labels.insert(EXEC.to_owned(), "spare".to_owned());
        docker.keep_spare(spec, &name, &labels)
    }

    /// The container of a registered sandbox: the one that is there, or a new one. With what the
    /// engine calls it.
    pub(crate) fn keep_container(
        &self,
        row: &Row,
        spec: &Spec<'_>,
        owner: &str,
    ) -> Result<(Box<dyn Kept>, Option<String>)> {
        let docker = self.marked(made_with(row)?)?;
        let name = ContainerName::parse(&row.name)?;
        if let Some((kept, id)) = self.stand_up(&docker, &name, row, spec.profile)? {
            return Ok((kept, Some(id)));
        }
        let mut labels = self.house_labels(owner);
        labels.insert(SANDBOX.to_owned(), row.sandbox_id.to_string());
        labels.insert(CONFIG.to_owned(), row.config_hash.clone());
        labels.insert(INPUTS.to_owned(), whose_inputs(row).to_owned());
        let kept = docker.keep(spec, &name, &labels)?;
        let found = self.found(&docker, row)?;
        Ok((kept, found.map(|it| it.id)))
    }

    /// One that is there and cannot be used is removed: a new one takes its place.
    fn stand_up(
        &self,
        docker: &Docker,
        name: &ContainerName,
        row: &Row,
        profile: &Profile,
    ) -> Result<Option<(Box<dyn Kept>, String)>> {
        let Some(found) = self.found(docker, row)? else {
            // A container of that name that is not ours is refused by the engine when we make ours.
            return Ok(None);
        };
        let label = |name: &str| found.labels.get(name).map(String::as_str);
        // One of an earlier version has everybody's inputs in it.
        let is_walled = row.agent().is_none() || label(INPUTS) == Some(whose_inputs(row));
        if is_walled && label(CONFIG) == Some(&row.config_hash) {
            match docker.adopt(name, profile) {
                Ok(Some(kept)) => return Ok(Some((kept, found.id))),
                // That passes, and its files would not come back.
                Err(error) if error.code == Code::BackendUnavailable => return Err(error),
                Ok(None) | Err(_) => {}
            }
        }
        docker.remove(name)?;
        Ok(None)
    }

    /// What the container of a sandbox was made with, if there is one.
    pub(crate) fn hash_on_label(&self, row: &Row) -> Result<Option<String>> {
        let docker = self.engine(made_with(row)?)?;
        let found = self.found(&docker, row)?;
        Ok(found.and_then(|it| it.labels.get(CONFIG).cloned()))
    }

    fn found(&self, docker: &Docker, row: &Row) -> Result<Option<Found>> {
        let filter = format!("{SANDBOX}={}", row.sandbox_id);
        let mut found = docker.list(&filter)?.into_iter();
        Ok(
            found
                .find(|it| it.name == row.name && it.labels.get(HOUSE) == Some(&self.installation)),
        )
    }

    /// Where the published ports of a container are reached.
    pub(crate) fn ports(&self, row: &Row) -> Result<Vec<Published>> {
        let publishes = |it: &&DockerConfig| !it.publish.is_empty();
        let Some(config) = row.config.docker.as_ref().filter(publishes) else {
            return Ok(Vec::new());
        };
        let ports = self
            .engine(config)?
            .ports(&ContainerName::parse(&row.name)?)?;
        let published = |(port, address): (u16, SocketAddr)| Published {
            port,
            address: address.to_string(),
        };
        Ok(ports.into_iter().map(published).collect())
    }

    /// Absent is fine.
    pub(crate) fn remove_container(&self, row: &Row) -> Result<()> {
        let docker = self.engine(made_with(row)?)?;
        match self.found(&docker, row)? {
            Some(_) => docker.remove(&ContainerName::parse(&row.name)?),
            // One of that name that is not ours stays.
            None => Ok(()),
        }
    }

    pub(crate) fn remove_named(&self, config: &DockerConfig, name: &str) -> Result<()> {
        self.engine(config)?.remove(&ContainerName::parse(name)?)
    }

    /// Everything of this installation that the engine knows; nothing where containers were never made.
    pub(crate) fn containers(&self, config: &DockerConfig) -> Result<Vec<Container>> {
        if !self.state.join(MARK).exists() {
            return Ok(Vec::new());
        }
        let found = self
            .engine(config)?
            .list(&format!("{HOUSE}={}", self.installation))?;
        let container = |it: glovebox_backend::Found| Container {
            sandbox: it.labels.get(SANDBOX).and_then(|id| id.parse().ok()),
            owner: it.labels.get(OWNER).cloned(),
            is_running: it.running,
            name: it.name,
        };
        Ok(found.into_iter().map(container).collect())
    }

    /// Before the first container is made: whoever finds us dead must know where to look.
    fn marked(&self, config: &DockerConfig) -> Result<Arc<Docker>> {
        let mark = self.state.join(MARK);
        if !mark.exists() {
            std::fs::write(&mark, b"").map_err(|error| {
                let message = "cannot write into the state directory";
                Error::new(Code::StoreUnavailable, Stage::Admit, message).caused_by(error)
            })?;
        }
        self.engine(config)
    }

    fn labels(&self, owner: &str, exec: &ExecId) -> Labels {
        let mut labels = self.house_labels(owner);
        labels.insert(EXEC.to_owned(), exec.to_string());
        labels
    }

    fn house_labels(&self, owner: &str) -> Labels {
        let pairs = [(HOUSE, self.installation.as_str()), (OWNER, owner)];
        pairs
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }
}

fn whose_inputs(row: &Row) -> &'static str {
    match row.agent() {
        Some(_) => "agent",
        None => "workspace",
    }
}

fn made_with(row: &Row) -> Result<&DockerConfig> {
    row.config.docker.as_ref().ok_or_else(unconfigured)
}

fn unconfigured() -> Error {
    Error::new(
        Code::Internal,
        Stage::Admit,
        "a container without a configuration",
    )
}
