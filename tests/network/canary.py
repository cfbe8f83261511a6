"""Tries everything to get a secret out: prints it in every form, names files by it, dies with it."""
import base64, glob, json, os, resource, subprocess, sys, urllib.parse

delivery, url = sys.argv[1], sys.argv[2]
given = os.environ["CANARY"]


def fetched():
    said = subprocess.run(["curl", "-sS", "--max-time", "20", "-H", f"Authorization: Bearer {given}", url],
                          capture_output=True).stdout
    print("answered", said.decode(errors="replace"), flush=True)
    found = [line.split()[-1] for line in said.splitlines() if line.lower().startswith(b"authorization")]
    return found[0]


value = {"file": lambda: open(given, "rb").read(), "descriptor": lambda: open(int(given), "rb").read(),
         "env": lambda: given.encode(), "broker": fetched}[delivery]()

artifacts = "/workspace/artifacts"
text = value.decode()
forms = {
    "raw": value,
    "base64": base64.b64encode(value),
    "base64 at one": base64.b64encode(b"a" + value + b"z"),
    "base64 at two": base64.b64encode(b"ab" + value + b"yz"),
    "base64 for addresses": base64.urlsafe_b64encode(value),
    "hex": value.hex().encode(),
    "HEX": value.hex().upper().encode(),
    "reversed": value[::-1],
    "quoted": urllib.parse.quote(text, safe="").encode(),
    "json": json.dumps(text).encode(),
    "utf-16": text.encode("utf-16le"),
}
for name, form in forms.items():
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        stream.buffer.write(name.encode() + b" " + form + b"\n")
        stream.flush()
    with open(f"{artifacts}/{name.replace(' ', '-')}.bin", "wb") as file:
        file.write(b"before " + form + b" after\n")
# Byte by byte, on both streams in turn.
for at in range(len(value)):
    os.write(1, value[at:at + 1])
    os.write(2, value[at:at + 1])
print(flush=True)

# Whatever the system shows of it.
for path in sorted(glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline")
                   + glob.glob("/run/secrets/*") + glob.glob("/proc/self/fd/*")):
    try:
        if os.path.isfile(os.path.realpath(path)) or path.startswith("/proc/") and "/fd/" not in path:
            with open(path, "rb") as file:
                print(path, file.read(1 << 16), flush=True)
    except OSError as error:
        print(path, error, flush=True)
print(dict(os.environ), flush=True)
subprocess.run(["/bin/echo", "argument", text])
subprocess.run(["/bin/sh", "-c", f"exec /nowhere/{text}"])
subprocess.run(["/bin/sh", "-c", "set -x; x=$0; export x; env", text])

# Names.
for name in (text, f"{text}.txt", forms["hex"].decode()):
    with open(f"{artifacts}/{name}", "w") as file:
        file.write("named\n")
os.mkdir(f"{artifacts}/d-{text}")
with open(f"{artifacts}/d-{text}/file", "w") as file:
    file.write("in a named directory\n")
os.symlink(text, f"{artifacts}/link")
with open(f"{artifacts}/attributed", "w") as file:
    file.write("with an attribute\n")
for set_it in (lambda: os.setxattr(f"{artifacts}/attributed", "user.note", value),
               lambda: os.setxattr(f"{artifacts}/attributed", "user." + text, b"x"),
               lambda: os.setxattr(artifacts, "user.note", value)):
    try:
        set_it()
        print("set an attribute", flush=True)
    except OSError as error:
        print(error, flush=True)

# A core, where one may be written.
os.chdir(artifacts)
try:
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
except (OSError, ValueError):
    pass
if os.fork() == 0:
    os.abort()
os.wait()
open(f"/nowhere/{text}")
