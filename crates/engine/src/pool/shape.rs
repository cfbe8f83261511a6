//! What a sandbox must be known for before it can be built: two execs of one shape can have the
//! same sandbox.

use glovebox_backend::Language;
use glovebox_model::{Code, Error, Profile, ProjectId, Result, SpaceId, Stage, Tier};
use serde::Serialize;

use crate::backends::Chosen;
use crate::digest::config_hash;

/// What waits in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Pid 1 waits for any command.
    Native,
    /// An interpreter waits for its code.
    Interpreter(#[serde(serialize_with = "word")] Language),
    /// A container. Its directories are mounted when it is made, so it is for one workspace.
    Container {
        space: SpaceId,
        project: ProjectId,
        /// Device and number of its directory: a workspace that was removed and made again is another.
        work: (u64, u64),
        /// Whose inputs are in it.
        agent: Option<String>,
    },
}

fn word<S: serde::Serializer>(language: &Language, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(language.as_str())
}

#[derive(Debug, Clone)]
pub(crate) struct Shape {
    kind: Kind,
    /// Only what a sandbox is built from; the rest is the same for all.
    profile: Profile,
    chosen: Chosen,
    hash: String,
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for Shape {}

impl std::hash::Hash for Shape {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl Shape {
    pub(crate) fn new(kind: Kind, profile: &Profile, chosen: &Chosen) -> Result<Self> {
        let profile = built_from(profile);
        let all = serde_json::to_value((&kind, &profile, chosen)).map_err(|why| {
            let message = "a sandbox's configuration cannot be written as JSON";
            Error::new(Code::Internal, Stage::Admit, message).caused_by(why)
        })?;
        let hash = config_hash(all);
        Ok(Self {
            kind,
            profile,
            chosen: chosen.clone(),
            hash,
        })
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(crate) fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }
}

/// The profile without what is decided when the exec comes: its time, its output, its variables.
fn built_from(profile: &Profile) -> Profile {
    Profile {
        limits: profile.limits.built_in(),
        env_allow: [].into(),
        tier: Tier::Safe,
        ..profile.clone()
    }
}
