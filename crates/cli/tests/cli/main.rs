//! The commands around a run, as somebody types them.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

mod audit;
mod doctor;
mod logs;
mod policy;
mod ps;
mod server;
mod surface;
mod trial;
mod trust;
