//! Every call that can be observed, and where it says what it acts on. Its numbers are those of the
//! filter's table: what has no row there can be called by nobody.
//!
//! Calls that change what is open already (`write`, `fchmod`, `ftruncate`) are not here: whoever makes
//! them has opened it, and was seen then.

use super::{Place, Shape, Watched};

const fn row(name: &'static str, shape: Shape) -> Watched {
    Watched { name, shape }
}

const fn at(path: u8) -> Place {
    Place {
        directory: None,
        path,
    }
}

const fn below(directory: u8, path: u8) -> Place {
    Place {
        directory: Some(directory),
        path,
    }
}

#[rustfmt::skip]
pub(super) const TABLE: &[Watched] = &[
    row("chmod", Shape::Change(at(0))),
    row("chown", Shape::Change(at(0))),
    row("connect", Shape::Address { address: 1, length: 2 }),
    row("creat", Shape::Change(at(0))),
    row("execve", Shape::Execute { program: at(0), argv: 1 }),
    row("execveat", Shape::Execute { program: below(0, 1), argv: 2 }),
    row("exit", Shape::End),
    row("exit_group", Shape::End),
    row("fchmodat", Shape::Change(below(0, 1))),
    row("fchmodat2", Shape::Change(below(0, 1))),
    row("fchownat", Shape::Change(below(0, 1))),
    row("futimesat", Shape::Change(below(0, 1))),
    row("lchown", Shape::Change(at(0))),
    row("link", Shape::Link { made: at(1), existing: at(0) }),
    row("linkat", Shape::Link { made: below(2, 3), existing: below(0, 1) }),
    row("lremovexattr", Shape::Change(at(0))),
    row("lsetxattr", Shape::Change(at(0))),
    row("mkdir", Shape::Change(at(0))),
    row("mkdirat", Shape::Change(below(0, 1))),
    row("mknod", Shape::Change(at(0))),
    row("mknodat", Shape::Change(below(0, 1))),
    row("open", Shape::Open { path: at(0), flags: 1 }),
    row("openat", Shape::Open { path: below(0, 1), flags: 2 }),
    row("removexattr", Shape::Change(at(0))),
    row("removexattrat", Shape::Change(below(0, 1))),
    row("rename", Shape::Rename { from: at(0), to: at(1) }),
    row("renameat", Shape::Rename { from: below(0, 1), to: below(2, 3) }),
    row("renameat2", Shape::Rename { from: below(0, 1), to: below(2, 3) }),
    row("rmdir", Shape::Change(at(0))),
    row("sendmmsg", Shape::Messages { vector: 1, count: 2 }),
    row("sendmsg", Shape::Message { header: 1 }),
    row("sendto", Shape::Address { address: 4, length: 5 }),
    row("setxattr", Shape::Change(at(0))),
    row("setxattrat", Shape::Change(below(0, 1))),
    row("symlink", Shape::Symlink { made: at(1), text: 0 }),
    row("symlinkat", Shape::Symlink { made: below(1, 2), text: 0 }),
    row("truncate", Shape::Change(at(0))),
    row("unlink", Shape::Change(at(0))),
    row("unlinkat", Shape::Change(below(0, 1))),
    row("utime", Shape::Change(at(0))),
    row("utimensat", Shape::Change(below(0, 1))),
    row("utimes", Shape::Change(at(0))),
];
