//! What people are asked, what they answer, and what they granted.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::call::Program;
use crate::consent::{Agreed, Consent};
use crate::correlation::{Correlation, Vouched};
use crate::effect::Effect;
use crate::exec::{Preview, RiskSignal};
use crate::id::{ApprovalId, ExecId, GrantId, SpaceId};
use crate::permit::{Reason, Upgrade};
use crate::profile::{BackendName, NetworkMode, PartialProfile, Tier};

/// Where a request to people stands. `Pending` and `Approved` go on; the others are its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    Pending,
    /// Enough people said yes, and what they said it to has not started.
    Approved,
    Denied,
    /// Nobody answered in time, or what was approved did not start in time.
    Expired,
    /// What was approved was started; it never lets anything start again.
    Used,
    /// The request went away: it was cancelled, what it is about changed, or policy did.
    Void,
}

impl ApprovalState {
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Approved,
        Self::Denied,
        Self::Expired,
        Self::Used,
        Self::Void,
    ];

    pub const fn is_final(self) -> bool {
        match self {
            Self::Pending | Self::Approved => false,
            Self::Denied | Self::Expired | Self::Used | Self::Void => true,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Used => "used",
            Self::Void => "void",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

impl fmt::Display for ApprovalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a person says. Of a reason at most [`Answer::REASON_MOST`] characters are taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "decision", rename_all = "snake_case", deny_unknown_fields)]
#[allow(clippy::large_enum_variant, reason = "one at a time, as people answer")]
pub enum Answer {
    AllowOnce {
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "bounded"
        )]
        #[cfg_attr(feature = "openapi", schema(max_length = 2000))]
        reason: Option<String>,
    },
    /// This, and its kind in this conversation from now on. Never covers an upgrade.
    AllowKind {
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "bounded"
        )]
        #[cfg_attr(feature = "openapi", schema(max_length = 2000))]
        reason: Option<String>,
        /// Until then; as policy says where nothing is said, and never longer than that allows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
        expires_at: Option<Timestamp>,
    },
    /// This, with less than it asked for.
    Narrow {
        #[cfg_attr(feature = "openapi", schema(value_type = Object))]
        overrides: PartialProfile,
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "bounded"
        )]
        #[cfg_attr(feature = "openapi", schema(max_length = 2000))]
        reason: Option<String>,
    },
    /// This program in its place. It is assessed anew.
    Edit {
        #[cfg_attr(feature = "openapi", schema(value_type = Object))]
        program: Program,
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "bounded"
        )]
        #[cfg_attr(feature = "openapi", schema(max_length = 2000))]
        reason: Option<String>,
    },
    Deny {
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "bounded"
        )]
        #[cfg_attr(feature = "openapi", schema(max_length = 2000))]
        reason: Option<String>,
    },
}

fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let reason = Option::<String>::deserialize(deserializer)?;
    match &reason {
        Some(text) if text.chars().count() > Answer::REASON_MOST => Err(de::Error::custom(
            format_args!("`reason` has more than {} characters", Answer::REASON_MOST),
        )),
        _ => Ok(reason),
    }
}

impl Answer {
    /// Characters of a reason.
    pub const REASON_MOST: usize = 2000;

    /// The word of it on the wire.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::AllowOnce { .. } => "allow_once",
            Self::AllowKind { .. } => "allow_kind",
            Self::Narrow { .. } => "narrow",
            Self::Edit { .. } => "edit",
            Self::Deny { .. } => "deny",
        }
    }

    pub const fn approves(&self) -> bool {
        match self {
            Self::AllowOnce { .. }
            | Self::AllowKind { .. }
            | Self::Narrow { .. }
            | Self::Edit { .. } => true,
            Self::Deny { .. } => false,
        }
    }

    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::AllowOnce { reason }
            | Self::AllowKind { reason, .. }
            | Self::Narrow { reason, .. }
            | Self::Edit { reason, .. }
            | Self::Deny { reason } => reason.as_deref(),
        }
    }
}

