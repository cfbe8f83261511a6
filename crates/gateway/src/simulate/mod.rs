//! A network that is only played. What a program asks for is decided on as always, told to the
//! log and answered from here; nothing is looked up and nobody is dialled. Nothing in here has a
//! vetter, so that it could not be done by mistake either.

mod check;
mod fault_injection;
mod goal;
mod host;
mod play;
mod preset;
mod requests;
mod seen;
mod simulated;
mod swallow;
mod untold;
mod visit;

pub use fault_injection::{FaultInjection, Injected, Outcome, Try};
pub(crate) use play::Play;
pub use seen::{Answer, Seen};
pub use simulated::Simulated;
pub(crate) use visit::{Came, serve};
