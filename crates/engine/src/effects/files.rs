//! From what a layer holds to effects: one for each path, with what stood there before, what stands
//! there now, and the difference where it is text.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::time::{Duration, Instant};

use glovebox_model::{ByteString, Deed, Error, FileFacts, FileOp, FileWrite};
use glovebox_workspace::change::{self, Change, Changes, EntryChange, Facts};
use glovebox_workspace::{Dir, Kind};
use rustix::fs::OFlags;

use super::gathering::{Gathering, Observed};
use super::judging::InLayer;
use super::permissions::Permissions;

/// Text of differences, in all and of one file.
const TEXTS: u64 = 1 << 20;
const TEXT: u64 = 64 << 10;
const LOOK: Duration = Duration::from_secs(10);
/// Of files that are gone, to find out where they went.
const LOOKED_FOR: u64 = 256 << 20;

/// Tells all changes of a layer.
pub(super) fn tell(written: &InLayer<'_>, permissions: &Permissions<'_>, to: &Gathering) {
    let InLayer {
        changes,
        work,
        upper,
    } = *written;
    let until = Instant::now() + LOOK;
    let mut left = TEXTS;
    let renames = renames(changes, work, until);
    for (index, entry) in changes.entries.iter().enumerate() {
        let (operation, from) = match renames.get(&index) {
            Some(Renamed::From(source)) => {
                let source = changes.entries.get(*source);
                (FileOp::Renamed, source.map(|it| it.path.clone()))
            }
            // Told with where it went.
            Some(Renamed::Away) => continue,
            None => (operation(entry.what), None),
        };
        let most = left.min(TEXT);
        let text = match most > 0 && Instant::now() < until {
            true => change::text(work, upper, entry, most).ok().flatten(),
            false => None,
        };
        left = left.saturating_sub(text.as_ref().map_or(0, |it| it.len() as u64));
        let paths = std::iter::once(&entry.path).chain(&from);
        let refusal = permissions.of_write(paths.map(ByteString::display));
        to.add(Observed {
            refusal,
            simulated_result: None,
            deed: Deed::FilesystemWrite(FileWrite {
                operation,
                path: entry.path.clone(),
                from,
                before: entry.before.as_ref().map(facts),
                after: entry.after.as_ref().map(facts),
                diff: text,
                call: None,
            }),
        });
    }
    // Attributes of the kernel's own that a program made up are never carried over.
    to.dropped(changes.unseen.saturating_add(changes.dropped_attributes));
    top(changes, to);
    for skipped in &changes.skipped {
        let why = format!(
            "a {} cannot be carried into a workspace",
            kind(skipped.kind)
        );
        to.add(Observed {
            refusal: Some(why),
            simulated_result: None,
            deed: Deed::FilesystemWrite(FileWrite {
                operation: FileOp::Created,
                path: skipped.path.clone(),
                from: None,
                before: None,
                after: None,
                diff: None,
                call: None,
            }),
        });
    }
}

/// What it wrote cannot be read, so that it may be anything.
pub(super) fn tell_unread(why: &Error, to: &Gathering) {
    to.add(Observed {
        refusal: Some(format!("what it wrote cannot be read: {}", why.message)),
        simulated_result: None,
        deed: Deed::FilesystemWrite(FileWrite {
            operation: FileOp::Attempted,
            path: ByteString::try_from(".").unwrap_or_default(),
            from: None,
            before: None,
            after: None,
            diff: None,
            call: None,
        }),
    });
    to.dropped(1);
}

/// The workspace's own directory: its mode is never carried over, and must not go untold.
fn top(changes: &Changes, to: &Gathering) {
    let Some((before, after)) = changes.top else {
        return;
    };
    let facts = |mode| FileFacts {
        kind: kind(Kind::Directory),
        size: 0,
        mode,
        digest: None,
        attributes: None,
        target: None,
    };
    to.add(Observed {
        refusal: Some("the mode of the workspace itself cannot be carried over".to_owned()),
        simulated_result: None,
        deed: Deed::FilesystemWrite(FileWrite {
            operation: FileOp::Touched,
            path: ByteString::try_from(".").unwrap_or_default(),
            from: None,
            before: Some(facts(before)),
            after: Some(facts(after)),
            diff: None,
            call: None,
        }),
    });
}

