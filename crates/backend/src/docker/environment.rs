//! Variables of a program, on their way into a container. They may be secret, so they are neither
//! arguments nor files on disk; and they are the program's, so the engine's own command must not
//! take them for its own.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};

use glovebox_model::{ByteString, Code, Error, Result, Stage};
use rustix::fs::MemfdFlags;

/// The command reads the file by lines, none longer than 64 KiB.
const LONGEST_LINE: usize = 60 << 10;

/// What changes how the engine's command, its libraries or its helpers behave.
const MEANT_FOR_US: [&str; 12] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "SHELL",
    "USER",
    "DOCKER",
    "CONTAINER",
    "REGISTRY",
    "LD",
    "SSL",
    "SSH",
];
const MEANT_FOR_US_PREFIX: [&str; 9] = [
    "DOCKER_",
    "CONTAINER",
    "LD_",
    "GO",
    "XDG_",
    "SSL_",
    "SSH_",
    "BUILDKIT",
    "PODMAN",
];

#[derive(Debug)]
pub(super) struct Environment {
    /// In memory; read by the command through our own descriptor.
    file: Option<OwnedFd>,
    /// What a file by lines cannot say: named in the arguments, the value in the command's own
    /// environment.
    named: Vec<(String, String)>,
}

impl Environment {
    /// The program's own win over the operator's.
    pub(super) fn new(
        program: &[(ByteString, ByteString)],
        operator: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for (name, value) in program {
            pairs.push((text(name, "a variable's name")?, text(value, "a variable")?));
        }
        let given: BTreeSet<&str> = pairs.iter().map(|pair| pair.0).collect();
        let others = operator
            .iter()
            .filter(|(name, _)| !given.contains(name.as_str()));
        pairs.extend(others.map(|(name, value)| (name.as_str(), value.as_str())));
        let mut lines = String::new();
        let mut named = Vec::new();
        for (name, value) in pairs {
            let odd = |c: char| c.is_whitespace() || c.is_control() || c == '=' || c == '#';
            if name.is_empty() || name.contains(odd) || name.ends_with('*') {
                return Err(refuse(format!(
                    "`{}` cannot name a variable",
                    name.escape_debug()
                )));
            }
            let plain = !value.contains(['\n', '\r', '\0'])
                && name.len() + value.len() < LONGEST_LINE
                && !name.starts_with('\u{feff}');
            if plain {
                lines.push_str(name);
                lines.push('=');
                lines.push_str(value);
                lines.push('\n');
            } else if is_ours(name) {
                return Err(refuse(format!(
                    "the variable `{name}` cannot have a value of several lines or over 60 KiB in a container"
                )));
            } else {
                named.push((name.to_owned(), value.to_owned()));
            }
        }
        let file = if lines.is_empty() {
            None
        } else {
            Some(in_memory(lines.as_bytes())?)
        };
        Ok(Self { file, named })
    }

    pub(super) fn args(&self) -> Vec<OsString> {
        let file = self.file.iter().map(|file| {
            let (us, fd) = (std::process::id(), file.as_raw_fd());
            format!("--env-file=/proc/{us}/fd/{fd}").into()
        });
        let named = self
            .named
            .iter()
            .map(|(name, _)| format!("--env={name}").into());
        file.chain(named).collect()
    }

    /// For the command's own environment.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.named
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn is_ours(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    MEANT_FOR_US.contains(&name.as_str())
        || name.ends_with("_PROXY")
        || MEANT_FOR_US_PREFIX
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

fn in_memory(contents: &[u8]) -> Result<OwnedFd> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::new(Code::Internal, Stage::Run, "cannot pass the variables on").caused_by(error)
    };
    let file = rustix::fs::memfd_create(c"variables", MemfdFlags::CLOEXEC)
        .map_err(|errno| failed(&errno))?;
    let mut file = std::fs::File::from(file);
    file.write_all(contents).map_err(|error| failed(&error))?;
    Ok(file.into())
}

/// The engine is spoken to in JSON, which would replace other bytes without a word.
pub(super) fn text<'a>(bytes: &'a ByteString, what: &str) -> Result<&'a str> {
    std::str::from_utf8(bytes.as_bytes())
        .map_err(|_| refuse(format!("{what} is not UTF-8, which containers need")))
}

fn refuse(message: String) -> Error {
    Error::new(Code::InvalidArgument, Stage::Run, message)
        .hint("the `native` backend takes any bytes; or pass them in a file with `--input`")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use super::*;

    fn pair(name: &str, value: &str) -> (ByteString, ByteString) {
        let bytes = |text: &str| ByteString::new(text).unwrap_or_default();
        (bytes(name), bytes(value))
    }

    #[test]
    fn values_are_never_arguments() -> Result<()> {
        let secret = [
            pair("A", "s3cret"),
            pair("B", "two\nlines"),
            pair("PATH", "/x"),
        ];
        let operator = BTreeMap::from([("A".into(), "other".into()), ("C".into(), "3".into())]);
        let made = Environment::new(&secret, &operator)?;
        let args = made.args();
        assert_eq!(args.len(), 2);
        assert_eq!(args[1], "--env=B");
        assert!(
            args.iter()
                .all(|arg| !arg.to_string_lossy().contains("s3cret"))
        );
        assert_eq!(made.values().collect::<Vec<_>>(), [("B", "two\nlines")]);
        let mut text = String::new();
        let mut file = std::fs::File::from(made.file.expect("a file"));
        file.rewind().expect("the start");
        file.read_to_string(&mut text).expect("read");
        assert_eq!(text, "A=s3cret\nPATH=/x\nC=3\n");
        Ok(())
    }

    #[test]
    fn the_commands_own_variables_are_not_the_programs() {
        for name in [
            "DOCKER_HOST",
            "PATH",
            "HOME",
            "LD_PRELOAD",
            "https_proxy",
            "GODEBUG",
        ] {
            let refused = Environment::new(&[pair(name, "a\nb")], &BTreeMap::new());
            assert!(refused.is_err(), "{name}");
        }
        for name in ["", "A B", "A=B", "#A", "A*", "A\n"] {
            let refused = Environment::new(&[pair(name, "a")], &BTreeMap::new());
            assert!(refused.is_err(), "{name:?}");
        }
    }
}
