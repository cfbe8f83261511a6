//! The builders: a few threads that bring the shelves to what is wanted, off everybody's path.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::shelf::{Resting, Shelf};
use super::{Shape, Shared, State};

/// One waits for the kernel while another works.
const BUILDERS: usize = 2;
/// How often shelves are looked over when nothing happens; tests of this crate wait for it.
const ROUND: Duration = match cfg!(test) {
    true => Duration::from_millis(100),
    false => Duration::from_secs(5),
};

pub(super) fn set_out(shared: &Arc<Shared>) -> std::io::Result<Vec<JoinHandle<()>>> {
    (0..BUILDERS)
        .map(|_| {
            let shared = Arc::clone(shared);
            thread::Builder::new()
                .name("pool".to_owned())
                .spawn(move || shared.work())
        })
        .collect()
}

impl Shared {
    fn work(&self) {
        let mut next_round = Instant::now() + ROUND;
        loop {
            let now = Instant::now();
            if now >= next_round {
                next_round = now + ROUND;
                let gone = self.look_over(now);
                drop(gone);
            }
            let mut state = self.locked();
            if state.is_closed {
                return;
            }
            let (chosen, evicted) = state.choose(now, self.config.max as usize);
            let Some(shape) = chosen else {
                let alarm = state.next_try(now).min(next_round);
                let left = alarm.saturating_duration_since(now);
                drop(self.wait(&self.wanted, state, left.max(Duration::from_millis(1))));
                continue;
            };
            drop(state);
            drop(evicted);
            self.make_one(&shape);
        }
    }

    fn make_one(&self, shape: &Shape) {
        let began = Instant::now();
        // A builder that panics must not leave its place taken.
        let built = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (self.build)(shape)));
        let took = began.elapsed();
        let mut state = self.locked();
        let closed = state.is_closed;
        let mut trouble = "it broke off".to_owned();
        let left = match built {
            Ok(Ok(warm)) => {
                state.tally.built(took);
                Some(warm)
            }
            Ok(Err(error)) => {
                state.tally.failed += 1;
                trouble = error.to_string();
                None
            }
            Err(_) => {
                state.tally.failed += 1;
                None
            }
        };
        let mut unwanted = None;
        match state.shelves.get_mut(shape) {
            Some(shelf) => {
                shelf.building -= 1;
                match left {
                    Some(warm) if !closed => {
                        let since = Instant::now();
                        shelf.stocked(Resting { warm, since });
                    }
                    Some(warm) => unwanted = Some(warm),
                    None if shelf.failed(Instant::now()) => {
                        tracing::warn!(error = trouble, "a sandbox could not be built ahead");
                    }
                    None => {}
                }
            }
            None => unwanted = left,
        }
        drop(state);
        self.stocked.notify_all();
        drop(unwanted);
    }

    /// Takes out what is too old, unwanted or dead. Testing happens outside the lock, with the
    /// sandbox taken out: nobody can be given what is being tested.
    fn look_over(&self, now: Instant) -> Vec<Resting> {
        let (idle, age) = (
            self.config.idle_timeout.duration(),
            self.config.max_age.duration(),
        );
        let mut gone = Vec::new();
        let mut looked_at = Vec::new();
        {
            let mut state = self.locked();
            for (shape, shelf) in &mut state.shelves {
                gone.extend(shelf.tidy(now, idle, age));
                // One of each at a time: the others stay for whoever comes meanwhile.
                if let Some(oldest) = shelf.idle.pop_front() {
                    looked_at.push((shape.clone(), oldest));
                }
            }
            state.shelves.retain(|_, shelf| !shelf.is_over());
        }
        for (shape, mut resting) in looked_at {
            let alive = resting.warm.is_alive();
            let mut state = self.locked();
            if !alive {
                state.tally.dead_at_rest += 1;
            }
            match state.shelves.get_mut(&shape) {
                Some(shelf) if alive => shelf.idle.push_front(resting),
                _ => gone.push(resting),
            }
        }
        self.stocked.notify_all();
        gone
    }
}

impl State {
    /// What to build next: of the shape that was asked for last among those that are short. When
    /// the pool is full, the shape nobody has asked for longest gives one up.
    fn choose(&mut self, now: Instant, most: usize) -> (Option<Shape>, Option<Resting>) {
        let short = self.shelves.iter().filter(|(_, shelf)| shelf.is_short(now));
        let urgency = |shelf: &Shelf| {
            let is_empty = shelf.idle.is_empty() && shelf.building == 0;
            (shelf.is_owed(), is_empty, shelf.asked_at)
        };
        let Some((shape, asked_at, is_owed)) = short
            .max_by_key(|(_, shelf)| urgency(shelf))
            .map(|(shape, shelf)| (shape.clone(), shelf.asked_at, shelf.is_owed()))
        else {
            return (None, None);
        };
        let mut evicted = None;
        if self.occupied() >= most {
            let stalest = self
                .shelves
                .values_mut()
                .filter(|shelf| shelf.may_give_one() && (is_owed || shelf.asked_at < asked_at))
                .min_by_key(|shelf| shelf.asked_at);
            let Some(stalest) = stalest else {
                return (None, None);
            };
            evicted = stalest.idle.pop_front();
            // Else it would be the next to be short.
            stalest.wanted = stalest.idle.len() + stalest.building;
        }
        if let Some(shelf) = self.shelves.get_mut(&shape) {
            shelf.building += 1;
        }
        (Some(shape), evicted)
    }

    fn next_try(&self, now: Instant) -> Instant {
        let waiting = self
            .shelves
            .values()
            .filter(|shelf| shelf.not_before > now)
            .map(|shelf| shelf.not_before);
        waiting.min().unwrap_or(now + ROUND)
    }
}
