//! The one path that everything walks, from any surface: resolve, assess, obtain, open, admit, run,
//! collect, judge, close. Each stage is a function from one type to the next, and the next type can
//! be made nowhere else.

mod engine;
mod environment;
mod leftovers;
mod path;
mod recovery;
mod settings;
mod stage;

pub use engine::{Engine, Io, Seat, Settings};
pub use glovebox_backend::probe;
pub use glovebox_backend::{Cancel, Canceler, Sink, Stream};
pub use glovebox_cage::Handle as Keeper;
pub use recovery::Recovered;
pub use settings::{ToolchainSettings, host_facts};
