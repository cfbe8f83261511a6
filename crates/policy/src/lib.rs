//! Policy: layers become one effective profile, with the layer that decided each field.
//! Nothing here reads a clock, a file or the network; texts and host facts are handed in.
//!
//! `resolve` and `assess` are the first two stages of the path. Combining layers can only narrow:
//! each kind of field has one `meet`, and every layer goes through it.

mod assess;
mod bound;
mod canonical;
mod config;
mod credential;
mod decided;
mod destinations;
mod effective;
mod env;
mod explain;
mod field;
mod layer;
mod pattern;
mod preset;
mod range;
mod request;
mod resolve;
mod system;
mod word;

pub use assess::{Assessed, assess};
pub use config::Config;
pub use decided::Decided;
pub use explain::{Decision, Explanation};
pub use field::{Field, LimitField};
pub use layer::{Decider, Layer, LayerName, Origin};
pub use preset::TierPresets;
pub use resolve::{Resolved, resolve};
pub use system::{HostFacts, Surface, System};
