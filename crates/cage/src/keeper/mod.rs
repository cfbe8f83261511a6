//! The keeper: owns one sandbox from before its birth until nothing of it is left. It is small,
//! single-threaded, in a session of its own, and ends by its socket: when the caller is killed, the
//! keeper still takes the sandbox down and removes its cgroups. It holds the deadline and the lease
//! of what runs by its own clock: a caller that is stopped stops nothing but itself.

mod door;
mod guard;
mod id_map;
mod terms;

use std::ffi::CString;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use crate::sys::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, pidfd_send_signal};

use self::door::{Door, Trouble};
use self::id_map::{Holder, IdMaps};
use self::terms::Terms;
use crate::apply::attribute_bits;
use crate::init::Furnished;
use crate::lease::Lease;
use crate::moment::Moment;
use crate::plan::{After, Attachment, HOSTNAME, Ids, Namespace, Opener, Plan, Step, Told};
use crate::seccomp::Compiled;
use crate::sys::{self, Children, Cloned};
use crate::way_out::WayOut;
use crate::wire::{self, At, Failure, FromKeeper, ProcessUsage, ToKeeper};
use crate::{cgroup, descriptors, init};

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
pub(crate) fn run(Ends { control, init }: Ends, ahead: &[Namespace], lease: Option<&Lease>) -> ! {
    let code = match serve(&control, init, ahead, lease) {
        Ok(()) => {
            // Whoever held a namespace for this process ends with it; nobody is to be found after it.
            while let Ok(Children::Ended { .. }) | Err(Errno::INTR) = sys::reap_any(0) {}
            0
        }
        Err(failure) => {
            let _ = wire::send(&control, &FromKeeper::Failed(failure), &[]);
            1
        }
    };
    sys::exit(code)
}

fn serve(
    control: &OwnedFd,
    init_socket: OwnedFd,
    ahead: &[Namespace],
    lease: Option<&Lease>,
) -> Result<(), Failure> {
    sys::ignore_signals();
    // Pid 1's end is told with what it used, whatever was inherited.
    sys::keep_ended_children();
    rustix::process::setsid().at("keeper session")?;
    let sockets = [control.as_fd(), init_socket.as_fd()];
    let kept: Vec<_> = sockets.into_iter().chain(lease.map(Lease::as_fd)).collect();
    descriptors::detach(&kept).at("keeper descriptors")?;
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
            Some((ToKeeper::Attach(..) | ToKeeper::Detach(_) | ToKeeper::Until(_), _)) => {
                return Err(Errno::SRCH).at("a sandbox that stands");
            }
            Some((ToKeeper::Guard(guard), _)) => {
                // What was made for a sandbox is not needed.
                drop(spare.take());
                leave_cgroups(&cgroups);
                return guard::run(control, &guard, Terms::new(lease));
            }
            Some((ToKeeper::Build(plan), handles)) => {
                cgroups.extend(plan.cgroup.iter().cloned());
                let spare = spare.take().ok_or(Errno::BUSY).at("a second plan")?;
                let spare = (spare, lease);
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
    let part = crate::mutation::part();
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
    (spare, lease): (Spare, Option<&Lease>),
    cgroups: &[CString],
) -> Result<End, Failure> {
    let mut maps = IdMaps::new(plan.ids, spare.holder);
    let trees = match plan.opener {
        Opener::Keeper => trees(plan, handles, &mut maps)?,
        Opener::Init => Vec::new(),
    };
    match (plan.opener, plan.after) {
        // What is attached later will mostly be this process's user's own.
        (Opener::Keeper, After::Stay) => maps.prepare().at("id-map holder")?,
        _ => maps.forget_holder(),
    }
    let cgroup = match &plan.cgroup {
        Some(path) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Some(rustix::fs::open(path, flags, Mode::empty()).at("open cgroup")?)
        }
        None => None,
    };
    // The namespace is the host's root's, so nobody inside could do it, and nobody can undo it.
    let way_out = plan
        .steering()
        .filter(|_| spare.namespaces.contains(&Namespace::Net))
        .map(|steering| WayOut::open(steering).at("way out"))
        .transpose()?;
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
                    way_out,
                };
                init::run(plan, trees, furnished, gate, init_socket)
            }
            Cloned::Parent(pid, pidfd) => (pid, pidfd),
        };
    drop((gate, trees, init_socket, way_out));
    // The write end stays open here until the end: pid 1 sees a dead keeper as the end of its gate.
    if let Err(failure) = open_gate(plan, pid, &opener) {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
        let _ = sys::reap(pid.as_raw_nonzero().get(), 0);
        return Err(failure);
    }
    let mut ward = Ward {
        plan,
        control,
        pid,
        pidfd,
        gate: opener,
        door: Door::of(pid),
        maps,
        terms: Terms::new(lease),
    };
    let born = FromKeeper::Born {
        pid: pid.as_raw_nonzero().get(),
    };
    let _ = wire::send(control, &born, &[]);
    let end = ward.watch(cgroups)?;
    drop(ward);
    match end {
        End::Reported => Ok(farewell(control)),
        End::Released | End::CallerGone => Ok(end),
    }
}

