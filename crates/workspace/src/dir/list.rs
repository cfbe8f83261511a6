//! One directory's entries, for people.

use std::ffi::CString;
use std::ops::ControlFlow;

use glovebox_model::ByteString;
use rustix::fd::AsFd;
use rustix::io::Errno;

use super::{Dir, scan};
use crate::fault::{FsError, FsResult};
use crate::stat::{Stat, stat_name};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: ByteString,
    pub stat: Stat,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// By name.
    pub entries: Vec<Entry>,
    /// There were more than the cap.
    pub truncated: bool,
}

impl Dir {
    /// At most `cap` entries, each as it is itself: a link is a link.
    pub fn list(&self, cap: usize) -> FsResult<Listing> {
        let fault = |kind| FsError::new("list", b"", kind);
        let reader = scan::reader(self).map_err(fault)?;
        let mut names: Vec<CString> = Vec::new();
        let mut truncated = false;
        let scanned = scan::entries(reader.as_fd(), |name, _| {
            if names.len() == cap {
                truncated = true;
                return ControlFlow::Break(());
            }
            names.push(name.to_owned());
            ControlFlow::Continue(())
        });
        scanned.map_err(|errno| fault(errno.into()))?;
        names.sort_unstable();
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            match stat_name(&reader, &name) {
                Ok(stat) => entries.push(Entry {
                    name: ByteString::new(name.into_bytes()).unwrap_or_default(),
                    stat,
                }),
                // Gone between the two looks.
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(fault(errno.into())),
            }
        }
        Ok(Listing { entries, truncated })
    }
}
