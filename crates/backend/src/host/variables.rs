//! The environment of a program on the host. It is complete: nothing of ours is inherited, and a
//! call may set nothing that makes another program than the approved one run.

use std::ffi::CString;

use glovebox_model::{ByteString, Code, Error, Result, Stage};

use super::places::Places;

/// Where commands are looked for: the same for every program.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin";

/// What every exec has, whatever was asked for. Only with these very values may names that a call
/// cannot set be there.
const OURS: [(&str, &str); 7] = [
    ("PATH", PATH),
    ("HOME", "/home/sandbox"),
    ("USER", "sandbox"),
    ("LOGNAME", "sandbox"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("npm_config_offline", "true"),
];

/// Each makes some program load, run or trust something else.
const REFUSED: [&str; 53] = [
    "BASHOPTS",
    "BASH_ENV",
    "BROWSER",
    "CC",
    "CDPATH",
    "CLASSPATH",
    "CXX",
    "EDITOR",
    "ENV",
    "FPATH",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "GLOBIGNORE",
    "GOFLAGS",
    "GOROOT",
    "GOTOOLCHAIN",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "INPUTRC",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LESSCLOSE",
    "LESSOPEN",
    "LOCALDOMAIN",
    "LOCPATH",
    "LOGNAME",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANPAGER",
    "NLSPATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "PAGER",
    "PATH",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PROMPT_COMMAND",
    "PS4",
    "RESOLV_HOST_CONF",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "TCLLIBPATH",
    "USER",
    "VISUAL",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];

const REFUSED_PREFIXES: [&str; 23] = [
    "BASH_FUNC_",
    "BUNDLE_",
    "CARGO_",
    "CORECLR_",
    "COR_",
    "DOCKER_",
    "DOTNET_",
    "DYLD_",
    "ELECTRON_",
    "GEM_",
    "GIT_",
    "LD_",
    "LUA_",
    "MALLOC_",
    "NPM_CONFIG_",
    "PERL5",
    "PIP_CONFIG",
    "PYTHON",
    "RUBY",
    "RUST",
    "TERMINFO",
    "UV_PYTHON",
    "XDG_",
];

/// Whether a call may not set this variable for a program on the host. Case does not matter: some
/// programs look for both.
pub(super) fn is_refused(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    REFUSED.contains(&name.as_str())
        || REFUSED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// Whoever Glovebox runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Person {
    name: String,
    home: String,
}

impl Person {
    fn ours() -> Self {
        let known = nix::unistd::User::from_uid(nix::unistd::Uid::effective());
        match known {
            Ok(Some(user)) => Self {
                name: user.name,
                home: user.dir.to_string_lossy().into_owned(),
            },
            Ok(None) | Err(_) => Self {
                name: nix::unistd::Uid::effective().to_string(),
                home: "/".to_owned(),
            },
        }
    }
}

/// What the program sees, and where its command is looked for.
#[derive(Debug)]
pub(super) struct Variables {
    pub(super) pairs: Vec<CString>,
    pub(super) path: Vec<&'static str>,
}

impl Variables {
    /// `mark` tells the processes of this run from all others.
    pub(super) fn new(
        asked: &[(ByteString, ByteString)],
        places: &Places,
        mark: &[u8],
    ) -> Result<Self> {
        let mut pairs: Vec<CString> = Vec::new();
        let mut add = |name: &[u8], value: &[u8]| {
            let pair = [name, b"=", value].concat();
            CString::new(pair)
                .map(|pair| pairs.push(pair))
                .map_err(|_| refuse("a variable holds a zero byte", "leave it out"))
        };
        for (name, value) in asked {
            let (shown, bytes) = (name.display().to_string(), name.as_bytes());
            if bytes.is_empty() || bytes.contains(&b'=') {
                let message = format!("`{shown}` cannot name a variable");
                return Err(refuse(&message, "choose another name"));
            }
            let is_ours = OURS
                .iter()
                .any(|ours| (ours.0.as_bytes(), ours.1.as_bytes()) == (bytes, value.as_bytes()));
            if is_refused(&shown) && !is_ours {
                return Err(forbidden(&shown));
            }
            if !is_replaced(&shown) {
                add(bytes, value.as_bytes())?;
            }
        }
        let person = Person::ours();
        add(b"PATH", PATH.as_bytes())?;
        add(b"HOME", person.home.as_bytes())?;
        add(b"USER", person.name.as_bytes())?;
        add(b"LOGNAME", person.name.as_bytes())?;
        for (name, path) in places.variables()? {
            add(name.as_bytes(), &path)?;
        }
        let mark = CString::new(mark).map_err(|_| refuse("the mark is broken", "try again"))?;
        pairs.push(mark);
        Ok(Self {
            pairs,
            path: PATH.split(':').collect(),
        })
    }
}

/// Set here, for who it really is.
fn is_replaced(name: &str) -> bool {
    ["PATH", "HOME", "USER", "LOGNAME"].contains(&name)
}

fn refuse(message: &str, hint: &str) -> Error {
    Error::new(Code::InvalidArgument, Stage::Run, message.to_owned()).hint(hint.to_owned())
}

fn forbidden(name: &str) -> Error {
    Error::new(
        Code::PolicyDenied,
        Stage::Run,
        format!(
            "`{name}` cannot be set for a program on the host: without a sandbox it could make \
             another program run than the one that was approved"
        ),
    )
    .hint(format!(
        "leave out `{name}`, or run it in a sandbox: leave out `--backend host`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_load_other_code_are_refused() {
        for name in [
            "PATH",
            "Path",
            "LD_PRELOAD",
            "LD_AUDIT",
            "DYLD_INSERT_LIBRARIES",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "BASH_ENV",
            "ENV",
            "IFS",
            "PERL5LIB",
            "PERL5OPT",
            "RUBYOPT",
            "GIT_SSH_COMMAND",
            "GIT_EXTERNAL_DIFF",
            "GIT_CONFIG_COUNT",
            "npm_config_script_shell",
            "BASH_FUNC_ls%%",
            "GLIBC_TUNABLES",
            "RUSTC_WRAPPER",
            "XDG_CONFIG_HOME",
            "HOME",
        ] {
            assert!(is_refused(name), "{name}");
        }
        for name in [
            "FOO",
            "LANG",
            "CI",
            "PORT",
            "LDAP",
            "MY_PATH",
            "ENVIRONMENT",
        ] {
            assert!(!is_refused(name), "{name}");
        }
    }
}
