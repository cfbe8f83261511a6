//! Who may call a server.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use glovebox_model::{Millis, Role, Scope, SpaceId, TokenId, TokenName};

use super::options::id;

/// Make, list and revoke the tokens of a server
///
/// At a server with `--server`, else in the state directory itself, which belongs to whoever is at
/// the machine.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox token create --role agent --space team-a --name builder --expires 30d
  glovebox token ls
  glovebox token rm t_3f0c…")]
pub(crate) struct TokenCommand {
    #[command(subcommand)]
    pub(crate) verb: TokenVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    Create(TokenCreateArgs),
    Ls(TokenLsArgs),
    Info(TokenInfoArgs),
    Rm(TokenRmArgs),
}

/// Make a token; its secret is printed once, on standard output
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox token create --role agent --space team-a --name builder
  glovebox token create --role auditor --space team-a --name siem --scope audit:read --expires 90d
  glovebox token create --role admin --space local --name me --json")]
pub(crate) struct TokenCreateArgs {
    /// What its holder is
    #[arg(long, value_name = "ROLE", value_parser = role())]
    pub(crate) role: Role,
    /// The space whose execs, files and entries it sees
    #[arg(long, value_name = "SPACE")]
    pub(crate) space: SpaceId,
    /// What it is called; unique in its space
    #[arg(long, value_name = "NAME")]
    pub(crate) name: TokenName,
    /// Less than all that its role may do; may be given more than once
    #[arg(long, value_name = "SCOPE", value_parser = scope())]
    pub(crate) scope: Vec<Scope>,
    /// Not valid any longer after this time (`12h`, `30d`)
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<Millis>,
    /// The one agent that its holder is; without it the one that is called like the token, and with
    /// `*` each that a request names; for the role `agent`
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) agent_id: Option<String>,
    /// Its holder takes part in this conversation, and in no other; for the role `agent`
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) conversation_id: Option<String>,
    /// Whoever holds it acts for this user, and for no other
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) user_id: Option<String>,
}

/// List tokens, the newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox token ls
  glovebox token ls --all --json")]
pub(crate) struct TokenLsArgs {
    /// Also those that are revoked or have expired
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Only those of this space
    #[arg(long, value_name = "SPACE")]
    pub(crate) space: Option<SpaceId>,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Go on where another page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

/// Show a token: everything but its secret
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox token info $(glovebox token ls --quiet --limit 1)")]
pub(crate) struct TokenInfoArgs {
    /// Its id: `t_` and hexadecimal digits
    #[arg(value_name = "ID")]
    pub(crate) id: TokenId,
}

/// Revoke a token
///
/// Requests with it are refused within a second, open streams end within five. It stays on record.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox token rm t_3f0c7d2a9b1e4f5a8c6d7e8f90a1b2c3")]
pub(crate) struct TokenRmArgs {
    /// Its id: `t_` and hexadecimal digits
    #[arg(value_name = "ID")]
    pub(crate) id: TokenId,
}

fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::as_str))
        .try_map(|text| Role::parse(&text).ok_or("not a role"))
}

fn scope() -> impl TypedValueParser<Value = Scope> {
    PossibleValuesParser::new(Scope::ALL.map(Scope::as_str))
        .try_map(|text| Scope::parse(&text).ok_or("not a scope"))
}
