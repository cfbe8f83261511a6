"""Leaves a canary in every place it can and looks for those of others. What it found is printed."""
import ctypes, json, os, re, socket, subprocess, sys

scope, number, workspace_is_shared = sys.argv[1], sys.argv[2], sys.argv[3] == "kept"
# In two parts, so that this text is no canary itself.
mark = b"CNR" + b"Y"
mine = mark + f"-{scope}-{number}-".encode()
pattern = re.compile(mark + rb"-([a-z0-9]+)-([0-9]+)-")
libc = ctypes.CDLL(None, use_errno=True)
found = set()


def scan(where, text, own_files=False):
    for other, count in pattern.findall(text):
        if other.decode() != scope:
            found.add(f"{where}: of {other.decode()}")
        elif count.decode() != number and not own_files:
            found.add(f"{where}: of exec {count.decode()}")


def files(place, own_files):
    for directory, names, listed in os.walk(place):
        scan(f"name in {directory}", "\n".join(names + listed).encode(), own_files)
        for name in listed:
            try:
                with open(os.path.join(directory, name), "rb") as file:
                    scan(os.path.join(directory, name), file.read(1 << 20), own_files)
            except OSError:
                pass


def memory():
    try:
        source = open("/proc/self/mem", "rb", buffering=0)
    except OSError:
        return
    with open("/proc/self/maps") as maps:
        lines = maps.readlines()
    for line in lines:
        bounds, powers, *_ = line.split()
        start, end = (int(it, 16) for it in bounds.split("-"))
        if powers[0] != "r" or end - start > 64 << 20:
            continue
        try:
            source.seek(start)
            # What this program read itself is not news; it is looked at before anything is read.
            scan("memory", source.read(end - start))
        except (OSError, ValueError, OverflowError):
            pass
    source.close()


memory()
for place in ("/workspace/inputs", "/workspace/artifacts"):
    files(place, False)
files("/workspace/work", True)
for place in ("/tmp", "/var/tmp", "/dev/shm", "/home/sandbox", "/run", "/etc"):
    files(place, workspace_is_shared)
scan("environment", "\n".join(f"{key}={value}" for key, value in os.environ.items()).encode())
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline", "comm", "mountinfo"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                scan(f"/proc/{pid}/{name}", file.read())
        except OSError:
            pass
for name in ("/proc/net/unix", "/proc/sysvipc/shm", "/proc/mounts"):
    try:
        with open(name, "rb") as file:
            scan(name, file.read())
    except OSError:
        pass
keys = {it: 0x5000 + it for it in range(16)}
libc.shmat.restype = ctypes.c_void_p
for key in keys.values():
    segment = libc.shmget(key, 0, 0)
    if segment >= 0:
        address = libc.shmat(segment, None, 0)
        if address not in (None, ctypes.c_void_p(-1).value):
            scan("shared memory", ctypes.string_at(address, 4096), workspace_is_shared)

# Now the own ones.
left = []
for place in ("/workspace/work", "/workspace/artifacts", "/tmp", "/var/tmp", "/dev/shm", "/home/sandbox"):
    try:
        with open(os.path.join(place, mine.decode() + "file"), "wb") as file:
            file.write(mine + b"content")
        left.append(place)
    except OSError:
        pass
segment = libc.shmget(keys[int(number) % 16], 4096, 0o1666)
if segment >= 0:
    address = libc.shmat(segment, None, 0)
    if address not in (None, ctypes.c_void_p(-1).value):
        ctypes.memmove(address, mine + b"shared", len(mine) + 6)
listener = socket.socket(socket.AF_UNIX)
listener.bind(b"\0" + mine + b"socket")
libc.prctl(15, b"CNR" + b"Y-" + number.encode(), 0, 0, 0)
kept = [mine + b"memory" + bytes(4096) for _ in range(64)]
os.environ["LEFT"] = mine.decode() + "variable"
for _ in range(2):
    subprocess.Popen(["sleep", "30"], env={"LEFT": mine.decode()}, start_new_session=True,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, executable="/bin/sleep")
print(json.dumps({"found": sorted(found), "left": len(left)}))