/// One detached copy of each tree that is mounted, in the order of the plan.
fn trees(plan: &Plan, handles: &[OwnedFd], maps: &mut IdMaps) -> Result<Vec<OwnedFd>, Failure> {
    plan.steps
        .iter()
        .flat_map(Step::sources)
        .map(|(source, target)| maps.open(source, target, handles, 0))
        .collect()
}

/// Stays until the caller has read the groups and removed them, to do it in its place should it be
/// killed meanwhile.
fn farewell(control: &OwnedFd) -> End {
    loop {
        match wire::receive::<ToKeeper>(control) {
            Ok(Some((ToKeeper::Release, _))) => return End::Released,
            Ok(Some((ToKeeper::Kill, _))) => {}
            // Too late: the end was told, and answers this as well.
            Ok(Some((ToKeeper::Attach(..) | ToKeeper::Detach(_) | ToKeeper::Until(_), _))) => {}
            Ok(Some((ToKeeper::Join(_) | ToKeeper::Build(_) | ToKeeper::Guard(_), _)) | None)
            | Err(_) => {
                return End::CallerGone;
            }
        }
    }
}

/// The highest of proc_pid_oom_score_adj(5). Everything inside inherits it.
const FIRST_TO_GO: &str = "1000";

/// Maps the ids and lets pid 1 begin.
fn open_gate(plan: &Plan, pid: Pid, opener: &OwnedFd) -> Result<(), Failure> {
    // When memory runs out on the host, what is in here goes first: it is the
    // least trusted, and a server may be at the other end of the scale. One that cannot be set stays
    // as it is.
    let score = format!("/proc/{}/oom_score_adj", pid.as_raw_nonzero());
    let _ = std::fs::write(score, FIRST_TO_GO);
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

/// Leaving a version 1 group may wait for the kernel as long as entering it.
const INSIDE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};

/// The sandbox while pid 1 lives.
struct Ward<'build> {
    plan: &'build Plan,
    control: &'build OwnedFd,
    pid: Pid,
    pidfd: OwnedFd,
    gate: OwnedFd,
    /// Holds the mounts until the end of pid 1 was told: taking them apart costs the caller nothing.
    door: Option<Door>,
    maps: IdMaps,
    terms: Terms<'build>,
}