enum Renamed {
    /// This one stood there before.
    From(usize),
    Away,
}

/// A file that is gone and one that is new with the same contents are one that was renamed. Of
/// several, the first of each in the order of their paths; empty ones are all alike and tell
/// nothing.
fn renames(changes: &Changes, work: &Dir, until: Instant) -> HashMap<usize, Renamed> {
    let shape = |facts: &Facts| {
        (facts.kind == Kind::File && facts.size > 0).then_some((facts.size, facts.mode))
    };
    let new: Vec<(usize, &Facts)> = changes
        .entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| is_new(entry))
        .filter_map(|(index, entry)| Some((index, entry.after.as_ref()?)))
        .collect();
    // What is gone was not read yet, and only what something new looks like need be.
    let shapes: HashSet<_> = new.iter().filter_map(|(_, facts)| shape(facts)).collect();
    let mut left = LOOKED_FOR;
    let mut gone: HashMap<(String, u32), Vec<usize>> = HashMap::new();
    for (index, entry) in changes.entries.iter().enumerate().rev() {
        let Some(before) = entry
            .before
            .as_ref()
            .filter(|_| entry.what == EntryChange::Removed)
        else {
            continue;
        };
        let looks_alike = shape(before).is_some_and(|it| shapes.contains(&it));
        if !looks_alike || before.size > left || Instant::now() >= until {
            continue;
        }
        left -= before.size;
        if let Some(digest) = digest(work, &entry.path, before.size) {
            gone.entry((digest, before.mode)).or_default().push(index);
        }
    }
    let mut renames = HashMap::new();
    for (index, after) in new {
        let Some(digest) = after.digest.clone().filter(|_| shape(after).is_some()) else {
            continue;
        };
        if let Some(source) = gone.get_mut(&(digest, after.mode)).and_then(Vec::pop) {
            renames.insert(source, Renamed::Away);
            renames.insert(index, Renamed::From(source));
        }
    }
    renames
}

/// Of a file that still stands in the workspace; none when it is not what it was.
fn digest(work: &Dir, path: &ByteString, size: u64) -> Option<String> {
    // Whoever put a pipe there meanwhile does not make anybody wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(work.open_plain(path.as_bytes(), flags).ok()?);
    let mut hasher = blake3::Hasher::new();
    let read = std::io::copy(&mut file.take(size), &mut hasher).ok()?;
    (read == size).then(|| hasher.finalize().to_hex().to_string())
}

/// An editor that saves by renaming replaces what stood there.
fn is_new(entry: &Change) -> bool {
    matches!(
        entry.what,
        EntryChange::Created | EntryChange::Modified | EntryChange::Replaced
    )
}

const fn operation(what: EntryChange) -> FileOp {
    match what {
        EntryChange::Created => FileOp::Created,
        EntryChange::Modified => FileOp::Modified,
        EntryChange::Replaced => FileOp::Replaced,
        EntryChange::Removed => FileOp::Removed,
        EntryChange::Touched => FileOp::Touched,
    }
}

fn kind(kind: glovebox_workspace::Kind) -> String {
    serde_json::to_value(kind)
        .ok()
        .and_then(|it| it.as_str().map(str::to_owned))
        .unwrap_or_else(|| "special file".to_owned())
}

fn facts(facts: &Facts) -> FileFacts {
    FileFacts {
        kind: kind(facts.kind),
        size: facts.size,
        mode: facts.mode,
        digest: facts.digest.clone(),
        attributes: facts.attributes.clone(),
        target: facts.target.clone(),
    }
}
