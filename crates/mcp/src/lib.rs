//! Glovebox for agents: one catalogue of tools, spoken over the Model Context Protocol with the
//! official SDK. A tool is a typed wish; what it does is a request to the public API as the caller
//! who wished for it, so that whatever holds for the API holds for tools.

mod answer;
mod api;
mod catalogue;
mod consent;
mod exec;
mod fence;
mod follow;
mod http;
mod question;
mod resource;
mod server;
mod session;
mod stdio;
mod task;
mod tool;

pub use api::{Api, Caller, Sent};
pub use catalogue::tools;
pub use http::service;
pub use server::{Server, Setting};
pub use stdio::serve_stdio;
