"""Puts a key into the kernel's keyring of a user whom nobody else is, and keeps a secret with it.

usage: keyring.py BINARY SYS_ADD_KEY SYS_KEYCTL"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile

USER, UNLINK, USER_KEYRING = 60_000 + os.getpid() % 5_000, 9, -4
VALUE = b"ghp_Zk3vXq81LmNc02QpRt"
binary, add_key, keyctl = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
system = ctypes.CDLL(None, use_errno=True).syscall

os.setgid(USER)
os.setuid(USER)
with tempfile.TemporaryDirectory() as home:
    state = os.path.join(home, "state")
    variables = {"PATH": "/usr/bin:/bin", "HOME": home, "GLOVEBOX_STATE_DIR": state}

    def secret_set():
        words = [binary, "secret", "set", "github", "--json"]
        return subprocess.run(words, input=VALUE, env=variables, capture_output=True)

    key = b"ab" * 32
    serial = system(add_key, b"user", b"glovebox:secrets", key, len(key), USER_KEYRING)
    if serial < 0:
        print("SKIPPED: no keyring here,", os.strerror(ctypes.get_errno()))
        sys.exit(0)
    for _ in range(2):
        done = secret_set()
        assert done.returncode == 0, done
        assert json.loads(done.stdout)["version"] == 1, done
    assert "secrets.key" not in os.listdir(state), os.listdir(state)
    assert system(keyctl, UNLINK, serial, USER_KEYRING) == 0
    lost = secret_set()
    assert lost.returncode != 0 and b"sealed with the key" in lost.stderr, lost
    assert "secrets.key" not in os.listdir(state), os.listdir(state)
print("done")
