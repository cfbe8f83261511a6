"""Tries to outlive its exec in a sandbox that is kept, and to reach into the next: processes that
ignore, stop and multiply, directories held open, signals to the first process, sockets with
descriptors on their way."""
import array, os, signal, socket, sys, time

held = os.open("/workspace/artifacts", os.O_RDONLY)
late = os.open("/workspace/artifacts/early", os.O_CREAT | os.O_RDWR, 0o644)
os.chdir("/workspace/artifacts")


def stubborn():
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass


def write_on():
    while True:
        try:
            os.close(os.open("late", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=held))
            os.write(late, b"late")
            with open("/workspace/work/beat", "a") as file:
                file.write("x")
        except OSError:
            pass
        time.sleep(0.01)


def chain():
    """Never the same process for long."""
    while True:
        try:
            if os.fork() > 0:
                os._exit(0)
            os.setsid()
        except OSError:
            pass


def stopped():
    os.kill(os.getpid(), signal.SIGSTOP)
    write_on()


def listening():
    first, second = socket.socketpair()
    first.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [held, late]))])
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0left-behind")
    abstract.listen()
    path = socket.socket(socket.AF_UNIX)
    path.bind("/tmp/left-behind")
    path.listen()
    write_on()


for act in (write_on, chain, chain, stopped, listening):
    for _ in range(3):
        try:
            if os.fork() == 0:
                stubborn()
                os.setsid()
                act()
                os._exit(0)
        except OSError:
            pass

for number in range(1, 65):
    try:
        os.kill(1, number)
    except OSError:
        pass
for name in ("work", "inputs", "artifacts"):
    for attempt in (
        lambda: os.rename(f"/workspace/{name}", "/workspace/away"),
        lambda: os.rmdir(f"/workspace/{name}"),
        lambda: os.symlink("/etc", f"/workspace/{name}/../{name}"),
    ):
        try:
            attempt()
        except OSError:
            pass
deadline = time.monotonic() + 40
while not os.path.exists("/workspace/work/beat") and time.monotonic() < deadline:
    time.sleep(0.01)
if sys.argv[1:] == ["stay"]:
    stubborn()
    time.sleep(60)
os._exit(0)
