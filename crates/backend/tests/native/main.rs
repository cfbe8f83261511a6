//! The native backend by its interface: each test begins without threads, as a server must.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]
#![expect(clippy::expect_used, reason = "a test stops where it fails")]
#![expect(clippy::print_stdout, reason = "the harness reports there")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test speaks to what it started"
)]

#[macro_use]
#[path = "../../../cage/tests/spawner/harness.rs"]
mod harness;
mod crowd;
mod house;
mod kept;
mod mounts;
mod network;
mod observe;
mod overlay;
mod terminal;
mod warm;

fn main() -> std::process::ExitCode {
    let cases = [
        crowd::cases(),
        kept::cases(),
        mounts::cases(),
        network::cases(),
        observe::cases(),
        overlay::cases(),
        terminal::cases(),
        warm::cases(),
    ];
    harness::run(&cases.concat())
}
