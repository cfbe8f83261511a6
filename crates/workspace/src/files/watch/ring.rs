//! The last events, by number.

use std::collections::VecDeque;

use super::Change;

#[derive(Debug)]
pub(super) struct Ring {
    events: VecDeque<Change>,
    most: usize,
    /// Of the newest event, or of a gap.
    last: u64,
    /// Up to here events are forgotten or were never seen.
    lost: u64,
}

impl Ring {
    /// Begins at the time, in microseconds, so that a number of an earlier watch is known to be
    /// from before, and stays exact as a JSON number for 200 years.
    pub(super) fn new(most: usize) -> Self {
        let now = jiff::Timestamp::now().as_microsecond();
        let first = u64::try_from(now).unwrap_or(0);
        Self {
            events: VecDeque::new(),
            most: most.max(1),
            last: first,
            lost: first,
        }
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Gives the event its number.
    pub(super) fn push(&mut self, change: Change) {
        self.last += 1;
        if self.events.len() == self.most
            && let Some(oldest) = self.events.pop_front()
        {
            self.lost = oldest.seq;
        }
        self.events.push_back(Change {
            seq: self.last,
            ..change
        });
    }

    /// Something happened that nobody saw.
    pub(super) fn gap(&mut self) {
        self.last += 1;
        self.lost = self.last;
        self.events.clear();
    }

    /// Events behind `seq`, whether some are missing, and the number to go on with.
    pub(super) fn after(&self, seq: u64, most: usize) -> (Vec<Change>, bool, u64) {
        let missing = seq < self.lost || seq > self.last;
        let from = if missing { self.lost } else { seq };
        let events: Vec<Change> = self
            .events
            .iter()
            .skip_while(|event| event.seq <= from)
            .take(most.max(1))
            .cloned()
            .collect();
        let seq = events.last().map_or(self.last.max(from), |event| event.seq);
        (events, missing, seq)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ChangeKind;
    use super::*;
    use glovebox_model::ByteString;

    fn change(name: &str) -> Change {
        Change {
            seq: 0,
            kind: ChangeKind::Created,
            path: ByteString::new(name).unwrap(),
            is_dir: false,
            from: None,
        }
    }

    fn names(events: &[Change]) -> Vec<String> {
        events.iter().map(|event| event.path.display()).collect()
    }

    #[test]
    fn who_is_too_slow_is_told_once_and_goes_on() {
        let mut ring = Ring::new(2);
        let start = ring.last();
        for name in ["a", "b", "c"] {
            ring.push(change(name));
        }
        let (events, overflow, seq) = ring.after(start, 10);
        assert_eq!(
            (names(&events), overflow),
            (vec!["b".into(), "c".into()], true)
        );
        ring.push(change("d"));
        let (events, overflow, seq) = ring.after(seq, 10);
        assert_eq!((names(&events), overflow), (vec!["d".into()], false));
        assert_eq!(ring.after(seq, 10), (vec![], false, seq));
    }

    #[test]
    fn a_gap_and_numbers_of_another_watch_are_told() {
        let mut ring = Ring::new(10);
        let start = ring.last();
        ring.push(change("a"));
        ring.gap();
        ring.push(change("b"));
        let (events, overflow, _) = ring.after(start, 10);
        assert_eq!((names(&events), overflow), (vec!["b".into()], true));
        assert!(ring.after(start - 1, 10).1, "from before");
        assert!(ring.after(u64::MAX, 10).1, "from nowhere");
        assert_eq!(ring.after(u64::MAX, 10).2, ring.last());
    }

    #[test]
    fn pages_follow_each_other() {
        let mut ring = Ring::new(10);
        let start = ring.last();
        for name in ["a", "b", "c"] {
            ring.push(change(name));
        }
        let (events, _, seq) = ring.after(start, 2);
        assert_eq!(names(&events), ["a", "b"]);
        let (events, overflow, _) = ring.after(seq, 2);
        assert_eq!((names(&events), overflow), (vec!["c".into()], false));
    }
}