impl Ward<'_> {
    fn watch(&mut self, cgroups: &[CString]) -> Result<End, Failure> {
        let mut end = End::Reported;
        let mut listening = true;
        let mut inside = true;
        loop {
            if self.terms.newly_over().is_some() {
                self.kill();
            }
            let terms = self.terms.patience();
            let patience = match inside {
                true => Some(terms.map_or(INSIDE, |it| it.min(INSIDE))),
                false => terms,
            };
            let child = PollFd::new(&self.pidfd, PollFlags::IN);
            let socket = PollFd::new(self.control, PollFlags::IN);
            let mut both = [child, socket];
            let watched = if listening {
                &mut both[..]
            } else {
                &mut both[..1]
            };
            match poll(watched, patience.as_ref()) {
                Err(Errno::INTR) => continue,
                // Pid 1 has inherited the groups. The keeper must not count there for long, nor be
                // the one who is killed when the sandbox's memory is full; a short run does not
                // wait for it.
                Ok(0) => {
                    if std::mem::take(&mut inside) {
                        cgroups.iter().for_each(|group| drop(cgroup::leave(group)));
                    }
                    continue;
                }
                other => other.at("watch")?,
            };
            let [child_ended, message] = both.map(|fd| !fd.revents().is_empty());
            if listening && message {
                match self.hear()? {
                    Heard::Done => {}
                    Heard::Kill => self.kill(),
                    Heard::End(heard) => {
                        listening = heard != End::CallerGone;
                        end = heard;
                        self.kill();
                    }
                }
            }
            if child_ended {
                // Returns only when every process of the pid namespace is gone.
                let usage = sys::reap(self.pid.as_raw_nonzero().get(), 0)
                    .at("watch")?
                    .map(|(_, _, usage)| ProcessUsage::from(&usage))
                    .unwrap_or_default();
                let ended = FromKeeper::Ended {
                    usage,
                    over: self.terms.over(),
                    at: Moment::now(),
                };
                let _ = wire::send(self.control, &ended, &[]);
                return Ok(end);
            }
        }
    }

    fn hear(&mut self) -> Result<Heard, Failure> {
        let done = match wire::receive::<ToKeeper>(self.control) {
            Ok(Some((ToKeeper::Kill, _))) => return Ok(Heard::Kill),
            Ok(Some((ToKeeper::Release, _))) => return Ok(Heard::End(End::Released)),
            Ok(Some((ToKeeper::Until(deadline), _))) => {
                self.terms.until(deadline);
                Ok(())
            }
            Ok(Some((ToKeeper::Attach(trees, told), handles))) => {
                self.attach(&trees, &handles).and_then(|()| self.tell(told))
            }
            Ok(Some((ToKeeper::Detach(targets), _))) => {
                // What the deadline was for is over.
                self.terms.until(Moment::NEVER);
                self.detach(&targets)
                    .map(|()| self.answer(&FromKeeper::Detached))
            }
            // A closed socket, or one that speaks nonsense, is a caller that is gone.
            Ok(Some((ToKeeper::Join(_) | ToKeeper::Build(_) | ToKeeper::Guard(_), _)) | None)
            | Err(_) => {
                return Ok(Heard::End(End::CallerGone));
            }
        };
        match done {
            Ok(()) => Ok(Heard::Done),
            // Half of it may be there: nothing may run in it any more.
            Err(Trouble::Inside(failure)) => {
                self.answer(&FromKeeper::Failed(failure));
                Ok(Heard::Kill)
            }
            Err(Trouble::Astray(failure)) => Err(failure),
        }
    }

    fn attach(&mut self, trees: &[Attachment], handles: &[OwnedFd]) -> Result<(), Trouble> {
        // An ordinary user has no power over mounts here, and none to enter.
        let door = match (self.plan.opener, &self.door) {
            (Opener::Keeper, Some(door)) => door,
            _ => return Err(Errno::PERM).at("attach").map_err(Trouble::Inside),
        };
        let opened: Result<Vec<OwnedFd>, Failure> = trees
            .iter()
            .map(|tree| {
                let bits = attribute_bits(&tree.attributes);
                self.maps.open(&tree.source, &tree.target, handles, bits)
            })
            .collect();
        let opened = opened.map_err(Trouble::Inside)?;
        door.attach(trees.iter().map(|it| it.target.as_c_str()).zip(&opened))
    }

    fn tell(&self, told: Told) -> Result<(), Trouble> {
        match told {
            Told::Init => rustix::io::write(&self.gate, b"a")
                .at("open gate")
                .map_err(Trouble::Inside)
                .map(drop),
            Told::Caller => {
                self.answer(&FromKeeper::Attached);
                Ok(())
            }
        }
    }

    /// A caller that is gone shows at its socket.
    fn answer(&self, answer: &FromKeeper) {
        let _ = wire::send(self.control, answer, &[]);
    }

    fn detach(&self, targets: &[CString]) -> Result<(), Trouble> {
        match (self.plan.opener, &self.door) {
            (Opener::Keeper, Some(door)) => door.detach(targets),
            _ => Err(Errno::PERM).at("detach").map_err(Trouble::Inside),
        }
    }

    fn kill(&self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }
}

enum Heard {
    Done,
    Kill,
    End(End),
}

/// The caller is not there to do it.
fn leave_cgroups(groups: &[CString]) {
    for group in groups {
        let _ = cgroup::leave_and_remove(group);
    }
}
