//! Group commit: whoever comes while a commit is under way waits, and the first of those who
//! waited commits for all of them. There is no thread behind it, so one caller alone pays nothing.

use std::fmt;
use std::iter;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::failure::locked;

/// Jobs in one commit. Bounds what a failed commit takes with it, and how long the first waits.
const BATCH_MOST: usize = 256;

pub(crate) struct Group<J, R> {
    state: Mutex<State<J, R>>,
}

struct State<J, R> {
    waiting: Vec<(Arc<Ticket<R>>, J)>,
    /// Somebody commits, or was told to.
    led: bool,
}

/// One job's place. Each has a bell of its own: a commit wakes those whose jobs were in it, and one
/// more to lead the next, and nobody else.
struct Ticket<R> {
    fate: Mutex<Fate<R>>,
    changed: Condvar,
}

enum Fate<R> {
    Waits,
    Leads,
    /// `None`: the one who committed did not come to an end.
    Done(Option<R>),
}

impl<R> Ticket<R> {
    fn tell(&self, fate: Fate<R>) {
        *locked(&self.fate) = fate;
        self.changed.notify_one();
    }

    /// `Err`: it is this one's turn to lead.
    fn wait(&self) -> Result<Option<R>, ()> {
        let mut fate = locked(&self.fate);
        loop {
            match std::mem::replace(&mut *fate, Fate::Waits) {
                Fate::Done(result) => return Ok(result),
                Fate::Leads => return Err(()),
                Fate::Waits => {
                    let waited = self.changed.wait(fate);
                    fate = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl<J, R> Group<J, R> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                waiting: Vec::new(),
                led: false,
            }),
        }
    }

    /// Returns when the job was part of a commit. `commit` gives one result for each job, in
    /// order; `None` means that it panicked in another thread.
    pub(crate) fn submit(&self, job: J, mut commit: impl FnMut(Vec<J>) -> Vec<R>) -> Option<R> {
        let own = Arc::new(Ticket {
            fate: Mutex::new(Fate::Waits),
            changed: Condvar::new(),
        });
        let mut state = locked(&self.state);
        state.waiting.push((Arc::clone(&own), job));
        let mut leads = !std::mem::replace(&mut state.led, true);
        drop(state);
        loop {
            if leads {
                self.lead(&mut commit);
            }
            match own.wait() {
                Ok(result) => return result,
                Err(()) => leads = true,
            }
        }
    }

    /// One commit for those who wait, the first of them included; who leads is the first.
    fn lead(&self, commit: &mut impl FnMut(Vec<J>) -> Vec<R>) {
        let (tickets, jobs) = {
            let mut state = locked(&self.state);
            let count = state.waiting.len().min(BATCH_MOST);
            state.waiting.drain(..count).unzip()
        };
        let mut lead = Lead {
            group: self,
            tickets,
            results: Vec::new(),
        };
        lead.results = commit(jobs);
    }
}

impl<J, R> fmt::Debug for Group<J, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").finish_non_exhaustive()
    }
}

/// Ends the leading in every case, so that a panic leaves nobody waiting.
struct Lead<'g, J, R> {
    group: &'g Group<J, R>,
    tickets: Vec<Arc<Ticket<R>>>,
    results: Vec<R>,
}

impl<J, R> Drop for Lead<'_, J, R> {
    fn drop(&mut self) {
        // The next may begin while those of this commit are woken.
        let mut state = locked(&self.group.state);
        match state.waiting.first() {
            Some((next, _)) => next.tell(Fate::Leads),
            None => state.led = false,
        }
        drop(state);
        let results = self.results.drain(..).map(Some);
        let results = results.chain(iter::repeat_with(|| None));
        for (ticket, result) in self.tickets.drain(..).zip(results) {
            ticket.tell(Fate::Done(result));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    fn waiting<J, R>(group: &Group<J, R>) -> usize {
        locked(&group.state).waiting.len()
    }

    #[test]
    fn those_who_wait_share_the_next_commit() {
        let group = Group::new();
        let commits = AtomicUsize::new(0);
        let mut results = thread::scope(|scope| {
            let slow = scope.spawn(|| {
                group.submit(0, |jobs: Vec<usize>| {
                    commits.fetch_add(1, Ordering::SeqCst);
                    while waiting(&group) < 20 {
                        thread::yield_now();
                    }
                    jobs
                })
            });
            while commits.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            let others: Vec<_> = (1..=20)
                .map(|job| {
                    let (group, commits) = (&group, &commits);
                    scope.spawn(move || {
                        group.submit(job, |jobs| {
                            commits.fetch_add(1, Ordering::SeqCst);
                            jobs
                        })
                    })
                })
                .collect();
            iter::once(slow)
                .chain(others)
                .map(|thread| thread.join().unwrap().unwrap())
                .collect::<Vec<_>>()
        });
        results.sort_unstable();
        assert_eq!(results, (0..=20).collect::<Vec<_>>());
        assert_eq!(commits.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_panic_in_the_commit_leaves_nobody_waiting() {
        let group: Group<usize, usize> = Group::new();
        let leading = AtomicUsize::new(0);
        thread::scope(|scope| {
            let doomed = scope.spawn(|| {
                catch_unwind(AssertUnwindSafe(|| {
                    group.submit(0, |_| {
                        leading.store(1, Ordering::SeqCst);
                        while waiting(&group) < 1 {
                            thread::yield_now();
                        }
                        panic!("on purpose");
                    })
                }))
            });
            while leading.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            let next = scope.spawn(|| group.submit(7, |jobs| jobs));
            assert!(doomed.join().unwrap().is_err());
            assert_eq!(next.join().unwrap(), Some(7));
        });
        assert_eq!(group.submit(8, |jobs| jobs), Some(8));
    }

    #[test]
    fn a_job_without_a_result_learns_it() {
        let group: Group<usize, usize> = Group::new();
        assert_eq!(group.submit(1, |_| Vec::new()), None);
    }
}
