"""Things on the host that a sandbox must not reach, and how often each was reached.

Says one line of JSON when everything stands; each line on stdin is answered with the counts.
"""
import ctypes, json, os, signal, socket, sys, threading

place = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
counts = {"signals": 0, "tcp": 0, "udp": 0, "abstract": 0, "path": 0}


def signaled(*_):
    counts["signals"] += 1


def accept(server, name):
    while True:
        connection, _ = server.accept()
        counts[name] += 1
        with connection:
            try:
                connection.sendall(b"SBX HOST")
            except OSError:
                pass


def receive(server):
    while True:
        server.recv(2048)
        counts["udp"] += 1


def listen(family, address, name):
    server = socket.socket(family)
    server.bind(address)
    server.listen(16)
    threading.Thread(target=accept, args=(server, name), daemon=True).start()
    return server.getsockname()


def datagrams():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        server.bind(("127.0.0.1", 53))
    except OSError:
        server.bind(("127.0.0.1", 0))
    threading.Thread(target=receive, args=(server,), daemon=True).start()
    return server.getsockname()[1]


def shared_memory():
    key = int.from_bytes(os.urandom(3), "big") | 0x40000000
    identity = libc.shmget(key, 4096, 0o1000 | 0o666)
    if identity < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    return key, identity


signal.signal(signal.SIGUSR1, signaled)
abstract = "glovebox-host-" + os.urandom(8).hex()
path = os.path.join(place, "host.sock")
listen(socket.AF_UNIX, "\0" + abstract, "abstract")
listen(socket.AF_UNIX, path, "path")
os.chmod(path, 0o777)
key, identity = shared_memory()
try:
    print(
        json.dumps(
            {
                "pid": os.getpid(),
                "tcp": listen(socket.AF_INET, ("127.0.0.1", 0), "tcp")[1],
                "udp": datagrams(),
                "abstract": abstract,
                "path": path,
                "shm": key,
            }
        ),
        flush=True,
    )
    for _ in sys.stdin:
        print(json.dumps(counts), flush=True)
finally:
    libc.shmctl(identity, 0, None)
