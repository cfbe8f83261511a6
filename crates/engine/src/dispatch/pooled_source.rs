//! Where a server's sandboxes come from: the pool, or a keeper from the spawner.

use std::sync::{Arc, Weak};

use glovebox_backend::Cancel;
use glovebox_model::{Code, Error, PoolConfig, Profile, Result, Stage};

use super::Dispatcher;
use crate::engine::KeeperSlot;
use crate::path::SandboxSource;
use crate::pool::{Kind, Pool, PoolStats, Shape, Warm};

/// What one exec, or somebody who builds ahead, may take from.
pub(super) struct PooledSource<'d> {
    pub(super) dispatcher: &'d Dispatcher,
    pub(super) cancel: Option<&'d Cancel>,
}

impl SandboxSource for PooledSource<'_> {
    fn seat(&mut self) -> Result<KeeperSlot> {
        self.dispatcher.seat()
    }

    fn keeps_warm(&self) -> bool {
        self.dispatcher.pool.get().is_some()
    }

    fn warm(&mut self, shapes: &[Shape]) -> Option<Box<dyn Warm>> {
        self.dispatcher.pool.get()?.acquire(shapes)
    }

    fn is_wanted(&self) -> bool {
        self.cancel.is_none_or(|cancel| !cancel.is_asked())
    }
}

impl Dispatcher {
    pub(super) fn seat(&self) -> Result<KeeperSlot> {
        let spawner = self.spawner.as_ref().ok_or_else(no_spawner)?;
        let keeper = spawner.spawn().map_err(|error| {
            let message = "cannot start the sandbox's keeper";
            let error =
                Error::new(Code::BackendUnavailable, Stage::Admit, message).caused_by(error);
            match self.can_start() {
                true => error,
                false => error.hint("nothing can be started until the server is started anew"),
            }
        })?;
        self.engine.sandboxes.seat(keeper)
    }

    /// Begins to keep sandboxes ready for the usual call.
    pub(super) fn open_pool(self: &Arc<Self>) -> Result<()> {
        let config = self.engine.config().pool();
        if !config.enabled || self.why_no_pool().is_some() {
            return Ok(());
        }
        let weak: Weak<Self> = Arc::downgrade(self);
        let build = move |shape: &Shape| {
            let dispatcher = weak.upgrade().ok_or_else(gone)?;
            let mut seat = || dispatcher.seat();
            dispatcher.engine.sandboxes.build_warm(shape, &mut seat)
        };
        let standing = self.usual_shapes(&config)?;
        let pool = Pool::open(config, standing, Box::new(build)).map_err(|error| {
            Error::new(Code::Busy, Stage::Open, "no thread is left").caused_by(error)
        })?;
        let _ = self.pool.set(pool);
        Ok(())
    }

    /// What a call without any wish of its own would get, on a workspace that is kept.
    fn usual_shapes(&self, config: &PoolConfig) -> Result<Vec<(Shape, usize)>> {
        let (profile, chosen): (Profile, _) = match self.engine.sandboxes.usual() {
            Ok(usual) => usual,
            // Policy may refuse a call that says nothing; then there is nothing usual.
            Err(_) => return Ok(Vec::new()),
        };
        if chosen.backend != glovebox_model::BackendName::Native {
            return Ok(Vec::new());
        }
        let mut kinds = vec![(Kind::Native, config.min)];
        for preload in self.engine.sandboxes.preloads() {
            let count = match preload.language {
                glovebox_backend::Language::Python => config.python,
                glovebox_backend::Language::Node => config.node,
            };
            kinds.push((Kind::Interpreter(preload.language), count));
        }
        kinds
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(kind, count)| Ok((Shape::new(kind, &profile, &chosen)?, count as usize)))
            .collect()
    }

    /// A sandbox that stands is given its directories by somebody with power over mounts.
    fn why_no_pool(&self) -> Option<String> {
        (!rustix::process::geteuid().is_root())
            .then(|| "only root can give directories to a sandbox that stands already".to_owned())
    }

    pub fn pool_stats(&self) -> PoolStats {
        match self.pool.get() {
            Some(pool) => pool.stats(),
            None => PoolStats::off(&self.engine.config().pool(), self.why_no_pool()),
        }
    }
}

fn gone() -> Error {
    Error::new(Code::ShuttingDown, Stage::Admit, "the server is going")
}

/// Only a server, and a command that runs something, can start sandboxes.
fn no_spawner() -> Error {
    let message = "this process starts no sandboxes";
    Error::new(Code::BackendUnavailable, Stage::Admit, message)
}
