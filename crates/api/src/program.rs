//! What is to run. Each kind but `argv` has the one or two shapes that it can have; another shape
//! is refused as policy, since who reads `kind: python` in a log must be able to believe it.

use std::collections::BTreeMap;

use glovebox_model::{ByteString, Code, EnvKey, EnvVar, Error, Program, Result, Stage};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::input::decode;
use crate::{Free, GuestDir, Plain, invalid};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Argv,
    Shell,
    Python,
    Javascript,
}

/// `shell`: `bash` with `["-lc", script]`. `python`: `python` or `python3` with `["-c", code]` or
/// a file below `/workspace/inputs/`, either after `-u`. `javascript`: `node` with `["-e", code]`.
/// `argv`: anything. Another shape is a 403.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecSpec {
    pub kind: Kind,
    pub command: Plain,
    #[serde(default)]
    #[schema(max_items = 10000)]
    pub args: Vec<ByteString>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<GuestDir>,
    #[serde(default)]
    pub env: BTreeMap<EnvKey, Free>,
    /// What the program reads from its standard input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// The same for any bytes; send one of the two.
    #[schema(pattern = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin_base64: Option<String>,
}

/// A program alone, of the same kinds and shapes as that of an exec.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramSpec {
    pub kind: Kind,
    pub command: Plain,
    #[serde(default)]
    #[schema(max_items = 10000)]
    pub args: Vec<ByteString>,
}

impl ProgramSpec {
    pub fn program(self) -> Result<Program> {
        match program(self.kind, &self.command.0, self.args)? {
            (program, None) => Ok(program),
            (_, Some(objection)) => Err(objection),
        }
    }
}

/// The same in the engine's words.
#[derive(Debug)]
pub struct Asked {
    pub program: Program,
    pub cwd: Option<ByteString>,
    pub env: Vec<EnvVar>,
    pub stdin: Option<Vec<u8>>,
    /// It has not the shape of its kind.
    pub objection: Option<Error>,
}

impl ExecSpec {
    /// A program that does nothing.
    pub fn nothing() -> Self {
        Self {
            kind: Kind::Argv,
            command: Plain("true".to_owned()),
            args: Vec::new(),
            cwd: None,
            env: BTreeMap::new(),
            stdin: None,
            stdin_base64: None,
        }
    }

    pub fn asked(self) -> Result<Asked> {
        let env = self.env.into_iter().map(|(key, value)| {
            Ok(EnvVar {
                key,
                value: bytes(&value.0)?,
            })
        });
        let (program, objection) = program(self.kind, &self.command.0, self.args)?;
        Ok(Asked {
            env: env.collect::<Result<_>>()?,
            cwd: self.cwd.map(|dir| bytes(&dir.0)).transpose()?,
            stdin: stdin(self.stdin, self.stdin_base64)?,
            program,
            objection,
        })
    }
}

fn stdin(text: Option<String>, base64: Option<String>) -> Result<Option<Vec<u8>>> {
    match (text, base64) {
        (Some(_), Some(_)) => Err(Error::new(
            Code::Conflict,
            Stage::Parse,
            "`stdin` and `stdin_base64` are both there",
        )
        .hint("send one of the two")),
        (Some(text), None) => Ok(Some(text.into_bytes())),
        (None, Some(base64)) => decode("stdin_base64", &base64).map(Some),
        (None, None) => Ok(None),
    }
}

/// What is to run, and what is to be said against it.
fn program(kind: Kind, command: &str, args: Vec<ByteString>) -> Result<(Program, Option<Error>)> {
    let words: Vec<&[u8]> = args.iter().map(ByteString::as_bytes).collect();
    let program = match (kind, command, words.as_slice()) {
        (Kind::Argv, command, _) => argv(command, args)?,
        (Kind::Shell, "bash", [b"-lc", _]) => Program::Shell { script: last(args) },
        (Kind::Python, "python" | "python3", [b"-c", _]) => Program::Python { code: last(args) },
        (Kind::Python, "python" | "python3", [b"-u", b"-c", _]) => argv("python3", args)?,
        (Kind::Python, "python" | "python3", [file] | [b"-u", file]) if is_input(file) => {
            argv("python3", args)?
        }
        (Kind::Javascript, "node", [b"-e", _]) => Program::Javascript { code: last(args) },
        // Recorded as what it would have been, and refused.
        (kind, command, _) => return Ok((argv(command, args)?, Some(shape(kind)))),
    };
    Ok((program, None))
}

