//! The container backend against a real engine: `scripts/dockerd start DIR` starts one and prints
//! its address for GLOVEBOX_TEST_DOCKER; `images/sandbox/build` makes the image.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod engine;
mod fresh;
mod harness;
#[path = "../../../../tests/support/engine/image.rs"]
mod image;
mod kept;
mod outages;
mod sessions;
