//! Who runs now, who waits, who is sent away. Pure: no clock, no thread, no disk.
//!
//! Spaces take turns, so none can keep another waiting by asking more often; inside a space it is
//! first come, first served, except that somebody whose user runs enough already is passed over.

use std::collections::{HashMap, VecDeque};

use glovebox_model::{ExecId, Settings, SpaceId};

/// On whose account something runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Account {
    pub(crate) space: SpaceId,
    pub(crate) user: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Counted as running from here on; `leave` gives the place back.
    Now,
    /// A place in the queue is kept for it; `queue` takes it, `give_up` gives it back.
    Later,
    Full,
    /// The server shuts down.
    Shut,
}

#[derive(Debug)]
struct Ticket<T> {
    id: ExecId,
    account: Account,
    what: T,
}

#[derive(Debug)]
pub(crate) struct AdmissionQueue<T> {
    limits: Settings,
    running: HashMap<Account, u32>,
    queues: HashMap<SpaceId, VecDeque<Ticket<T>>>,
    /// Spaces with a queue, in the order of their turns.
    turns: VecDeque<SpaceId>,
    /// Places in the queue that are kept for somebody who is being written down.
    kept: HashMap<SpaceId, u32>,
    is_shut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) running: u64,
    pub(crate) queued: u64,
}

impl<T> AdmissionQueue<T> {
    pub(crate) fn new(limits: Settings) -> Self {
        Self {
            limits,
            running: HashMap::new(),
            queues: HashMap::new(),
            turns: VecDeque::new(),
            kept: HashMap::new(),
            is_shut: false,
        }
    }

    /// Whoever runs already goes on; only who comes next is held to them.
    pub(crate) fn set_limits(&mut self, limits: Settings) {
        self.limits = limits;
    }

    pub(crate) fn enter(&mut self, account: &Account) -> Admission {
        if self.is_shut {
            return Admission::Shut;
        }
        if self.fits(account) {
            *self.running.entry(account.clone()).or_default() += 1;
            return Admission::Now;
        }
        let own = self.waiting_in(&account.space);
        let all: u64 = self
            .queues
            .keys()
            .map(|space| self.queued_in(space))
            .sum::<u64>()
            + self.kept.values().copied().map(u64::from).sum::<u64>();
        let room = all < u64::from(self.limits.max_queued)
            && self
                .limits
                .max_queued_per_space
                .is_none_or(|most| own < u64::from(most));
        if !room {
            return Admission::Full;
        }
        *self.kept.entry(account.space.clone()).or_default() += 1;
        Admission::Later
    }

    /// Takes the kept place. The caller looks for the next one afterwards: somebody may have left
    /// meanwhile. Given back when the server shut down meanwhile.
    pub(crate) fn queue(&mut self, account: Account, id: ExecId, what: T) -> Option<T> {
        self.give_up(&account.space);
        if self.is_shut {
            return Some(what);
        }
        self.line_up(account, id, what);
        None
    }

    /// Without asking for room: it had its place before a restart.
    pub(crate) fn line_up(&mut self, account: Account, id: ExecId, what: T) {
        let space = account.space.clone();
        let queue = self.queues.entry(space.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_back(space);
        }
        queue.push_back(Ticket { id, account, what });
    }

    /// As `line_up`, and given back when the server shut down meanwhile.
    pub(crate) fn rejoin(&mut self, account: Account, id: ExecId, what: T) -> Option<T> {
        if self.is_shut {
            return Some(what);
        }
        self.line_up(account, id, what);
        None
    }

    pub(crate) fn give_up(&mut self, space: &SpaceId) {
        decrease(&mut self.kept, space);
    }

    pub(crate) fn leave(&mut self, account: &Account) {
        decrease(&mut self.running, account);
    }

