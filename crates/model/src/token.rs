//! Who may call a server, and for what.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Result, Stage};
use crate::id::{SpaceId, TokenId, TokenName};

/// What a token's holder is. An agent asks; it never decides about its own requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Agent,
    Approver,
    Auditor,
    Admin,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Agent, Self::Approver, Self::Auditor, Self::Admin];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Approver => "approver",
            Self::Auditor => "auditor",
            Self::Admin => "admin",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// All that a token of this role can do; its scopes may only be fewer.
    pub fn scopes(self) -> BTreeSet<Scope> {
        use Scope::{
            ApprovalsRead, ApprovalsWrite, AuditRead, ExecsRead, ExecsWrite, FilesRead, FilesWrite,
            PolicyRead, Retrieve, SecretsRead,
        };
        match self {
            // It may see what it waits for, to say where to go. It answers nothing.
            Self::Agent => [
                ExecsRead,
                ExecsWrite,
                FilesRead,
                FilesWrite,
                PolicyRead,
                ApprovalsRead,
                Retrieve,
            ]
            .into(),
            Self::Approver => [
                ExecsRead,
                FilesRead,
                PolicyRead,
                ApprovalsRead,
                ApprovalsWrite,
                SecretsRead,
            ]
            .into(),
            Self::Auditor => [
                ExecsRead,
                FilesRead,
                PolicyRead,
                ApprovalsRead,
                AuditRead,
                SecretsRead,
            ]
            .into(),
            Self::Admin => Scope::ALL.into(),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

macro_rules! scopes {
    ($($name:ident = $text:literal;)+) => {
        /// One thing that a token lets its holder do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Scope { $(#[serde(rename = $text)] $name,)+ }

        impl Scope {
            pub const ALL: [Self; [$(Self::$name),+].len()] = [$(Self::$name),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

scopes! {
    ExecsRead = "execs:read";
    ExecsWrite = "execs:write";
    FilesRead = "files:read";
    FilesWrite = "files:write";
    PolicyRead = "policy:read";
    ApprovalsRead = "approvals:read";
    ApprovalsWrite = "approvals:write";
    AuditRead = "audit:read";
    MetricsRead = "metrics:read";
    SecretsRead = "secrets:read";
    SecretsWrite = "secrets:write";
    SettingsRead = "settings:read";
    SettingsWrite = "settings:write";
    TokensRead = "tokens:read";
    TokensWrite = "tokens:write";
    Retrieve = "retrieve";
}

impl Scope {
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A token as it may be shown: everything but the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Token {
    pub token_id: TokenId,
    pub name: TokenName,
    pub role: Role,
    pub space_id: SpaceId,
    /// What it really may do: the role's scopes, or fewer.
    pub scopes: BTreeSet<Scope>,
    /// Whoever holds it acts for this user, and for no other.
    pub user_id: Option<String>,
    /// The one agent that its holder is; [`Token::EVERY_AGENT`] for an orchestrator, which names the
    /// agent in each request.
    pub agent_id: Option<String>,
    /// Its holder takes part in this conversation, and in no other.
    #[serde(default)]
    pub conversation_id: Option<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub expires_at: Option<Timestamp>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub revoked_at: Option<Timestamp>,
}

impl Token {
    /// Stands for all agents of the space where the id of one agent stands otherwise.
    pub const EVERY_AGENT: &str = "*";

    /// The one agent that its holder is, and that its execs, sandboxes and approvals are kept apart
    /// by: the one that it is bound to, or else the one that is called like the token. People are
    /// none, and an orchestrator is each of them.
    pub fn agent(&self) -> Option<&str> {
        match self.agent_id.as_deref() {
            Some(Self::EVERY_AGENT) => None,
            Some(bound) => Some(bound),
            None => (self.role == Role::Agent).then(|| self.name.as_str()),
        }
    }

    /// Why there is no token like this. Agents are held to an agent and a conversation; people see all
    /// of their space, and a binding that does not hold would only look like one.
    pub fn ensure_bindable(&self) -> Result<()> {
        let named = [
            ("agent_id", &self.agent_id),
            ("conversation_id", &self.conversation_id),
        ];
        let named = named.into_iter().find(|(_, id)| id.is_some());
        match (self.role, named) {
            (Role::Agent, _) | (_, None) => Ok(()),
            (role, Some((name, _))) => {
                let message = format!("a token of the role `{role}` is not bound to `{name}`");
                Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
                    .hint(format!("leave `{name}` out: people see all of their space"))
                    .hint("give people whose work must stay apart a space each, or use the role `agent`"))
            }
        }
    }

    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_wire_form() {
        for scope in Scope::ALL {
            assert_eq!(
                serde_json::to_string(&scope).unwrap(),
                format!("\"{scope}\"")
            );
            assert_eq!(Scope::parse(scope.as_str()), Some(scope));
        }
        for role in Role::ALL {
            assert_eq!(serde_json::to_string(&role).unwrap(), format!("\"{role}\""));
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
    }

    #[test]
    fn only_an_admin_changes_what_others_may_do() {
        for role in [Role::Agent, Role::Approver, Role::Auditor] {
            let scopes = role.scopes();
            for scope in [
                Scope::SettingsWrite,
                Scope::TokensRead,
                Scope::TokensWrite,
                Scope::MetricsRead,
                Scope::SecretsWrite,
            ] {
                assert!(!scopes.contains(&scope), "{role} {scope}");
            }
        }
        assert!(!Role::Agent.scopes().contains(&Scope::SecretsRead));
        assert!(!Role::Agent.scopes().contains(&Scope::AuditRead));
        assert!(!Role::Agent.scopes().contains(&Scope::ApprovalsWrite));
        assert!(!Role::Auditor.scopes().contains(&Scope::ApprovalsWrite));
        assert!(!Role::Auditor.scopes().contains(&Scope::ExecsWrite));
    }
}
