//! Workspaces that are watched. All who look at one share one watch, since a host has few of them;
//! it stays for a moment after the last has left, so that whoever lost the connection finds what
//! happened meanwhile.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use glovebox_model::{Code, Error, ProjectId, Result, SpaceId, Stage};
use glovebox_workspace::Dir;
use glovebox_workspace::files::{Changes, Watch, WatchLimits};
use tokio::sync::watch;

/// The kernel gives a user 128, and a server is not the only one who needs some.
const MOST: usize = 48;
const MOST_OF_A_SPACE: usize = 8;
const MOST_WATCHERS: usize = 32;
/// How long a watch that nobody looks at is kept.
const LINGER: Duration = Duration::from_secs(30);
/// How often the thread of a watch looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(500);

type Key = (SpaceId, ProjectId);

#[derive(Debug, Clone, Default)]
pub(crate) struct Watches(Arc<Mutex<HashMap<Key, Entry>>>);

#[derive(Debug)]
struct Entry {
    start: Arc<Start>,
    watchers: usize,
    /// When the last one left.
    left: Instant,
}

/// A watch that may still be being started: a large tree holds up only who looks at it too.
#[derive(Debug, Default)]
struct Start(Mutex<Option<Arc<Watched>>>);

/// One workspace that is watched.
#[derive(Debug)]
struct Watched {
    watch: Watch,
    news: watch::Sender<u64>,
}

/// Somebody who looks.
#[derive(Debug)]
pub(crate) struct Watcher {
    _seat: Seat,
    watched: Arc<Watched>,
    news: watch::Receiver<u64>,
}

/// Counts as one who looks for as long as it is there.
#[derive(Debug)]
struct Seat {
    watches: Watches,
    key: Key,
    start: Arc<Start>,
}

impl Watches {
    /// Blocks: what is in the workspace is gone through.
    pub(crate) fn enter(
        &self,
        space: &SpaceId,
        project: &ProjectId,
        work: &Dir,
    ) -> Result<Watcher> {
        self.enter_by(space, project, || Watched::start(work))
    }

    fn enter_by(
        &self,
        space: &SpaceId,
        project: &ProjectId,
        begin: impl FnOnce() -> Result<Arc<Watched>>,
    ) -> Result<Watcher> {
        let seat = self.seat(space, project)?;
        let watched = seat.start.get(begin)?;
        Ok(Watcher {
            news: watched.news.subscribe(),
            watched,
            _seat: seat,
        })
    }

    /// One that is being started has somebody who looks, so it goes for nobody else's.
    fn seat(&self, space: &SpaceId, project: &ProjectId) -> Result<Seat> {
        let key = (space.clone(), project.clone());
        let mut entries = self.entries();
        let watchers: usize = of_space(&entries, space).map(|it| it.watchers).sum();
        if watchers >= MOST_WATCHERS {
            return Err(busy(&format!(
                "{MOST_WATCHERS} clients of this space watch already"
            )));
        }
        let gone = match entries.contains_key(&key) {
            true => Vec::new(),
            false => make_room(&mut entries, space)?,
        };
        let entry = entries.entry(key.clone()).or_insert_with(|| Entry {
            start: Arc::default(),
            watchers: 0,
            left: Instant::now(),
        });
        entry.watchers += 1;
        let start = Arc::clone(&entry.start);
        drop(entries);
        // Each waits for its thread.
        drop(gone);
        Ok(Seat {
            watches: self.clone(),
            key,
            start,
        })
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sweep(&self) {
        let gone = |entry: &Entry| entry.watchers == 0 && entry.left.elapsed() >= LINGER;
        let mut entries = self.entries();
        let keys: Vec<Key> = entries
            .iter()
            .filter(|(_, entry)| gone(entry))
            .map(|(key, _)| key.clone())
            .collect();
        let ended: Vec<_> = keys.iter().filter_map(|key| entries.remove(key)).collect();
        drop(entries);
        // Each waits for its thread.
        drop(ended);
    }
}

fn of_space<'e>(
    entries: &'e HashMap<Key, Entry>,
    space: &'e SpaceId,
) -> impl Iterator<Item = &'e Entry> {
    entries
        .iter()
        .filter(move |(key, _)| key.0 == *space)
        .map(|(_, entry)| entry)
}

/// The one that was left first goes, if any was left.
fn make_room(entries: &mut HashMap<Key, Entry>, space: &SpaceId) -> Result<Vec<Entry>> {
    let mut gone = Vec::new();
    let is_full = |entries: &HashMap<Key, Entry>| {
        entries.len() >= MOST || of_space(entries, space).count() >= MOST_OF_A_SPACE
    };
    while is_full(entries) {
        let of_all = entries.len() >= MOST;
        let left = entries
            .iter()
            .filter(|(key, entry)| entry.watchers == 0 && (of_all || key.0 == *space));
        let oldest = left.min_by_key(|(_, entry)| entry.left);
        match oldest.map(|(key, _)| key.clone()) {
            Some(key) => gone.extend(entries.remove(&key)),
            None => return Err(busy("too many workspaces are watched at once")),
        }
    }
    Ok(gone)
}

fn busy(message: &str) -> Error {
    Error::new(Code::Busy, Stage::Admit, message).hint("end a watch, or try again later")
}

impl Start {
    fn get(&self, begin: impl FnOnce() -> Result<Arc<Watched>>) -> Result<Arc<Watched>> {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*started {
            Some(watched) if !watched.has_ended() => Ok(Arc::clone(watched)),
            // Where its directory is gone, one of the same name is another.
            _ => {
                let watched = begin()?;
                *started = Some(Arc::clone(&watched));
                Ok(watched)
            }
        }
    }

