//! The system calls that no safe wrapper offers. Everything unsafe of the cage is here, each block
//! with its reason.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::Pid;

use crate::seccomp::Instruction;
use crate::stat;

/// Most failures here are a bare error number.
pub(crate) type Result<T, E = Errno> = std::result::Result<T, E>;

fn result(value: libc::c_long) -> Result<libc::c_long> {
    if value < 0 {
        let errno = std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO);
        return Err(Errno::from_raw_os_error(errno));
    }
    Ok(value)
}

/// Which side of a fork this is.
pub(crate) enum Forked {
    Child,
    Parent(Pid),
}

fn forked(value: libc::c_long) -> Result<Forked> {
    match i32::try_from(result(value)?).ok().and_then(Pid::from_raw) {
        Some(pid) => Ok(Forked::Parent(pid)),
        None => Ok(Forked::Child),
    }
}

/// # Errors
/// As fork(2). The caller must be the only thread: the child may then do anything.
pub(crate) fn fork() -> Result<Forked> {
    // SAFETY: no pointers are passed; the callers run before any thread is started, so the child's
    // memory, locks included, is consistent.
    forked(libc::c_long::from(unsafe { libc::fork() }))
}

/// linux/sched.h; too wide for the C library's own type.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Which side of a clone this is; only the parent gets the descriptor of the child.
pub(crate) enum Cloned {
    Child,
    Parent(Pid, OwnedFd),
}

/// Starts a process that shares our memory until it becomes another program, while we wait: as quick
/// as vfork, on a stack of its own.
pub(crate) fn spawn_shared(stack: &mut Stack, become_it: &mut dyn FnMut()) -> Result<Pid> {
    extern "C" fn start(argument: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the pointer is to the caller's closure reference, which outlives the child's use
        // of it: the caller is suspended until the child executes or ends.
        let become_it = unsafe { &mut *argument.cast::<&mut dyn FnMut()>() };
        become_it();
        exit(127)
    }
    let mut become_it = become_it;
    let argument = (&raw mut become_it).cast::<libc::c_void>();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack is large enough, aligned, and alive until the child has left it, because
    // CLONE_VFORK suspends us for that long; descriptors, signals and limits are not shared.
    let value = unsafe {
        let top = stack.0.as_mut_ptr().add(STACK_WORDS);
        libc::clone(start, top.cast(), flags, argument)
    };
    let pid = i32::try_from(result(libc::c_long::from(value))?).map_err(|_| Errno::SRCH)?;
    Pid::from_raw(pid).ok_or(Errno::SRCH)
}

/// 256 KiB, of which only touched pages count: looking a command up needs little.
const STACK_WORDS: usize = (256 << 10) / 16;

/// What a process that shares our memory stands on. Used again and again: it is left by then.
pub(crate) struct Stack(Vec<u128>);

impl Stack {
    pub(crate) fn new() -> Self {
        Self(vec![0; STACK_WORDS])
    }
}

/// A fork straight into new namespaces and, with `cgroup`, into a v2 cgroup.
pub(crate) fn clone_into(flags: u64, cgroup: Option<BorrowedFd<'_>>) -> Result<Cloned> {
    let mut pidfd: libc::c_int = -1;
    // SAFETY: all-zero bytes are a valid `clone_args`: every field is an integer.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = flags | libc::CLONE_PIDFD as u64;
    args.pidfd = (&raw mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = cgroup.as_raw_fd() as u64;
    }
    // SAFETY: `args` outlives the call and its size is given; without CLONE_VM and with no stack
    // the child gets its own copy of this one, like fork; the caller is single-threaded.
    let value = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of_val(&args)) };
    match forked(value)? {
        Forked::Child => Ok(Cloned::Child),
        // SAFETY: the kernel just stored a new descriptor that nobody else owns.
        Forked::Parent(pid) => Ok(Cloned::Parent(pid, unsafe { OwnedFd::from_raw_fd(pidfd) })),
    }
}

