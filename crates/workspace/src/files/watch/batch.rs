//! Events of one moment, made into as few as say the same.

use std::collections::HashMap;

use glovebox_model::ByteString;

use super::{Change, ChangeKind};

#[derive(Debug, Default)]
pub(super) struct Batch {
    /// None where a later event took one back.
    events: Vec<Option<Change>>,
    /// The newest event of each path.
    newest: HashMap<Vec<u8>, usize>,
    /// Paths that were replaced by a file of ours: what is moved away from there next is the old
    /// one, and the path stays.
    replaced: HashMap<Vec<u8>, usize>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn add(&mut self, kind: ChangeKind, path: &[u8], is_dir: bool) {
        use ChangeKind::{Created, Modified, Moved, Removed};
        let before = self.newest.get(path).copied();
        let earlier = before.and_then(|at| Some((at, self.events.get(at)?.as_ref()?.clone())));
        match earlier {
            Some((at, earlier)) if earlier.is_dir == is_dir => match (earlier.kind, kind) {
                (Created, Created | Modified) | (Modified, Modified) => {}
                (Created, Removed) => {
                    self.events[at] = None;
                    self.newest.remove(path);
                }
                (Modified, Removed) => {
                    self.events[at] = None;
                    self.push(kind, path, is_dir, None);
                }
                (Removed, Created) if !is_dir => {
                    self.events[at] = None;
                    self.push(Modified, path, is_dir, None);
                }
                (Moved | Removed | Modified | Created, _) => self.push(kind, path, is_dir, None),
            },
            _ => self.push(kind, path, is_dir, None),
        }
    }

    pub(super) fn moved(&mut self, from: &[u8], to: &[u8], is_dir: bool) {
        let made = self.newest.remove(from);
        let made = made.filter(|at| {
            let event = self.events.get(*at).and_then(Option::as_ref);
            event.is_some_and(|event| event.kind == ChangeKind::Created)
        });
        match made {
            // Nobody knows the old name.
            Some(at) => {
                self.events[at] = None;
                self.push(ChangeKind::Created, to, is_dir, None);
            }
            None => self.push(ChangeKind::Moved, to, is_dir, Some(from)),
        }
    }

    /// A file of ours was put there.
    pub(super) fn replace(&mut self, path: &[u8]) {
        self.add(ChangeKind::Modified, path, false);
        self.replaced.insert(path.to_vec(), self.events.len());
    }

    /// Something was taken away to a name of ours.
    pub(super) fn take(&mut self, path: &[u8], is_dir: bool) {
        match self.replaced.remove(path) {
            Some(_) => {}
            None => self.add(ChangeKind::Removed, path, is_dir),
        }
    }

    pub(super) fn drain(&mut self) -> Vec<Change> {
        self.newest.clear();
        self.replaced.clear();
        self.events.drain(..).flatten().collect()
    }

    fn push(&mut self, kind: ChangeKind, path: &[u8], is_dir: bool, from: Option<&[u8]>) {
        self.newest.insert(path.to_vec(), self.events.len());
        self.events.push(Some(Change {
            seq: 0,
            kind,
            path: ByteString::new(path).unwrap_or_default(),
            is_dir,
            from: from.and_then(ByteString::new),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ChangeKind::{Created, Modified, Moved, Removed};

    fn told(batch: &mut Batch) -> Vec<(ChangeKind, String)> {
        let events = batch.drain();
        events
            .into_iter()
            .map(|event| (event.kind, event.path.display()))
            .collect()
    }

    #[test]
    fn events_that_say_the_same_become_one() {
        let cases: [(&[ChangeKind], &[ChangeKind]); 7] = [
            (&[Created, Modified, Modified], &[Created]),
            (&[Modified, Modified], &[Modified]),
            (&[Created, Modified, Removed], &[]),
            (&[Modified, Removed], &[Removed]),
            (&[Removed, Created], &[Modified]),
            (&[Removed, Created, Removed], &[Removed]),
            (&[Created, Removed, Created], &[Created]),
        ];
        for (happened, expected) in cases {
            let mut batch = Batch::default();
            for kind in happened {
                batch.add(*kind, b"f", false);
            }
            let kinds: Vec<_> = told(&mut batch).into_iter().map(|event| event.0).collect();
            assert_eq!(kinds, expected, "{happened:?}");
        }
    }

    #[test]
    fn a_file_that_is_made_and_moved_was_made_there() {
        let mut batch = Batch::default();
        batch.add(Created, b"a", false);
        batch.moved(b"a", b"b", false);
        assert_eq!(told(&mut batch), [(Created, "b".to_owned())]);
        batch.moved(b"a", b"b", false);
        batch.add(Modified, b"b", false);
        let expected = [(Moved, "b".to_owned()), (Modified, "b".to_owned())];
        assert_eq!(told(&mut batch), expected);
    }

    #[test]
    fn a_file_that_is_exchanged_stays() {
        let mut batch = Batch::default();
        batch.replace(b"f");
        batch.take(b"f", false);
        assert_eq!(told(&mut batch), [(Modified, "f".to_owned())]);
        batch.take(b"f", false);
        assert_eq!(told(&mut batch), [(Removed, "f".to_owned())]);
    }
}
