"""What a program can see of itself and its sandbox, in a form that compares."""
import json, os, resource

PLACES = ("/", "/workspace", "/workspace/work", "/workspace/inputs", "/workspace/artifacts", "/tmp",
          "/home/sandbox", "/etc", "/usr")
seen = {}


def answer(act):
    try:
        act()
        return "ok"
    except OSError as error:
        return error.strerror


def touch(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    os.unlink(path)


def execute():
    path = "/workspace/work/.seen"
    with open(path, "w") as file:
        file.write("#!/bin/sh\nexit 0\n")
    os.chmod(path, 0o755)
    if os.spawnv(os.P_WAIT, path, ["x"]):
        raise OSError(1, "not executed")
    os.unlink(path)


descriptors = {}
for it in os.listdir("/proc/self/fd"):
    try:
        descriptors[it] = os.readlink(f"/proc/self/fd/{it}").split(":")[0]
    except OSError:
        # The one that the list itself was read with.
        pass
seen["descriptors"] = descriptors
with open("/proc/self/mountinfo") as file:
    seen["mounts"] = sorted(
        [line.split()[4], line.split()[5], line.split(" - ")[1].split()[0]] for line in file
    )
seen["limits"] = {
    it: resource.getrlimit(getattr(resource, it)) for it in dir(resource) if it.startswith("RLIMIT_")
}
with open("/proc/self/status") as file:
    status = dict(line.strip().split(":", 1) for line in file)
# Python itself handles and ignores some.
seen["status"] = {
    it: status[it]
    for it in status
    if it.startswith(("Cap", "Sig", "Shd", "NoNew", "Seccomp", "Uid", "Gid", "Groups", "Umask", "Spec"))
    and it not in ("SigQ", "SigCgt", "SigIgn")
}
seen["environment"] = sorted(set(os.environ) - {"GLOVEBOX_EXEC_ID"})
seen["places"] = {
    it: [oct(os.stat(it).st_mode), os.stat(it).st_uid, os.stat(it).st_gid] for it in PLACES
}
seen["lists"] = {
    it: sorted(os.listdir(it))
    for it in ("/", "/dev", "/etc", "/workspace", "/tmp", "/home/sandbox", "/dev/shm", "/run")
    if os.path.isdir(it)
}
seen["directory"], seen["leads"] = os.getcwd(), os.getsid(0) == os.getpid()
seen["processes"] = len([it for it in os.listdir("/proc") if it.isdigit()])
seen["writes"] = {it: answer(lambda: touch(it + "/.seen")) for it in PLACES}
seen["execution"] = answer(execute)
print(json.dumps(seen))
