//! What a watch tells.

use std::time::Duration;

use glovebox_workspace::files::{
    self, Change, ChangeKind, Changes, Condition, Watch, WatchLimits, WriteOptions,
};

use crate::files::place::{Place, place, rel};

const PATIENCE: Duration = Duration::from_secs(60);

struct Watched<'p> {
    place: &'p Place,
    watch: Watch,
    seq: u64,
    /// How often one action was told of twice.
    split: usize,
}

fn watched(place: &Place, limits: WatchLimits) -> Watched<'_> {
    let watch = Watch::start(&place.dir, None, limits).unwrap();
    let seq = watch.now();
    Watched {
        place,
        watch,
        seq,
        split: 0,
    }
}

type Told = (ChangeKind, String, bool, Option<String>);

fn told(change: &Change) -> Told {
    let from = change.from.as_ref().map(|from| from.display());
    (change.kind, change.path.display(), change.is_dir, from)
}

impl Watched<'_> {
    /// Everything up to a file that is made last; the queue keeps the order.
    fn events(&mut self) -> Vec<Told> {
        let (events, overflow) = self.raw_events();
        assert!(!overflow);
        events
    }

    fn raw_events(&mut self) -> (Vec<Told>, bool) {
        let mark = format!("mark-{}", self.seq);
        std::fs::write(self.place.inside.join(&mark), b"").unwrap();
        let (mut all, mut overflow) = (Vec::new(), false);
        loop {
            let changes = self.watch.after(self.seq, 100, PATIENCE);
            assert!(
                !changes.events.is_empty() || changes.overflow,
                "it waits for ever"
            );
            self.seq = changes.seq;
            overflow |= changes.overflow;
            all.extend(changes.events.iter().map(told));
            if all.iter().any(|event| event.1 == mark) || changes.overflow {
                all.retain(|event| !event.1.starts_with("mark-"));
                let count = all.len();
                let all = joined(all);
                self.split += count - all.len();
                return (all, overflow);
            }
        }
    }
}

/// Whoever is held up for long in the middle of an action is told of twice: a file was made, and
/// then written to.
fn joined(all: Vec<Told>) -> Vec<Told> {
    use ChangeKind::{Created, Modified};
    let mut joined: Vec<Told> = Vec::new();
    for event in all {
        let before = joined.iter().rfind(|it| it.1 == event.1 && it.2 == event.2);
        let is_told = matches!(
            (before.map(|it| it.0), event.0),
            (Some(Created), Created | Modified) | (Some(Modified), Modified)
        );
        if !is_told {
            joined.push(event);
        }
    }
    joined
}

fn made(path: &str, is_dir: bool) -> Told {
    (ChangeKind::Created, path.to_owned(), is_dir, None)
}

fn gone(path: &str, is_dir: bool) -> Told {
    (ChangeKind::Removed, path.to_owned(), is_dir, None)
}

fn modified(path: &str) -> Told {
    (ChangeKind::Modified, path.to_owned(), false, None)
}

fn moved(from: &str, to: &str, is_dir: bool) -> Told {
    (
        ChangeKind::Moved,
        to.to_owned(),
        is_dir,
        Some(from.to_owned()),
    )
}

#[test]
fn each_kind_of_change_is_told_once() {
    let place = place();
    place.file("old", b"x");
    place.file("dir/inner", b"x");
    let mut watched = watched(&place, WatchLimits::default());
    let at = |path: &str| place.inside.join(path);
    std::fs::write(at("new"), b"some text").unwrap();
    assert_eq!(watched.events(), [made("new", false)]);
    std::fs::write(at("old"), b"other").unwrap();
    assert_eq!(watched.events(), [modified("old")]);
    std::fs::write(at("dir/inner"), b"other").unwrap();
    assert_eq!(watched.events(), [modified("dir/inner")]);
    std::fs::rename(at("old"), at("dir/old")).unwrap();
    assert_eq!(watched.events(), [moved("old", "dir/old", false)]);
    std::fs::remove_file(at("dir/old")).unwrap();
    assert_eq!(watched.events(), [gone("dir/old", false)]);
    std::os::unix::fs::symlink(&place.outside, at("link")).unwrap();
    assert_eq!(watched.events(), [made("link", false)]);
    std::fs::write(place.outside.join("canary2"), b"x").unwrap();
    assert_eq!(watched.events(), [], "nothing behind a link is seen");
    let told_once = (0..20).any(|number| {
        let before = watched.split;
        let name = format!("more-{number}");
        std::fs::write(at(&name), b"some text").unwrap();
        assert_eq!(watched.events(), [made(&name, false)]);
        watched.split == before
    });
    assert!(told_once, "what comes together is told together");
}

