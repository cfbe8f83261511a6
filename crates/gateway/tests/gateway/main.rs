//! The gateway as a sandbox meets it: connections to its doors, with what was dialled said by the
//! test, and a world outside that is servers on loopback behind made-up public addresses.

// Helpers of tests are tests, which the lint cannot know.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test speaks to what it started"
)]

mod authority;
mod dns;
mod faults;
mod ground;
mod http;
mod inspection;
mod limits;
mod previewed;
mod proxy;
mod secrets;
mod servers;
mod simulation;
mod transparent;
