//! The official clients of the Model Context Protocol and its conformance suite, as
//! `scripts/mcp-tools` installs them.

use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Clone)]
pub struct McpTools(PathBuf);

/// Which Python client: the last one that knows `initialize` alone, or the one that speaks both eras.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    First,
    Second,
}

impl McpTools {
    /// `None` when they are not installed, which is said; in CI that is a failure.
    ///
    /// # Panics
    /// In CI without them.
    pub fn find() -> Option<Self> {
        let Some(directory) = std::env::var_os("GLOVEBOX_TEST_MCP_TOOLS") else {
            let said = "GLOVEBOX_TEST_MCP_TOOLS is not set (`scripts/mcp-tools` prints its value)";
            let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!in_ci, "{said}");
            eprintln!("SKIPPED: {said}");
            return None;
        };
        let directory = PathBuf::from(directory);
        assert!(
            directory.join("stamp").is_file(),
            "nothing is installed in {}",
            directory.display()
        );
        Some(Self(directory))
    }

    /// A program of the node packages, without anything of the developer's own.
    pub fn node(&self, program: &str) -> Command {
        let mut command = Command::new(self.0.join("node"));
        command.arg(self.0.join("node_modules").join(program));
        command
    }

    pub fn python(&self, era: Era) -> PathBuf {
        let name = match era {
            Era::First => "python-1",
            Era::Second => "python-2",
        };
        self.0.join(name).join("bin/python")
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}
