//! Skills: what a manifest says, which skills there are, what a call of one becomes, and what it
//! answers. Nothing here runs anything, and nothing a manifest says is executed while it is read.

mod add;
mod answer;
mod call;
mod catalogue;
mod entrypoint;
mod interface;
mod json;
mod manifest;
mod output;
mod package;
mod problem;
mod shipped;
mod skill;
mod skill_md;
mod widening;

pub use add::{Added, Replace, add, remove, stage};
pub use answer::answer;
pub use call::Called;
pub use catalogue::{Catalogue, Invalid, Listing, Settings};
pub use manifest::{
    Example, FileAccess, Interface, Limits, Manifest, NetworkAccess, NetworkReach, Permissions,
    RuntimeKind, SCHEMA, SkillRuntime,
};
pub use output::{OUTPUT_BYTES_MAX, OUTPUT_FILE, Output};
pub use package::Package;
pub use problem::{ManifestProblem, Problems};
pub use skill::{Origin, Skill, check};
pub use widening::{Before, Changed};
