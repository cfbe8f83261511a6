//! What a program did to files, from two censuses; and how far effects tell just that.

use std::collections::BTreeMap;

use glovebox_model::{Deed, Effect, FileFacts, FileOp, FileWrite};

use crate::census::{Census, Facts, Seen};

/// Where effects and the truth part.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// True, and not told.
    pub(crate) misses: Vec<String>,
    /// Told, and not true.
    pub(crate) falses: Vec<String>,
}

impl Findings {
    pub(crate) fn miss(&mut self, what: impl Into<String>) {
        self.misses.push(what.into());
    }

    pub(crate) fn wrong(&mut self, what: impl Into<String>) {
        self.falses.push(what.into());
    }
}

/// What became of each path that is not as it was.
fn truth(before: &Census, after: &Census) -> BTreeMap<Vec<u8>, FileOp> {
    let paths = before.keys().chain(after.keys());
    let became = |path: &Vec<u8>| match (before.get(path), after.get(path)) {
        (None, Some(_)) => Some(FileOp::Created),
        (Some(_), None) => Some(FileOp::Removed),
        (Some(old), Some(new)) => changed(old, new),
        (None, None) => None,
    };
    paths
        .filter_map(|path| became(path).map(|it| (path.clone(), it)))
        .collect()
}

fn changed(old: &Facts, new: &Facts) -> Option<FileOp> {
    if old.seen.kind != new.seen.kind {
        return Some(FileOp::Replaced);
    }
    if (&old.seen.digest, &old.seen.target) != (&new.seen.digest, &new.seen.target) {
        return Some(FileOp::Modified);
    }
    // A directory's time is that of what lies in it, which is told by itself.
    let aged = old.seen.kind == "file" && old.modified != new.modified;
    let dressed = (old.seen.mode, &old.seen.note) != (new.seen.mode, &new.seen.note);
    (aged || dressed).then_some(FileOp::Touched)
}

/// One side of what effects tell.
struct Told<'effect> {
    operation: FileOp,
    write: &'effect FileWrite,
    /// The place that something was renamed away from.
    is_source: bool,
}

/// Compares what effects tell of the workspace with what came of the same program when it was run
/// for real. Contents of `volatile` paths differ from run to run, but not what became of them.
pub(crate) fn compare(
    effects: &[Effect],
    (before, after): (&Census, &Census),
    is_volatile: &dyn Fn(&[u8]) -> bool,
    findings: &mut Findings,
) {
    let truth = truth(before, after);
    let told = told(effects, findings);
    for (path, operation) in &truth {
        let shown = path.escape_ascii();
        match told.get(path) {
            Some(it) if fits(it.operation, *operation, it.is_source) => {
                for (side, facts, stood) in [
                    ("before", &it.write.before, before.get(path)),
                    ("after", &it.write.after, after.get(path)),
                ] {
                    if it.write.operation == FileOp::Renamed || is_special(it.write) {
                        continue;
                    }
                    let stood = stood.map(|it| &it.seen);
                    if let Some(how) = differs(facts.as_ref(), stood, is_volatile(path)) {
                        findings.wrong(format!("{shown}: {side} {how}"));
                    }
                }
            }
            Some(it) => {
                findings.miss(format!("{shown}: {operation:?}, told {:?}", it.operation));
            }
            None if *operation == FileOp::Removed && went_with_its_parent(path, &told) => {}
            None => findings.miss(format!("{shown}: {operation:?}")),
        }
    }
    for (path, it) in &told {
        // A second name changes nothing but the count of names.
        let names = |census: &Census| census.get(path).map(|it| it.names);
        let linked = it.operation == FileOp::Touched && names(before) != names(after);
        if !truth.contains_key(path) && !linked {
            findings.wrong(format!("{}: {:?}", path.escape_ascii(), it.operation));
        }
    }
}

fn told<'effect>(
    effects: &'effect [Effect],
    findings: &mut Findings,
) -> BTreeMap<Vec<u8>, Told<'effect>> {
    let mut told = BTreeMap::new();
    for effect in effects {
        let Deed::FilesystemWrite(write) = &effect.deed else {
            continue;
        };
        if write.operation == FileOp::Attempted {
            continue;
        }
        let mut add = |path: &[u8], operation, is_source| {
            let one = Told {
                operation,
                write,
                is_source,
            };
            // The top is `.` to effects.
            let path = if path == b"." { &b""[..] } else { path };
            if told.insert(path.to_vec(), one).is_some() {
                findings.wrong(format!("{}: told twice", path.escape_ascii()));
            }
        };
        if let Some(from) = &write.from {
            add(from.as_bytes(), FileOp::Removed, true);
        }
        add(write.path.as_bytes(), write.operation, false);
    }
    told
}

fn fits(told: FileOp, operation: FileOp, is_source: bool) -> bool {
    match told {
        FileOp::Renamed => matches!(
            operation,
            FileOp::Created | FileOp::Modified | FileOp::Replaced
        ),
        other => other == operation && (!is_source || operation == FileOp::Removed),
    }
}

/// What cannot be carried into a workspace is told by its name alone.
fn is_special(write: &FileWrite) -> bool {
    write.before.is_none() && write.after.is_none()
}

/// A directory that is gone, or is one no more, takes all that lay in it along.
fn went_with_its_parent(path: &[u8], told: &BTreeMap<Vec<u8>, Told<'_>>) -> bool {
    let mut slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.any(|(at, _)| {
        let above = told.get(&path[..at]);
        above.is_some_and(|it| matches!(it.operation, FileOp::Removed | FileOp::Replaced))
    })
}

fn differs(told: Option<&FileFacts>, stood: Option<&Seen>, volatile: bool) -> Option<String> {
    let (told, stood) = match (told, stood) {
        (None, None) => return None,
        (Some(told), Some(stood)) => (told, stood),
        (told, stood) => return Some(format!("is {told:?}, not {stood:?}")),
    };
    let target = told.target.as_ref().map(|it| it.as_bytes().to_vec());
    let same = told.kind == stood.kind
        && (told.mode == stood.mode || stood.kind == "symlink")
        && (volatile || told.size == stood.size)
        && target == stood.target
        // What is removed is not read.
        && (volatile || told.digest.is_none() || told.digest == stood.digest);
    (!same).then(|| format!("is {told:?}, not {stood:?}"))
}

/// Of what was created or modified the contents are known.
pub(crate) fn assert_digests(effects: &[Effect], findings: &mut Findings) {
    for effect in effects {
        let Deed::FilesystemWrite(write) = &effect.deed else {
            continue;
        };
        if let Some(after) = &write.after
            && after.kind == "file"
            && after.digest.is_none()
        {
            findings.miss(format!("{}: no digest", write.path.display()));
        }
    }
}
