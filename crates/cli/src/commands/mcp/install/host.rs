//! The hosts: where each keeps its list of servers, and how it wants them written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use glovebox_model::{Code, Error, Result, Stage};

pub(super) use crate::args::AgentHost as Host;

/// Whose settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// One person's, for everything that they open.
    Own,
    /// Everybody's who opens this directory.
    Project,
}

/// A file and the directory above which it must not lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) base: PathBuf,
    /// Below the base.
    pub(super) file: PathBuf,
    pub(super) scope: Scope,
}

impl Scope {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Project => "project",
        }
    }
}

impl Location {
    pub(super) fn path(&self) -> PathBuf {
        self.base.join(&self.file)
    }
}

/// What the environment says.
pub(super) struct Surroundings<'a> {
    pub(super) home: Option<PathBuf>,
    pub(super) here: &'a Path,
    pub(super) variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl Host {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Cursor => "cursor",
            Self::Codex => "codex",
            Self::Vscode => "vscode",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Cursor => "Cursor",
            Self::Codex => "Codex",
            Self::Vscode => "VS Code",
        }
    }

    /// The key that the servers stand under.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Claude | Self::Cursor => "mcpServers",
            Self::Codex => "mcp_servers",
            Self::Vscode => "servers",
        }
    }

    /// The others tell by the keys that an entry has.
    pub(super) const fn names_transport(self) -> bool {
        match self {
            Self::Claude | Self::Vscode => true,
            Self::Cursor | Self::Codex => false,
        }
    }

    /// Where the program is started, for hosts that would otherwise start it in the home directory.
    pub(super) const fn directory(self) -> Option<&'static str> {
        match self {
            Self::Vscode => Some("${workspaceFolder}"),
            Self::Claude | Self::Cursor | Self::Codex => None,
        }
    }

    pub(super) fn location(self, scope: Scope, around: &Surroundings<'_>) -> Result<Location> {
        let (base, file) = match scope {
            Scope::Project => (around.here.to_owned(), self.project_file().into()),
            Scope::Own => self.own_file(around)?,
        };
        Ok(Location { base, file, scope })
    }

    const fn project_file(self) -> &'static str {
        match self {
            Self::Claude => ".mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Codex => ".codex/config.toml",
            Self::Vscode => ".vscode/mcp.json",
        }
    }

    fn own_file(self, around: &Surroundings<'_>) -> Result<(PathBuf, PathBuf)> {
        let (moved_by, file, usual) = match self {
            Self::Claude => ("CLAUDE_CONFIG_DIR", ".claude.json", ".claude.json"),
            Self::Cursor => ("", "", ".cursor/mcp.json"),
            Self::Codex => ("CODEX_HOME", "config.toml", ".codex/config.toml"),
            Self::Vscode => (
                "XDG_CONFIG_HOME",
                "Code/User/mcp.json",
                ".config/Code/User/mcp.json",
            ),
        };
        let moved = Some(moved_by).filter(|it| !it.is_empty());
        let moved = moved.and_then(|it| (around.variable)(it).map(PathBuf::from));
        if let Some(base) = moved.filter(|it| it.is_absolute()) {
            return Ok((base, file.into()));
        }
        let home = around.home.clone().ok_or_else(|| {
            let message = format!("nobody knows where {} keeps your settings", self.title());
            Error::new(Code::InvalidArgument, Stage::Parse, message)
                .hint("set `HOME`, or write this project's file with `--project-file`")
        })?;
        Ok((home, usual.into()))
    }

    /// How its user sees that it worked.
    pub(super) const fn check(self, scope: Scope) -> &'static str {
        match (self, scope) {
            (Self::Claude, Scope::Own) => "check it with `claude mcp list`",
            (Self::Claude, Scope::Project) => {
                "`claude` asks everybody once whether to use it; `/mcp` lists it then"
            }
            (Self::Cursor, _) => {
                "look for it under MCP in Cursor's settings, or run `cursor-agent mcp list`"
            }
            (Self::Codex, Scope::Own) => "check it with `codex mcp list`",
            (Self::Codex, Scope::Project) => {
                "Codex reads it in projects that you trust; check it with `codex mcp list`"
            }
            (Self::Vscode, _) => "run `MCP: List Servers` from VS Code's command palette",
        }
    }

    /// Where the token for a server comes from.
    pub(super) const fn token(self) -> &'static str {
        match self {
            Self::Claude | Self::Cursor | Self::Codex => {
                "the token is read from `GLOVEBOX_TOKEN`: set it where the host is started"
            }
            Self::Vscode => "VS Code asks for the token when it first connects, and keeps it",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Host; 4] = [Host::Claude, Host::Cursor, Host::Codex, Host::Vscode];

    fn path(host: Host, scope: Scope, variables: &[(&str, &str)]) -> String {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let around = Surroundings {
            home: Some("/home/me".into()),
            here: Path::new("/work/site"),
            variable: &variable,
        };
        let location = host.location(scope, &around).unwrap();
        location.path().to_str().unwrap().to_owned()
    }

    #[test]
    fn each_host_has_its_own_file_and_one_in_a_project() {
        let own = ALL.map(|host| path(host, Scope::Own, &[]));
        assert_eq!(
            own,
            [
                "/home/me/.claude.json",
                "/home/me/.cursor/mcp.json",
                "/home/me/.codex/config.toml",
                "/home/me/.config/Code/User/mcp.json"
            ]
        );
        let project = ALL.map(|host| path(host, Scope::Project, &[]));
        assert_eq!(
            project,
            [
                "/work/site/.mcp.json",
                "/work/site/.cursor/mcp.json",
                "/work/site/.codex/config.toml",
                "/work/site/.vscode/mcp.json"
            ]
        );
    }

    #[test]
    fn what_moves_a_hosts_settings_moves_them_here_too() {
        let variables = [
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("CODEX_HOME", "/x"),
            ("XDG_CONFIG_HOME", "/g"),
        ];
        let own = ALL.map(|host| path(host, Scope::Own, &variables));
        assert_eq!(
            own,
            [
                "/c/.claude.json",
                "/home/me/.cursor/mcp.json",
                "/x/config.toml",
                "/g/Code/User/mcp.json"
            ]
        );
        let relative = [("CODEX_HOME", "x")];
        assert_eq!(
            path(Host::Codex, Scope::Own, &relative),
            "/home/me/.codex/config.toml"
        );
    }
}
