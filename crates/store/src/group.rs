//! Group commit: whoever comes while a commit is under way waits, and the first of those who
//! waited commits for all of them. There is no thread behind it, so one caller alone pays nothing.

use std::collections::HashMap;
use std::fmt;
use std::iter;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::failure::locked;

/// Jobs in one commit. Bounds what a failed commit takes with it, and how long the first waits.
const BATCH_MOST: usize = 256;

pub(crate) struct Group<J, R> {
    state: Mutex<State<J, R>>,
    changed: Condvar,
}

struct State<J, R> {
    next_ticket: u64,
    waiting: Vec<(u64, J)>,
    /// `None`: the one who committed did not come to an end.
    done: HashMap<u64, Option<R>>,
    led: bool,
}

impl<J, R> Group<J, R> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                next_ticket: 0,
                waiting: Vec::new(),
                done: HashMap::new(),
                led: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Returns when the job was part of a commit. `commit` gives one result for each job, in
    /// order; `None` means that it panicked in another thread.
    pub(crate) fn submit(&self, job: J, mut commit: impl FnMut(Vec<J>) -> Vec<R>) -> Option<R> {
        let mut state = locked(&self.state);
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push((ticket, job));
        loop {
            if let Some(result) = state.done.remove(&ticket) {
                return result;
            }
            if state.led {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.led = true;
            let count = state.waiting.len().min(BATCH_MOST);
            let (tickets, jobs) = state.waiting.drain(..count).unzip();
            drop(state);
            let mut lead = Lead {
                group: self,
                tickets,
                results: Vec::new(),
            };
            lead.results = commit(jobs);
            drop(lead);
            state = locked(&self.state);
        }
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
    tickets: Vec<u64>,
    results: Vec<R>,
}

impl<J, R> Drop for Lead<'_, J, R> {
    fn drop(&mut self) {
        let mut state = locked(&self.group.state);
        state.led = false;
        let results = self.results.drain(..).map(Some);
        let results = results.chain(iter::repeat_with(|| None));
        state.done.extend(self.tickets.drain(..).zip(results));
        drop(state);
        self.group.changed.notify_all();
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
