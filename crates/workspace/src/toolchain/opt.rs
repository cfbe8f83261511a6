//! Software unpacked below `/opt`, when the caller's `PATH` has its `bin`.

use super::draft::{Draft, Spot, Tree};
use super::entry::{Claim, Entry};
use super::kind::Kind;

/// A program of `/opt` can keep its settings and data beside its `bin`.
const PARTS: &[&str] = &[
    "bin", "include", "lib", "lib32", "lib64", "libexec", "sbin", "share",
];

/// A Java needs these as well, and its `conf` holds no passwords.
const JAVA_PARTS: &[&str] = &[
    "bin", "conf", "include", "jmods", "jre", "legal", "lib", "release",
];

pub(super) fn recognise(draft: &mut Draft<'_>, entry: &Entry) -> Claim {
    if !entry.origin.trusted() {
        return Claim::NotMine;
    }
    let opt = draft.host.opt.clone();
    let Some(prefix) = entry.prefix() else {
        return Claim::NotMine;
    };
    // `/opt/bin` is no prefix of one thing.
    let within = match draft.real(prefix).zip(draft.real(&opt)) {
        Some((real, opt)) => real != opt && real.starts_with(opt),
        None => false,
    };
    if !within {
        return Claim::NotMine;
    }
    let java = prefix.join("release").is_file() && prefix.join("bin/java").is_file();
    let tree = Tree::Parts(if java { JAVA_PARTS } else { PARTS });
    let placed = draft.place(Kind::Opt, Spot::itself(prefix), tree, "software in /opt");
    if let Some(guest) = placed
        && entry.origin.on_path()
    {
        if java && draft.host.dir_var("JAVA_HOME").as_deref() == Some(prefix) {
            draft.env("JAVA_HOME", &guest);
        }
        draft.bin(guest.join("bin"));
    }
    Claim::Mine
}