#[test]
fn directories_that_appear_are_watched_with_what_is_in_them_already() {
    let place = place();
    let mut watched = watched(&place, WatchLimits::default());
    let at = |path: &str| place.inside.join(path);
    std::fs::create_dir_all(at("a/b/c")).unwrap();
    std::fs::write(at("a/b/c/f"), b"x").unwrap();
    let mut events = watched.events();
    events.sort_by(|one, other| one.1.cmp(&other.1));
    let expected = [
        made("a", true),
        made("a/b", true),
        made("a/b/c", true),
        made("a/b/c/f", false),
    ];
    assert_eq!(events, expected);
    std::fs::write(at("a/b/c/f"), b"y").unwrap();
    assert_eq!(watched.events(), [modified("a/b/c/f")]);
    // The watches go with a directory that moves.
    std::fs::rename(at("a/b"), at("moved")).unwrap();
    assert_eq!(watched.events(), [moved("a/b", "moved", true)]);
    std::fs::write(at("moved/c/f"), b"z").unwrap();
    assert_eq!(watched.events(), [modified("moved/c/f")]);
    std::fs::remove_dir_all(at("moved")).unwrap();
    let events = watched.events();
    assert!(events.contains(&gone("moved", true)), "{events:?}");
}

#[test]
fn a_directory_that_leaves_is_not_followed() {
    let place = place();
    place.file("d/f", b"x");
    let mut watched = watched(&place, WatchLimits::default());
    std::fs::rename(place.inside.join("d"), place.outside.join("d")).unwrap();
    assert_eq!(watched.events(), [gone("d", true)]);
    std::fs::write(place.outside.join("d/f"), b"secret").unwrap();
    assert_eq!(watched.events(), []);
    std::fs::rename(place.outside.join("d"), place.inside.join("back")).unwrap();
    let mut events = watched.events();
    events.sort_by(|one, other| one.1.cmp(&other.1));
    assert_eq!(events, [made("back", true), made("back/f", false)]);
}

#[test]
fn directories_that_change_places_keep_their_own_paths() {
    let place = place();
    place.file("a/f", b"x");
    place.file("b/g", b"x");
    let mut watched = watched(&place, WatchLimits::default());
    let flags = rustix::fs::RenameFlags::EXCHANGE;
    rustix::fs::renameat_with(&place.dir, "a", &place.dir, "b", flags).unwrap();
    assert_eq!(
        watched.events(),
        [moved("a", "b", true), moved("b", "a", true)]
    );
    std::fs::write(place.inside.join("b/f"), b"y").unwrap();
    std::fs::write(place.inside.join("a/g"), b"y").unwrap();
    assert_eq!(watched.events(), [modified("b/f"), modified("a/g")]);
}

