//! From changes to the renames that make them, refused where somebody else was first.

use std::collections::HashSet;
use std::ops::ControlFlow;

use glovebox_model::ByteString;

use super::attributes;
use super::base::Base;
use super::entry::{Change, Changes, EntryChange};
use super::intent::{Dressing, Identity, Mark, Op};
use super::place::{Place, leads_nowhere, split};
use super::stage::Stage;
use crate::dir::{Dir, Order, Visit, WalkEnd, WalkLimits, walk};
use crate::fault::{FsError, FsResult};
use crate::stat::{Kind, Stat, stat_fd};

/// The paths that are not what they were when the exec began, or when the changes were read.
pub(super) fn conflicts(changes: &Changes, lower: &Dir, base: &Base) -> FsResult<Vec<ByteString>> {
    let mut fresh = HashSet::new();
    let mut found = Vec::new();
    for change in changes.entries.iter().filter(|it| !it.with_parent) {
        let path = change.path.as_bytes();
        let covered = fresh.contains(split(path).0);
        if is_fresh(change) {
            fresh.insert(path);
        }
        // The directory that it lies in is put there as a whole.
        if !covered && in_conflict(change, lower, base)? {
            found.push(change.path.clone());
        }
    }
    Ok(found)
}

fn is_fresh(change: &Change) -> bool {
    let is_directory = change.after.as_ref().map(|it| it.kind) == Some(Kind::Directory);
    is_directory && change.what != EntryChange::Touched
}

fn in_conflict(change: &Change, lower: &Dir, base: &Base) -> FsResult<bool> {
    let path = change.path.as_bytes();
    let place = match Place::below(lower, path) {
        Ok(place) => place,
        // The directory that it belongs into is gone.
        Err(error) if leads_nowhere(error.kind()) => return Ok(true),
        Err(error) => return Err(error),
    };
    Ok(match (place.look()?, change.mark) {
        (None, None) => change.copied_up && was_there(change, &place, base)?,
        (Some(_), None) | (None, Some(_)) => true,
        // Whatever is made in a directory changes it as well.
        (Some(now), Some(mark))
            if change.what == EntryChange::Touched && mark.kind == Kind::Directory =>
        {
            (now.kind, now.id.ino) != (mark.kind, mark.ino)
        }
        (Some(now), Some(mark)) => {
            Mark::of(&now) != mark
                || base.moved(&now)
                || (now.kind == Kind::Directory && inside_moved(lower, path, base)?)
        }
    })
}

/// Whether the exec changed what somebody else removed. A directory that came from below stays at its
/// name. A file may have been moved or linked here from another one; nobody removed anything as long
/// as the directory is as it was, and where it is not, nobody can tell.
fn was_there(change: &Change, place: &Place, base: &Base) -> FsResult<bool> {
    if change.after.as_ref().map(|it| it.kind) == Some(Kind::Directory) {
        return Ok(true);
    }
    let parent = stat_fd(&place.dir).map_err(place.fault("look at"))?;
    Ok(base.moved(&parent))
}

/// Whether anything below this directory was changed since, its own entry not counted. What cannot
/// be looked at may have been.
pub(super) fn inside_moved(root: &Dir, path: &[u8], base: &Base) -> FsResult<bool> {
    any_inside(root, path, |stat| base.moved(stat))
}

pub(super) fn any_inside(
    root: &Dir,
    path: &[u8],
    is_moved: impl Fn(&Stat) -> bool,
) -> FsResult<bool> {
    let limits = WalkLimits {
        depth: usize::MAX,
        path_bytes: usize::MAX,
        entries: u64::MAX,
        deadline: None,
    };
    let mut moved = false;
    let end = walk(&root.enter(path)?, limits, Order::AsRead, &mut |visit| {
        moved |= match visit {
            Visit::Entry(entry) => is_moved(&entry.stat),
            Visit::Skipped { .. } => true,
        };
        match moved {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let end = end.map_err(|kind| FsError::new("look at", path, kind))?;
    Ok(moved || end != WalkEnd::Complete)
}

/// Stages every new side and says what is to be renamed, in which order.
pub(super) fn prepare(
    changes: &Changes,
    lower: &Dir,
    upper: &Dir,
    stage: &mut Stage,
) -> FsResult<Vec<Op>> {
    let (mut opening, mut moves, mut closing) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = 0u64;
    for change in changes.entries.iter().filter(|it| !it.with_parent) {
        let path = change.path.clone();
        match (&change.after, change.mark) {
            (None, Some(before)) => {
                let staged = next;
                next += 1;
                moves.push(Op::Take {
                    path,
                    staged,
                    before,
                });
            }
            (None, None) => {}
            (Some(after), Some(_))
                if change.what == EntryChange::Touched && after.kind == Kind::Directory =>
            {
                let op = dress(change, lower, upper)?;
                // Its entries must be reachable for as long as they are exchanged.
                match after.mode & 0o700 == 0o700 {
                    true => opening.push(op),
                    false => closing.push(op),
                }
            }
            (Some(after), before) => {
                if let Some(at) = stage.inside(path.as_bytes()) {
                    stage.add(upper, change, after, at)?;
                } else {
                    let staged = next;
                    next += 1;
                    let at = staged.to_string().into_bytes();
                    let made = stage.add(upper, change, after, at)?;
                    moves.push(Op::Put {
                        path,
                        staged,
                        new: Identity::of(&made),
                        before,
                        made: (made.kind == Kind::File).then(|| Mark::of(&made)),
                    });
                }
            }
        }
        super::apply::pass("staged");
    }
    let mut later = stage.close()?;
    for op in &moves {
        if let Op::Put { path, staged, .. } = op
            && let Some(new) = later.remove(staged.to_string().as_bytes())
        {
            let old = Dressing {
                mode: new.mode | 0o700,
                attributes: new.attributes.clone(),
            };
            closing.push(Op::Set {
                path: path.clone(),
                ino: None,
                old,
                new,
            });
        }
    }
    // What lies deepest is closed first.
    closing.sort_by(|one, other| other.path().cmp(one.path()));
    Ok(opening.into_iter().chain(moves).chain(closing).collect())
}

fn dress(change: &Change, lower: &Dir, upper: &Dir) -> FsResult<Op> {
    let look = |dir: &Dir| -> FsResult<(u64, Dressing)> {
        let place = Place::below(dir, change.path.as_bytes())?;
        let fault = place.fault("read the attributes of");
        let fd = place.open_directory()?;
        let stat = stat_fd(&fd).map_err(&fault)?;
        let own = attributes::read(&fd).map_err(&fault)?.own;
        Ok((stat.id.ino, Dressing::new(stat.mode, own)))
    };
    let (ino, old) = look(lower)?;
    let (_, mut new) = look(upper)?;
    if let Some(after) = &change.after {
        new.mode = after.mode;
    }
    Ok(Op::Set {
        path: change.path.clone(),
        ino: Some(ino),
        old,
        new,
    })
}