/// Moves the calling process into new namespaces.
pub(crate) fn unshare(flags: u64) -> Result<()> {
    // SAFETY: only namespaces are asked for; descriptors and memory stay as they are.
    result(unsafe { libc::syscall(libc::SYS_unshare, flags) }).map(drop)
}

/// Sets attributes on a mount and everything below it; with `id_map`, shows its owners through
/// that user namespace.
pub(crate) fn set_mount_attributes(
    mount: BorrowedFd<'_>,
    set: u64,
    id_map: Option<BorrowedFd<'_>>,
) -> Result<()> {
    // SAFETY: all-zero bytes are a valid `mount_attr`: every field is an integer.
    let mut attributes: libc::mount_attr = unsafe { std::mem::zeroed() };
    attributes.attr_set = set;
    // A copy of a shared mount would go on receiving what the host mounts below it.
    attributes.propagation = libc::MS_PRIVATE;
    if let Some(id_map) = id_map {
        attributes.attr_set |= libc::MOUNT_ATTR_IDMAP;
        attributes.userns_fd = id_map.as_raw_fd() as u64;
    }
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the path is a C string, the struct outlives the call and its size is given.
    let value = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of_val(&attributes),
        )
    };
    result(value).map(drop)
}

pub(crate) fn install_filter(program: &[Instruction]) -> Result<()> {
    add_filter(program, 0).map(drop)
}

/// A filter whose notices arrive at the returned descriptor. A call that waits for its answer can be
/// killed and nothing else: a timer of the program's would make it ask again without end.
pub(crate) fn install_listener(program: &[Instruction]) -> Result<OwnedFd> {
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let fd = i32::try_from(add_filter(program, flags)?).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel just made this descriptor, and nobody else owns it. It closes on exec.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn add_filter(program: &[Instruction], flags: libc::c_ulong) -> Result<libc::c_long> {
    let length = u16::try_from(program.len()).map_err(|_| Errno::TOOBIG)?;
    let program = libc::sock_fprog {
        len: length,
        filter: program.as_ptr() as *mut libc::sock_filter,
    };
    // SAFETY: `Instruction` has the layout of `sock_filter`; the kernel copies `len` of them and
    // writes nothing.
    result(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    })
}

/// The next call that waits for its answer. Blocks unless the listener is readable.
///
/// # Errors
/// `ENOENT` when the caller was killed meanwhile.
pub(crate) fn next_notified(listener: BorrowedFd<'_>) -> Result<libc::seccomp_notif> {
    // SAFETY: all-zero bytes are a valid `seccomp_notif`, and the kernel takes no other; it writes
    // one struct, which lives through the call.
    unsafe {
        let mut call: libc::seccomp_notif = std::mem::zeroed();
        let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
        let value = libc::ioctl(listener.as_raw_fd(), request, &raw mut call);
        result(libc::c_long::from(value)).map(|_| call)
    }
}

/// Whether that call still waits: if so, what was read of its process was its own.
pub(crate) fn is_notified(listener: BorrowedFd<'_>, id: u64) -> bool {
    let request = libc::SECCOMP_IOCTL_NOTIF_ID_VALID;
    // SAFETY: the kernel reads one number, which lives through the call.
    let value = unsafe { libc::ioctl(listener.as_raw_fd(), request, &raw const id) };
    value == 0
}

/// Lets the kernel do the call as if nobody had asked.
pub(crate) fn resume_notified(listener: BorrowedFd<'_>, id: u64) -> Result<()> {
    /// SECCOMP_USER_NOTIF_FLAG_CONTINUE, linux/seccomp.h.
    const CONTINUE: u32 = 1;
    let answer = libc::seccomp_notif_resp {
        id,
        val: 0,
        error: 0,
        flags: CONTINUE,
    };
    let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
    // SAFETY: the kernel reads one struct, which lives through the call.
    let value = unsafe { libc::ioctl(listener.as_raw_fd(), request, &raw const answer) };
    result(libc::c_long::from(value)).map(drop)
}

