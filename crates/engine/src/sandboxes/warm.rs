//! Sandboxes for nobody in particular: how the pool's are built, and how each becomes an exec's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use glovebox_backend::{Ended, ExecDirs, Kept, Place, Run, Sandbox, Spec, TeardownGuard};
use glovebox_model::{Access, Code, Error, Isolation, Profile, Result, SandboxId, SpaceId, Stage};
use glovebox_workspace::image::Held;
use glovebox_workspace::{Dir, Layout, Project};

use crate::backends::SandboxOnImage;
use crate::engine::KeeperSlot;
use crate::path::place;
use crate::path::random;
use crate::pool::{Kind, Shape, Warm};
use crate::sandboxes::Sandboxes;

impl Sandboxes {
    /// Builds a sandbox for nobody in particular.
    pub(crate) fn build_warm(
        &self,
        shape: &Shape,
        seat: &mut dyn FnMut() -> Result<KeeperSlot>,
    ) -> Result<Box<dyn Warm>> {
        let profile = shape.profile();
        let image = self.instance.backends().image_of(shape.chosen())?;
        let later = |access| match access {
            Access::None => Place::Empty,
            access => Place::Later(access),
        };
        let spec = Spec {
            work: later(profile.workspace),
            inputs: Place::Later(Access::Ro),
            artifacts: Place::Later(Access::Rw),
            image: image.as_ref().map(Held::rootfs),
            ..Spec::new(profile)
        };
        let preload = match shape.kind() {
            Kind::Native => None,
            Kind::Interpreter(language) => self
                .preloads()
                .iter()
                .find(|it| it.language == *language)
                .cloned(),
            Kind::Container {
                space,
                project,
                agent,
                ..
            } => {
                let project = self.instance.layout(space)?.existing(project)?;
                return self.warm_container(shape, space, &project.of_agent(agent.as_deref()));
            }
        };
        let mut warm = seat()?
            .native
            .warm(&spec, self.instance.state().path(), preload)?;
        warm.settle(Instant::now() + SETTLING)?;
        Ok(Box::new(Waiting { warm, image }))
    }

    /// For one workspace: a container's directories are mounted when it is made.
    fn warm_container(
        &self,
        shape: &Shape,
        space: &SpaceId,
        project: &Project,
    ) -> Result<Box<dyn Warm>> {
        let config = shape.chosen().docker.as_ref().ok_or_else(|| {
            Error::new(Code::Internal, Stage::Admit, "a container without settings")
        })?;
        let id = SandboxId::from_random(random()?);
        let layout = self.instance.layout(space)?;
        let (inputs, files) = (project.inputs()?, layout.sandbox(&id)?);
        // An engine is known without its image: each container names its own.
        let profile = Profile {
            image: Some(config.image.clone()),
            ..shape.profile().clone()
        };
        let spec = Spec {
            work: place(project.work(), profile.workspace),
            inputs: place(Some(&inputs), Access::Ro),
            artifacts: place(Some(&files.artifacts), Access::Rw),
            ..Spec::new(&profile)
        };
        let spare = Spare {
            layout: Arc::clone(&layout),
            id: id.clone(),
        };
        let owner = self.instance.owner().id();
        let kept = self
            .instance
            .backends()
            .spare_container(config, &id, &spec, owner)?;
        Ok(Box::new(WaitingContainer {
            kept: Some(kept),
            spare: Some(spare),
        }))
    }
}

/// The files of a container that waits; gone with it.
#[derive(Debug)]
struct Spare {
    layout: Arc<Layout>,
    id: SandboxId,
}

impl Drop for Spare {
    fn drop(&mut self) {
        let _ = self.layout.remove_sandbox(&self.id);
    }
}

/// A container that waits for its one exec. However it is dropped, the container goes.
#[derive(Debug)]
struct WaitingContainer {
    kept: Option<Box<dyn Kept>>,
    spare: Option<Spare>,
}

impl WaitingContainer {
    fn take_down(&mut self) -> TeardownGuard {
        let closing = self.kept.take().map(Kept::close);
        TeardownGuard::of((closing, self.spare.take()))
    }
}

impl Drop for WaitingContainer {
    fn drop(&mut self) {
        drop(self.take_down());
    }
}

impl Warm for WaitingContainer {
    fn is_alive(&mut self) -> bool {
        self.kept.as_mut().is_some_and(|kept| kept.is_alive())
    }

    fn bind(self: Box<Self>, room: &ExecDirs<'_>) -> Result<Box<dyn Sandbox>> {
        let isolation = self.kept.as_ref().map(|kept| kept.isolation().clone());
        let artifacts = room.artifacts.try_clone();
        let artifacts = artifacts.map_err(|error| error.at(Stage::Admit))?;
        Ok(Box::new(UsedOnce {
            isolation: isolation.unwrap_or_default(),
            container: self,
            artifacts,
        }))
    }
}

/// A container that had been waiting, in the hands of its exec.
#[derive(Debug)]
struct UsedOnce {
    container: Box<WaitingContainer>,
    isolation: Isolation,
    artifacts: Dir,
}

impl Sandbox for UsedOnce {
    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn run(mut self: Box<Self>, run: Run<'_>) -> (Result<Ended>, TeardownGuard) {
        let room = ExecDirs {
            work: None,
            inputs: None,
            artifacts: &self.artifacts,
        };
        let ended = match &mut self.container.kept {
            Some(kept) => kept.run(room, run),
            None => Err(Error::new(Code::Internal, Stage::Run, "no container waits")),
        };
        (ended, self.dismiss())
    }

    fn dismiss(mut self: Box<Self>) -> TeardownGuard {
        self.container.take_down()
    }
}

/// Building takes milliseconds, starting an interpreter a few dozen.
const SETTLING: Duration = Duration::from_secs(10);

/// A warm native sandbox, and the image it stands on.
#[derive(Debug)]
struct Waiting {
    warm: glovebox_backend::Warm,
    image: Option<Held>,
}

impl Warm for Waiting {
    fn is_alive(&mut self) -> bool {
        self.warm.is_alive()
    }

    fn bind(self: Box<Self>, room: &ExecDirs<'_>) -> Result<Box<dyn Sandbox>> {
        let prepared = self.warm.bind(room)?;
        Ok(match self.image {
            Some(image) => Box::new(SandboxOnImage::new(Box::new(prepared), image)),
            None => Box::new(prepared),
        })
    }
}
