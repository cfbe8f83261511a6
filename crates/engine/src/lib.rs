//! The one path that everything walks, from any surface: resolve, assess, obtain, open, admit, run,
//! collect, judge, close. Each stage is a function from one type to the next, and the next type can
//! be made nowhere else.

mod dispatch;
mod engine;
mod environment;
mod leftovers;
mod path;
mod prepare;
mod recovery;
mod settings;
mod stage;

pub use dispatch::{
    Counts, Dispatcher, Drained, EVENTS_KEPT, Event, EventPage, Health, HouseRules, KEYS_KEPT,
    LEASE, Load, Progress, Spawner, Submission, Submitted, What, check_settings,
};
pub use engine::{Engine, Io, Seat, Settings};
pub use glovebox_backend::probe;
pub use glovebox_backend::{Cancel, Canceler, Sink, Stream};
pub use glovebox_cage::Handle as Keeper;
pub use recovery::Recovered;
pub use settings::{ToolchainSettings, host_facts};
