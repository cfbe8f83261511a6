//! Everything of Glovebox that reads bytes nobody vouches for, as functions of bytes. Each checks
//! what must hold whatever the bytes are, and panics when it does not.
//!
//! Two things call them: the loop in [`pursue`], which needs nothing but a stable compiler, and
//! libFuzzer, by the programs in `fuzz_targets`.

pub mod ground;
pub mod mutate;
pub mod pursue;
pub mod targets;

use std::process::ExitCode;

pub use targets::{Answer, Target};

/// One file after another from the arguments, each by itself.
pub fn replay(target: &Target) -> ExitCode {
    for path in std::env::args_os().skip(1) {
        match std::fs::read(&path) {
            Ok(bytes) => println!("{}: {}", path.display(), target.answer(&bytes).0),
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
