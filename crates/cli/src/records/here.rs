//! A state directory as those see it who only read it, while others may be writing.

use std::fs::File;
use std::io::Write;

use glovebox_engine::ambiguous;
use glovebox_model::{
    Attempt, ClientId, Code, Effect, Exec, ExecId, Result, SpaceId, Stage, Status, Stream,
};
use glovebox_store::{Entry, EntryFilter, StateDir, Store, dead_owners};
use glovebox_workspace::{Dir, Layout, RelPath};
use jiff::Timestamp;

use crate::commands::artifact::pass;
use crate::context::Place;

/// Read at once.
const ATTEMPTS: usize = 500;

#[derive(Debug)]
pub(crate) struct Here {
    state: StateDir,
    store: Store,
    layout: Layout,
    space: SpaceId,
}

impl Here {
    pub(super) fn open(place: &Place) -> Result<Option<Self>> {
        let Some((state, store)) = place.open_if_there()? else {
            return Ok(None);
        };
        let root = Dir::open_trusted(state.path()).map_err(|error| error.at(Stage::Open))?;
        let layout = Layout::open(root)?;
        Ok(Some(Self {
            state,
            store,
            layout,
            space: SpaceId::local(),
        }))
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn space(&self) -> &SpaceId {
        &self.space
    }

    /// By its id, enough of the beginning of it, or its caller's own.
    pub(super) fn resolve(&self, name: &str) -> Result<ExecId> {
        let unknown = match self.store.resolve_prefix(&self.space, name) {
            Err(error) if error.code == Code::NotFound => error,
            resolved => return resolved,
        };
        let Ok(client) = name.parse::<ClientId>() else {
            return Err(unknown);
        };
        match self.store.find_client(&self.space, &client)?.as_slice() {
            [] => Err(unknown),
            [one] => Ok(one.clone()),
            several => Err(ambiguous(&client, several.iter())),
        }
    }

    pub(super) fn get(&self, id: &ExecId) -> Result<Exec> {
        self.store.get(&self.space, id)
    }

    /// The same file while it grows and after it is moved to its last place.
    pub(super) fn output(&self, exec: &Exec, stream: Stream) -> Result<Option<File>> {
        match self.layout.stream(&exec.project_id, &exec.exec_id, stream) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.code == Code::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn network(&self, exec: &Exec, from: u64) -> Result<(Vec<Attempt>, u64)> {
        let (project, id) = (&exec.project_id, &exec.exec_id);
        let log = self.layout.network_log(project, id, from, ATTEMPTS)?;
        Ok(log.unwrap_or((Vec::new(), from)))
    }

    pub(super) fn effects(&self, exec: &Exec, from: u64) -> Result<(Vec<Effect>, u64)> {
        let (project, id) = (&exec.project_id, &exec.exec_id);
        let log = self.layout.effect_log(project, id, from, ATTEMPTS)?;
        let (effects, next) = log.unwrap_or((Vec::new(), from));
        let lasting = effects.into_iter().filter(|it| !it.provisional);
        Ok((lasting.collect(), next))
    }

    pub(super) fn artifact(&self, exec: &Exec, path: &RelPath, out: &mut dyn Write) -> Result<()> {
        let dir = self.layout.artifacts(&exec.project_id, &exec.exec_id);
        let opened = dir.and_then(|dir| {
            let opened = dir.open_file(path);
            opened.map_err(|error| error.at(Stage::Collect))
        });
        let (mut file, _) = opened.map_err(|error| {
            error.hint(format!(
                "`glovebox artifact ls {}` lists them",
                exec.exec_id
            ))
        })?;
        pass(&mut file, out)
    }

    /// The first entry about an exec.
    fn opening(&self, exec: &Exec) -> Result<Option<Entry>> {
        let filter = EntryFilter {
            exec_id: Some(exec.exec_id.clone()),
            ..EntryFilter::default()
        };
        let page = self.store.query(&self.space, &filter)?;
        Ok(page.items.into_iter().min_by_key(|entry| entry.seq))
    }

    /// When it arrived. Its record has a time only once it ended, and none if it never started.
    pub(super) fn opened_at(&self, exec: &Exec) -> Result<Option<Timestamp>> {
        match exec.started_at {
            Some(at) => Ok(Some(at)),
            None => Ok(self.opening(exec)?.map(|entry| entry.at)),
        }
    }

    /// Whether the process that ran it is gone without having said how it ended. The next run
    /// writes that down.
    pub(super) fn is_abandoned(&self, exec: &Exec) -> Result<bool> {
        if exec.status != Status::Running {
            return Ok(false);
        }
        let opening = self.opening(exec)?;
        let Some(owner) = opening.as_ref().and_then(|it| it.body["owner"].as_str()) else {
            return Ok(false);
        };
        let dead = dead_owners(&self.state, None)?;
        if dead.iter().any(|it| it.id() == owner) {
            return Ok(true);
        }
        let strays = self.store.stray_owners(&self.state)?;
        Ok(strays.iter().any(|it| it == owner))
    }
}
