//! Glovebox over HTTP: parse, ask the engine, print. Nothing is decided here but who may ask.
//!
//! A server is started in three steps, from a process that made its [`Spawner`] before its first
//! thread:
//!
//! ```no_run
//! use glovebox_serve::{Options, Stop, TokenKey, bootstrap, run};
//! # fn serve(dispatcher: std::sync::Arc<glovebox_engine::Dispatcher>) -> glovebox_model::Result<()> {
//! let state = dispatcher.state().path().to_owned();
//! let key = TokenKey::load_or_create(&state)?;
//! let token_file = bootstrap(dispatcher.store()?, &key, &state)?;
//! let mut options = Options::new(&state);
//! options.listen = "127.0.0.1:0".to_owned();
//! let summary = run(options, dispatcher, Stop::default(), None, |listening| {
//!     eprintln!("listening on {}", listening.url());
//! })?;
//! # let _ = (token_file, summary); Ok(()) }
//! ```
//!
//! `run` blocks until SIGTERM, SIGINT or [`Stop::ask`], drains the engine and returns how that went.
//!
//! The order in which a request is looked at: framing of its bytes (`listen`), `Host` and `Origin`
//! (`doors`), the token (`auth`), its scope (an argument of the handler), the body (`body`). An
//! answer gets its id, its headers and its line in the log on the way out (`trace`).
//!
//! [`Spawner`]: glovebox_engine::Spawner

mod app;
mod auth;
mod body;
mod command;
mod docs_page;
mod document;
mod failure;
mod held;
mod idempotency;
mod inside;
mod listen;
mod mask;
mod mcp;
mod metrics;
mod options;
mod order;
mod origin_check;
mod per_space_limit;
mod routes;
mod sandbox_metrics;
mod server;
mod trace;
#[cfg(feature = "otel")]
mod traceparent;
mod watches;

pub use app::LocalProgress;
pub use auth::{Issued, TokenKey, bootstrap};
pub use command::LocalApi;
pub use inside::{Inside, LocalAgent, Who};
pub use options::{McpService, Options, Times, TlsFiles};
pub use server::{Listening, Reread, Stop, Summary, run};
