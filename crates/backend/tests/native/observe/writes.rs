//! Which names were made, changed or removed.

use glovebox_backend::{Noticed, Observe};

use crate::observe::ground::{python, see_with, shell};

pub(crate) fn every_change_is_told_with_its_paths() {
    let told = python(
        r#"
import os
os.chdir("/tmp")
os.mkdir("d")
here = os.open("d", os.O_RDONLY)
open("a", "w").close()
open("a", "a").close()
open("a").close()
os.open("b", os.O_CREAT | os.O_WRONLY, dir_fd=here)
os.chmod("a", 0o600)
os.chmod("b", 0o600, dir_fd=here)
os.truncate("a", 3)
os.setxattr("a", "user.x", b"y")
os.removexattr("a", "user.x")
os.utime("a")
os.utime(here)
os.link("a", "c")
os.link("a", "d/../d//e")
os.symlink("../no/where", "f", dir_fd=here)
os.rename("a", "d/a")
os.rename("b", "g", src_dir_fd=here, dst_dir_fd=here)
os.mkfifo("p")
os.mkdir("sub", dir_fd=here)
os.rmdir("sub", dir_fd=here)
os.chown("/tmp/c", -1, -1)
os.unlink("c")
open("/dev/null", "w").close()
"#,
    );
    let expected = [
        "mkdir /tmp/d",
        "openat /tmp/a",
        "openat /tmp/a",
        "openat /tmp/d/b",
        "chmod /tmp/a",
        "fchmodat /tmp/d/b",
        "truncate /tmp/a",
        "setxattr /tmp/a",
        "removexattr /tmp/a",
        "utimensat /tmp/a",
        "utimensat /tmp/d",
        "link /tmp/c /tmp/a",
        "link /tmp/d/e /tmp/a",
        "symlinkat /tmp/d/f ../no/where",
        "rename /tmp/a /tmp/d/a",
        "renameat /tmp/d/b /tmp/d/g",
        "mknod /tmp/p",
        "mkdirat /tmp/d/sub",
        "unlinkat /tmp/d/sub",
        "chown /tmp/c",
        "unlink /tmp/c",
    ];
    // The C library may have newer calls for the same.
    let name = |line: &String| {
        let line = line.replace("linkat ", "link ");
        let line = line
            .replace("mknodat ", "mknod ")
            .replace("renameat2 ", "renameat ");
        let line = line
            .replace("fchmodat2 ", "fchmodat ")
            .replace("fchownat ", "chown ");
        line.replace("symlink ", "symlinkat ")
    };
    let seen: Vec<String> = told.writes().iter().map(name).collect();
    let expected: Vec<String> = expected.iter().map(|it| name(&(*it).to_owned())).collect();
    assert_eq!(seen, expected);
}

pub(crate) fn what_is_refused_is_told_too() {
    let told = shell(
        "echo x > /etc/passwd; rm -f /usr/bin/env; mkdir /nowhere; echo x > /proc/sys/kernel/x\n\
         exit 0",
    );
    let writes = told.writes();
    for path in [
        "/etc/passwd",
        "/usr/bin/env",
        "/nowhere",
        "/proc/sys/kernel/x",
    ] {
        let is_told = writes.iter().any(|it| it.ends_with(&format!(" {path}")));
        assert!(is_told, "{path}: {writes:?}");
    }
    assert!(told.stderr.contains("Read-only") || told.stderr.contains("denied"));
}

pub(crate) fn reads_are_told_when_asked_for() {
    let reads = |reads: bool| -> Vec<String> {
        let observe = Observe {
            reads,
            ..Observe::default()
        };
        let told = see_with(
            observe,
            &["sh", "-c", "read x < /etc/passwd; echo > /tmp/y"],
        );
        let path = |what: &Noticed| match what {
            Noticed::Read { path } => Some(path.display()),
            _ => None,
        };
        assert_eq!(told.writes().len(), 1);
        told.notices
            .iter()
            .filter_map(|it| path(&it.what))
            .collect()
    };
    assert_eq!(reads(false), [""; 0]);
    let read = reads(true);
    assert!(read.contains(&"/etc/passwd".to_owned()), "{read:?}");
    assert!(!read.contains(&"/tmp/y".to_owned()), "{read:?}");
}
