//! What a host starts, or which server it asks: this program as it was called.

use glovebox_api::Target;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use glovebox_model::{Code, Error, Result, Stage};

use super::entry::Form;
use super::host::Scope;
use crate::args::{AgentHost, Global, McpInstallArgs};
use crate::context::Context;
use crate::render;
use glovebox_api::client::Address;

const NAME: &str = "glovebox";

pub(super) fn form(
    global: &Global,
    args: &McpInstallArgs,
    scope: Scope,
    here: &Path,
) -> Result<Form> {
    // The environment is one's own, and no part of a project.
    let address = match scope {
        Scope::Own => Context::new(global).address()?,
        Scope::Project => global.server.clone(),
    };
    match address {
        Some(address) => server(global, args, &address),
        None => program(global, args, scope, here),
    }
}

fn server(global: &Global, args: &McpInstallArgs, address: &Address) -> Result<Form> {
    if let Address::Unix(_) = address {
        let message = "hosts of agents do not speak to Unix sockets";
        return Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
            .hint("without `--server` and `GLOVEBOX_SERVER` the host starts Glovebox itself")
            .hint("or let the server listen with `glovebox serve --listen 127.0.0.1:7070`"));
    }
    if !global.quiet && address.is_exposed() {
        render::note(&format!(
            "the token would go to `{address}` in the clear; use `https://`"
        ));
    }
    let target = Target::new("/mcp").optional("project", args.project.as_ref());
    Ok(Form::Server {
        url: format!("{address}{target}"),
    })
}

fn program(global: &Global, args: &McpInstallArgs, scope: Scope, here: &Path) -> Result<Form> {
    // What the host could not use either is better said here.
    Context::new(global).config()?;
    let running = std::env::current_exe().and_then(|it| it.canonicalize());
    let running = running.map_err(|error| {
        let message = "cannot tell where this program lies";
        Error::new(Code::InvalidArgument, Stage::Parse, message)
            .caused_by(error)
            .hint("was it replaced or removed while it ran? try again")
    })?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let command = match (on_path(&running, &path), scope) {
        // Others have it elsewhere.
        (Some(_), Scope::Project) => NAME.to_owned(),
        // Where it was put, which stays when a new version comes.
        (Some(found), Scope::Own) => text(&found)?,
        (None, _) => text(&running)?,
    };
    let mut words = options(global, scope, here)?;
    words.push("mcp".to_owned());
    match &args.project {
        Some(project) => words.extend(["--project".to_owned(), project.to_string()]),
        // It starts programs in the home, and takes no directory but as an argument.
        None if args.host == AgentHost::Cursor => {
            words.extend(["--directory".to_owned(), "${workspaceFolder}".to_owned()]);
        }
        None => {}
    }
    Ok(Form::Program {
        command,
        args: words,
    })
}

/// What was said to this command holds for the one that the host starts. The environment is one's
/// own, and few hosts pass it on.
fn options(global: &Global, scope: Scope, here: &Path) -> Result<Vec<String>> {
    if global.database.is_some() {
        let message = "the address of a database is not written into the files of hosts";
        return Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
            .hint("it may hold a password: set `GLOVEBOX_DATABASE` where the host is started"));
    }
    let paths = [
        ("--config", &global.config, "GLOVEBOX_CONFIG"),
        ("--state-dir", &global.state_dir, "GLOVEBOX_STATE_DIR"),
        (
            "--shadow-policy",
            &global.shadow_policy,
            "GLOVEBOX_SHADOW_POLICY",
        ),
        ("--skills-dir", &global.skills_dir, "GLOVEBOX_SKILLS_DIR"),
        ("--keys-dir", &global.keys_dir, "GLOVEBOX_KEYS_DIR"),
        (
            "--secrets-key-file",
            &global.secrets_key_file,
            "GLOVEBOX_SECRETS_KEY_FILE",
        ),
    ];
    let mut words = Vec::new();
    for (option, given, variable) in paths {
        let of_environment = || match scope {
            Scope::Own => std::env::var_os(variable).filter(|it| !it.is_empty()),
            Scope::Project => None,
        };
        let path = given
            .clone()
            .or_else(|| of_environment().map(PathBuf::from));
        if let Some(path) = path {
            words.extend([option.to_owned(), text(&plain(&here.join(path)))?]);
        }
    }
    Ok(words)
}

/// Without `..`, which people write and nobody wants to read again. The file itself may be a link that
/// is meant.
fn plain(path: &Path) -> PathBuf {
    let climbs = path.components().any(|it| it == Component::ParentDir);
    let directly = match (path.parent(), path.file_name()) {
        _ if !climbs => None,
        (Some(parent), Some(name)) => parent.canonicalize().ok().map(|it| it.join(name)),
        _ => path.canonicalize().ok(),
    };
    directly.unwrap_or_else(|| path.components().collect())
}

/// This very program under its own name.
fn on_path(running: &Path, path: &OsStr) -> Option<PathBuf> {
    let candidates = std::env::split_paths(path).filter(|it| it.is_absolute());
    let mut candidates = candidates.map(|it| it.join(NAME));
    candidates.find(|it| it.canonicalize().is_ok_and(|it| it == running))
}

fn text(path: &Path) -> Result<String> {
    let shown = path.to_str().map(str::to_owned);
    shown.ok_or_else(|| {
        let message = format!("`{}` is no text in UTF-8, as hosts need it", path.display());
        Error::new(Code::InvalidArgument, Stage::Parse, message)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_this_very_program_counts_as_found() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        for name in ["store", "bin", "other"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        let running = root.join("store/glovebox-1");
        std::fs::write(&running, "").unwrap();
        std::fs::write(root.join("other/glovebox"), "").unwrap();
        symlink(&running, root.join("bin/glovebox")).unwrap();
        let path = |names: &[&str]| {
            let paths = names.iter().map(|name| root.join(name));
            std::env::join_paths(paths).unwrap()
        };
        let found = on_path(&running, &path(&["other", "bin"]));
        assert_eq!(found, Some(root.join("bin/glovebox")));
        assert_eq!(on_path(&running, &path(&["other", "none"])), None);
        assert_eq!(on_path(&running, OsStr::new("")), None);
    }

    #[test]
    fn a_path_is_written_without_the_way_that_led_to_it() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("project")).unwrap();
        symlink("elsewhere", root.join("c.toml")).unwrap();
        for (given, written) in [
            ("project/../c.toml", "c.toml"),
            ("project/./c.toml", "project/c.toml"),
            ("project/..", ""),
            ("c.toml", "c.toml"),
        ] {
            let expected = match written {
                "" => root.clone(),
                below => root.join(below),
            };
            assert_eq!(plain(&root.join(given)), expected, "{given}");
        }
    }
}
