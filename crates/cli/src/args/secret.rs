//! What programs may use and nobody may see.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use glovebox_model::{Delivery, GrantId, HostPort, Millis, SecretName};

use super::options::{id, words};

/// Keep secrets, and say who may use them
///
/// At a server with `--server`, else in the state directory itself. Values are sealed with a key
/// that the database does not have, never shown, and kept out of what programs print. A program
/// gets one with `glovebox run --secret NAME`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox secret set github --host api.github.com:443 < token.txt
  glovebox run --secret github=broker --net allowlist --allow-net api.github.com:443 -- gh api user
  glovebox secret grant github --conversation c-17 --for 8h
  glovebox secret revoke github
  glovebox secret rm github")]
pub(crate) struct SecretCommand {
    #[command(subcommand)]
    pub(crate) verb: SecretVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretVerb {
    Set(SecretSetArgs),
    Ls(SecretLsArgs),
    Rm(SecretRmArgs),
    Grant(SecretGrantArgs),
    Grants(SecretGrantsArgs),
    Revoke(SecretRevokeArgs),
    RotateKey(RotateKeyArgs),
}

/// Set a secret, or give it another value
///
/// The value comes from standard input or a file, never from the command line, which others can
/// see. At a terminal it is asked for and not shown. One newline at its end is left out.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox secret set db-password
  pass show github | glovebox secret set github --host api.github.com:443
  glovebox secret set deploy-key --from-file id_ed25519 --keep-newline
  glovebox secret set legacy --deliver file,env --from-file token.txt")]
pub(crate) struct SecretSetArgs {
    #[arg(value_name = "NAME")]
    pub(crate) name: SecretName,
    /// Read the value from this file; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) from_file: Option<PathBuf>,
    /// Keep the newline at the end of the value
    #[arg(long)]
    pub(crate) keep_newline: bool,
    /// A host that a brokered value may go to; may be given more than once. Without it the hosts
    /// stay as they were
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) host: Vec<HostPort>,
    /// How it may be given to programs: `file`, `descriptor`, `broker`, `env`. Without it as it
    /// was; at first `file,descriptor`, and `broker` where there is a host
    #[arg(long, value_name = "HOW", value_delimiter = ',', value_parser = delivery())]
    pub(crate) deliver: Vec<Delivery>,
}

/// List secrets, without their values
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox secret ls
  glovebox secret ls --json")]
pub(crate) struct SecretLsArgs {
    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Go on where another page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<SecretName>,
}

/// Remove a secret, with every value that it had
///
/// Its grants end. What running programs have of it already is listed: nobody can take it from
/// them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox secret rm github")]
pub(crate) struct SecretRmArgs {
    #[arg(value_name = "NAME")]
    pub(crate) name: SecretName,
}

/// Let a conversation or an agent have a secret without being asked about each time
///
/// It is your approval of every exec that uses it. With both, it is for that agent in that
/// conversation.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox secret grant github --conversation c-17
  glovebox secret grant github --agent builder --deliver broker --for 30d")]
#[command(group(clap::ArgGroup::new("whom").args(["conversation", "agent"]).required(true).multiple(true)))]
pub(crate) struct SecretGrantArgs {
    #[arg(value_name = "NAME")]
    pub(crate) name: SecretName,
    /// For what belongs to this conversation
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) conversation: Option<String>,
    /// For what this agent runs
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) agent: Option<String>,
    /// In these ways alone; without it in all that the secret allows, but `env`
    #[arg(long, value_name = "HOW", value_delimiter = ',', value_parser = delivery())]
    pub(crate) deliver: Vec<Delivery>,
    /// For how long (`8h`, `30d`; at most 90 days)
    #[arg(long = "for", value_name = "TIME", default_value = "24h")]
    pub(crate) lasts: Millis,
}

/// List who may have which secret without being asked about
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox secret grants
  glovebox secret grants --all --json")]
pub(crate) struct SecretGrantsArgs {
    /// Also those that are revoked or have expired
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Only those of this secret
    #[arg(long, value_name = "NAME")]
    pub(crate) secret: Option<SecretName>,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Go on where another page ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

/// Take a grant back, or all grants of a secret
///
/// From now on people are asked again, and a brokered value goes nowhere. What running programs
/// have as a file, a descriptor or a variable is listed: nobody can take it from them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox secret revoke grt_3f0c7d2a9b1e4f5a8c6d7e8f90a1b2c3
  glovebox secret revoke github")]
pub(crate) struct SecretRevokeArgs {
    /// The grant's id, or the secret's name
    #[arg(value_name = "GRANT|NAME")]
    pub(crate) what: GrantOrSecret,
}

#[derive(Debug, Clone)]
pub(crate) enum GrantOrSecret {
    Grant(GrantId),
    Secret(SecretName),
}

impl std::str::FromStr for GrantOrSecret {
    type Err = glovebox_model::IdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(id) => Ok(Self::Grant(id)),
            Err(_) => text.parse().map(Self::Secret),
        }
    }
}

/// Seal everything with another key
///
/// At the machine that has the key. Killed at any moment, one of the two keys opens everything.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox secret rotate-key
  glovebox secret rotate-key --new-key-file next.key")]
pub(crate) struct RotateKeyArgs {
    /// The new key, which you keep; without it one is made and kept among the keys of the state
    /// directory
    #[arg(long, value_name = "FILE")]
    pub(crate) new_key_file: Option<PathBuf>,
}

fn delivery() -> impl TypedValueParser<Value = Delivery> {
    words(Delivery::ALL.map(|it| (it.as_str(), it)))
}