/// Whoever is answered runs at once on this processor, instead of some time on another (Linux 6.6).
pub(crate) fn wake_in_step(listener: BorrowedFd<'_>) -> Result<()> {
    /// SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, linux/seccomp.h.
    const SYNC_WAKE_UP: u64 = 1;
    let request = libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS;
    // SAFETY: the argument is a number, not a pointer.
    let value = unsafe { libc::ioctl(listener.as_raw_fd(), request, SYNC_WAKE_UP) };
    result(libc::c_long::from(value)).map(drop)
}

/// Copies from the memory of another process: all that is asked for, which must lie in one page.
pub(crate) fn read_memory(pid: i32, address: u64, buffer: &mut [u8]) -> Result<()> {
    let length = buffer.len();
    let part = |base: *mut libc::c_void| libc::iovec {
        iov_base: base,
        iov_len: length,
    };
    let theirs = part(address as *mut libc::c_void);
    let own = part(buffer.as_mut_ptr().cast());
    // SAFETY: the kernel writes into `buffer` alone, at most its length; the other address is of
    // another process and only ever read by the kernel.
    let read = unsafe { libc::process_vm_readv(pid, &raw const own, 1, &raw const theirs, 1, 0) };
    match usize::try_from(result(read as libc::c_long)?) {
        Ok(read) if read == length => Ok(()),
        _ => Err(Errno::FAULT),
    }
}

/// As sendmsg(2), with a word in a register that the call itself does not look at: a filter does.
/// `control` is one message of that kind, or nothing.
pub(crate) fn send_sealed(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    control: &mut [u64],
    seal: u64,
) -> Result<()> {
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr() as *mut libc::c_void,
        iov_len: bytes.len(),
    };
    // SAFETY: all-zero bytes are a valid `msghdr`; all that it points to lives through the call and
    // has the lengths that are given, and the kernel writes to none of it.
    result(unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(control) as _;
        let (call, fd) = (libc::SYS_sendmsg, socket.as_raw_fd());
        let flags = libc::MSG_NOSIGNAL;
        libc::syscall(call, fd, &raw const message, flags, 0u64, 0u64, seal)
    })
    .map(drop)
}

/// As `exit`, with the word.
pub(crate) fn exit_sealed(code: i32, seal: u64) -> ! {
    // SAFETY: no pointers are passed, and on success it never returns.
    unsafe { libc::syscall(libc::SYS_exit_group, code, 0u64, 0u64, 0u64, 0u64, seal) };
    exit(code)
}

/// Opens the multiplexer of a devpts, with the word as well.
pub(crate) fn open_terminal(path: &CStr, seal: u64) -> Result<OwnedFd> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    let (call, at) = (libc::SYS_openat, libc::AT_FDCWD);
    // SAFETY: the path is a C string, and of the rest the kernel reads no more than the flags.
    let value = unsafe { libc::syscall(call, at, path.as_ptr(), flags, 0u64, 0u64, seal) };
    let fd = i32::try_from(result(value)?).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel just made this descriptor, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// To the foreground process group of a terminal, by its controlling end.
pub(crate) fn signal_foreground(controlling: BorrowedFd<'_>, signal: i32) -> Result<()> {
    /// TIOCSIG, asm-generic/ioctls.h.
    const SIGNAL: libc::Ioctl = 0x4004_5436;
    // SAFETY: the argument is a number, not a pointer.
    let value = unsafe { libc::ioctl(controlling.as_raw_fd(), SIGNAL, signal) };
    result(libc::c_long::from(value)).map(drop)
}

/// Marks every descriptor from `first` on to be closed when the payload is executed.
pub(crate) fn close_on_exec_from(first: u32) -> Result<()> {
    // SAFETY: only flags of descriptors change; none is closed under a live owner.
    let value = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    result(value).map(drop)
}

/// Gives a descriptor this number, through an `exec` as well. Whatever had the number is closed.
pub(crate) fn place_at(fd: BorrowedFd<'_>, number: i32) -> Result<()> {
    // Already there it would keep its flag.
    let elsewhere = rustix::io::fcntl_dupfd_cloexec(fd, number + 1)?;
    // SAFETY: called only in the process that is about to become the payload, which owns no value
    // that would ever use or close the number again: it executes or ends.
    let value = unsafe { libc::dup2(elsewhere.as_raw_fd(), number) };
    result(libc::c_long::from(value)).map(drop)
}

