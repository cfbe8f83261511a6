//! The keeper: owns one sandbox from before its birth until nothing of it is left. It is small,
//! single-threaded, in a session of its own, and ends by its socket: when the caller is killed, the
//! keeper still takes the sandbox down and removes its cgroups.

use std::ffi::CString;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use crate::sys::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, pidfd_send_signal};

use crate::apply::{copy_of, open_source};
use crate::init::Furnished;
use crate::plan::HOSTNAME;
use crate::plan::{Ids, Namespace, Opener, Plan, Source, Step};
use crate::seccomp::Compiled;
use crate::sys::{self, Cloned};
use crate::wire::{self, At, Failure, FromKeeper, ToKeeper, Usage};
use crate::{cgroup, init};

/// One side's ends of the two sockets of a sandbox: to the keeper, and through it to pid 1.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) control: OwnedFd,
    pub(crate) init: OwnedFd,
}

/// The caller's ends and the keeper's.
pub(crate) fn ends() -> Result<(Ends, Ends)> {
    let (control, keeper_control) = wire::pair()?;
    let (init, keeper_init) = wire::pair()?;
    let keeper = Ends {
        control: keeper_control,
        init: keeper_init,
    };
    Ok((Ends { control, init }, keeper))
}

/// `ahead` are the namespaces that are made before the plan is known.
pub(crate) fn run(Ends { control, init }: Ends, ahead: &[Namespace]) -> ! {
    let code = match serve(&control, init, ahead) {
        Ok(()) => 0,
        Err(failure) => {
            let _ = wire::send(&control, &FromKeeper::Failed(failure), &[]);
            1
        }
    };
    sys::exit(code)
}

fn serve(control: &OwnedFd, init_socket: OwnedFd, ahead: &[Namespace]) -> Result<(), Failure> {
    sys::ignore_signals();
    // Pid 1's end is told with what it used, whatever was inherited.
    sys::keep_ended_children();
    rustix::process::setsid().at("keeper session")?;
    sys::detach(&[control.as_fd(), init_socket.as_fd()]).at("keeper descriptors")?;
    let mut spare = Some(Spare::prepare(ahead)?);
    sys::forget_start(c"glovebox-keeper");
    let mut cgroups = Vec::new();
    loop {
        let message = wire::receive::<ToKeeper>(control).at("keeper socket")?;
        match message {
            None | Some((ToKeeper::Kill | ToKeeper::Release, _)) => {
                leave_cgroups(&cgroups);
                return Ok(());
            }
            Some((ToKeeper::Join(list), _)) => {
                cgroups.extend(list.iter().cloned());
                for group in &list {
                    cgroup::enter(group)
                        .at(&format!("enter cgroup {}", group.to_string_lossy()))?;
                }
            }
            Some((ToKeeper::Build(plan), handles)) => {
                cgroups.extend(plan.cgroup.iter().cloned());
                let spare = spare.take().ok_or(Errno::BUSY).at("a second plan")?;
                let built = build(control, init_socket, &plan, &handles, spare, &cgroups);
                let orphaned = built.as_ref().is_ok_and(|end| *end == End::CallerGone);
                if orphaned {
                    leave_cgroups(&cgroups);
                }
                return built.map(drop);
            }
        }
    }
}

/// What every plan needs and no plan decides, made while the caller still thinks. It is for this one
/// sandbox, as if it were made later.
struct Spare {
    /// Namespaces that pid 1 is born into instead of making them.
    namespaces: Vec<Namespace>,
    holder: Option<Holder>,
    filters: Compiled,
}

impl Spare {
    fn prepare(ahead: &[Namespace]) -> Result<Self, Failure> {
        let filters = Compiled::usual();
        // Without privilege these come into being together with the user namespace.
        if !rustix::process::geteuid().is_root() {
            return Ok(Self {
                namespaces: Vec::new(),
                holder: None,
                filters,
            });
        }
        let namespaces = ahead.to_vec();
        let flags = namespaces
            .iter()
            .fold(0, |flags, namespace| flags | namespace.flag());
        sys::unshare(flags).at("namespaces")?;
        if namespaces.contains(&Namespace::Uts) {
            rustix::system::sethostname(HOSTNAME.to_bytes()).at("hostname")?;
        }
        if namespaces.contains(&Namespace::Net) {
            sys::loopback_up().at("loopback up")?;
        }
        let holder = Some(Holder::new().at("id-map holder")?);
        Ok(Self {
            namespaces,
            holder,
            filters,
        })
    }
}

/// They belong to the host's root then, so nobody inside has any power over them.
const AHEAD: [Namespace; 3] = [Namespace::Net, Namespace::Ipc, Namespace::Uts];

#[cfg(not(debug_assertions))]
pub(crate) fn ahead() -> Vec<Namespace> {
    AHEAD.to_vec()
}

