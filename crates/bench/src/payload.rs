//! The programs that every contender runs.

use std::path::Path;

use glovebox_backend::Language;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// Does nothing: what is left is the cost of the sandbox.
    True,
    /// A program as agents start them.
    Python,
    /// Another language whose interpreter a warm sandbox can have started.
    Node,
}

impl Payload {
    pub const ALL: [Self; 3] = [Self::True, Self::Python, Self::Node];

    pub fn name(self) -> &'static str {
        match self {
            Self::True => "true",
            Self::Python => "python",
            Self::Node => "node",
        }
    }

    /// Of the interpreter that a warm sandbox can have started for it.
    pub(crate) fn language(self) -> Option<Language> {
        match self {
            Self::True => None,
            Self::Python => Some(Language::Python),
            Self::Node => Some(Language::Node),
        }
    }

    pub fn argv(self) -> Vec<&'static str> {
        match self {
            Self::True => vec!["/bin/true"],
            Self::Python => vec!["/usr/bin/python3", "-c", "print(1)"],
            Self::Node => vec!["/usr/bin/node", "-e", "console.log(1)"],
        }
    }

    /// What it prints.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::True => "",
            Self::Python | Self::Node => "1\n",
        }
    }

    pub(crate) fn is_installed(self) -> bool {
        self.argv()
            .first()
            .is_some_and(|path| Path::new(path).exists())
    }
}