/// Closes these numbers, whoever has them.
pub(crate) fn close_range(first: u32, last: u32) -> Result<()> {
    // SAFETY: called only in a freshly forked spawner, keeper or pid 1, whose copies of these
    // descriptors have no owner that will ever run: none returns into the code that made them.
    result(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0u32) }).map(drop)
}

/// SIGCHLD arrives through the returned descriptor instead of a handler.
pub(crate) fn child_signals() -> Result<OwnedFd> {
    // SAFETY: the sets are initialised by sigemptyset before use; signalfd returns a new
    // descriptor that nobody else owns.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        result(libc::c_long::from(libc::sigprocmask(
            libc::SIG_BLOCK,
            &raw const set,
            std::ptr::null_mut(),
        )))?;
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        result(libc::c_long::from(fd))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// No signal that a terminal or a shell may send reaches keeper or spawner: they end by a socket.
pub(crate) fn ignore_signals() {
    for signal in [
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGPIPE,
    ] {
        // SAFETY: SIG_IGN installs no code.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Children that end vanish: nobody asks how they ended.
pub(crate) fn forget_ended_children() {
    // SAFETY: SIG_IGN installs no code.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Children that end wait until they are asked.
pub(crate) fn keep_ended_children() {
    // SAFETY: SIG_DFL installs no code.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Handlers as a fresh program expects them; Rust ignores SIGPIPE, for one.
pub(crate) fn default_signals() {
    for signal in 1..=64 {
        // SAFETY: SIG_DFL installs no code; numbers that cannot be set fail and change nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// And its mask.
pub(crate) fn unblock_signals() {
    // SAFETY: the set is initialised before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Everybody in the pid namespace but pid 1.
///
/// # Errors
/// EPERM unless the caller is pid 1: outside a pid namespace this would reach the whole host.
pub(crate) fn signal_everyone(signal: i32) -> Result<()> {
    if std::process::id() != 1 {
        return Err(Errno::PERM);
    }
    // SAFETY: no memory is touched.
    match result(libc::c_long::from(unsafe { libc::kill(-1, signal) })) {
        Ok(_) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Raises the loopback interface of the current network namespace.
pub(crate) fn loopback_up() -> Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    /// IFF_UP and IFF_RUNNING, linux/if.h.
    const UP_AND_RUNNING: libc::c_short = 0x41;
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: all-zero bytes are a valid `ifreq`; the name fits with its NUL; the kernel reads the
    // struct during the call.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = UP_AND_RUNNING;
        result(libc::c_long::from(libc::ioctl(
            socket.as_fd().as_raw_fd(),
            libc::SIOCSIFFLAGS,
            &raw const request,
        )))?;
    }
    Ok(())
}

/// Becomes the program; returns only on failure.
pub(crate) fn execute(
    path: &CStr,
    argv: &[*const libc::c_char],
    env: &[*const libc::c_char],
) -> Errno {
    debug_assert!(argv.last().is_some_and(|last| last.is_null()));
    debug_assert!(env.last().is_some_and(|last| last.is_null()));
    // SAFETY: both arrays end with a null pointer and point to C strings that outlive the call.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    let errno = std::io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO);
    Errno::from_raw_os_error(errno)
}

/// The host's own hard limit; none when there is none.
pub(crate) fn hard_limit(resource: rustix::process::Resource) -> Result<Option<u64>> {
    let mut limit = libc::rlimit64 {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: nothing is set and the result goes to a struct that lives through the call.
    result(unsafe {
        libc::syscall(
            libc::SYS_prlimit64,
            0,
            resource as libc::c_uint,
            std::ptr::null::<libc::rlimit64>(),
            &raw mut limit,
        )
    })?;
    Ok((limit.rlim_max != libc::RLIM64_INFINITY).then_some(limit.rlim_max))
}

/// Ends this process at once: no destructor, no buffer of the caller's is run or flushed.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: never returns and touches no memory.
    unsafe { libc::_exit(code) }
}

/// What a look for ended children found.
pub(crate) enum Children {
    Ended {
        pid: i32,
        status: i32,
        usage: libc::rusage,
    },
    /// Some are there, and all of them live.
    Live,
    None,
}

/// Looks for any child that ended, or waits for one with `flags` 0.
pub(crate) fn reap_any(flags: i32) -> Result<Children> {
    let mut status = 0;
    // SAFETY: all-zero bytes are a valid `rusage`; both out-pointers live through the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let pid = libc::wait4(-1, &raw mut status, flags, &raw mut usage);
        match result(libc::c_long::from(pid)) {
            Ok(0) => Ok(Children::Live),
            Ok(_) => Ok(Children::Ended { pid, status, usage }),
            Err(Errno::CHILD) => Ok(Children::None),
            Err(errno) => Err(errno),
        }
    }
}

/// Waits for one child; `None` when there is none to report.
pub(crate) fn reap(pid: i32, flags: i32) -> Result<Option<(i32, i32, libc::rusage)>> {
    let mut status = 0;
    // SAFETY: all-zero bytes are a valid `rusage`; both out-pointers live through the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let pid = libc::wait4(pid, &raw mut status, flags, &raw mut usage);
        match result(libc::c_long::from(pid)) {
            Ok(0) | Err(Errno::CHILD) => Ok(None),
            Ok(_) => Ok(Some((pid, status, usage))),
            Err(errno) => Err(errno),
        }
    }
}

/// Overwrites the arguments and the environment that this process was started with, in its own
/// memory, so that nothing of the caller's can be read from /proc by anybody.
pub(crate) fn forget_start(name: &CStr) {
    let _ = rustix::thread::set_name(name);
    let Some([arg_start, arg_end, env_start, env_end]) = stat::start() else {
        return;
    };
    if arg_start == 0 || arg_end < arg_start || env_end < env_start {
        return;
    }
    // SAFETY: the kernel says that these ranges are this process's initial stack, which stays
    // mapped and writable; `environ` is emptied first so that nobody follows a stale pointer, and
    // this process never reads its arguments again.
    unsafe {
        libc::clearenv();
        std::ptr::write_bytes(arg_start as *mut u8, 0, arg_end - arg_start);
        std::ptr::write_bytes(env_start as *mut u8, 0, env_end - env_start);
        let name = name.to_bytes();
        let length = name.len().min((arg_end - arg_start).saturating_sub(1));
        std::ptr::copy_nonoverlapping(name.as_ptr(), arg_start as *mut u8, length);
    }
}

/// The Landlock version of this kernel; 0 when it has none.
pub fn landlock_abi() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: a null attribute with size 0 and the version flag only asks.
    let value =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0usize, 0usize, VERSION) };
    u32::try_from(value).unwrap_or(0)
}

/// Takes a variable out of this process's environment, and erases its value where the kernel shows
/// it to others (`/proc/PID/environ`).
///
/// # Errors
/// `EBUSY` when there are other threads, which might read the environment meanwhile.
pub fn take_variable(name: &CStr) -> Result<Option<Vec<u8>>> {
    if stat::threads()? != 1 {
        return Err(Errno::BUSY);
    }
    // SAFETY: the name is a C string, and there is no other thread that could change the
    // environment while it is looked at.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return Ok(None);
    }
    // SAFETY: what `getenv` answers is a C string that stays until the environment is changed.
    let bytes = unsafe { CStr::from_ptr(value) }.to_bytes().to_vec();
    // SAFETY: these bytes before the terminator are the process's own, on its first stack or in its
    // heap, and writable; nobody else has a reference to them.
    unsafe { std::ptr::write_bytes(value, 0, bytes.len()) };
    // SAFETY: as for `getenv`: a C string, and no other thread.
    result(libc::c_long::from(unsafe { libc::unsetenv(name.as_ptr()) }))?;
    Ok(Some(bytes))
}
