//! Who pid 1 is, and the powers and processors it gives up.

use crate::sys::Result;
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets};

/// The id that the map knows. Until then this process is nobody inside, with all capabilities of
/// its own namespace; changing to an id that is not 0 keeps them.
pub(super) fn become_user(inner: u32) -> Result<()> {
    let (gid, uid) = (Gid::from_raw(inner), Uid::from_raw(inner));
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)
}

/// Whatever is executed from here on, setuid or with file capabilities, can gain none.
pub(super) fn empty_bounding_set() -> Result<()> {
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Past the last one that this kernel knows.
            Err(Errno::INVAL) => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

pub(super) fn drop_capabilities() -> Result<()> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    rustix::thread::set_capabilities(None, sets)
}

/// Keeps only the first `count` of the processors that this process may run on.
pub(super) fn keep_processors(count: u32) -> Result<()> {
    let mut left = count.max(1);
    let mut set = rustix::thread::sched_getaffinity(None)?;
    for index in 0..rustix::thread::CpuSet::MAX_CPU {
        if set.is_set(index) {
            if left == 0 {
                set.unset(index);
            } else {
                left -= 1;
            }
        }
    }
    rustix::thread::sched_setaffinity(None, &set)
}
