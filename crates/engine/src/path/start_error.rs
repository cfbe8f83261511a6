//! A program that could not be started: the error names it, and says what would help.

use glovebox_backend::Order;
use glovebox_model::{ByteString, Code, Error};
use glovebox_workspace::toolchain::{self, Toolchains};
use glovebox_workspace::{Dir, RelPath};

/// Names what could not be started, and says which flag shows it where the caller's own PATH has it.
/// `host` is where the caller's programs are, if they can be shown at all.
pub(super) fn explain(
    error: &mut Error,
    order: &Order,
    toolchains: &Toolchains,
    host: Option<&toolchain::Host>,
    work: Option<&Dir>,
) {
    use std::os::unix::ffi::OsStrExt;
    let Some(command) = order.argv.first() else {
        return;
    };
    let shown = command.display();
    match error.code {
        Code::CommandNotFound => error.message = format!("`{shown}` was not found in the sandbox"),
        Code::CommandNotExecutable => error.message = format!("`{shown}` cannot be executed"),
        Code::CwdNotFound => {
            let cwd = order.cwd.display();
            error.message = format!("the working directory `{cwd}` cannot be entered");
        }
        _ => {}
    }
    if error.code == Code::CommandNotFound {
        let name = std::ffi::OsStr::from_bytes(command.as_bytes());
        let visible = |path: &std::path::Path| {
            path.starts_with("/usr")
                || toolchains
                    .mounts
                    .iter()
                    .any(|mount| path.starts_with(&mount.guest))
        };
        let hint =
            host.and_then(|host| toolchain::hint_for_missing(name, host, toolchains, visible));
        error.hints.extend(hint);
        error.hints.extend(hint_for_words(command, work));
    }
}

/// What people type that is no command: a file without its `./`, a whole line of shell.
fn hint_for_words(command: &ByteString, work: Option<&Dir>) -> Option<String> {
    let bytes = command.as_bytes();
    let shown = command.display();
    let path = bytes.strip_prefix(b"./").unwrap_or(bytes);
    let here =
        RelPath::new(path).is_ok_and(|path| work.is_some_and(|work| work.lstat(&path).is_ok()));
    if here && bytes.contains(&b'/') {
        return Some(format!(
            "`{shown}` is there; what its first line names is not"
        ));
    }
    if here {
        return Some(format!(
            "`{shown}` is in the workspace: run it as `./{shown}`"
        ));
    }
    let shell = |byte: &u8| byte.is_ascii_whitespace() || b"|&;<>$`".contains(byte);
    bytes
        .iter()
        .any(shell)
        .then(|| "a line of shell needs a shell: `-- sh -c '…'`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::Stage;

    #[test]
    fn a_flag_that_shows_the_hosts_programs_is_named_only_where_it_helps() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("only-here");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let host = toolchain::Host {
            path: dir.path().into(),
            ..toolchain::Host::new("/nowhere")
        };
        let order = Order {
            argv: vec![ByteString::try_from("only-here").unwrap()],
            env: Vec::new(),
            cwd: ByteString::default(),
            path: Vec::new(),
        };
        let hints = |host: Option<&toolchain::Host>| {
            let mut error = Error::new(Code::CommandNotFound, Stage::Run, "not found");
            explain(&mut error, &order, &Toolchains::default(), host, None);
            assert!(error.message.contains("`only-here`"), "{error}");
            error.hints
        };
        assert_eq!(hints(Some(&host)).len(), 1);
        assert!(hints(None).is_empty());
    }
}
