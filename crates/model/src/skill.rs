//! Which skill an exec stands for.

use serde::{Deserialize, Serialize};

use crate::profile::PartialProfile;

/// A skill as it was when it was called: another manifest or another file has another digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SkillRef {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// `sha256:` and 64 hexadecimal digits, over all of its files.
    pub digest: String,
}

impl SkillRef {
    /// What tool policy calls it.
    pub fn tool(&self) -> String {
        format!("skill.{}", self.id)
    }

    /// Where its own files lie, below the inputs. Another version lies elsewhere, so that two can
    /// be called at one time.
    pub fn directory(&self) -> String {
        let digest = self.digest.trim_start_matches("sha256:");
        let short = digest.get(..SHORT).unwrap_or(digest);
        format!("skill/{}-{short}", self.id)
    }
}

const SHORT: usize = 16;

/// A call of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillCall {
    pub skill: SkillRef,
    /// What it was called with, as JSON. The program finds it in a file of its own.
    pub input: String,
    /// The manifest's permissions and limits, a layer of policy.
    pub profile: PartialProfile,
    /// The tool that it is another form of, as its code comes from its input: what policy says about
    /// that holds for it as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<String>,
}
