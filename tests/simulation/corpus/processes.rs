//! Programs that start others, in every way there is.

use support::Caller;

use super::{PLAIN, Program, all};

const SERVER: &str = "cat > server.py <<'END'
import os, socket
listener = socket.create_server(('127.0.0.1', 8099))
if os.fork():
    os.wait()
else:
    open('ready.tmp', 'w').close()
    os.rename('ready.tmp', 'ready')
    while True:
        peer, _ = listener.accept()
        peer.sendall(b'hello')
        peer.close()
END";

const PROCESSES: [Program; 17] = [
    Program { name: "pipeline", command: "seq 9 | sort -r | head -n 3 | tee top > /dev/null", ..PLAIN },
    Program { name: "through-env", command: "env -i A=b /usr/bin/env -u A sh -c 'exec /bin/echo done' > said", ..PLAIN },
    Program { name: "through-xargs", given: "seq 6 > list", command: "xargs -n 2 echo < list > pairs; xargs -P 2 -n 1 touch < list", ..PLAIN },
    Program { name: "scripts", given: "printf '#!/bin/sh\\necho a > a; exec ./b x y\\n' > s; printf '#!/usr/bin/env python3\\nopen(\"b.txt\", \"w\").write(\"b\")\\n' > b; \
        printf 'echo no first line > c\\n' > c.sh; chmod +x s b c.sh", command: "./s; ./c.sh", ..PLAIN },
    Program { name: "tries-that-fail", command: "nothing-of-this-name 2>/dev/null; /etc/passwd 2>/dev/null; \
        python3 -c '
import subprocess
for words in ([\"./not-there\"], [\"/etc/hostname\"], [\"true\"]):
    try: subprocess.run(words)
    except OSError: pass
'; echo end > end", ..PLAIN },
    Program { name: "background-children", command: "(sleep 0.2; echo one > one) & (echo two > two) & wait; nohup sh -c 'echo three > three' >/dev/null 2>&1 & wait", ..PLAIN },
    Program { name: "left-behind", command: "setsid sleep 2 & name=; until [ \"$name\" = sleep ]; do read name < /proc/$!/comm; done; echo x > x", ..PLAIN },
    Program { name: "server-that-is-killed", given: SERVER,
        command: "setsid python3 server.py & pid=$!; while [ ! -e ready ]; do :; done; \
            python3 -c 'import socket; open(\"said\", \"wb\").write(socket.create_connection((\"127.0.0.1\", 8099)).recv(9))'; kill -9 -$pid; rm ready", ..PLAIN },
    Program { name: "multiprocessing", given: "cat > m.py <<'END'
import multiprocessing, sys
def square(x):
    return x * x
if __name__ == '__main__':
    for method in ('fork', 'spawn'):
        with multiprocessing.get_context(method).Pool(2) as pool:
            open(method, 'w').write(str(pool.map(square, range(10))))
END", volatile: &["*.pyc"], command: "python3 m.py", ..PLAIN },
    Program { name: "two-hundred", command: "for i in $(seq 200); do /bin/true $i; done; echo x > x", ..PLAIN },
    Program { name: "many-at-once", command: "seq 64 | xargs -P 16 -n 1 /bin/true; seq 64 | xargs -P 16 -n 1 sh -c 'echo $0 > n$0'", ..PLAIN },
    Program { name: "long-arguments", command: "/bin/true $(seq 200); /bin/true \"$(seq 5000)\"; /bin/true ''; echo x > x", ..PLAIN },
    Program { name: "find-exec", given: "for i in 1 2 3; do echo $i > f$i; done", command: "find . -name 'f*' -exec sed -i s/^/x/ {} +; find . -name 'f*' -exec chmod 600 {} \\;", ..PLAIN },
    Program { name: "nested-shells", command: "sh -c 'sh -c \"sh -c \\\"echo deep > deep\\\"\"'", ..PLAIN },
    Program { name: "thread-that-executes", command: "python3 -c '
import os, threading
threading.Thread(target=lambda: os.execv(\"/bin/sh\", [\"sh\", \"-c\", \"echo thread > t\"])).start()
threading.Event().wait()
'", ..PLAIN },
    Program { name: "spawned", command: "python3 -c '
import os
for word in (\"a\", \"b\"):
    pid = os.posix_spawn(\"/bin/sh\", [\"odd name\", \"-c\", f\"echo {word} > {word}\"], os.environ)
    os.waitpid(pid, 0)
fd = os.open(\"/bin/true\", os.O_RDONLY)
if not os.fork():
    os.execve(\"/proc/self/fd/%d\" % fd, [\"through a descriptor\"], {})
os.wait()
'", ..PLAIN },
    Program { name: "killed", command: "for i in 1 2 3 4 5; do sh -c ': > started; while :; do :; done' & until [ -e started ]; do :; done; \
        kill -9 $!; wait $! 2>/dev/null; rm started; done; sh -c 'kill -9 $$'; echo x > x", ..PLAIN },
];

#[test]
fn every_program_that_is_started_is_told_once() {
    all(Caller::Root, &PROCESSES);
}

#[test]
fn every_program_that_an_ordinary_user_starts_is_told_once() {
    let some = [
        "pipeline",
        "through-env",
        "scripts",
        "tries-that-fail",
        "multiprocessing",
        "many-at-once",
        "spawned",
    ];
    let chosen: Vec<Program> = PROCESSES
        .into_iter()
        .filter(|it| some.contains(&it.name))
        .collect();
    assert_eq!(chosen.len(), some.len());
    all(Caller::User, &chosen);
}
