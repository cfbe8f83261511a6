//! Sandboxes that stand before anybody asks. Each is made for one shape of exec, given to one exec
//! and gone with it, so nothing can pass from one to the next. Whoever finds none goes cold.
//!
//! One lock guards everything that is counted; building, testing and taking down happen outside
//! it. What is taken out belongs to whoever took it, so a caller that goes away in the middle
//! leaves nothing that waits for it.

mod refill;
mod shape;
mod shelf;
mod stats;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use glovebox_backend::{ExecDirs, Sandbox};
use glovebox_model::{PoolConfig, Result};

pub(crate) use shape::{Kind, Shape};
pub use stats::{PoolStats, ShelfStats};

use shelf::Shelf;
use stats::Tally;

/// A sandbox that waits for its exec.
pub(crate) trait Warm: fmt::Debug + Send {
    /// A cheap look, right before it is given away.
    fn is_alive(&mut self) -> bool;

    /// Becomes the sandbox of one exec, with that exec's directories.
    fn bind(self: Box<Self>, room: &ExecDirs<'_>) -> Result<Box<dyn Sandbox>>;
}

/// Makes one sandbox of a shape and returns when it stands.
pub(crate) type Build = dyn Fn(&Shape) -> Result<Box<dyn Warm>> + Send + Sync;

pub(crate) struct Pool {
    shared: Arc<Shared>,
    builders: Mutex<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pool")
    }
}

struct Shared {
    config: PoolConfig,
    build: Box<Build>,
    state: Mutex<State>,
    /// Something came or went: for whoever waits for a sandbox.
    stocked: Condvar,
    /// There may be something to build: for the builders.
    wanted: Condvar,
}

/// Shapes that are looked after at once.
const SHELVES: usize = 64;
const LATELY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct State {
    shelves: HashMap<Shape, Shelf>,
    tally: Tally,
    is_closed: bool,
}

impl State {
    /// Standing or being built.
    fn occupied(&self) -> usize {
        self.shelves
            .values()
            .map(|shelf| shelf.idle.len() + shelf.building)
            .sum()
    }
}

impl Pool {
    /// `standing` are the shapes that are kept in stock from the start, with how many of each.
    pub(crate) fn open(
        config: PoolConfig,
        standing: Vec<(Shape, usize)>,
        build: Box<Build>,
    ) -> std::io::Result<Self> {
        let now = Instant::now();
        let mut state = State::default();
        for (shape, count) in standing {
            state.shelves.insert(shape, Shelf::standing(count, now));
        }
        let shared = Arc::new(Shared {
            config,
            build,
            state: Mutex::new(state),
            stocked: Condvar::new(),
            wanted: Condvar::new(),
        });
        let builders = refill::set_out(&shared)?;
        Ok(Self {
            shared,
            builders: Mutex::new(builders),
        })
    }

    /// One of the first shape that has one, or is about to. An exec asks once, whatever it would
    /// take, so that what is counted is execs.
    pub(crate) fn acquire(&self, shapes: &[Shape]) -> Option<Box<dyn Warm>> {
        if self.shared.locked().is_closed {
            return None;
        }
        let found = shapes.iter().find_map(|shape| self.find(shape));
        if found.is_none() {
            self.shared.locked().tally.went_cold();
        }
        found
    }

    fn find(&self, shape: &Shape) -> Option<Box<dyn Warm>> {
        let deadline = Instant::now() + self.shared.config.acquire_timeout.duration();
        let mut state = self.shared.locked();
        if state.is_closed {
            return None;
        }
        let most = self.shared.config.max as usize;
        state.ask(shape, most, Instant::now());
        self.shared.wanted.notify_one();
        while let Some(shelf) = state.shelves.get_mut(shape) {
            if let Some(mut found) = shelf.take() {
                self.shared.wanted.notify_one();
                drop(state);
                // Outside the lock: it may have to ask the engine of containers.
                if found.is_alive() {
                    self.shared.locked().tally.hit(shape);
                    return Some(found);
                }
                drop(found);
                state = self.shared.locked();
                state.tally.dead_on_borrow += 1;
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if shelf.building == 0 || left.is_zero() || state.is_closed {
                break;
            }
            state = self.shared.wait(&self.shared.stocked, state, left);
        }
        state.missed(shape, most);
        self.shared.wanted.notify_one();
        None
    }

    pub(crate) fn stats(&self) -> PoolStats {
        let state = self.shared.locked();
        PoolStats::of(&self.shared.config, &state.tally, &state.shelves)
    }

    /// Takes everything down; whoever comes now goes cold.
    pub(crate) fn close(&self) {
        let shelves = {
            let mut state = self.shared.locked();
            state.is_closed = true;
            std::mem::take(&mut state.shelves)
        };
        self.shared.wanted.notify_all();
        self.shared.stocked.notify_all();
        drop(shelves);
        let builders = std::mem::take(&mut *locked(&self.builders));
        let here = std::thread::current().id();
        for builder in builders {
            // Whoever builds may be the last to hold what owns the pool.
            if builder.thread().id() != here {
                let _ = builder.join();
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close();
    }
}

impl State {
    /// A shape that is asked for the first time gets a shelf: the next exec may be its like.
    fn ask(&mut self, shape: &Shape, most: usize, now: Instant) {
        if let Some(shelf) = self.shelves.get_mut(shape) {
            shelf.asked_at = now;
        } else if most > 0 && self.has_room(now) {
            self.shelves.insert(shape.clone(), Shelf::tried(now));
        }
    }

    /// Whoever asks for a thousand shapes gets few shelves: one that has nothing and that nobody asked
    /// for lately makes room.
    fn has_room(&mut self, now: Instant) -> bool {
        if self.shelves.len() < SHELVES {
            return true;
        }
        let is_bare = |shelf: &Shelf| {
            shelf.fewest == 0
                && shelf.idle.is_empty()
                && shelf.building == 0
                && now.duration_since(shelf.asked_at) >= LATELY
        };
        let bare = self.shelves.iter().find(|(_, shelf)| is_bare(shelf));
        let bare = bare.map(|(shape, _)| shape.clone());
        bare.is_some_and(|shape| self.shelves.remove(&shape).is_some())
    }

    fn missed(&mut self, shape: &Shape, most: usize) {
        self.tally.miss(shape);
        if let Some(shelf) = self.shelves.get_mut(shape) {
            shelf.grow(most);
        }
    }
}

impl Shared {
    fn locked(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn wait<'s>(
        &self,
        on: &Condvar,
        state: MutexGuard<'s, State>,
        most: Duration,
    ) -> MutexGuard<'s, State> {
        match on.wait_timeout(state, most) {
            Ok((state, _)) => state,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
