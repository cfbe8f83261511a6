//! What holds for all workspaces of a space: the local one, or the token's at a server.

use glovebox_engine::Engine;
use glovebox_model::{Code, ProjectId, Result, SpaceId, WorkspaceRef};
use glovebox_serve::answer::{CollectAnswer, VerifyAnswer, Workspaces};

use super::here::unknown;
use super::{ADOPTED, LISTED, WORKSPACES};
use crate::args::Global;
use crate::context::Context;
use crate::meter::Meter;
use crate::remote::{Remote, Target};

const SCRATCH: &str = "scratch";

#[derive(Debug)]
pub(crate) enum Space<'g> {
    Here(Box<Engine>, &'g Global),
    There(Box<Remote>),
}

impl<'g> Space<'g> {
    /// `None` where nothing was ever written: it is not made only to be read.
    pub(crate) fn open(global: &'g Global) -> Result<Option<Self>> {
        let context = Context::new(global);
        if let Some(remote) = context.server()? {
            return Ok(Some(Self::There(Box::new(remote))));
        }
        if context.place()?.open_if_there()?.is_none() {
            return Ok(None);
        }
        let engine = context.engine()?;
        engine.store()?;
        context.report_recovered(engine.recovered());
        Ok(Some(Self::Here(Box::new(engine), global)))
    }

    /// Those that Glovebox keeps, by name.
    pub(crate) fn workspaces(&self) -> Result<Workspaces> {
        let engine = match self {
            Self::There(remote) => return remote.get(Target::new(WORKSPACES)),
            Self::Here(engine, _) => engine,
        };
        let mut names = engine.layout(&SpaceId::local())?.projects(LISTED)?;
        names.retain(is_kept);
        Ok(names.into_iter().collect())
    }

    /// With its inputs and artifacts.
    pub(crate) fn remove(&self, project: &ProjectId) -> Result<()> {
        let engine = match self {
            Self::There(remote) => {
                let target = Target::new(WORKSPACES).segment(project.as_str());
                return remote.delete_quietly(target);
            }
            Self::Here(engine, _) => engine,
        };
        let space = SpaceId::local();
        if !is_kept(project) {
            return Err(unknown(project));
        }
        let which = WorkspaceRef::Project(project.clone());
        match engine.workspace(&space, &which, None) {
            Err(error) if error.code == Code::NotFound => Err(unknown(project)),
            workspace => workspace?.remove(),
        }
    }

    pub(crate) fn collect(&self) -> Result<CollectAnswer> {
        match self {
            Self::There(remote) => {
                remote.post_nothing(Target::new("/v1/snapshots").segment("collect"))
            }
            Self::Here(engine, _) => {
                let space = SpaceId::local();
                let done = engine.collect_snapshots(&space)?;
                Ok(CollectAnswer::new(vec![(space, Ok(done))]))
            }
        }
    }

    pub(crate) fn verify(&self) -> Result<VerifyAnswer> {
        match self {
            Self::There(remote) => {
                remote.get_slowly(Target::new("/v1/snapshots").segment("verify"))
            }
            Self::Here(engine, global) => {
                let space = SpaceId::local();
                let mut meter = Meter::start(global, "reading")?;
                let done = engine.verify_snapshots(&space, None, &mut meter)?;
                Ok(VerifyAnswer::new(vec![(space, Ok(done))]))
            }
        }
    }
}

fn is_kept(project: &ProjectId) -> bool {
    project.as_str() != SCRATCH && !project.as_str().starts_with(ADOPTED)
}
