//! How the binary is linked.

use std::env::var;
use std::process::Command;

/// The first version of the GNU C library whose loader reads relative relocations in their packed form.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, wanted: &str| var(name).is_ok_and(|value| value == wanted);
    // Functions of the same code are kept once, which is a fiftieth of the binary. Only the linker that
    // comes with the compiler is sure to know how.
    if is("PROFILE", "release")
        && is("TARGET", "x86_64-unknown-linux-gnu")
        && var("RUSTC_LINKER").is_err()
        && var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.is_empty())
    {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
    // Three megabytes less of them, and less to do at each start. Only where the loader of this machine
    // can read them, and only for this machine: another one's cannot be asked.
    if var("TARGET").is_ok_and(|target| var("HOST").is_ok_and(|host| host == target))
        && c_library().is_some_and(|version| version >= PACKED_SINCE)
    {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn c_library() -> Option<(u32, u32)> {
    let told = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let told = String::from_utf8(told.ok()?.stdout).ok()?;
    let (major, minor) = told.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
