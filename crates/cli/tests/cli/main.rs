//! The commands around a run, as somebody types them.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test speaks to what it started"
)]

mod answers;
mod approvals;
mod audit;
mod backends;
mod containers;
mod doctor;
mod files;
mod hosts;
mod images;
mod interrupts;
mod logs;
mod policy;
mod ps;
mod pty;
mod pull;
mod sandboxes;
mod secrets;
mod server;
mod sessions;
mod surface;
mod terminal;
mod trial;
mod trust;
mod workspaces;