    /// The next one whose turn it is and who fits, counted as running from here on.
    pub(crate) fn next(&mut self) -> Option<(Account, T)> {
        for _ in 0..self.turns.len() {
            let space = self.turns.pop_front()?;
            let eligible = self
                .queues
                .get(&space)
                .and_then(|queue| queue.iter().position(|ticket| self.fits(&ticket.account)));
            let ticket = eligible.and_then(|place| self.queues.get_mut(&space)?.remove(place));
            self.keep_turn(space);
            if let Some(ticket) = ticket {
                *self.running.entry(ticket.account.clone()).or_default() += 1;
                return Some((ticket.account, ticket.what));
            }
        }
        None
    }

    /// Takes somebody out of the queue.
    pub(crate) fn withdraw(&mut self, space: &SpaceId, id: &ExecId) -> Option<T> {
        let queue = self.queues.get_mut(space)?;
        let place = queue.iter().position(|ticket| ticket.id == *id)?;
        let ticket = queue.remove(place)?;
        if queue.is_empty() {
            self.queues.remove(space);
            self.turns.retain(|turn| turn != space);
        }
        Some(ticket.what)
    }

    /// Lets nobody in any more; everybody who waits is given back.
    pub(crate) fn shut(&mut self) -> Vec<T> {
        self.is_shut = true;
        self.turns.clear();
        let queues = std::mem::take(&mut self.queues);
        let tickets = queues.into_values().flatten();
        tickets.map(|ticket| ticket.what).collect()
    }

    /// How many of its space are before it: what goes on in other spaces is not its business.
    pub(crate) fn position(&self, space: &SpaceId, id: &ExecId) -> Option<u64> {
        let queue = self.queues.get(space)?;
        let place = queue.iter().position(|ticket| ticket.id == *id)?;
        u64::try_from(place).ok()
    }

    pub(crate) fn waiting_in(&self, space: &SpaceId) -> u64 {
        self.queued_in(space) + u64::from(self.kept.get(space).copied().unwrap_or(0))
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            running: self.running.values().copied().map(u64::from).sum(),
            queued: self.queues.keys().map(|space| self.queued_in(space)).sum(),
        }
    }

    fn queued_in(&self, space: &SpaceId) -> u64 {
        let length = self.queues.get(space).map_or(0, VecDeque::len);
        u64::try_from(length).unwrap_or(u64::MAX)
    }

    fn fits(&self, account: &Account) -> bool {
        let limits = &self.limits;
        let all: u32 = self.running.values().sum();
        let of = |same: &dyn Fn(&Account) -> bool| -> u32 {
            let running = self.running.iter();
            running.filter(|(it, _)| same(it)).map(|(_, n)| n).sum()
        };
        let space = || of(&|it| it.space == account.space);
        let user = || of(&|it| it == account);
        all < limits.max_concurrent_execs
            && limits
                .max_concurrent_per_space
                .is_none_or(|most| space() < most)
            && (account.user.is_none()
                || limits
                    .max_concurrent_per_user
                    .is_none_or(|most| user() < most))
    }

    fn keep_turn(&mut self, space: SpaceId) {
        if self
            .queues
            .get(&space)
            .is_some_and(|queue| !queue.is_empty())
        {
            self.turns.push_back(space);
        } else {
            self.queues.remove(&space);
        }
    }
}