/// On which way an answer came. Said by whoever received it, never by whoever sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Via {
    Rest,
    Websocket,
    Cli,
    /// At the prompt of the very command that asks.
    Terminal,
    /// In the window of the agent that asks, where its host showed the question to a person.
    Elicitation,
    /// Nobody was asked, as configured for development.
    Automatic,
}

impl Via {
    pub const ALL: [Self; 6] = [
        Self::Rest,
        Self::Websocket,
        Self::Cli,
        Self::Terminal,
        Self::Elicitation,
        Self::Automatic,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::Websocket => "websocket",
            Self::Cli => "cli",
            Self::Terminal => "terminal",
            Self::Elicitation => "elicitation",
            Self::Automatic => "automatic",
        }
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Who asks, or who answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Party {
    /// Of the token, or of the user.
    pub name: String,
    /// Whom the token is bound to. What a request says of itself is not it.
    pub user_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reply {
    /// The name of the token, or of the user.
    pub by: String,
    /// The user of that token, when it is somebody's own: all tokens of a user are one person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    pub via: Via,
    pub answer: Answer,
}

/// A script of the workspace that is run, and what was in it when people were asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScriptRef {
    pub path: String,
    /// SHA-256, hexadecimal.
    pub digest: String,
}

/// What a program is given to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StdinRef {
    pub bytes: u64,
    /// SHA-256, hexadecimal.
    pub digest: String,
    /// At most [`Ask::PREVIEW_MOST`] characters.
    pub preview: String,
}

/// What people are shown. Texts are for reading: bytes that are none are replaced, and of the
/// environment only names are here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Ask {
    pub description: String,
    pub argv: Vec<String>,
    /// At most [`Ask::PREVIEW_MOST`] characters.
    pub code_preview: String,
    pub cwd: String,
    pub env_names: Vec<String>,
    pub workspace: String,
    pub backend: Option<BackendName>,
    pub network: NetworkMode,
    pub tier: Tier,
    pub signals: Vec<RiskSignal>,
    pub reasons: Vec<Reason>,
    /// What it wants beyond policy.
    pub upgrades: Vec<Upgrade>,
    /// Why, in the words of who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// The files that it names to run; where the whole workspace is bound, that as well, by the
    /// digest of its state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<ScriptRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// What changed in the workspace since an earlier answer to this request, which that made void.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// What it is given to read, which may be a program itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<StdinRef>,
    /// The files that are placed for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ScriptRef>,
    /// The simulation that it would do for real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,
    /// What that simulation showed: the first of its effects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
}

impl Ask {
    /// Characters of a preview.
    pub const PREVIEW_MOST: usize = 500;

    /// The beginning of a code.
    pub fn preview(code: &str) -> String {
        code.chars().take(Self::PREVIEW_MOST).collect()
    }
}

/// What an approval holds of the files that its exec may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Bound {
    pub to: BoundTo,
    /// The run stands on them as they were approved, for its whole length. Otherwise they are
    /// compared right before it starts, and can be changed while it runs.
    pub held: bool,
    /// Why it is bound to that.
    pub because: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BoundTo {
    /// It runs no file of the workspace.
    Nothing,
    /// It runs these files and no others.
    Files,
    /// It may run anything there: whatever changes in the workspace makes the approval void.
    Workspace,
}

/// One request to people, with what they replied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Approval {
    pub id: ApprovalId,
    pub space_id: SpaceId,
    pub exec_id: ExecId,
    pub ids: Correlation,
    /// As in the exec.
    #[serde(default, skip_serializing_if = "Vouched::is_unproven")]
    pub vouched: Vouched,
    /// The name of the token, or of the user. Who this is cannot reply.
    pub requested_by: String,
    /// The user of that token, when it is somebody's own. None of their tokens can reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_user: Option<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub expires_at: Timestamp,
    pub state: ApprovalState,
    /// Of all that is approved; what is started must have the same.
    pub digest: String,
    /// How many different people must say yes.
    pub quorum: u32,
    pub replies: Vec<Reply>,
    pub ask: Ask,
}

