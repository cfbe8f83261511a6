//! What this host offers to the native backend, looked at once.

use glovebox_cage::{cgroup, landlock_abi};

#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) privilege: Privilege,
    /// The groups we may make, or why there are none.
    pub(crate) cgroups: Result<cgroup::Host, String>,
    pub(crate) landlock_abi: u32,
}

/// Who runs this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Privilege {
    /// Sandboxes get an id of their own; directories are shown through an id-mapped mount.
    Root,
    /// Sandboxes run as this user, and only this user exists inside.
    User { uid: u32, gid: u32 },
}

impl Facts {
    pub(crate) fn look() -> Self {
        let uid = rustix::process::geteuid();
        let privilege = if uid.is_root() {
            Privilege::Root
        } else {
            let gid = rustix::process::getegid().as_raw();
            Privilege::User {
                uid: uid.as_raw(),
                gid,
            }
        };
        Self {
            privilege,
            cgroups: cgroup::Host::detect(),
            landlock_abi: landlock_abi(),
        }
    }

    pub(crate) fn kernel_limits(&self, controller: &str) -> bool {
        self.cgroups
            .as_ref()
            .is_ok_and(|host| host.limits(controller))
    }
}