fn argv(command: &str, args: Vec<ByteString>) -> Result<Program> {
    Ok(Program::Argv {
        command: bytes(command)?,
        args,
    })
}

fn last(mut args: Vec<ByteString>) -> ByteString {
    args.pop().unwrap_or_default()
}

fn is_input(file: &[u8]) -> bool {
    let Some(below) = file.strip_prefix(b"/workspace/inputs/") else {
        return false;
    };
    !below.is_empty() && below.split(|byte| *byte == b'/').all(|part| part != b"..")
}

pub(crate) fn bytes(text: &str) -> Result<ByteString> {
    ByteString::try_from(text).map_err(|why| invalid(format!("a text {why}")))
}

fn shape(kind: Kind) -> Error {
    let (kind, wanted) = match kind {
        Kind::Argv => ("argv", "anything"),
        Kind::Shell => ("shell", "`bash` with `[\"-lc\", script]`"),
        Kind::Python => (
            "python",
            "`python` with `[\"-c\", code]` or a file below `/workspace/inputs/`",
        ),
        Kind::Javascript => ("javascript", "`node` with `[\"-e\", code]`"),
    };
    let message = format!("an exec of kind `{kind}` is {wanted}");
    Error::new(Code::PolicyDenied, Stage::Parse, message)
        .hint("use `kind: argv` for any other command")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind, command: &str, args: &[&str]) -> std::result::Result<Program, Code> {
        let args = args
            .iter()
            .map(|it| ByteString::try_from(*it).unwrap())
            .collect();
        match program(kind, command, args) {
            Ok((program, None)) => Ok(program),
            Ok((_, Some(failure))) | Err(failure) => Err(failure.code),
        }
    }

    #[test]
    fn each_kind_has_its_shapes_and_no_other() {
        let argv = |program: Program| {
            program
                .argv()
                .iter()
                .map(ByteString::display)
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (kind, command, args, runs) in [
            (Kind::Shell, "bash", &["-lc", "x"][..], "bash -lc x"),
            (Kind::Python, "python", &["-c", "x"], "python3 -c x"),
            (
                Kind::Python,
                "python3",
                &["-u", "-c", "x"],
                "python3 -u -c x",
            ),
            (
                Kind::Python,
                "python",
                &["-u", "/workspace/inputs/a.py"],
                "python3 -u /workspace/inputs/a.py",
            ),
            (Kind::Javascript, "node", &["-e", "x"], "node -e x"),
            (Kind::Argv, "/bin/true", &[], "/bin/true"),
        ] {
            assert_eq!(argv(of(kind, command, args).unwrap()), runs);
        }
        for (kind, command, args) in [
            (Kind::Shell, "sh", &["-lc", "x"][..]),
            (Kind::Shell, "bash", &["-c", "x"]),
            (Kind::Shell, "bash", &["-lc", "x", "y"]),
            (Kind::Python, "/usr/bin/python3", &["-c", "x"]),
            (Kind::Python, "python", &["-m", "x"]),
            (Kind::Python, "python", &["/workspace/work/a.py"]),
            (Kind::Python, "python", &["/workspace/inputs/../work/a.py"]),
            (Kind::Python, "python", &["/workspace/inputs/"]),
            (Kind::Javascript, "node", &["-p", "x"]),
            (Kind::Javascript, "deno", &["-e", "x"]),
        ] {
            assert_eq!(
                of(kind, command, args),
                Err(Code::PolicyDenied),
                "{command} {args:?}"
            );
        }
    }
}
