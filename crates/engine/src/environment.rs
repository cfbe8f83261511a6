//! The whole environment of a program: nothing is inherited from the caller's.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use glovebox_model::{ByteString, EnvVar, ExecId};
use glovebox_workspace::toolchain::Toolchains;

const SYSTEM_PATH: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin"];

/// For programs that talk to people: there is none to scroll, page or colour for.
const FIXED: [(&str, &str); 10] = [
    ("HOME", "/home/sandbox"),
    ("USER", "sandbox"),
    ("LOGNAME", "sandbox"),
    ("LANG", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GLOVEBOX", "1"),
];

/// Without a network package managers say so at once instead of trying for a minute.
pub(crate) const OFFLINE: [(&str, &str); 3] = [
    ("PIP_NO_INDEX", "1"),
    ("UV_OFFLINE", "1"),
    ("npm_config_offline", "true"),
];

/// What the program sees, and where its command is looked for.
#[derive(Debug)]
pub(crate) struct Environment {
    pub(crate) variables: Vec<(ByteString, ByteString)>,
    pub(crate) path: Vec<ByteString>,
}

impl Environment {
    /// Whether the host has such a command where a sandbox looks for it.
    pub(crate) fn finds(&self, command: &str) -> bool {
        self.path.iter().any(|directory| {
            let directory = Path::new(OsStr::from_bytes(directory.as_bytes()));
            directory.join(command).is_file()
        })
    }
}

/// What every program of a sandbox sees, before it is known which.
pub(crate) fn of_any() -> Environment {
    with(None, &Toolchains::default(), &OFFLINE, &[])
}

/// `network` is what tells programs of theirs, if they have one.
pub(crate) fn of(
    exec: &ExecId,
    toolchains: &Toolchains,
    network: Option<&[(&str, &str)]>,
    asked: &[EnvVar],
) -> Environment {
    with(Some(exec), toolchains, network.unwrap_or(&OFFLINE), asked)
}

fn with(
    exec: Option<&ExecId>,
    toolchains: &Toolchains,
    network: &[(&str, &str)],
    asked: &[EnvVar],
) -> Environment {
    let text = |text: &str| ByteString::try_from(text).unwrap_or_default();
    let mut variables: Vec<(ByteString, ByteString)> = FIXED
        .iter()
        .chain(network)
        .map(|(key, value)| (text(key), text(value)))
        .collect();
    if let Some(exec) = exec {
        variables.push((text("GLOVEBOX_EXEC_ID"), text(exec.as_str())));
    }
    variables.push((text("PATH"), default_path(toolchains)));
    for (key, value) in &toolchains.env {
        set(&mut variables, text(key), text(value));
    }
    for variable in asked {
        set(
            &mut variables,
            text(variable.key.as_str()),
            variable.value.clone(),
        );
    }
    let path = variables.iter().find(|(key, _)| key.as_bytes() == b"PATH");
    let path = path.map(|(_, value)| split(value)).unwrap_or_default();
    Environment { variables, path }
}

fn default_path(toolchains: &Toolchains) -> ByteString {
    let own = toolchains
        .path
        .iter()
        .map(|path| path.as_os_str().as_bytes());
    let parts: Vec<&[u8]> = own
        .chain(SYSTEM_PATH.iter().map(|it| it.as_bytes()))
        .collect();
    ByteString::new(parts.join(&b':')).unwrap_or_default()
}

fn set(variables: &mut Vec<(ByteString, ByteString)>, key: ByteString, value: ByteString) {
    match variables.iter_mut().find(|(known, _)| *known == key) {
        Some(entry) => entry.1 = value,
        None => variables.push((key, value)),
    }
}

fn split(path: &ByteString) -> Vec<ByteString> {
    path.as_bytes()
        .split(|byte| *byte == b':')
        .filter(|part| !part.is_empty())
        .filter_map(ByteString::new)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(key: &str, value: &str) -> EnvVar {
        EnvVar {
            key: key.parse().unwrap(),
            value: ByteString::try_from(value).unwrap(),
        }
    }

    fn value<'a>(environment: &'a Environment, key: &str) -> &'a [u8] {
        let found = environment
            .variables
            .iter()
            .filter(|(it, _)| it.as_bytes() == key.as_bytes());
        let all: Vec<_> = found.collect();
        assert_eq!(all.len(), 1, "{key} is there once");
        all[0].1.as_bytes()
    }

    #[test]
    fn what_is_asked_for_wins_and_stands_once() {
        let exec = ExecId::from_random([1; 16]);
        let all = [
            asked("LANG", "de_DE"),
            asked("PATH", "/x::/y"),
            asked("FOO", "bar"),
        ];
        let environment = of(&exec, &Toolchains::default(), None, &all);
        assert_eq!(value(&environment, "LANG"), b"de_DE");
        assert_eq!(value(&environment, "FOO"), b"bar");
        assert_eq!(environment.path.len(), 2);
    }

    #[test]
    fn nothing_of_the_callers_environment_is_there() {
        let exec = ExecId::from_random([1; 16]);
        let environment = of(&exec, &Toolchains::default(), None, &[]);
        let ours = FIXED.len() + OFFLINE.len() + 2;
        assert_eq!(environment.variables.len(), ours);
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        assert!(
            !environment
                .variables
                .iter()
                .any(|(key, _)| key.as_bytes().starts_with(b"CARGO"))
        );
    }
}