/// A test may remove a namespace only from the plan, so it must not be here already.
#[cfg(debug_assertions)]
pub(crate) fn ahead() -> Vec<Namespace> {
    let part = std::env::var("GLOVEBOX_MUTATION").unwrap_or_default();
    let named = |namespace: &Namespace| format!("namespace {namespace:?}") == part;
    AHEAD
        .into_iter()
        .filter(|it| !named(it) && part != "hostname")
        .collect()
}

#[derive(PartialEq, Eq)]
enum End {
    Reported,
    Released,
    CallerGone,
}

fn build(
    control: &OwnedFd,
    init_socket: OwnedFd,
    plan: &Plan,
    handles: &[OwnedFd],
    spare: Spare,
    cgroups: &[CString],
) -> Result<End, Failure> {
    let trees = match plan.opener {
        Opener::Keeper => trees(plan, handles, spare.holder)?,
        Opener::Init => Vec::new(),
    };
    let cgroup = match &plan.cgroup {
        Some(path) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Some(rustix::fs::open(path, flags, Mode::empty()).at("open cgroup")?)
        }
        None => None,
    };
    let (gate, opener) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).at("pipe")?;
    let fresh = plan
        .namespaces
        .iter()
        .filter(|it| !spare.namespaces.contains(it));
    let flags = fresh.fold(0, |flags, namespace| flags | namespace.flag());
    let (pid, pidfd) =
        match sys::clone_into(flags, cgroup.as_ref().map(AsFd::as_fd)).at("namespaces")? {
            Cloned::Child => {
                drop(opener);
                let furnished = Furnished {
                    filters: spare.filters,
                    named: spare.namespaces,
                };
                init::run(plan, trees, furnished, gate, init_socket)
            }
            Cloned::Parent(pid, pidfd) => (pid, pidfd),
        };
    drop((gate, trees, init_socket));
    // The write end stays open here until the end: pid 1 sees a dead keeper as the end of its gate.
    if let Err(failure) = open_gate(plan, pid, &opener) {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
        let _ = sys::reap(pid.as_raw_nonzero().get(), 0);
        return Err(failure);
    }
    // Taken apart when this process ends, not when pid 1 does: the end can be told before.
    let mounts = hold_mounts(pid);
    let born = FromKeeper::Born {
        pid: pid.as_raw_nonzero().get(),
    };
    let _ = wire::send(control, &born, &[]);
    let end = watch(control, pid, &pidfd, cgroups).at("watch")?;
    drop(mounts);
    match end {
        End::Reported => Ok(farewell(control)),
        End::Released | End::CallerGone => Ok(end),
    }
}

/// Stays until the caller has read the groups and removed them, to do it in its place should it be
/// killed meanwhile.
fn farewell(control: &OwnedFd) -> End {
    loop {
        match wire::receive::<ToKeeper>(control) {
            Ok(Some((ToKeeper::Release, _))) => return End::Released,
            Ok(Some((ToKeeper::Kill, _))) => {}
            Ok(Some((ToKeeper::Join(_) | ToKeeper::Build(_), _)) | None) | Err(_) => {
                return End::CallerGone;
            }
        }
    }
}

/// Maps the ids and lets pid 1 begin.
fn open_gate(plan: &Plan, pid: Pid, opener: &OwnedFd) -> Result<(), Failure> {
    if plan.namespaces.contains(&Namespace::User) {
        map_ids(pid, plan.ids.inner, &plan.ids).at("map ids")?;
    }
    rustix::io::write(opener, b"g").at("open gate").map(drop)
}

fn map_ids(pid: Pid, inner: u32, ids: &Ids) -> Result<()> {
    let write = |file: &str, text: String| -> Result<()> {
        let path = format!("/proc/{}/{file}", pid.as_raw_nonzero());
        let mut file = std::fs::File::options()
            .write(true)
            .open(path)
            .map_err(errno)?;
        file.write_all(text.as_bytes()).map_err(errno)
    };
    if ids.deny_setgroups {
        write("setgroups", "deny".to_owned())?;
    }
    write("uid_map", format!("{inner} {} 1", ids.outer_uid))?;
    write("gid_map", format!("{inner} {} 1", ids.outer_gid))
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO))
}

