//! A state directory as those see it who only read it, while others may be writing.

use std::path::Path;

use glovebox_model::{Code, Error, Exec, Result, SpaceId, Stage, Status};
use glovebox_store::{Entry, EntryFilter, StateDir, Store, dead_owners};
use glovebox_workspace::{Dir, Layout};
use jiff::Timestamp;

#[derive(Debug)]
pub(crate) struct Records {
    state: StateDir,
    store: Store,
    space: SpaceId,
}

impl Records {
    /// `None` when there is no database: it is not made only to be read.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>> {
        let database = path.join("glovebox.db");
        match database.try_exists() {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => {
                let shown = path.display();
                return Err(Error::new(
                    Code::StoreUnavailable,
                    Stage::Open,
                    format!("cannot look into the state directory `{shown}`"),
                )
                .caused_by(error)
                .hint("run as its owner, or name another with `--state-dir DIR`"));
            }
        }
        let state = StateDir::open(path)?;
        let store = Store::open(&state)?;
        Ok(Some(Self {
            state,
            store,
            space: SpaceId::local(),
        }))
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn space(&self) -> &SpaceId {
        &self.space
    }

    pub(crate) fn layout(&self) -> Result<Layout> {
        let root = Dir::open_trusted(self.state.path()).map_err(|error| error.at(Stage::Open))?;
        Layout::open(root)
    }

    /// By its id or enough of the beginning of it.
    pub(crate) fn find(&self, name: &str) -> Result<Exec> {
        let id = self.store.resolve_prefix(&self.space, name)?;
        self.store.get(&self.space, &id)
    }

    pub(crate) fn again(&self, exec: &Exec) -> Result<Exec> {
        self.store.get(&self.space, &exec.exec_id)
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
    pub(crate) fn opened_at(&self, exec: &Exec) -> Result<Option<Timestamp>> {
        match exec.started_at {
            Some(at) => Ok(Some(at)),
            None => Ok(self.opening(exec)?.map(|entry| entry.at)),
        }
    }

    /// Whether the process that ran it is gone without having said how it ended. The next run
    /// writes that down.
    pub(crate) fn is_abandoned(&self, exec: &Exec) -> Result<bool> {
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