    /// It came to nothing. Whoever is just starting it counts as looking.
    fn is_empty(&self) -> bool {
        self.0.try_lock().is_ok_and(|started| started.is_none())
    }
}

impl Watched {
    fn start(work: &Dir) -> Result<Arc<Self>> {
        let watch = Watch::start(work, None, WatchLimits::default());
        let watch = watch.map_err(|error| error.at(Stage::Open))?;
        let now = watch.now();
        let (news, _) = watch::channel(now);
        let watched = Arc::new(Self { watch, news });
        let known = Arc::downgrade(&watched);
        std::thread::Builder::new()
            .name("watched".to_owned())
            .spawn(move || tell(&known, now))
            .map_err(|_| busy("no thread is left to watch with"))?;
        Ok(watched)
    }

    fn has_ended(&self) -> bool {
        self.watch.after(self.watch.now(), 1, Duration::ZERO).ended
    }
}

/// Passes on that there is something new, for as long as anybody has the watch.
fn tell(known: &Weak<Watched>, mut seq: u64) {
    while let Some(watched) = known.upgrade() {
        let changes = watched.watch.after(seq, usize::MAX, LOOK);
        seq = changes.seq;
        watched.news.send_if_modified(|last| {
            let is_new = *last != seq || changes.ended;
            *last = seq;
            is_new
        });
        if changes.ended {
            return;
        }
    }
}

impl Watcher {
    pub(crate) fn now(&self) -> u64 {
        self.watched.watch.now()
    }

    /// What is known already.
    pub(crate) fn after(&self, seq: u64, most: usize) -> Changes {
        self.watched.watch.after(seq, most, Duration::ZERO)
    }

    /// Until there may be something new.
    pub(crate) async fn news(&mut self) {
        // The sender lives as long as we do.
        let _ = self.news.changed().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut entries = self.watches.entries();
        if let Some(entry) = entries.get_mut(&self.key) {
            entry.watchers -= 1;
            entry.left = Instant::now();
            if entry.watchers == 0 && entry.start.is_empty() {
                entries.remove(&self.key);
            }
        }
        drop(entries);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let watches = self.watches.clone();
            runtime.spawn(async move {
                tokio::time::sleep(LINGER + Duration::from_millis(100)).await;
                let _ = tokio::task::spawn_blocking(move || watches.sweep()).await;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_look_share_one_watch_and_a_space_has_few() {
        let place = tempfile::tempdir().unwrap();
        let work = Dir::open_trusted(place.path()).unwrap();
        let watches = Watches::default();
        let enter = |space: &str, project: &str| {
            watches.enter(&space.parse().unwrap(), &project.parse().unwrap(), &work)
        };
        let one = enter("a", "p").unwrap();
        let two = enter("a", "p").unwrap();
        assert!(Arc::ptr_eq(&one.watched, &two.watched));
        let now = one.now();
        // A directory is one event, and nothing of it comes later.
        std::fs::create_dir(place.path().join("d")).unwrap();
        let told = two.watched.watch.after(now, 10, Duration::from_secs(60));
        assert!(!told.events.is_empty());
        drop((one, two));
        let again = enter("a", "p").unwrap();
        assert_eq!(again.after(now, 10).events, told.events, "it lingers");
        let mut held: Vec<_> = (1..MOST_OF_A_SPACE)
            .map(|number| enter("a", &format!("p{number}")).unwrap())
            .collect();
        assert_eq!(enter("a", "more").unwrap_err().code, Code::Busy);
        enter("b", "p").unwrap();
        // One that nobody looks at makes room.
        drop(again);
        held.push(enter("a", "more").unwrap());
        let key = ("a".parse().unwrap(), "p".parse().unwrap());
        assert!(!watches.entries().contains_key(&key));
        let many: Vec<_> = (held.len()..MOST_WATCHERS)
            .map(|_| enter("a", "more").unwrap())
            .collect();
        assert_eq!(enter("a", "more").unwrap_err().code, Code::Busy);
        drop((held, many));
        assert!(watches.entries().values().all(|entry| entry.watchers == 0));
    }

    #[test]
    fn a_watch_that_is_slow_to_start_holds_up_only_who_looks_at_the_same() {
        use std::sync::mpsc::channel;
        let place = tempfile::tempdir().unwrap();
        let work = Dir::open_trusted(place.path()).unwrap();
        let watches = Watches::default();
        let (watches, work) = (&watches, &work);
        let enter =
            |project: &str| watches.enter(&"a".parse().unwrap(), &project.parse().unwrap(), work);
        let (begun, has_begun) = channel();
        let (go, may_go) = channel::<()>();
        std::thread::scope(|scope| {
            let slow = scope.spawn(move || {
                watches.enter_by(&"a".parse().unwrap(), &"slow".parse().unwrap(), || {
                    begun.send(()).unwrap();
                    may_go.recv().unwrap();
                    Watched::start(work)
                })
            });
            has_begun.recv().unwrap();
            let (done, is_done) = channel();
            scope.spawn(move || done.send(enter("quick").map(drop)));
            let quick = is_done.recv_timeout(Duration::from_secs(60));
            // However it went, nobody is left waiting.
            let same = scope.spawn(|| enter("slow"));
            go.send(()).unwrap();
            let (slow, same) = (slow.join().unwrap(), same.join().unwrap());
            quick.expect("it waits for another's watch").unwrap();
            assert!(Arc::ptr_eq(&slow.unwrap().watched, &same.unwrap().watched));
        });
        let failed = watches.enter_by(&"a".parse().unwrap(), &"none".parse().unwrap(), || {
            Err(busy("no"))
        });
        assert_eq!(failed.unwrap_err().code, Code::Busy);
        let key = ("a".parse().unwrap(), "none".parse().unwrap());
        assert!(!watches.entries().contains_key(&key), "it takes no place");
    }
}
