//! The toolchains that are known by name.

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal $(| $alias:literal)*;)+) => {
        /// In the order in which a directory is offered to them: what has a marker file first,
        /// what is known only by its place last.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind { $($(#[$doc])* $name,)+ }

        impl Kind {
            pub const ALL: &'static [Kind] = &[$(Kind::$name),+];

            pub const fn name(self) -> &'static str {
                match self { $(Kind::$name => $text,)+ }
            }

            /// By its name or by a word that people use for it.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text $(| $alias)* => Some(Kind::$name),)+ _ => None }
            }
        }
    };
}

kinds! {
    Venv = "venv" | "virtualenv";
    Pyenv = "pyenv";
    Uv = "uv";
    Conda = "conda" | "mamba" | "micromamba";
    Rustup = "rustup" | "rust" | "cargo";
    Nvm = "nvm";
    Fnm = "fnm";
    Volta = "volta";
    Asdf = "asdf";
    Mise = "mise";
    Sdkman = "sdkman";
    Go = "go" | "golang";
    Deno = "deno";
    Bun = "bun";
    Homebrew = "homebrew" | "brew" | "linuxbrew";
    Pipx = "pipx";
    /// A prefix below `/opt`.
    Opt = "opt";
    /// Named by its path.
    Path = "path";
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_own_name() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.name()), Some(*kind));
        }
    }
}
