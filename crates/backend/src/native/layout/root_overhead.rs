//! What the root itself takes of the space that its limits leave to the payload.

use std::collections::BTreeSet;
use std::ffi::CStr;

use glovebox_cage::{Step, Upper};

use super::Builder;

/// The largest of any machine: memory is counted by it.
const PAGE: u64 = 64 << 10;

impl Builder<'_, '_> {
    /// The root's own directories, links and mount points are files too, and not the payload's.
    pub(super) fn count_furniture(&mut self) {
        let mut made: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut add = |path: &CStr| {
            let path = path.to_bytes();
            let parents = (1..path.len())
                .filter(|at| path[*at] == b'/')
                .map(|at| &path[..at]);
            made.extend(parents.chain([path]).map(<[u8]>::to_vec));
        };
        let mut content = 0;
        for step in &self.steps {
            match step {
                Step::Directory { path, .. }
                | Step::Symlink { path, .. }
                | Step::Cupboard { path, .. }
                | Step::Effects(path) => add(path),
                Step::File { path, content: own } => {
                    add(path);
                    content += (own.len() as u64).next_multiple_of(PAGE);
                }
                Step::Mount { target, .. } => add(target),
                Step::Layer { target, upper, .. } => {
                    add(target);
                    if let Upper::Memory {
                        beside: Some(target),
                        ..
                    } = upper
                    {
                        add(target);
                    }
                }
                Step::Scratch { places, .. } => places.iter().for_each(|(path, _)| add(path)),
                Step::Proc { .. } => add(c"/proc"),
                Step::Terminals { .. } => {
                    [c"/dev/pts", c"/dev/ptmx"].into_iter().for_each(&mut add)
                }
                _ => {}
            }
        }
        // And the root itself.
        let count = made.len() as u64 + 1;
        for step in &mut self.steps {
            if let Step::NewRoot {
                bytes: Some(bytes),
                files: Some(files),
                ..
            } = step
            {
                *bytes = bytes.saturating_add(content);
                *files = files.saturating_add(count);
            }
        }
    }
}