#[test]
fn writes_of_the_file_api_are_one_change() {
    let place = place();
    place.file("f", b"x");
    place.file("t/d/e/f", b"x");
    let mut watched = watched(&place, WatchLimits::default());
    let options = WriteOptions::default();
    let stat = files::write(&place.dir, &rel("f"), &mut b"y".as_slice(), &options).unwrap();
    assert_eq!(watched.events(), [modified("f")]);
    let options = WriteOptions {
        condition: Condition::Matches(stat.etag),
        ..options
    };
    files::write(&place.dir, &rel("f"), &mut b"z".as_slice(), &options).unwrap();
    assert_eq!(watched.events(), [modified("f")]);
    files::remove(&place.dir, &rel("t"), files::Recursive::Yes).unwrap();
    let events = watched.events();
    assert_eq!(events.last(), Some(&gone("t", true)), "{events:?}");
    assert!(
        events.iter().all(|event| event.0 == ChangeKind::Removed),
        "{events:?}"
    );
}

#[test]
fn events_can_be_asked_for_again_and_a_gap_is_told() {
    let place = place();
    let limits = WatchLimits {
        events: 3,
        ..WatchLimits::default()
    };
    let watched = watched(&place, limits);
    let start = watched.seq;
    let wait_for = |seq: u64| -> Changes {
        let mut at = start;
        loop {
            let changes = watched.watch.after(at, 100, PATIENCE);
            at = changes.seq;
            if at >= seq {
                return watched.watch.after(start, 100, Duration::ZERO);
            }
        }
    };
    // A directory is one event, and nothing of it comes later.
    std::fs::create_dir(place.inside.join("a")).unwrap();
    let first = wait_for(start + 1);
    assert_eq!((first.events.len(), first.overflow), (1, false));
    assert_eq!(first, wait_for(start + 1), "the same again");
    for name in ["b", "c", "d"] {
        std::fs::create_dir(place.inside.join(name)).unwrap();
    }
    let lost = wait_for(start + 4);
    assert_eq!((lost.events.len(), lost.overflow), (3, true));
    let rest = watched.watch.after(first.seq, 100, Duration::ZERO);
    assert_eq!((rest.events.len(), rest.overflow), (3, false));
    let other = Watch::start(&place.dir, None, limits).unwrap();
    assert!(
        other.after(first.seq, 100, Duration::ZERO).overflow,
        "of another watch"
    );
}

#[test]
fn more_directories_than_are_watched_are_told() {
    let place = place();
    for n in 0..5 {
        place.file(&format!("d{n}/f"), b"");
    }
    let limits = WatchLimits {
        directories: 3,
        ..WatchLimits::default()
    };
    let watch = Watch::start(&place.dir, None, limits).unwrap();
    assert!(watch.after(watch.now(), 1, Duration::ZERO).partial);
    let whole = Watch::start(&place.dir, None, WatchLimits::default()).unwrap();
    assert!(!whole.after(whole.now(), 1, Duration::ZERO).partial);
}

#[test]
fn a_watch_ends_when_its_directory_is_gone() {
    let place = place();
    place.file("d/f", b"");
    let watch = Watch::start(&place.dir, Some(&rel("d")), WatchLimits::default()).unwrap();
    std::fs::remove_dir_all(place.inside.join("d")).unwrap();
    let mut seq = watch.now();
    for _ in 0..10 {
        let changes = watch.after(seq, 100, PATIENCE);
        if changes.ended {
            return;
        }
        seq = changes.seq;
    }
    panic!("it does not end");
}

/// More events than are remembered, between two questions.
#[test]
fn a_flood_is_told_as_a_gap_and_the_watch_goes_on() {
    let place = crate::files::place::place_in_memory();
    let mut watched = watched(&place, WatchLimits::default());
    let mut overflow = false;
    // How fast the reader is depends on the machine; a ring of this size is lost sooner or later.
    for round in 0..20 {
        for n in 0..12_000 {
            let _ = std::fs::create_dir(place.inside.join(format!("{round}-{n}")));
        }
        let (_, lost) = watched.raw_events();
        if lost {
            overflow = true;
            break;
        }
    }
    assert!(overflow, "so many events fit nowhere");
    watched.seq = watched.watch.now();
    // Whatever is still under way.
    while watched.raw_events().1 {}
    std::fs::write(place.inside.join("after"), b"").unwrap();
    assert!(watched.events().contains(&made("after", false)));
}