impl Approval {
    pub fn has_expired(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// Those who said yes, in the order in which they did.
    pub fn approving(&self) -> impl Iterator<Item = &Reply> {
        self.replies.iter().filter(|reply| reply.answer.approves())
    }

    /// What it is worth to the exec that it is about.
    pub fn consent(&self) -> Consent {
        Consent {
            agreed: Agreed::People,
            approval_id: Some(self.id.clone()),
            grant_id: None,
            by: self.approving().map(|reply| reply.by.clone()).collect(),
        }
    }

    /// How many must still say yes.
    pub fn wanting(&self) -> usize {
        let quorum = usize::try_from(self.quorum).unwrap_or(usize::MAX);
        quorum.saturating_sub(self.approving().count())
    }
}

/// That a kind of action needs no new answer in a conversation, until it is revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Grant {
    pub id: GrantId,
    pub space_id: SpaceId,
    pub conversation_id: String,
    /// In the one form that policy compares.
    pub kind: String,
    /// The same for people.
    pub shown: String,
    /// The request whose answer made it.
    pub approval_id: ApprovalId,
    pub granted_by: String,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub revoked_at: Option<Timestamp>,
    pub revoked_by: Option<String>,
    /// Those that have no end were made before grants had one, and are in force no longer.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub expires_at: Option<Timestamp>,
    pub used: u64,
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_used_at: Option<Timestamp>,
}

impl Grant {
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now >= end)
    }

    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && !self.has_expired(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_wire_form() {
        for state in ApprovalState::ALL {
            let json = serde_json::to_string(&state).unwrap();
            assert_eq!(json, format!("\"{state}\""));
            assert_eq!(ApprovalState::parse(state.as_str()), Some(state));
        }
        for via in Via::ALL {
            assert_eq!(serde_json::to_string(&via).unwrap(), format!("\"{via}\""));
        }
    }

    #[test]
    fn an_answer_is_read_as_people_write_it() {
        for (json, word, approves) in [
            (r#"{"decision":"allow_once"}"#, "allow_once", true),
            (
                r#"{"decision":"allow_kind","reason":"fine"}"#,
                "allow_kind",
                true,
            ),
            (
                r#"{"decision":"narrow","overrides":{"network":"none"}}"#,
                "narrow",
                true,
            ),
            (
                r#"{"decision":"edit","program":{"kind":"shell","script":"ls"}}"#,
                "edit",
                true,
            ),
            (r#"{"decision":"deny","reason":"no"}"#, "deny", false),
        ] {
            let answer: Answer = serde_json::from_str(json).unwrap();
            assert_eq!(answer.as_str(), word);
            assert_eq!(answer.approves(), approves, "{word}");
            let again = serde_json::to_string(&answer).unwrap();
            assert_eq!(serde_json::from_str::<Answer>(&again).unwrap(), answer);
            assert!(again.contains(&format!("\"decision\":\"{word}\"")));
        }
    }

    #[test]
    fn what_is_not_an_answer_approves_nothing() {
        let reason =
            |count: usize| format!(r#"{{"decision":"deny","reason":"{}"}}"#, "é".repeat(count));
        assert!(serde_json::from_str::<Answer>(&reason(2000)).is_ok());
        for bad in [
            "{}",
            r#"{"decision":"allow"}"#,
            r#"{"decision":"allow_once","overrides":{}}"#,
            r#"{"decision":"narrow"}"#,
            r#"{"decision":"narrow","overrides":{"networks":"none"}}"#,
            r#"{"decision":"edit"}"#,
            &reason(2001),
        ] {
            assert!(serde_json::from_str::<Answer>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_preview_is_cut_between_characters() {
        let code = "é".repeat(600);
        assert_eq!(Ask::preview(&code), "é".repeat(500));
        assert_eq!(Ask::preview("ls"), "ls");
    }
}
