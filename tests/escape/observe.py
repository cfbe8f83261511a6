"""Looks at everything a removed hardening step would change, and prints what it saw as JSON.

Observations are what calls answer, never what /proc says about this process's own confinement. All
are harmless where they succeed, because in a sandbox with a step missing some do.
"""
import ctypes, errno, fcntl, json, mmap, os, resource, signal, socket, stat, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
SHM, MEMORY = int(sys.argv[1]), int(sys.argv[2])
seen = {}

# x86_64, aarch64.
CALLS = {
    "adjtimex": (159, 171), "bpf": (321, 280), "capget": (125, 90), "clone": (56, 220),
    "delete_module": (176, 106), "fallocate": (285, 47), "fanotify_init": (300, 262),
    "get_mempolicy": (239, 236), "get_robust_list": (274, 100), "io_uring_setup": (425, 425),
    "keyctl": (250, 219), "memfd_secret": (447, 447),
    "modify_ldt": (154, None), "name_to_handle_at": (303, 264), "openat2": (437, 437), "perf_event_open": (298, 241),
    "personality": (135, 92), "prlimit64": (302, 261), "ptrace": (101, 117), "reboot": (169, 142), "swapoff": (168, 225),
    "syslog": (103, 116), "umount2": (166, 39), "unshare": (272, 97), "userfaultfd": (323, 282),
}


def call(name, *arguments):
    number = name if isinstance(name, int) else CALLS[name][0 if os.uname().machine == "x86_64" else 1]
    if number is None:
        return "absent"
    ctypes.set_errno(0)
    words = [ctypes.c_long(it) if isinstance(it, int) else it for it in arguments]
    result = libc.syscall(ctypes.c_long(number), *words)
    return "done" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")


def answer(function):
    try:
        return function()
    except OSError as error:
        return errno.errorcode.get(error.errno, "?")
    except Exception as error:
        return type(error).__name__


