"""Tries to get out of the sandbox it runs in, one probe after the other.

Prints one line of JSON per probe: id, class, verdict (held, crossed or skipped) and what was seen.
Run outside a sandbox it is its own control: what it reports there as crossed is what a sandbox must
hold. So every probe is harmless where it succeeds: it opens without writing, repeats what is there
already, or touches only fixtures of the harness.

Each probe runs in a child of its own, so that a filter that kills is an observation too.
"""
import ctypes, errno, fcntl, glob, hashlib, json, mmap, os, re, resource, signal, socket, stat
import struct, subprocess, sys, time

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
X86 = os.uname().machine == "x86_64"
WORK = os.environ.get("PROBE_WORK") or os.getcwd()

# Numbers of calls that the C library does not wrap: x86_64, aarch64.
CALLS = {
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280),
    "capget": (125, 90), "capset": (126, 91), "chroot": (161, 51), "clock_settime": (227, 112),
    "clone": (56, 220), "clone3": (435, 435), "delete_module": (176, 106), "fallocate": (285, 47),
    "fanotify_init": (300, 262), "finit_module": (313, 273), "fsopen": (430, 430),
    "get_mempolicy": (239, 236), "get_robust_list": (274, 100), "io_uring_setup": (425, 425),
    "ioperm": (173, None), "iopl": (172, None), "kcmp": (312, 272), "kexec_load": (246, 104),
    "keyctl": (250, 219), "listmount": (458, 458), "memfd_secret": (447, 447),
    "modify_ldt": (154, None), "mount": (165, 40), "mount_setattr": (442, 442),
    "move_mount": (429, 429), "move_pages": (279, 239), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "open_tree": (428, 428), "openat2": (437, 437),
    "perf_event_open": (298, 241), "personality": (135, 92), "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pivot_root": (155, 41),
    "process_vm_readv": (310, 270), "ptrace": (101, 117), "quotactl": (179, 60),
    "reboot": (169, 142), "request_key": (249, 218), "setns": (308, 268),
    "settimeofday": (164, 170), "statmount": (457, 457), "swapoff": (168, 225),
    "swapon": (167, 224), "syslog": (103, 116), "umount2": (166, 39), "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
REFUSED = {errno.EPERM, errno.EACCES, errno.ENOSYS}
NAMESPACES = {
    "cgroup": 0x2000000, "ipc": 0x8000000, "mnt": 0x20000, "net": 0x40000000,
    "pid": 0x20000000, "time": 0x80, "user": 0x10000000, "uts": 0x4000000,
}

PROBES = []


def probe(kind):
    def register(function):
        PROBES.append((function.__name__.replace("_", "-"), kind, function))
        return function

    return register


class Skip(Exception):
    """This host lacks what the probe needs."""


def given(name):
    value = os.environ.get("PROBE_" + name)
    if not value:
        raise Skip(f"no PROBE_{name}")
    return value


def call(name, *arguments):
    """The result and the error number of a raw system call."""
    number = name if isinstance(name, int) else CALLS[name][0 if X86 else 1]
    if number is None:
        return -1, errno.ENOSYS
    ctypes.set_errno(0)
    words = [ctypes.c_long(it) if isinstance(it, int) else it for it in arguments]
    result = libc.syscall(ctypes.c_long(number), *words)
    return result, ctypes.get_errno() if result < 0 else 0


def name_of(number):
    return errno.errorcode.get(number, str(number)) if number else "ok"


def refused(name, *arguments, also=()):
    """Held only when policy said no: EINVAL or EFAULT would mean that the kernel got further."""
    result, number = call(name, *arguments)
    held = result < 0 and (number in REFUSED or number in also)
    return held, f"{name}: {name_of(number)}"


def all_of(results):
    """Held when each is; names those that are not."""
    broken = [seen for held, seen in results if not held]
    return not broken, "; ".join(broken) or "all refused"


def none_of(found, what):
    return not found, f"{what}: {sorted(map(str, found))[:8]}" if found else "none"


def opens(path, flags=os.O_RDONLY):
    try:
        os.close(os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY))
        return True
    except OSError:
        return False


