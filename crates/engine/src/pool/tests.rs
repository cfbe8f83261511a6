//! The pool with sandboxes of paper: what it hands out, how often, and what is left.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use glovebox_model::{BackendName, Code, Error, Millis, Stage};

use super::*;
use crate::backends::Chosen;
use crate::sandboxes::sample;

/// Counts itself while it is there.
#[derive(Debug)]
struct Paper {
    number: usize,
    world: Arc<World>,
}

#[derive(Debug, Default)]
struct World {
    made: AtomicUsize,
    there: AtomicUsize,
    dead: AtomicBool,
    broken: AtomicBool,
    panics: AtomicBool,
}

impl Drop for Paper {
    fn drop(&mut self) {
        self.world.there.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Warm for Paper {
    fn is_alive(&mut self) -> bool {
        !self.world.dead.load(Ordering::SeqCst)
    }

    fn bind(self: Box<Self>, _: &ExecDirs<'_>) -> Result<Box<dyn Sandbox>> {
        Err(Error::new(
            Code::Internal,
            Stage::Admit,
            format!("number {} is of paper", self.number),
        ))
    }
}

fn config() -> PoolConfig {
    PoolConfig {
        max: 8,
        acquire_timeout: Millis(5000),
        ..PoolConfig::default()
    }
}

fn shape(pids: u64) -> Shape {
    let mut profile = sample::profile();
    profile.limits.pids = glovebox_model::Count(pids);
    let chosen = Chosen {
        backend: BackendName::Native,
        runtime: None,
        image: None,
        docker: None,
    };
    Shape::new(Kind::Native, &profile, &chosen).unwrap()
}

fn pool(config: PoolConfig, standing: usize) -> (Pool, Arc<World>) {
    let world = Arc::new(World::default());
    let maker = Arc::clone(&world);
    let build = move |_: &Shape| {
        assert!(!maker.panics.load(Ordering::SeqCst), "as the test wants");
        if maker.broken.load(Ordering::SeqCst) {
            return Err(Error::new(Code::SetupFailed, Stage::Admit, "broken"));
        }
        maker.there.fetch_add(1, Ordering::SeqCst);
        let warm: Box<dyn Warm> = Box::new(Paper {
            number: maker.made.fetch_add(1, Ordering::SeqCst),
            world: Arc::clone(&maker),
        });
        Ok(warm)
    };
    let standing = vec![(shape(1), standing)];
    let pool = Pool::open(config, standing, Box::new(build)).unwrap();
    (pool, world)
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn what_stands_is_given_once() {
    let (pool, world) = pool(config(), 2);
    wait_for("two stand", || pool.stats().idle == 2);
    let one = pool.acquire(&[shape(1)]).unwrap();
    let other = pool.acquire(&[shape(1)]).unwrap();
    assert!(world.made.load(Ordering::SeqCst) >= 2);
    let room = |warm: Box<dyn Warm>| format!("{warm:?}");
    assert_ne!(room(one), room(other));
    assert_eq!(pool.stats().hits, 2);
}

#[test]
fn another_shape_is_another_sandbox() {
    let mut config = config();
    config.acquire_timeout = Millis(0);
    let (pool, _world) = pool(config, 1);
    wait_for("one stands", || pool.stats().idle == 1);
    assert!(pool.acquire(&[shape(2)]).is_none());
    let own = |stats: PoolStats| {
        stats
            .shapes
            .into_iter()
            .find(|it| it.config_hash == shape(1).hash())
    };
    let own = own(pool.stats()).unwrap();
    assert_eq!((own.idle, own.hits), (1, 0), "it was not taken for another");
    // Whoever asked once finds one the next time.
    wait_for("its like is built", || pool.stats().idle >= 2);
    assert!(pool.acquire(&[shape(2)]).is_some());
}

#[test]
fn dead_ones_are_found_when_they_are_borrowed() {
    let (pool, world) = pool(config(), 2);
    wait_for("two stand", || pool.stats().idle == 2);
    world.dead.store(true, Ordering::SeqCst);
    wait_for("the dead are found", || {
        assert!(pool.acquire(&[shape(1)]).is_none(), "a dead one was given");
        pool.stats().dead_on_borrow >= 2
    });
    world.dead.store(false, Ordering::SeqCst);
    wait_for("living ones come after them", || {
        pool.acquire(&[shape(1)]).is_some()
    });
}

#[test]
fn one_that_cannot_be_built_is_a_miss_and_no_hang() {
    let (pool, world) = pool(config(), 0);
    world.broken.store(true, Ordering::SeqCst);
    assert!(pool.acquire(&[shape(3)]).is_none());
    wait_for("it was tried, and nobody is at it", || {
        let stats = pool.stats();
        stats.failed > 0 && stats.building == 0
    });
}

#[test]
fn a_builder_that_panics_leaves_no_place_taken() {
    let (pool, world) = pool(config(), 0);
    world.panics.store(true, Ordering::SeqCst);
    assert!(pool.acquire(&[shape(3)]).is_none());
    wait_for("it was tried, and nobody is at it", || {
        let stats = pool.stats();
        stats.failed > 0 && stats.building == 0
    });
    world.panics.store(false, Ordering::SeqCst);
    wait_for("it is built later", || pool.stats().idle > 0);
}

#[test]
fn there_are_never_more_than_the_most() {
    let (pool, world) = pool(config(), 2);
    for pids in 1..40 {
        let _ = pool.acquire(&[shape(pids)]);
        let stats = pool.stats();
        assert!(stats.idle + stats.building <= 8, "{stats:?}");
    }
    assert!(world.there.load(Ordering::SeqCst) <= 8 + 2);
}

#[test]
fn nothing_is_left_when_it_is_closed() {
    let (pool, world) = pool(config(), 4);
    wait_for("some stand", || pool.stats().idle > 0);
    pool.close();
    assert_eq!(world.there.load(Ordering::SeqCst), 0);
    assert!(pool.acquire(&[shape(1)]).is_none());
    pool.close();
}

#[test]
fn many_at_once_get_one_each_or_none() {
    let (pool, world) = pool(config(), 4);
    let start = Barrier::new(16);
    std::thread::scope(|scope| {
        for client in 0..16 {
            let (pool, start) = (&pool, &start);
            scope.spawn(move || {
                start.wait();
                for round in 0..50 {
                    let taken = pool.acquire(&[shape(1 + (client + round) % 3)]);
                    drop(taken);
                }
            });
        }
    });
    let stats = pool.stats();
    assert_eq!(stats.hits + stats.misses, 16 * 50);
    pool.close();
    assert_eq!(world.there.load(Ordering::SeqCst), 0);
}

#[test]
fn what_nobody_asks_for_goes_and_the_usual_stays() {
    let config = PoolConfig {
        idle_timeout: Millis(1),
        acquire_timeout: Millis(0),
        ..config()
    };
    let (pool, _world) = pool(config, 1);
    let _ = pool.acquire(&[shape(9)]);
    wait_for("both stand", || pool.stats().shapes.len() == 2);
    wait_for("one is let go", || pool.stats().shapes.len() == 1);
    assert_eq!(pool.stats().shapes[0].config_hash, shape(1).hash());
}