def apart(function):
    """In a child, for calls that change the caller or may be answered with a signal."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(7 if function() == "done" else 8)
        finally:
            os._exit(9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def clone():
    child = libc.syscall(ctypes.c_long(CALLS["clone"][0]), ctypes.c_long(0x10000000 | 17), 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    if child > 0:
        os.waitpid(child, 0)
        return "done"
    return errno.errorcode.get(ctypes.get_errno(), "?")


def old_call():
    code = mmap.mmap(-1, 4096, prot=7)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    return "done" if ctypes.CFUNCTYPE(ctypes.c_int)(address)() == os.getpid() else "else"


def node():
    os.mknod("/tmp/node", 0o600 | stat.S_IFCHR, os.makedev(0, 0))
    os.unlink("/tmp/node")
    return "made"


def set_id():
    with open("/tmp/set-id", "w"):
        pass
    try:
        os.chmod("/tmp/set-id", 0o4755)
        return "set"
    finally:
        os.unlink("/tmp/set-id")


def family(number, kind, protocol=0):
    socket.socket(number, kind, protocol).close()
    return "made"


def loopback():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        with socket.create_connection(server.getsockname(), 20):
            return "connected"


def terminal():
    reader, _ = os.pipe()
    fcntl.ioctl(reader, 0x5412, b"\n")


def space(path):
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        return call("fallocate", file, 0, 0, 4096)
    finally:
        os.close(file)
        os.unlink(path)


def opened(path, flags):
    os.close(os.open(path, flags))
    return "opened"


def forks():
    """How many children at once; never more than a host shrugs off."""
    children = []
    try:
        while len(children) < 60:
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            children.append(child)
    except OSError:
        pass
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return len(children)


def grow():
    block = mmap.mmap(-1, MEMORY)
    for offset in range(0, MEMORY, 4096):
        block[offset] = 1
    return "done"


for place in ("/", "/usr", "/etc", "/proc", "/tmp", "/var/tmp", "/dev/shm", "/home/sandbox", "/dev/pts",
              "/workspace/work", "/workspace/inputs", "/workspace/artifacts", "/dev/null",
              "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"):
    seen[f"flags {place}"] = answer(lambda: os.statvfs(place).f_flag)
    seen[f"there {place}"] = os.path.lexists(place)
for place in ("/tmp", "/dev/shm"):
    seen[f"space {place}"] = answer(lambda: (os.statvfs(place).f_blocks, os.statvfs(place).f_files))
seen["root"] = sorted(os.listdir("/"))
seen["above the root"] = sorted(os.listdir("/.."))
seen["devices"] = answer(lambda: sorted(os.listdir("/dev")))
seen["first process"] = "1" in os.listdir("/proc") if os.path.isdir("/proc") else None
for path in ("/proc/keys", "/proc/kallsyms"):
    seen[path] = answer(lambda: len(open(path, "rb").read(64)))
    seen[f"{path} is a device"] = answer(lambda: stat.S_ISCHR(os.stat(path).st_mode))
seen["group"] = answer(lambda: sorted({it.rstrip().split(":", 2)[2] for it in open("/proc/self/cgroup")}))
seen["owner of /usr"] = answer(lambda: os.stat("/usr").st_uid)
seen["ids"] = (os.getuid(), os.getgid(), os.getgroups())
seen["name"] = os.uname().nodename
seen["processors"] = len(os.sched_getaffinity(0))
seen["interfaces"] = sorted(name for _, name in socket.if_nameindex())
seen["loopback"] = answer(loopback)
seen["shared memory"] = libc.shmget(SHM, 0, 0) >= 0
seen["own file of /proc"] = answer(lambda: opened("/proc/self/oom_score_adj", os.O_WRONLY))
seen["session"] = os.getsid(0) == os.getpid()
seen["mask"] = os.umask(0o777)
seen["blocked"] = sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, [])))
seen["ignored"] = [n for n in (1, 2, 3, 15) if signal.getsignal(n) is signal.SIG_IGN]
seen["descriptors"] = [n for n in range(3, 256) if not answer(lambda: os.fstat(n)) == "EBADF"]
for name in ("CORE", "NOFILE", "FSIZE", "CPU", "NPROC", "DATA", "MEMLOCK", "MSGQUEUE", "RTPRIO"):
    seen[f"limit {name}"] = resource.getrlimit(getattr(resource, "RLIMIT_" + name, 12))
seen["bounding set"] = [bit for bit in range(41) if libc.prctl(23, bit, 0, 0, 0) == 1]
seen["no new privileges"] = libc.prctl(39, 0, 0, 0, 0)
os.umask(0o022)

head, size = ctypes.c_void_p(), ctypes.c_size_t()
seen["robust list of pid 1"] = call("get_robust_list", 1, ctypes.byref(head), ctypes.byref(size))
capabilities = ctypes.create_string_buffer(24)
call("capget", ctypes.create_string_buffer(struct.pack("II", 0x20080522, 0)), capabilities)
seen["capabilities"] = capabilities.raw.hex()

seen["adjtimex"] = call("adjtimex", ctypes.create_string_buffer(256))
seen["bpf"] = call("bpf", 0, None, 0)
seen["clone"] = clone()
seen["delete_module"] = call("delete_module", b"glovebox_absent", 0)
seen["fallocate"] = answer(lambda: space("/workspace/work/.observe"))
seen["fanotify_init"] = call("fanotify_init", 0x200, 0)
seen["get_mempolicy"] = call("get_mempolicy", None, None, 0, None, 0)
seen["io_uring_setup"] = call("io_uring_setup", 1, None)
seen["keyctl"] = call("keyctl", 0, -3, 0)
seen["memfd_secret"] = call("memfd_secret", 0)
seen["modify_ldt"] = call("modify_ldt", 0, ctypes.create_string_buffer(16), 16)
seen["name_to_handle_at"] = call("name_to_handle_at", -100, b"/", None, None, 0)
seen["netlink"] = answer(lambda: family(socket.AF_NETLINK, socket.SOCK_RAW, 15))
seen["node"] = answer(node)
seen["old call"] = apart(old_call)
seen["openat2"] = call("openat2", -100, b"/", ctypes.create_string_buffer(24), 24)
seen["packets"] = answer(lambda: family(17, socket.SOCK_RAW))
seen["perf_event_open"] = call("perf_event_open", None, 0, -1, -1, 0)
seen["personality"] = apart(lambda: call("personality", 0x40000))
seen["ptrace"] = apart(lambda: call("ptrace", 0, 0, 0, 0))
seen["reboot"] = call("reboot", 0, 0, 0, 0)
seen["set id"] = answer(set_id)
seen["swapoff"] = call("swapoff", b"/absent")
seen["syslog"] = call("syslog", 10, None, 0)
seen["terminal"] = answer(terminal)
seen["third table"] = call(0x40000000 | 39)
seen["umount2"] = call("umount2", b"/absent", 0)
seen["unknown call"] = call(600)
seen["unshare"] = call("unshare", 0)
# Asks only: nothing is set, whoever answers.
seen["limits of pid 1"] = call("prlimit64", 1, 7, 0, 0)
seen["userfaultfd"] = call("userfaultfd", 1)

seen["forks"] = forks()
if MEMORY:
    seen["memory"] = apart(grow)
print(json.dumps(seen, sort_keys=True))