def in_child(function):
    """Runs it apart: its exit code, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(function())
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# Files of the host.


@probe("files")
def canaries_are_absent():
    return none_of([it for it in given("CANARIES").split(":") if opens(it)], "readable")


@probe("files")
def canaries_are_not_even_named():
    return none_of([it for it in given("CANARIES").split(":") if os.path.lexists(it)], "visible")


@probe("files")
def passwords_of_the_host():
    try:
        with open("/etc/shadow", "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() != given("SHADOW"), "readable"
    except OSError as error:
        return True, name_of(error.errno)


@probe("files")
def identity_of_the_host():
    names = ["/etc/machine-id", "/etc/ssh/ssh_host_ed25519_key", "/etc/sudoers", "/etc/fstab",
             "/etc/crontab", "/etc/apt", "/etc/systemd"]
    return none_of([it for it in names if os.path.lexists(it)], "visible")


@probe("files")
def users_of_the_host():
    with open("/etc/passwd") as file:
        return none_of([it.split(":")[0] for it in file if "root" in it or "glovebox" in it], "named")


@probe("files")
def homes_of_the_host():
    seen = [it for it in glob.glob("/root/.*") + glob.glob("/home/*") if it != "/home/sandbox"]
    return none_of(seen, "visible")


@probe("files")
def state_of_glovebox():
    return not os.path.lexists(given("STATE")), "the state directory is visible"


@probe("files")
def a_link_to_a_canary():
    link = os.path.join(WORK, ".probe-link")
    os.symlink(given("CANARIES").split(":")[0], link)
    try:
        return not opens(link, os.O_WRONLY | os.O_APPEND), "opened for writing through a link"
    finally:
        os.unlink(link)


@probe("files")
def a_hard_link_to_a_file_outside():
    link = os.path.join(WORK, ".probe-hard-link")
    made = []
    for target in (given("READONLY"), given("CANARIES").split(":")[0], "/usr/bin/env"):
        try:
            os.link(target, link)
            os.unlink(link)
            made.append(target)
        except OSError:
            pass
    return none_of(made, "linked")


@probe("files")
def above_the_root():
    up = os.stat("/".join([".."] * 40))
    root = os.stat("/")
    inside = not os.readlink("/proc/self/cwd").startswith("(unreachable)")
    same = (up.st_dev, up.st_ino) == (root.st_dev, root.st_ino)
    # Of the host's root nothing is told apart from ours but its content.
    return inside and same and not os.path.isdir("/boot"), "the host's root"


@probe("files")
def places_that_can_be_written():
    made = []
    for place in ("/", "/usr", "/usr/bin", "/usr/local", "/etc", "/opt", "/root", "/home", "/var",
                  "/run", "/srv", "/mnt", "/proc", "/sys", "/dev", "/workspace", "/workspace/inputs"):
        path = os.path.join(place, f".probe-{os.getpid()}")
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            os.unlink(path)
            made.append(place)
        except OSError:
            pass
    return none_of(made, "written")


@probe("files")
def every_way_to_change_a_read_only_file():
    path = given("READONLY")
    done = []

    def attempt(name, function):
        try:
            function()
            done.append(name)
        except (OSError, ValueError):
            pass

    source = os.open(os.path.join(WORK, ".probe-source"), os.O_CREAT | os.O_RDWR, 0o600)
    os.write(source, b"changed")
    kept = os.stat(path)
    reader = os.open(path, os.O_RDONLY)
    pipe_out, pipe_in = os.pipe()
    os.write(pipe_in, b"changed")

    def write_through(flags):
        descriptor = os.open(path, flags)
        os.write(descriptor, b"changed")
        os.close(descriptor)

    def map_shared():
        with mmap.mmap(reader, 1, mmap.MAP_SHARED, mmap.PROT_WRITE) as shown:
            shown[0] = 0

    def reopen():
        descriptor = os.open(f"/proc/self/fd/{reader}", os.O_RDWR)
        os.write(descriptor, b"changed")

    def allocate():
        # Not the C library's: where the kernel has none, it only pretends.
        result, number = call("fallocate", reader, 0, 0, 4096)
        if result < 0:
            raise OSError(number, "fallocate")

    for name, function in {
        "write": lambda: write_through(os.O_WRONLY),
        "append": lambda: write_through(os.O_WRONLY | os.O_APPEND),
        "truncate": lambda: os.truncate(path, 0),
        "truncating open": lambda: os.close(os.open(path, os.O_RDONLY | os.O_TRUNC)),
        "chmod": lambda: os.chmod(path, kept.st_mode & 0o777),
        "chown": lambda: os.chown(path, kept.st_uid, kept.st_gid),
        "times": lambda: os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns)),
        "attribute": lambda: os.setxattr(path, "user.probe", b"1"),
        "shared map": map_shared,
        "fallocate": allocate,
        "copy range": lambda: os.copy_file_range(source, reader, 7, 0),
        "splice": lambda: os.splice(pipe_out, reader, 7),
        "sendfile": lambda: os.sendfile(reader, source, 0, 7),
        "clone": lambda: fcntl.ioctl(reader, 0x40049409, source),
        "reopen": reopen,
        "rename": lambda: os.rename(path, path),
        "replace": lambda: os.rename(os.path.join(WORK, ".probe-source"), path),
        "unlink": lambda: os.unlink(path),
    }.items():
        attempt(name, function)
    return none_of(done, "changed by")


@probe("files")
def handles_instead_of_names():
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    root = os.open("/", os.O_RDONLY)
    first = refused("name_to_handle_at", -100, b"/", handle, ctypes.byref(mount), 0)
    second = refused("open_by_handle_at", root, handle, 0)
    return all_of([first, second])


@probe("files")
def shared_memory_files():
    return none_of([it for it in os.listdir("/dev/shm") if "canary" in it], "visible")


# Processes of the host, and pid 1.


@probe("processes")
def the_host_sentinel():
    tag, seen = given("TAG").encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read().rstrip(b"\0").endswith(tag):
                    seen.append(pid)
        except OSError:
            pass
    return none_of(seen, "pids")


def sentinel():
    """Its pid, unless that number is one of ours inside."""
    pid = int(given("SENTINEL"))
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if given("TAG").encode() not in file.read():
                raise Skip("the pid is taken by a process of the sandbox")
    except FileNotFoundError:
        pass
    return pid


@probe("processes")
def a_signal_to_the_host():
    try:
        os.kill(sentinel(), signal.SIGUSR1)
        return False, "accepted"
    except OSError as error:
        return True, name_of(error.errno)


@probe("processes")
def a_pidfd_of_the_host():
    descriptor, number = call("pidfd_open", sentinel(), 0)
    if descriptor < 0:
        return True, name_of(number)
    return call("pidfd_send_signal", descriptor, 0, None, 0)[0] < 0, "a signal would arrive"


@probe("processes")
def tracing_the_supervisor():
    target = int(given("SUPERVISOR"))
    results = [refused("ptrace", 0x4206, target, 0, 0)]
    buffer = ctypes.create_string_buffer(8)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    remote = (ctypes.c_size_t * 2)(0x400000, 8)
    results.append(refused("process_vm_readv", target, local, 1, remote, 1, 0))
    results.append(refused("kcmp", os.getpid(), target, 0, 0, 0))
    results.append(refused("pidfd_getfd", -1, 0, 0))
    return all_of(results)


@probe("processes")
def looking_into_the_supervisor():
    target, seen = given("SUPERVISOR"), []
    for name in ("mem", "environ", "maps", "fd", "cwd", "root", "exe", "auxv", "stack"):
        path = f"/proc/{target}/{name}"
        try:
            if name == "fd":
                os.listdir(path)
            elif name in ("cwd", "root", "exe"):
                os.readlink(path)
            else:
                os.close(os.open(path, os.O_RDONLY))
            seen.append(name)
        except OSError:
            pass
    return none_of(seen, "readable")


@probe("processes")
def robust_list_of_the_supervisor():
    head, size = ctypes.c_void_p(), ctypes.c_size_t()
    return refused("get_robust_list", int(given("SUPERVISOR")), ctypes.byref(head), ctypes.byref(size))


@probe("processes")
def programs_that_could_be_overwritten():
    found = []
    for pid in (given("SUPERVISOR"), os.getppid(), "self"):
        try:
            os.close(os.open(f"/proc/{pid}/exe", os.O_WRONLY))
            found.append(pid)
        except OSError as error:
            # Busy now is writable as soon as the program ends.
            if error.errno == errno.ETXTBSY:
                found.append(pid)
    return none_of(found, "writable")


@probe("processes")
def joining_other_namespaces():
    joined = []
    for pid in (int(given("SUPERVISOR")), os.getppid()):
        for name in NAMESPACES:
            try:
                descriptor = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)
            except OSError:
                continue
            if in_child(lambda: int(call("setns", descriptor, 0)[0] == 0)) == 1:
                joined.append(f"{pid}/{name}")
            os.close(descriptor)
    held, seen = refused("setns", -1, 0)
    return held and not joined, f"{seen}; joined {joined}"


# Namespaces.


@probe("namespaces")
def namespaces_of_the_host():
    host = dict(it.split("=") for it in given("NAMESPACES").split(","))
    shared = []
    for name, identity in host.items():
        if name != "time" and os.readlink(f"/proc/self/ns/{name}") == identity:
            shared.append(name)
    return none_of(shared, "shared")


@probe("namespaces")
def a_user_namespace():
    return in_child(lambda: int(call("unshare", NAMESPACES["user"])[0] == 0)) == 0, "unshare worked"


@probe("namespaces")
def any_other_namespace():
    made = [
        name
        for name, flag in NAMESPACES.items()
        if name != "user" and in_child(lambda: int(call("unshare", flag)[0] == 0)) == 1
    ]
    return none_of(made, "made")


@probe("namespaces")
def a_namespace_by_clone():
    made = []
    for name, flag in NAMESPACES.items():
        if name == "time":
            continue
        child, _ = call("clone", flag | signal.SIGCHLD, 0, 0, 0, 0)
        if child == 0:
            os._exit(0)
        if child > 0:
            os.waitpid(child, 0)
            made.append(name)
    return none_of(made, "made")


@probe("namespaces")
def a_namespace_by_clone3():
    arguments = (ctypes.c_uint64 * 11)()
    arguments[0], arguments[4] = NAMESPACES["user"], signal.SIGCHLD
    child, number = call("clone3", arguments, ctypes.sizeof(arguments))
    if child == 0:
        os._exit(0)
    if child > 0:
        os.waitpid(child, 0)
    return child < 0 and number in REFUSED, f"clone3: {name_of(number)}"


@probe("namespaces")
def the_place_in_the_control_groups():
    with open("/proc/self/cgroup") as file:
        places = {line.strip().split(":", 2)[2] for line in file}
    shown = os.path.isdir("/sys/fs/cgroup")
    return places == {"/"} and not shown, f"{sorted(places)[:3]}, cgroup files visible: {shown}"


@probe("namespaces")
def the_name_of_the_host():
    return os.uname().nodename != given("HOSTNAME"), os.uname().nodename


@probe("namespaces")
def renaming_the_host():
    name = os.uname().nodename.encode()
    failed = libc.sethostname(name, len(name)) < 0
    return failed, "sethostname worked"


# The network.


@probe("network")
def loopback_of_the_host():
    try:
        with socket.create_connection(("127.0.0.1", int(given("TCP"))), 2) as connection:
            return b"HOST" not in connection.recv(16), "connected"
    except OSError as error:
        return True, str(error)


@probe("network")
def datagrams_to_the_host():
    # Only the harness can count what arrives; a route is what can be seen from here.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(3):
            try:
                sender.sendto(b"probe", ("127.0.0.1", int(given("UDP"))))
            except OSError:
                pass
    return True, "counted by the harness"


@probe("network")
def names_of_the_internet():
    if not os.environ.get("PROBE_RESOLVE"):
        return False, "not asked outside"
    try:
        found = socket.getaddrinfo("glovebox-probe.example.com", 443)
        return False, str(found[:1])
    except OSError as error:
        return True, str(error)


@probe("network")
def an_abstract_socket_of_the_host():
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(2)
        try:
            connection.connect("\0" + given("ABSTRACT"))
            return b"HOST" not in connection.recv(16), "connected"
        except OSError as error:
            return True, str(error)


@probe("network")
def sockets_in_the_file_system():
    names = [given("PATH_SOCKET"), "/run/docker.sock", "/var/run/docker.sock",
             "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/systemd/private",
             "/run/systemd/notify", "/run/dbus/system_bus_socket", "/run/nscd/socket",
             "/run/snapd.socket", "/dev/log"]
    names += glob.glob("/run/user/*/bus") + glob.glob("/tmp/.X11-unix/*") + glob.glob("/tmp/ssh-*/*")
    reached = []
    for name in names:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(socket.AF_UNIX, kind) as connection:
                connection.settimeout(1)
                try:
                    connection.connect(name)
                    reached.append(name)
                    break
                except OSError:
                    pass
    return none_of(reached, "connected")


@probe("network")
def interfaces():
    with open("/proc/net/dev") as file:
        names = [line.split(":")[0].strip() for line in file if ":" in line]
    return none_of(set(names) - {"lo"}, "interfaces")


@probe("network")
def a_route_out():
    # Connecting a datagram socket looks for a route and sends nothing.
    reached = []
    for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET, "169.254.169.254"),
                            (socket.AF_INET6, "2001:db8::1")):
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            try:
                sender.connect((address, 9))
                reached.append(address)
            except OSError:
                pass
    return none_of(reached, "routes")


@probe("network")
def raw_sockets():
    made = []
    for family, protocol in ((socket.AF_INET, 1), (socket.AF_INET6, 58), (socket.AF_INET, 255)):
        try:
            socket.socket(family, socket.SOCK_RAW, protocol).close()
            made.append((family, protocol))
        except OSError:
            pass
    return none_of(made, "opened")


@probe("network")
def uncommon_socket_families():
    made = []
    for family in (15, 17, 21, 29, 30, 31, 38, 40, 44):
        for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
            try:
                socket.socket(family, kind).close()
                made.append(family)
                break
            except OSError:
                pass
    return none_of(made, "families")


@probe("network")
def netlink_beyond_routes():
    made = []
    for protocol in (4, 6, 9, 10, 12, 15, 16, 20):
        try:
            socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol).close()
            made.append(protocol)
        except OSError:
            pass
    return none_of(made, "protocols")


# Mounts.


@probe("mounts")
def a_new_mount():
    place = os.path.join(WORK, ".probe-mount")
    os.makedirs(place, exist_ok=True)
    held, seen = refused("mount", b"none", place.encode(), b"tmpfs", 0, b"size=4k")
    if not held:
        call("umount2", place.encode(), 2)
    os.rmdir(place)
    return held, seen


@probe("mounts")
def the_newer_mount_calls():
    attributes = ctypes.create_string_buffer(32)
    buffer = ctypes.create_string_buffer(512)
    return all_of([
        refused("fsopen", b"tmpfs", 0),
        refused("open_tree", -100, b"/", 1 | 0x80000),
        refused("mount_setattr", -100, b"/absent", 0, attributes, 32),
        refused("move_mount", -1, b"", -1, b"", 0),
        refused("listmount", None, buffer, 1, 0),
        refused("statmount", None, buffer, 512, 0),
    ])


@probe("mounts")
def another_root():
    return all_of([
        refused("pivot_root", b"/absent", b"/absent"),
        (in_child(lambda: int(call("chroot", b"/")[0] == 0)) == 0, "chroot"),
        refused("umount2", b"/absent", 0),
    ])


@probe("mounts")
def mounts_that_honour_set_user_id():
    bad = []
    for place in ("/", WORK, "/tmp", "/var/tmp", "/dev/shm", "/usr", "/etc", "/proc", "/dev/pts"):
        if os.path.isdir(place) and not os.statvfs(place).f_flag & os.ST_NOSUID:
            bad.append(place)
    return none_of(bad, "without nosuid")


@probe("mounts")
def mounts_that_honour_devices():
    bad = []
    for place in ("/", WORK, "/tmp", "/var/tmp", "/dev/shm", "/usr", "/etc", "/proc"):
        if os.path.isdir(place) and not os.statvfs(place).f_flag & 4:
            bad.append(place)
    return none_of(bad, "without nodev")


# The kernel.


@probe("kernel")
def keys():
    return all_of([
        refused("keyctl", 0, -3, 0),
        refused("add_key", b"user", b"glovebox:probe", b"x", 1, -2),
        refused("request_key", b"user", b"glovebox:absent", None, 0),
    ])


@probe("kernel")
def kernel_programs():
    attributes = ctypes.create_string_buffer(struct.pack("IIIII", 1, 4, 4, 1, 0) + bytes(64))
    return refused("bpf", 0, attributes, 72)


@probe("kernel")
def page_faults():
    return refused("userfaultfd", 0x80000 | 1)


@probe("kernel")
def asynchronous_rings():
    return refused("io_uring_setup", 2, ctypes.create_string_buffer(120))


@probe("kernel")
def performance_counters():
    attributes = ctypes.create_string_buffer(struct.pack("IIQ", 1, 112, 0) + bytes(112))
    return refused("perf_event_open", attributes, 0, -1, -1, 0)


@probe("kernel")
def modules():
    return all_of([
        refused("finit_module", -1, b"", 0),
        refused("delete_module", b"glovebox_absent", 0),
    ])


@probe("kernel")
def another_kernel():
    return all_of([
        refused("kexec_load", 0, 0, 0, 0xFFFF0000),
        # Wrong magic numbers: refused as invalid where it is allowed.
        refused("reboot", 0, 0, 0, 0),
    ])


@probe("kernel")
def administration():
    return all_of([
        refused("swapon", b"/absent", 0),
        refused("swapoff", b"/absent"),
        refused("acct", b"/absent"),
        refused("quotactl", 0x80000700, b"/absent", 0, None),
    ])


@probe("kernel")
def the_clock():
    return all_of([
        refused("clock_settime", 0, None),
        refused("settimeofday", None, None),
        refused("adjtimex", ctypes.create_string_buffer(256)),
    ])


@probe("kernel")
def messages_of_the_kernel():
    return refused("syslog", 10, None, 0)


@probe("kernel")
def hardware_ports():
    if not X86:
        raise Skip("only on x86_64")
    return all_of([
        refused("iopl", 0),
        refused("ioperm", 0, 0, 0),
        refused("modify_ldt", 0, ctypes.create_string_buffer(16), 16),
    ])


@probe("kernel")
def watching_all_files():
    return refused("fanotify_init", 0x200, 0)


@probe("kernel")
def memory_placement():
    return all_of([
        refused("get_mempolicy", None, None, 0, None, 0),
        refused("move_pages", 0, 0, None, None, None, 0),
    ])


@probe("kernel")
def memory_that_nobody_can_see():
    return refused("memfd_secret", 0)


@probe("kernel")
def another_personality():
    return in_child(lambda: int(call("personality", 0x40000)[0] >= 0)) == 0, "randomisation is off"


@probe("kernel")
def calls_of_another_architecture():
    if not X86:
        raise Skip("only on x86_64")

    def old_call():
        # mov eax, 20 (getpid of i386); int 0x80; ret
        code = mmap.mmap(-1, 4096, prot=7)
        code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        return int(ctypes.CFUNCTYPE(ctypes.c_int)(address)() == os.getpid())

    ended = in_child(old_call)
    return ended != 1, f"ended with {ended}"


@probe("kernel")
def calls_of_the_third_table():
    if not X86:
        raise Skip("only on x86_64")
    return refused(0x40000000 | 39)


@probe("kernel")
def calls_that_nobody_knows_yet():
    return all_of([refused(number) for number in (480, 600, 1000, 4095)])


@probe("kernel")
def arguments_that_no_filter_sees():
    how = ctypes.create_string_buffer(24)
    return refused("openat2", -100, b"/", how, 24)


# Powers.


def capabilities():
    header = ctypes.create_string_buffer(struct.pack("II", 0x20080522, 0))
    data = ctypes.create_string_buffer(24)
    result, number = call("capget", header, data)
    if result < 0:
        raise OSError(number, "capget")
    return header, data


@probe("powers")
def capabilities_held():
    return not any(capabilities()[1].raw), "some are held"


@probe("powers")
def capabilities_to_be_gained():
    bounding = [bit for bit in range(41) if libc.prctl(23, bit, 0, 0, 0) == 1]
    ambient = [bit for bit in range(41) if libc.prctl(47, 1, bit, 0, 0) == 1]
    header, _ = capabilities()
    everything = ctypes.create_string_buffer(struct.pack("6I", *[0xFFFFFFFF] * 6))
    raised = call("capset", header, everything)[0] == 0
    return not bounding and not ambient and not raised, f"{len(bounding)} in the bounding set"


@probe("powers")
def new_privileges_by_execution():
    return libc.prctl(39, 0, 0, 0, 0) == 1, "no_new_privs is not set"


@probe("powers")
def system_call_filter():
    return libc.prctl(21, 0, 0, 0, 0) == 2, "no filter"


@probe("powers")
def becoming_somebody_else():
    changed = []
    for name, change in {
        "setuid": lambda: libc.setuid(0),
        "setgid": lambda: libc.setgid(0),
        "setresuid": lambda: libc.setresuid(-1, 0, -1),
        "setgroups": lambda: libc.setgroups(0, None),
        "other user": lambda: libc.setuid(12345),
    }.items():
        if in_child(lambda: int(change() == 0)) == 1:
            changed.append(name)
    return none_of(changed, "worked")


@probe("powers")
def who_i_am_outside():
    with open("/proc/self/uid_map") as file:
        maps = [tuple(map(int, line.split())) for line in file]
    with open(os.path.join(WORK, ".probe-owner"), "w") as file:
        file.write("whose am I")
    everybody = any(count > 1 for _, _, count in maps)
    return not everybody and os.getuid() != 0, f"uid {os.getuid()}, map {maps}"


@probe("powers")
def set_user_id_files():
    path, made = os.path.join(WORK, ".probe-set-id"), []
    with open(path, "w"):
        pass
    for mode in (0o4755, 0o2755):
        try:
            os.chmod(path, mode)
            made.append(oct(mode))
        except OSError:
            pass
    os.unlink(path)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o4755))
        if os.stat(path).st_mode & 0o4000:
            made.append("open")
        os.unlink(path)
    except OSError:
        pass
    return none_of(made, "made")


@probe("powers")
def a_device_node():
    path, made = os.path.join(WORK, ".probe-node"), []
    for kind in (stat.S_IFBLK, stat.S_IFCHR):
        for device in (os.makedev(7, 77), os.makedev(0, 0)):
            try:
                os.mknod(path, 0o600 | kind, device)
                os.unlink(path)
                made.append((kind, device))
            except OSError:
                pass
    return none_of(made, "made")


@probe("powers")
def file_capabilities():
    path = os.path.join(WORK, ".probe-capable")
    with open(path, "w"):
        pass
    try:
        os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, 1 << 21, 0, 0, 0))
        return False, "set"
    except OSError as error:
        return True, name_of(error.errno)
    finally:
        os.unlink(path)


# Devices, /proc and /sys.


@probe("devices")
def devices():
    known = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd",
             "stdin", "stdout", "stderr"}
    return none_of(set(os.listdir("/dev")) - known, "more")


@probe("devices")
def typing_into_a_terminal():
    injected = []
    terminals = [0, 1, 2]
    try:
        terminals.append(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        pass
    # A terminal of our own: there it is allowed where no filter is.
    master, _ = os.openpty()
    for terminal in terminals + [master]:
        for request, argument in ((0x5412, b"\n"), (0x541C, b"\x06")):
            try:
                fcntl.ioctl(terminal, request, argument)
                injected.append((terminal, hex(request)))
            except OSError as error:
                # Reached the terminal's own code, so only luck refused it.
                if error.errno == errno.ENOTTY and os.isatty(terminal):
                    injected.append((terminal, hex(request)))
    return none_of(injected, "accepted")


@probe("proc")
def settings_of_the_kernel():
    names = ("kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "vm/overcommit_memory",
             "kernel/randomize_va_space", "net/ipv4/ip_forward", "fs/binfmt_misc/register",
             "kernel/panic", "user/max_user_namespaces", "kernel/ns_last_pid",
             "net/ipv4/ping_group_range", "kernel/domainname")
    return none_of([it for it in names if opens("/proc/sys/" + it, os.O_WRONLY)], "writable")


@probe("proc")
def secrets_of_the_kernel():
    seen = []
    for path in ("kcore", "kmsg", "keys", "timer_list", "kallsyms", "sched_debug", "kpagecount",
                 "kpageflags", "vmallocinfo", "slabinfo", "latency_stats", "iomem", "key-users"):
        try:
            descriptor = os.open("/proc/" + path, os.O_RDONLY | os.O_NONBLOCK)
            content = os.read(descriptor, 64)
            os.close(descriptor)
        except OSError:
            continue
        # Addresses that are all zero tell nothing; the count of our own keys neither.
        if content and path != "key-users" and not (path == "iomem" and content[:8] == b"00000000"):
            seen.append(path)
    if opens("/proc/sysrq-trigger", os.O_WRONLY):
        seen.append("sysrq-trigger")
    return none_of(seen, "readable")


@probe("proc")
def files_about_myself():
    names = ("oom_score_adj", "uid_map", "gid_map", "setgroups", "mem", "clear_refs", "comm",
             "coredump_filter", "attr/current", "sched", "autogroup")
    return none_of([it for it in names if opens("/proc/self/" + it, os.O_WRONLY)], "writable")


@probe("proc")
def controls_below_sys():
    found = []
    for root in ("/sys/kernel", "/sys/fs/cgroup", "/sys/power", "/sys/module", "/sys/class/net",
                 "/sys/fs/bpf", "/sys/kernel/debug", "/sys/kernel/tracing"):
        for directory, _, files in os.walk(root):
            names = {"uevent_helper", "release_agent", "cgroup.procs", "tasks", "memory.max", "state",
                     "memory.limit_in_bytes", "pids.max", "wake_lock"} & set(files)
            found += [os.path.join(directory, it) for it in names
                      if opens(os.path.join(directory, it), os.O_WRONLY)]
            if len(found) > 5:
                break
    return none_of(found, "writable")


# The directories that an exec is given, wherever its sandbox comes from.


def rooms():
    """Where they are; outside, copies that may be ruined."""
    if os.environ.get("PROBE_RESOLVE"):
        return "/workspace"
    base = os.path.join(WORK, ".probe-rooms")
    for name in ("work", "inputs", "artifacts"):
        os.makedirs(os.path.join(base, name), exist_ok=True)
    return base


@probe("rooms")
def other_directories_in_their_place():
    base, done = rooms(), []

    def attempt(what, change, undo):
        try:
            change()
            done.append(what)
            undo()
        except OSError:
            pass

    for name in ("work", "inputs", "artifacts"):
        path, away = os.path.join(base, name), os.path.join(base, "away")
        attempt(f"rename {name}", lambda: os.rename(path, away), lambda: os.rename(away, path))
        attempt(f"remove {name}", lambda: os.rmdir(path), lambda: os.mkdir(path))
    attempt("rename all", lambda: os.rename(base, base + "-away"), lambda: os.rename(base + "-away", base))
    made = os.path.join(base, "made")
    attempt("link beside", lambda: os.symlink("/etc", made), lambda: os.unlink(made))
    attempt("directory beside", lambda: os.mkdir(made), lambda: os.rmdir(made))
    attempt("open to all", lambda: os.chmod(base, 0o777), lambda: None)
    return none_of(done, "done")


@probe("rooms")
def taking_their_mounts_apart():
    bind, move, remount = 0x1000, 0x2000, 0x20
    results = []
    for name in ("work", "inputs", "artifacts"):
        path = os.path.join(rooms(), name).encode()
        # Nothing is mounted there outside, so these change nothing where they are allowed.
        results += [refused("umount2", path, flags) for flags in (0, 2, 4, 8)]
        results.append(refused("mount", b"none", path, b"", remount | bind, None))
        results.append(refused("mount", path, b"/absent", b"", bind, None))
        results.append(refused("mount", path, b"/absent", b"", move, None))
    return all_of(results)


@probe("rooms")
def mounts_of_another_exec():
    with open("/proc/self/mountinfo") as file:
        named = set(re.findall(r"\be_[0-9a-f]{32}\b", file.read()))
    return none_of(named - {os.environ.get("GLOVEBOX_EXEC_ID")}, "named")


@probe("rooms")
def files_of_another_exec():
    found = [os.path.join(place, it) for place in ("/tmp", "/var/tmp", "/dev/shm", "/home/sandbox")
             if os.path.isdir(place) for it in os.listdir(place)
             if not it.startswith((".bash", ".profile"))]
    return none_of(found, "left")


@probe("processes")
def ending_the_first_process():
    if os.environ.get("PROBE_RESOLVE"):
        given("FIRST")
        target = 1
    else:
        target = os.fork()
        if target == 0:
            time.sleep(5)
            os._exit(0)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        try:
            os.kill(target, number)
        except OSError:
            pass
    time.sleep(0.05)
    try:
        with open(f"/proc/{target}/stat") as file:
            state = file.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        # It is hidden. Had it ended, nobody would be here.
        return target == 1, "not to be seen"
    return state not in "TtZX", f"its state is {state}"


# What comes with the start.


@probe("start")
def inherited_descriptors():
    known = {0, 1, 2}
    return none_of({f"{it}: {INHERITED[it]}" for it in INHERITED if it not in known}, "open")


@probe("start")
def standard_streams():
    # A file, terminal or socket of the host's would be a way out; a pipe of our own is not.
    bad = [
        f"{it}: {target}"
        for it, target in INHERITED.items()
        if it <= 2 and not target.startswith("pipe:") and target != "/dev/null"
    ]
    return none_of(bad, "not a pipe")


@probe("start")
def a_secret_of_the_host():
    digest, seen = given("CANARY_DIGEST"), []

    def scan(text, where):
        for word in re.findall(rb"[A-Za-z0-9_-]{16,64}", text):
            if hashlib.sha256(word).hexdigest() == digest:
                seen.append(where)

    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("environ", "cmdline"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    scan(file.read(), f"{pid}/{name}")
            except OSError:
                pass
    return none_of(seen, "seen in")


@probe("start")
def the_environment():
    known = re.compile(r"PROBE_|TRIAL_TAG$|GLOVEBOX|(GIT_)?PAGER$|PIP_NO_INDEX$|UV_OFFLINE$|npm_config_offline$|PATH$|HOME$|LANG$|LC_|USER$|LOGNAME$|SHELL$|TMPDIR$|PWD$"
                       r"|TERM$|PYTHON|XDG_|TZ$|OLDPWD$|SHLVL$|_$|NO_COLOR$|CI$|EXEC")
    return none_of([it for it in os.environ if not known.match(it)], "more")


@probe("start")
def a_session_with_the_host():
    return os.getsid(0) != int(given("SESSION")) and os.getsid(0) != 0, f"session {os.getsid(0)}"


@probe("start")
def core_dumps():
    child = os.fork()
    if child == 0:
        os.chdir(WORK)
        os.abort()
    dumped = os.WCOREDUMP(os.waitpid(child, 0)[1])
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    files = glob.glob(os.path.join(WORK, "core*"))
    for path in files:
        os.unlink(path)
    return limits == (0, 0) and not dumped and not files, f"limits {limits}, dumped {dumped}"


@probe("start")
def system_five_memory_of_the_host():
    return libc.shmget(int(given("SHM")), 0, 0) < 0, "attached"


@probe("start")
def message_queues_of_the_host():
    queues = []
    for name in ("/proc/sysvipc/shm", "/proc/sysvipc/msg", "/proc/sysvipc/sem"):
        with open(name) as file:
            queues += file.readlines()[1:]
    return none_of(queues, "listed")


@probe("start")
def open_files_without_end():
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1] <= 8192, "no limit worth the name"


@probe("start")
def a_set_user_id_program():
    # Whatever runs here with somebody else's powers would do so for real on the host.
    for path in ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount"):
        if os.path.exists(path) and os.stat(path).st_mode & stat.S_ISUID:
            ended = subprocess.run([path, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            gained = os.access(path, os.X_OK) and not os.statvfs(path).f_flag & os.ST_NOSUID
            return not gained, f"{path} ended with {ended.returncode}"
    raise Skip("no set-user-id program here")


def snapshot():
    """What was open before this program opened anything itself."""
    found = {}
    directory = os.open("/proc/self/fd", os.O_RDONLY)
    for name in os.listdir(directory):
        if int(name) == directory:
            continue
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            pass
    os.close(directory)
    return {it: target for it, target in found.items() if not target.startswith("/proc/")}


def run(function, seconds=20):
    output, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(output)
        signal.alarm(seconds)
        try:
            held, seen = function()
            answer = ["held" if held else "crossed", seen]
        except Skip as reason:
            answer = ["skipped", str(reason)]
        except Exception as error:
            answer = ["skipped", f"{type(error).__name__}: {error}"]
        os.write(into, json.dumps(answer).encode()[:60000])
        os._exit(0)
    os.close(into)
    with os.fdopen(output, "rb") as pipe:
        text = pipe.read()
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if text:
        return json.loads(text)
    if ended == -signal.SIGSYS:
        return ["held", "killed by the filter"]
    return ["skipped", f"ended with {ended}"]


INHERITED = snapshot()


def main():
    for identity, kind, function in PROBES:
        began = time.monotonic()
        verdict, seen = run(function)
        took = int((time.monotonic() - began) * 1000)
        row = {"id": identity, "class": kind, "verdict": verdict, "detail": seen[:300], "ms": took}
        print(json.dumps(row), flush=True)


main()
