//! Programs that do one thing to files each, and the odd ones.

use support::Caller;

use super::{PLAIN, Program, all};

const TREE: &str = "mkdir -p tree/a/b tree/c; for i in 1 2 3; do echo $i > tree/f$i; echo $i > tree/a/f$i; \
                    echo $i > tree/a/b/f$i; done; ln -s f1 tree/l; : > tree/c/empty; chmod 700 tree/c";

const FILES: [Program; 38] = [
    Program {
        name: "create",
        command: "echo hi > new; mkdir -p a/b; echo x > a/b/c; : > empty",
        ..PLAIN
    },
    Program {
        name: "append",
        given: "echo one > log",
        command: "echo two >> log",
        ..PLAIN
    },
    Program {
        name: "overwrite-with-the-same",
        given: "echo one > f; echo one > g; touch -d 2001-01-01 f g",
        command: "echo one > f; : >> g",
        ..PLAIN
    },
    Program {
        name: "sed-in-place",
        given: "printf 'a\\nb\\n' > f1; printf 'a\\n' > f2; echo z > f3; chmod 640 f1",
        command: "sed -i s/a/b/ f1 f2",
        ..PLAIN
    },
    Program {
        name: "truncate",
        given: "seq 100 > f; seq 100 > g; seq 5 > h",
        command: "truncate -s 3 f; truncate -s 0 g; truncate -s +9 h",
        ..PLAIN
    },
    Program {
        name: "large-file",
        command: "head -c 33554432 /dev/zero | tr '\\0' x > big",
        ..PLAIN
    },
    Program {
        name: "sparse-file",
        command: "truncate -s 5M s; printf middle | dd of=s bs=1 seek=3145728 conv=notrunc 2>/dev/null",
        ..PLAIN
    },
    Program {
        name: "remove-files",
        given: "touch a b c; ln -s a l",
        command: "rm a l; unlink b",
        ..PLAIN
    },
    Program {
        name: "remove-tree",
        given: TREE,
        command: "rm -rf tree",
        ..PLAIN
    },
    Program {
        name: "empty-tree",
        given: TREE,
        command: "rm -rf tree/* tree/a; rmdir tree",
        ..PLAIN
    },
    Program {
        name: "find-delete",
        given: TREE,
        command: "find tree -name f2 -delete",
        ..PLAIN
    },
    Program {
        name: "remake-directory",
        given: "mkdir d; echo old > d/old; echo same > d/kept; mkdir d/sub; echo x > d/sub/x",
        command: "rm -rf d; mkdir d; echo new > d/new; echo same > d/kept",
        ..PLAIN
    },
    Program {
        name: "remake-inside-remade",
        given: "mkdir -p d/e/f; echo 1 > d/e/f/x; echo 2 > d/e/y",
        command: "rm -rf d; mkdir -p d/e; echo z > d/e/z",
        ..PLAIN
    },
    Program {
        name: "swap-kinds",
        given: "mkdir d; echo x > d/x; echo f > f; ln -s f l",
        command: "rm -r d; echo now > d; rm f; mkdir f; echo x > f/x; rm l; echo file > l",
        ..PLAIN
    },
    Program {
        name: "editor-save",
        given: "for i in 1 2 3; do echo text $i > f$i; done; chmod 600 f2",
        command: "for f in f1 f2 f3; do sed s/text/word/ $f > $f.tmp; mv $f.tmp $f; done",
        ..PLAIN
    },
    Program {
        name: "editor-backup",
        given: "echo text > f",
        command: "mv f f~; echo more > f; cat f~ >> f",
        ..PLAIN
    },
    Program {
        name: "move-files",
        given: "echo a > a; echo b > b; mkdir d; echo c > d/c; echo o > over",
        command: "mv a z; mv b d/; mv d/c over",
        ..PLAIN
    },
    Program {
        name: "move-directory",
        given: TREE,
        command: "mv tree moved",
        ..PLAIN
    },
    Program {
        name: "move-over-directory",
        given: "mkdir one two; echo x > one/x",
        command: "mv -T one two",
        ..PLAIN
    },
    Program {
        name: "copy-tree",
        given: TREE,
        command: "cp -a tree copy",
        ..PLAIN
    },
    Program {
        name: "hard-links",
        given: "echo a > a; mkdir d",
        command: "ln a b; ln a d/c; echo n > n; ln n m",
        ..PLAIN
    },
    Program {
        name: "symbolic-links",
        given: "mkdir d e; echo f > f; ln -s d old; ln -s f to; ln -s gone dangling; ln -s f same",
        command: "ln -s /etc/passwd out; ln -s nowhere new; ln -sfn e old; rm to; ln -s d to; rm dangling; echo real > dangling; \
                  ln -sf f same; ln -s ../.. up; ln -s d/./x through",
        ..PLAIN
    },
    Program {
        name: "write-through-links",
        given: "mkdir d; echo f > d/f; ln -s d way; ln -s d/f file",
        command: "echo more >> file; echo new > way/new; rm way/f",
        ..PLAIN
    },
    Program {
        name: "modes",
        given: "touch a b; mkdir d e; chmod 600 b",
        command: "chmod 755 a; chmod 644 b; chmod 777 d; chmod 700 e; chmod 700 e",
        ..PLAIN
    },
    Program {
        name: "the-workspace-itself",
        given: "touch a",
        command: "chmod 750 .; touch b",
        special: true,
        ..PLAIN
    },
    Program {
        name: "times",
        given: "echo a > a; echo b > b; echo c > c; mkdir d",
        command: "touch -d 2001-01-01 a; touch b new; touch -c d; cat c > /dev/null",
        ..PLAIN
    },
    Program {
        name: "masks",
        command: "umask 077; echo a > a; mkdir d; (umask 0; echo b > d/b)",
        ..PLAIN
    },
    Program {
        name: "nothing-in-the-end",
        given: "echo f > f; mkdir d; echo x > d/x",
        command: "echo t > t; mkdir -p n/m; echo y > n/m/y; rm -r t n; cp -p f g; mv g f; ln -s f l; rm l; mkdir d/z; rmdir d/z",
        ..PLAIN
    },
    Program {
        name: "odd-names",
        given: "printf x > \"$(printf 'old\\nline')\"",
        command: "printf 1 > \"$(printf 'new\\nline')\"; printf 2 > \"$(printf 'not utf-8 \\377')\"; printf 3 > '  spaces  '; \
                  printf 4 > ./-rf; printf 5 > '*'; mkdir \"$(printf '\\376dir')\"; printf 6 > \"$(printf '\\376dir')/in\"; \
                  rm \"$(printf 'old\\nline')\"",
        ..PLAIN
    },
    Program {
        name: "deep-tree",
        command: "p=.; for i in $(seq 60); do p=$p/level$i; done; mkdir -p $p; echo x > $p/x",
        ..PLAIN
    },
    Program {
        name: "a-thousand-files",
        given: "mkdir old; for i in $(seq 500); do echo $i > old/$i; done",
        command: "mkdir new; for i in $(seq 1000); do echo $i > new/$i; done; for i in $(seq 1 2 500); do echo more >> old/$i; done",
        ..PLAIN
    },
    Program {
        name: "fails-half-way",
        given: "echo keep > keep",
        command: "echo one > one; rm keep; sh -c 'exit 4' || exit 3; echo never > two",
        ..PLAIN
    },
    Program {
        name: "writes-outside",
        given: "echo in > in",
        command: "echo x > /etc/glovebox-test; rm -f /usr/bin/env; mkdir /usr/glovebox-test; mv in /opt-x; echo in >> in; exit 0",
        attempts: &[
            "/etc/glovebox-test",
            "/usr/bin/env",
            "/usr/glovebox-test",
            "/opt-x",
        ],
        ..PLAIN
    },
    Program {
        name: "memory-maps",
        given: "head -c 8192 /dev/zero > m",
        command: "python3 -c '
import mmap
with open(\"m\", \"r+b\") as file, mmap.mmap(file.fileno(), 0) as it:
    it[4000:4005] = b\"hello\"
    it.flush()
'",
        ..PLAIN
    },
    Program {
        name: "unnamed-file",
        command: "python3 -c '
import os
fd = os.open(\".\", os.O_TMPFILE | os.O_WRONLY, 0o640)
os.write(fd, b\"unnamed\")
os.link(f\"/proc/self/fd/{fd}\", \"named\", follow_symlinks=True)
'",
        ..PLAIN
    },
    Program {
        name: "exchange",
        given: "echo a > a; echo b > b; ln -s a l",
        command: "python3 -c '
import ctypes, os
def exchange(one, other):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, one, -100, other, 2):
        raise OSError(ctypes.get_errno(), \"renameat2\")
exchange(b\"a\", b\"b\")
exchange(b\"b\", b\"l\")
'",
        ..PLAIN
    },
    Program {
        name: "attributes",
        given: "echo a > a; echo b > b; mkdir d",
        command: "python3 -c '
import os
os.setxattr(\"a\", \"user.note\", b\"one\")
os.setxattr(\"d\", \"user.note\", b\"two\")
'",
        ..PLAIN
    },
    Program {
        name: "pipes-and-sockets",
        given: "echo f > f",
        special: true,
        command: "mkfifo pipe; python3 -c '
import socket
socket.socket(socket.AF_UNIX).bind(\"socket\")
'; echo x > x",
        ..PLAIN
    },
];

#[test]
fn what_is_done_to_files_is_told_and_applied_and_nothing_else() {
    all(Caller::Root, &FILES);
}

#[test]
fn what_an_ordinary_user_does_to_files_is_told_and_applied() {
    let some = [
        "create",
        "sed-in-place",
        "remove-tree",
        "remake-directory",
        "swap-kinds",
        "editor-save",
        "move-directory",
        "hard-links",
        "symbolic-links",
        "modes",
        "odd-names",
        "writes-outside",
        "exchange",
    ];
    let chosen: Vec<Program> = FILES
        .into_iter()
        .filter(|it| some.contains(&it.name))
        .collect();
    assert_eq!(chosen.len(), some.len());
    all(Caller::User, &chosen);
}