/// One detached copy of each tree that is mounted, in the order of the plan.
fn trees(
    plan: &Plan,
    handles: &[OwnedFd],
    mut spare: Option<Holder>,
) -> Result<Vec<OwnedFd>, Failure> {
    let mut maps: Vec<((u32, u32), OwnedFd)> = Vec::new();
    let mut trees = Vec::new();
    for step in &plan.steps {
        let Step::Mount { source, target, .. } = step else {
            continue;
        };
        let (index, uid, gid) = match source {
            Source::Path { path, identity } => {
                let opened = open_source(path, *identity);
                trees.push(opened.at(&format!("open {}", path.to_string_lossy()))?);
                continue;
            }
            Source::Handle { index, uid, gid } => (*index, *uid, *gid),
        };
        let name = format!("id-map {}", target.to_string_lossy());
        let handle = handles.get(index).ok_or(Errno::BADF).at(&name)?;
        let known = maps.iter().position(|(owner, _)| *owner == (uid, gid));
        let position = match known {
            Some(position) => position,
            None => {
                let holder = spare
                    .take()
                    .map_or_else(Holder::new, Ok)
                    .at("id-map holder")?;
                let map = holder.map(uid, gid, &plan.ids).at("id-map holder")?;
                maps.push(((uid, gid), map));
                maps.len() - 1
            }
        };
        let tree = copy_of(handle, c"").at(&name)?;
        let map = maps[position].1.as_fd();
        sys::set_mount_attributes(tree.as_fd(), 0, Some(map)).at(&name)?;
        trees.push(tree);
    }
    Ok(trees)
}

/// A process that only keeps a user namespace alive until it is mapped and opened.
struct Holder {
    pid: Pid,
    release: OwnedFd,
}

impl Holder {
    fn new() -> Result<Self> {
        let (hold, release) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        match sys::clone_into(Namespace::User.flag(), None)? {
            Cloned::Child => {
                drop(release);
                let _ = rustix::io::read(&hold, &mut [0u8; 1]);
                sys::exit(0)
            }
            Cloned::Parent(pid, _pidfd) => Ok(Self { pid, release }),
        }
    }

    /// Shows the owner on disk as the sandbox's user and nobody else as anybody.
    fn map(self, uid: u32, gid: u32, ids: &Ids) -> Result<OwnedFd> {
        let pid = self.pid.as_raw_nonzero();
        let line = |inside: u32, outside: u32| format!("{inside} {outside} 1");
        let write = |file: &str, line: String| {
            std::fs::write(format!("/proc/{pid}/{file}"), line).map_err(errno)
        };
        write("uid_map", line(uid, ids.outer_uid))?;
        write("gid_map", line(gid, ids.outer_gid))?;
        let namespace = format!("/proc/{pid}/ns/user");
        rustix::fs::open(namespace, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It ends by itself when its pipe closes with this value, and is buried with the rest.
        let _ = rustix::io::write(&self.release, b"r");
    }
}

/// Leaving a version 1 group may wait for the kernel as long as entering it.
const INSIDE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};

fn hold_mounts(pid: Pid) -> Option<OwnedFd> {
    let namespace = format!("/proc/{}/ns/mnt", pid.as_raw_nonzero());
    rustix::fs::open(namespace, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
}

fn watch(control: &OwnedFd, pid: Pid, pidfd: &OwnedFd, cgroups: &[CString]) -> Result<End> {
    let mut end = End::Reported;
    let mut listening = true;
    let mut patience = Some(&INSIDE);
    loop {
        let child = PollFd::new(pidfd, PollFlags::IN);
        let socket = PollFd::new(control, PollFlags::IN);
        let mut both = [child, socket];
        let watched = if listening {
            &mut both[..]
        } else {
            &mut both[..1]
        };
        match poll(watched, patience) {
            Err(Errno::INTR) => continue,
            // Pid 1 has inherited the groups. The keeper must not count there for long, nor be the
            // one who is killed when the sandbox's memory is full; a short run does not wait for it.
            Ok(0) => {
                patience = None;
                cgroups.iter().for_each(|group| drop(cgroup::leave(group)));
                continue;
            }
            other => other?,
        };
        if listening && !both[1].revents().is_empty() {
            match wire::receive::<ToKeeper>(control) {
                Ok(Some((ToKeeper::Kill, _))) => {}
                Ok(Some((ToKeeper::Release, _))) => end = End::Released,
                // A closed socket, or one that speaks nonsense, is a caller that is gone.
                Ok(_) | Err(_) => {
                    end = End::CallerGone;
                    listening = false;
                }
            }
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
        if !both[0].revents().is_empty() {
            // Returns only when every process of the pid namespace is gone.
            let usage = sys::reap(pid.as_raw_nonzero().get(), 0)?
                .map(|(_, _, usage)| usage_of(&usage))
                .unwrap_or_default();
            let _ = wire::send(control, &FromKeeper::Ended { usage }, &[]);
            return Ok(end);
        }
    }
}

fn usage_of(usage: &libc::rusage) -> Usage {
    let micros =
        |time: libc::timeval| u64::try_from(time.tv_sec * 1_000_000 + time.tv_usec).unwrap_or(0);
    Usage {
        cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
        max_rss: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    }
}

/// The caller is not there to do it.
fn leave_cgroups(groups: &[CString]) {
    for group in groups {
        let _ = cgroup::leave_and_remove(group);
    }
}
