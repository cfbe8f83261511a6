//! Against real servers on loopback, which stand for public ones: an injected resolver and dialler
//! map public addresses to them.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test speaks to what it started"
)]

mod bodies;
mod clients;
mod corpus;
mod names;
mod pages;
mod rebinding;
mod tls;
mod vetting;
mod world;
