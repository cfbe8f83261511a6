//! Threads that execs run on. Each has a thread to itself while it runs; a thread that is done waits
//! a while for the next exec, since making one costs more than waking one.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use super::locked;

pub(super) type Work = Box<dyn FnOnce() + Send>;

/// How long a thread waits for work, and how many wait.
const REST: Duration = Duration::from_secs(10);
const RESTING: usize = 32;

#[derive(Debug, Default)]
pub(super) struct ThreadPool(Mutex<Resting>);

#[derive(Debug, Default)]
struct Resting {
    /// The last to rest is the first to be called.
    threads: Vec<IdleThread>,
    numbers: u64,
}

/// A thread that has nothing to do.
#[derive(Debug)]
struct IdleThread {
    number: u64,
    to: SyncSender<Work>,
}

impl ThreadPool {
    /// To one that rests, or to a new one.
    pub(super) fn give(self: &Arc<Self>, work: Work) -> io::Result<()> {
        let resting = locked(&self.0).threads.pop();
        let to = match resting {
            Some(idle) => idle.to,
            None => self.hire()?,
        };
        to.send(work)
            .map_err(|_| io::Error::other("the thread is gone"))
    }

    fn hire(self: &Arc<Self>) -> io::Result<SyncSender<Work>> {
        let (to, from) = sync_channel(1);
        let all = Arc::downgrade(self);
        thread::Builder::new()
            .name("exec".to_owned())
            .spawn(move || work_on(&all, from))?;
        Ok(to)
    }

    /// Lines up for more work. None: enough are resting.
    fn rest(&self) -> Option<(u64, Receiver<Work>)> {
        let (to, from) = sync_channel(1);
        let mut resting = locked(&self.0);
        if resting.threads.len() >= RESTING {
            return None;
        }
        resting.numbers += 1;
        let number = resting.numbers;
        resting.threads.push(IdleThread { number, to });
        Some((number, from))
    }

    /// False: somebody has called it meanwhile, and work is on its way.
    fn leave(&self, number: u64) -> bool {
        let mut resting = locked(&self.0);
        let place = resting.threads.iter().position(|it| it.number == number);
        place.map(|place| resting.threads.remove(place)).is_some()
    }
}

/// Holds nothing of whose work it does while it rests, so that it keeps nobody from ending.
fn work_on(all: &Weak<ThreadPool>, mut from: Receiver<Work>) {
    let Ok(first) = from.recv() else { return };
    first();
    loop {
        let number = match all.upgrade().and_then(|all| all.rest()) {
            None => return,
            Some((number, next)) => {
                from = next;
                number
            }
        };
        let work = match from.recv_timeout(REST) {
            Ok(work) => work,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                if all.upgrade().is_none_or(|all| all.leave(number)) {
                    return;
                }
                match from.recv() {
                    Ok(work) => work,
                    Err(_) => return,
                }
            }
        };
        work();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc::channel;
    use std::thread::ThreadId;

    use super::*;

    fn resting(threads: &ThreadPool) -> usize {
        locked(&threads.0).threads.len()
    }

    fn on(threads: &Arc<ThreadPool>, work: impl FnOnce() + Send + 'static) {
        threads.give(Box::new(work)).unwrap();
    }

    #[test]
    fn a_thread_that_is_done_takes_the_next_and_two_at_once_have_one_each() {
        let threads = Arc::new(ThreadPool::default());
        let (tell, told) = channel::<ThreadId>();
        let mut seen = Vec::new();
        for _ in 0..3 {
            let tell = tell.clone();
            on(&threads, move || tell.send(thread::current().id()).unwrap());
            seen.push(told.recv().unwrap());
            while resting(&threads) == 0 {
                thread::yield_now();
            }
        }
        assert_eq!(seen[0], seen[1]);
        assert_eq!(seen[1], seen[2]);
        let both = Arc::new(Barrier::new(2));
        for _ in 0..2 {
            let (tell, both) = (tell.clone(), Arc::clone(&both));
            on(&threads, move || {
                both.wait();
                tell.send(thread::current().id()).unwrap();
            });
        }
        assert_ne!(told.recv().unwrap(), told.recv().unwrap());
    }

    #[test]
    fn one_whose_work_panics_is_not_called_again_and_nobody_is_kept_from_ending() {
        let threads = Arc::new(ThreadPool::default());
        let (tell, told) = channel::<()>();
        on(&threads, move || {
            let _told_when_dropped = tell;
            panic!("as the test wants");
        });
        assert!(told.recv().is_err());
        let (tell, told) = channel::<()>();
        on(&threads, move || tell.send(()).unwrap());
        told.recv().unwrap();
        while resting(&threads) == 0 {
            thread::yield_now();
        }
        assert_eq!(resting(&threads), 1);
        // It lets go a moment after it has lined up.
        while Arc::strong_count(&threads) > 1 {
            thread::yield_now();
        }
        assert!(
            Arc::into_inner(threads).is_some(),
            "who rests holds nothing"
        );
    }
}
