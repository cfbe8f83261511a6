//! Variables that change what a name means, or what a program does when it starts.

use glovebox_model::RiskSignal;

use crate::signal::CHANGED_ENVIRONMENT;

const NAMES: &[&str] = &[
    "PATH",
    "IFS",
    "ENV",
    "BASH",
    "BASHOPTS",
    "EXECIGNORE",
    "FCEDIT",
    "FUNCNEST",
    "GLOBIGNORE",
    // bash evaluates what they are given.
    "HISTCMD",
    "OPTIND",
    "RANDOM",
    "SRANDOM",
    "POSIXLY_CORRECT",
    "SHELLOPTS",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "SHELL",
    "CDPATH",
    "FPATH",
    "ZDOTDIR",
    "INPUTRC",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "XDG_DATA_DIRS",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "BROWSER",
    "LESS",
    "LESSOPEN",
    "LESSCLOSE",
    "LESSGLOBALTAGS",
    "LESSKEY",
    "LESSKEYIN",
    "LESSKEY_CONTENT",
    "SYSTEMD_PAGER",
    "PSQL_PAGER",
    "PSQLRC",
    "ACK_PAGER",
    "ACK_OPTIONS",
    "ACKRC",
    "AWKPATH",
    "AWKLIBPATH",
    "WGETRC",
    "CURL_HOME",
    "GOFLAGS",
    "SSH_ASKPASS",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "MAKEFLAGS",
    "MAKEFILES",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUBYOPT",
    "RUBYLIB",
    "NODE_OPTIONS",
    "NODE_PATH",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "CLASSPATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "TCLLIBPATH",
    "TAR_OPTIONS",
    "GREP_OPTIONS",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "OPENSSL_ENGINES",
    "KUBECONFIG",
    "DOCKER_HOST",
    "TERMINFO",
    "TERM_PROGRAM",
    "RIPGREP_CONFIG_PATH",
    "VIMINIT",
    "EXINIT",
    "MYVIMRC",
    "HISTFILE",
    "TZDIR",
    "LOCPATH",
    "NLSPATH",
    "RSYNC_RSH",
    "CVS_RSH",
    "CC",
    "CXX",
    "LD",
];

/// They begin like others, but name no program, file or place.
const PLAIN: &[&str] = &[
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "PYTHONHASHSEED",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    "GIT_TERMINAL_PROMPT",
];

const PREFIXES: &[&str] = &[
    "LD_",
    "DYLD_",
    "BASH_",
    "PYTHON",
    "PERL",
    "GIT_",
    "CARGO_",
    "NPM_CONFIG_",
    "npm_config_",
    "PIP_",
    "UV_",
    "LUA_",
    "GEM_",
    "BUNDLE_",
    "COR_",
    "DOTNET_",
];

/// Names that say how a program speaks, or carry a word for it to print; no program takes one for
/// the name of something to run or to load. `HOME` is none of them: programs obey files there.
const HARMLESS: &[&str] = &[
    "CI",
    "CLICOLOR",
    "COLUMNS",
    "DEBUG",
    "FORCE_COLOR",
    "LANG",
    "LC_ADDRESS",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
    "LINES",
    "LOGNAME",
    "NO_COLOR",
    "TERM",
    "TZ",
    "USER",
];

/// Whether a variable may change which files are run: every name that is not known to be harmless.
/// For whoever must be certain; `changes_meaning` is for whoever looks for signs.
pub fn may_change_what_runs(name: &str) -> bool {
    !HARMLESS.contains(&name) && !PLAIN.contains(&name)
}

/// Whether a variable changes what a name means, or what a program does when it starts.
pub fn changes_meaning(name: &str) -> bool {
    let changes = NAMES.contains(&name) || PREFIXES.iter().any(|it| name.starts_with(it));
    changes && !PLAIN.contains(&name)
}

/// What it says of a call that it sets such a variable: as much as of a script that does.
pub fn variable_signal(name: &str) -> Option<RiskSignal> {
    changes_meaning(name).then(|| RiskSignal {
        name: CHANGED_ENVIRONMENT.name.to_owned(),
        tier: CHANGED_ENVIRONMENT.tier,
        at: Some(format!("variable `{name}`")),
    })
}

/// The name in `NAME=value`, `NAME+=value` and `NAME[…]=value`.
pub(crate) fn assigned(word: &str) -> Option<&str> {
    let (left, _) = word.split_once('=')?;
    let left = left.strip_suffix('+').unwrap_or(left);
    let name = left.split('[').next()?;
    let first = name.chars().next()?;
    let valid = (first == '_' || first.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|it| it == b'_' || it.is_ascii_alphanumeric());
    valid.then_some(name)
}
