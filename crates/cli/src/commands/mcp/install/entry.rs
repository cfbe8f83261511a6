//! What a host is told: which program to start, or where a server is.

use glovebox_model::{Code, Error, Result, Stage};
use jsonc_parser::cst::CstInputValue as Input;

use super::host::Host;

/// The variable that hosts take the token from. The token itself never stands in a file of theirs.
pub(super) const VARIABLE: &str = "GLOVEBOX_TOKEN";
/// What VS Code calls the token that it asks for.
const ASKED: &str = "glovebox-token";
const NAME_LONGEST: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) form: Form,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// A program that the host starts and speaks to over its standard streams.
    Program { command: String, args: Vec<String> },
    /// A server that listens, with `/mcp` in its address.
    Server { url: String },
}

/// Keys of one form. Those of the other would contradict them.
pub(super) const KEYS_OF_PROGRAM: [&str; 3] = ["command", "args", "cwd"];
pub(super) const KEYS_OF_SERVER: [&str; 3] = ["url", "headers", "bearer_token_env_var"];

impl Form {
    pub(super) const fn foreign_keys(&self) -> &'static [&'static str] {
        match self {
            Self::Program { .. } => &KEYS_OF_SERVER,
            Self::Server { .. } => &KEYS_OF_PROGRAM,
        }
    }
}

/// As every one of the hosts takes it, and none has to quote it.
pub(super) fn check_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.is_empty() && name.len() <= NAME_LONGEST && name.chars().all(fits) {
        return Ok(());
    }
    let message = format!("hosts do not take `{name}` for a name");
    Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
        .hint("use letters, digits, `-` and `_`, 64 at most"))
}

impl Entry {
    /// The fields, in the order in which people write them.
    pub(super) fn fields(&self, host: Host) -> Vec<(&'static str, Input)> {
        let mut fields = Vec::new();
        match &self.form {
            Form::Program { command, args } => {
                if host.names_transport() {
                    fields.push(("type", "stdio".into()));
                }
                fields.push(("command", command.as_str().into()));
                let args = args.iter().map(|it| it.as_str().into()).collect();
                fields.push(("args", Input::Array(args)));
                if let Some(directory) = host.directory() {
                    fields.push(("cwd", directory.into()));
                }
            }
            Form::Server { url } => {
                if host.names_transport() {
                    fields.push(("type", "http".into()));
                }
                fields.push(("url", url.as_str().into()));
                fields.push(token(host));
            }
        }
        fields
    }

    /// What the host asks its user for, when it is not a variable that it reads.
    pub(super) fn question(&self, host: Host) -> Option<(&'static str, Input)> {
        let asks = host == Host::Vscode && matches!(self.form, Form::Server { .. });
        let text = |key: &str, value: &str| (key.to_owned(), Input::from(value));
        asks.then(|| {
            let question = Input::Object(vec![
                text("type", "promptString"),
                text("id", ASKED),
                text("description", "Token of the Glovebox server"),
                ("password".to_owned(), Input::Bool(true)),
            ]);
            (ASKED, question)
        })
    }
}

fn token(host: Host) -> (&'static str, Input) {
    let header = |value: String| {
        let fields = vec![("Authorization".to_owned(), Input::String(value))];
        ("headers", Input::Object(fields))
    };
    match host {
        Host::Claude => header(format!("Bearer ${{{VARIABLE}}}")),
        Host::Cursor => header(format!("Bearer ${{env:{VARIABLE}}}")),
        Host::Vscode => header(format!("Bearer ${{input:{ASKED}}}")),
        Host::Codex => ("bearer_token_env_var", VARIABLE.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_every_host_takes() {
        for good in ["glovebox", "team-box_2", "A"] {
            check_name(good).unwrap();
        }
        for bad in ["", "a b", "a.b", "ä", "a\"b", "a/b", &"x".repeat(65)] {
            assert_eq!(check_name(bad).unwrap_err().code, Code::InvalidArgument);
        }
    }
}