fn decrease<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u32>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn account(space: &str, user: Option<&str>) -> Account {
        Account {
            space: space.parse().unwrap(),
            user: user.map(str::to_owned),
        }
    }

    fn id(number: u8) -> ExecId {
        ExecId::from_random([number; 16])
    }

    fn admission(limits: Settings) -> AdmissionQueue<u8> {
        AdmissionQueue::new(limits)
    }

    fn limits(concurrent: u32, queued: u32) -> Settings {
        Settings {
            max_concurrent_execs: concurrent,
            max_queued: queued,
            ..Settings::default()
        }
    }

    #[test]
    fn spaces_take_turns_however_long_their_queues_are() {
        let mut admission = admission(limits(1, 100));
        let (a, b) = (account("a", None), account("b", None));
        assert_eq!(admission.enter(&a), Admission::Now);
        for number in 0..10 {
            assert_eq!(admission.enter(&a), Admission::Later);
            let _ = admission.queue(a.clone(), id(number), number);
        }
        assert_eq!(admission.enter(&b), Admission::Later);
        let _ = admission.queue(b.clone(), id(99), 99);
        admission.leave(&a);
        assert_eq!(admission.next(), Some((a.clone(), 0)));
        assert_eq!(admission.next(), None, "one at a time");
        admission.leave(&a);
        assert_eq!(
            admission.next(),
            Some((b.clone(), 99)),
            "the other space's turn"
        );
        admission.leave(&b);
        assert_eq!(admission.next(), Some((a, 1)));
    }

    #[test]
    fn a_user_who_runs_enough_is_passed_over_and_comes_first_again() {
        let mut admission = admission(Settings {
            max_concurrent_per_user: Some(1),
            ..limits(2, 100)
        });
        let (u, v) = (account("a", Some("u")), account("a", Some("v")));
        assert_eq!(admission.enter(&u), Admission::Now);
        assert_eq!(admission.enter(&u), Admission::Later);
        let _ = admission.queue(u.clone(), id(1), 1);
        assert_eq!(admission.next(), None);
        assert_eq!(admission.enter(&v), Admission::Now);
        admission.leave(&u);
        assert_eq!(admission.next(), Some((u, 1)));
    }

    #[test]
    fn the_queue_is_bounded_together_and_per_space() {
        let mut admission = admission(Settings {
            max_queued_per_space: Some(1),
            ..limits(1, 2)
        });
        let (a, b, c) = (account("a", None), account("b", None), account("c", None));
        assert_eq!(admission.enter(&a), Admission::Now);
        assert_eq!(admission.enter(&a), Admission::Later);
        assert_eq!(admission.enter(&a), Admission::Full, "a kept place counts");
        let _ = admission.queue(a.clone(), id(1), 1);
        assert_eq!(admission.enter(&a), Admission::Full);
        assert_eq!(admission.enter(&b), Admission::Later);
        assert_eq!(admission.enter(&c), Admission::Full);
        admission.give_up(&b.space);
        assert_eq!(admission.enter(&c), Admission::Later);
        assert_eq!(admission.position(&a.space, &id(1)), Some(0));
        assert_eq!(
            admission.withdraw(&b.space, &id(1)),
            None,
            "not of that space"
        );
        assert_eq!(admission.withdraw(&a.space, &id(1)), Some(1));
        assert_eq!(admission.position(&a.space, &id(1)), None);
    }

    proptest! {
        /// Whatever happens in whatever order, limits included, nobody gets in above a limit and
        /// nobody who could run is left waiting.
        #[test]
        fn limits_are_never_exceeded(steps in prop::collection::vec((0u8..6, 0u8..3, 0u8..2, 1u32..5), 1..200)) {
            let mut admission = admission(limits(2, 8));
            let mut inside: Vec<Account> = Vec::new();
            let mut next_id = 0u8;
            for (step, space, user, number) in steps {
                let who = account(["a", "b", "c"][space as usize], Some(["u", "v"][user as usize]));
                match step {
                    0..=2 => match admission.enter(&who) {
                        Admission::Now => inside.push(who),
                        Admission::Later => {
                            next_id = next_id.wrapping_add(1);
                            let _ = admission.queue(who, id(next_id), next_id);
                        }
                        Admission::Full | Admission::Shut => {}
                    },
                    3 => if let Some(who) = inside.pop() { admission.leave(&who) },
                    4 => admission.set_limits(Settings {
                        max_concurrent_per_space: Some(number),
                        max_concurrent_per_user: Some(number),
                        ..limits(number, 8)
                    }),
                    _ => { admission.withdraw(&who.space, &id(next_id)); }
                }
                let before = inside.len();
                while let Some((who, _)) = admission.next() {
                    inside.push(who);
                }
                let all = u32::try_from(inside.len()).unwrap();
                if inside.len() > before {
                    prop_assert!(all <= admission.limits.max_concurrent_execs);
                }
                prop_assert_eq!(admission.counts().running, u64::from(all));
                prop_assert!(admission.counts().queued <= 8);
                prop_assert!(admission.next().is_none());
            }
        }
    }
}
