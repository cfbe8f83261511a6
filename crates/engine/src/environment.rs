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

/// Where people are asked about every change: files that lie in the workspace or in the home, and that
/// no command named, are not to become programs. Not all can be turned off by variables: SECURITY
/// says which remain.
const GUARDED: [(&str, &str); 3] = [
    ("PYTHONSAFEPATH", "1"),
    ("PYTHONNOUSERSITE", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
];
/// Settings of git that name a program in a repository's own configuration, which these override.
const GUARDED_GIT: [(&str, &str); 14] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("sequence.editor", "false"),
    ("core.askPass", "true"),
    ("core.sshCommand", "ssh"),
    ("core.alternateRefsCommand", "true"),
    ("credential.helper", ""),
    ("gpg.program", "gpg"),
    ("log.showSignature", "false"),
    ("interactive.diffFilter", "cat"),
    ("protocol.ext.allow", "never"),
    ("safe.bareRepository", "explicit"),
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

/// Whether interpreters and `git` obey files of the workspace that the command does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    Obeyed,
    /// As far as variables can say so.
    Ignored,
}

/// What every program of a sandbox sees, before it is known which.
pub(crate) fn of_any() -> Environment {
    let beside = Beside::Obeyed;
    with(None, &Toolchains::default(), &OFFLINE, &[], beside)
}

/// `network` is what tells programs of theirs, if they have one. `beside` says what counts of the files beside it.
pub(crate) fn of(
    exec: &ExecId,
    toolchains: &Toolchains,
    network: Option<&[(&str, &str)]>,
    asked: &[EnvVar],
    beside: Beside,
) -> Environment {
    let network = network.unwrap_or(&OFFLINE);
    with(Some(exec), toolchains, network, asked, beside)
}

/// Of a program that people look at, instead of what tells it that there are none.
pub(crate) fn for_terminal(env: &mut Vec<(ByteString, ByteString)>, asked: &[EnvVar]) {
    let is_asked = |key: &str| asked.iter().any(|it| it.key.as_str() == key);
    for key in ["NO_COLOR", "PAGER", "GIT_PAGER", "TERM"] {
        if !is_asked(key) {
            env.retain(|(known, _)| known.as_bytes() != key.as_bytes());
        }
    }
    if !is_asked("TERM") {
        let text = |text: &str| ByteString::try_from(text).unwrap_or_default();
        env.push((text("TERM"), text("xterm-256color")));
    }
}

fn with(
    exec: Option<&ExecId>,
    toolchains: &Toolchains,
    network: &[(&str, &str)],
    asked: &[EnvVar],
    beside: Beside,
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
    if beside == Beside::Ignored {
        guard(&mut variables);
    }
    let path = variables.iter().find(|(key, _)| key.as_bytes() == b"PATH");
    let path = path.map(|(_, value)| split(value)).unwrap_or_default();
    Environment { variables, path }
}

/// Whatever was asked for: a command that wants it otherwise says so in its own words, which an
/// approver reads.
fn guard(variables: &mut Vec<(ByteString, ByteString)>) {
    let mut fix = |key: &str, value: &str| {
        let text = |text: &str| ByteString::try_from(text).unwrap_or_default();
        set(variables, text(key), text(value));
    };
    for (key, value) in GUARDED {
        fix(key, value);
    }
    fix("GIT_CONFIG_COUNT", &GUARDED_GIT.len().to_string());
    for (at, (key, value)) in GUARDED_GIT.iter().enumerate() {
        fix(&format!("GIT_CONFIG_KEY_{at}"), key);
        fix(&format!("GIT_CONFIG_VALUE_{at}"), value);
    }
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
    use std::os::unix::fs::PermissionsExt;

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
        let beside = Beside::Obeyed;
        let environment = of(&exec, &Toolchains::default(), None, &all, beside);
        assert_eq!(value(&environment, "LANG"), b"de_DE");
        assert_eq!(value(&environment, "FOO"), b"bar");
        assert_eq!(environment.path.len(), 2);
    }

    #[test]
    fn nothing_of_the_callers_environment_is_there() {
        let exec = ExecId::from_random([1; 16]);
        let beside = Beside::Obeyed;
        let environment = of(&exec, &Toolchains::default(), None, &[], beside);
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

    /// Programs as they lie on this machine, in a directory with files that no command names.
    #[test]
    fn files_beside_a_program_are_not_run_where_they_are_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let work = directory.path();
        let write = |name: &str, text: &str| {
            let path = work.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        };
        write("json.py", "open('ran', 'a').write('json')\n");
        write("planted", "#!/bin/sh\necho \"$0\" >>ran\n");
        write("hooks/post-index-change", "#!/bin/sh\necho hook >>ran\n");
        write(".gitconfig", "[core]\nfsmonitor = ./planted\n");
        let run = |beside, words: &[&str]| {
            let exec = ExecId::from_random([1; 16]);
            // A call cannot say otherwise.
            let asked = [asked("PYTHONSAFEPATH", ""), asked("GIT_CONFIG_COUNT", "0")];
            let of = of(&exec, &Toolchains::default(), None, &asked, beside);
            let text = |it: &ByteString| OsStr::from_bytes(it.as_bytes()).to_owned();
            let variables = of
                .variables
                .iter()
                .map(|(key, value)| (text(key), text(value)));
            let mut command = std::process::Command::new(words[0]);
            command.args(&words[1..]).current_dir(work).env_clear();
            command.envs(variables).env("HOME", work);
            let output = command.output().unwrap();
            let ran = work.join("ran").exists();
            let _ = std::fs::remove_file(work.join("ran"));
            (ran, String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let (_, said) = run(Beside::Obeyed, &["git", "init", "-q", "."]);
        assert_eq!(said, "");
        let config = "[core]\nfsmonitor = ./planted\nhooksPath = hooks\n";
        write(".git/config", config);
        for words in [&["git", "status"][..], &["python3", "-c", "import json"]] {
            let (ran, said) = run(Beside::Ignored, words);
            assert!(!ran, "{words:?}: {said}");
            let (ran, _) = run(Beside::Obeyed, words);
            assert!(ran, "{words:?} would run what was planted");
        }
    }
}
