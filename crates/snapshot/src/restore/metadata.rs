//! Mode, owner, time and attributes of something that is held open.

use glovebox_model::Result;
use rustix::fd::AsFd;
use rustix::fs::{
    Gid, Mode, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags, fchmod, fchown, fremovexattr,
    fsetxattr, futimens,
};
use rustix::io::Errno;

use crate::fault::os;
use crate::manifest::Meta;
use crate::stamp::Stamp;
use crate::take::xattrs_of;
use crate::tree::Facts;

/// Sets what differs; says whether anything did. Times come last: everything else changes them.
pub(super) fn set(fd: impl AsFd, meta: &Meta, path: &[u8]) -> Result<bool> {
    let fd = fd.as_fd();
    let facts = Facts::of(fd).map_err(|errno| os("look at", path, errno))?;
    let mut changed = false;
    if let Some((uid, gid)) = owner(&facts, meta) {
        fchown(fd, Some(uid), Some(gid)).map_err(|errno| os("change the owner of", path, errno))?;
        changed = true;
    }
    let (xattrs, _) = xattrs_of(fd, path)?;
    if xattrs != meta.xattrs {
        let fault = |errno| os("change the attributes of", path, errno);
        for (name, _) in xattrs.iter().filter(|it| !meta.xattrs.contains(it)) {
            match fremovexattr(fd, name.0.as_slice()) {
                Ok(()) | Err(Errno::NODATA) => {}
                Err(errno) => return Err(fault(errno)),
            }
        }
        for (name, value) in meta.xattrs.iter().filter(|it| !xattrs.contains(it)) {
            let flags = XattrFlags::empty();
            fsetxattr(fd, name.0.as_slice(), &value.0, flags).map_err(fault)?;
        }
        changed = true;
    }
    // After the owner, whose change takes bits away. Set-id bits are never in a manifest, so a file
    // that has them loses them here.
    if facts.mode != meta.mode {
        fchmod(fd, Mode::from_raw_mode(meta.mode))
            .map_err(|errno| os("change the mode of", path, errno))?;
        changed = true;
    }
    if facts.modified != meta.modified {
        futimens(fd, &times(meta.modified))
            .map_err(|errno| os("change the time of", path, errno))?;
        changed = true;
    }
    Ok(changed)
}

/// Only root can give a file away; for anybody else every file is their own.
pub(super) fn owner(facts: &Facts, meta: &Meta) -> Option<(Uid, Gid)> {
    let differs = (facts.uid, facts.gid) != (meta.uid, meta.gid);
    // An id of all ones means "leave it", so it cannot be set.
    let real = meta.uid != u32::MAX && meta.gid != u32::MAX;
    (differs && real && rustix::process::geteuid().is_root())
        .then(|| (Uid::from_raw(meta.uid), Gid::from_raw(meta.gid)))
}

pub(super) fn times(modified: Stamp) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: modified.timespec(),
    }
}
