"""Holds copies of another process's sockets, so that their far ends never see an end."""
import ctypes, json, os, sys

libc = ctypes.CDLL(None, use_errno=True)
PIDFD_GETFD = 438
pid = int(sys.argv[1])
process = os.pidfd_open(pid)
held = []
for name in os.listdir(f"/proc/{pid}/fd"):
    if os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
        held.append(libc.syscall(PIDFD_GETFD, process, int(name), 0))
print(json.dumps({"held": len([it for it in held if it >= 0])}), flush=True)
sys.stdin.read()
