//! Programs that are no interpreters, but run what one of their arguments says.

use crate::shell::Text;

/// Options, by their beginning, that make a program run what they say.
const CARRIERS: &[(&str, &[&str])] = &[
    (
        "tar",
        &[
            "--checkpoint-a",
            "--to-c",
            "--use-c",
            "--info-s",
            "--new-v",
            "--rsh",
            "-I",
            "-F",
        ],
    ),
    ("bsdtar", &["--use-c"]),
    ("make", &["SHELL=", "--eval", ".SHELLFLAGS", "MAKEFLAGS="]),
    ("gmake", &["SHELL=", "--eval", ".SHELLFLAGS", "MAKEFLAGS="]),
    ("vim", &["-c", "+", "--cmd", "-S", "-s", "-u", "-W"]),
    ("vi", &["-c", "+", "--cmd", "-S", "-s", "-u"]),
    (
        "nvim",
        &["-c", "+", "--cmd", "-S", "-s", "-u", "-l", "--headless"],
    ),
    ("view", &["-c", "+", "--cmd", "-S"]),
    ("ex", &["-c", "+", "--cmd", "-s"]),
    (
        "emacs",
        &[
            "--eval",
            "-eval",
            "-l",
            "--load",
            "-f",
            "--funcall",
            "--script",
            "-x",
            "--exec",
        ],
    ),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-o", "-S"]),
    ("sftp", &["-o", "-S", "-b"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("sort", &["--compress-p"]),
    ("split", &["--filter"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("ag", &["--pager"]),
    ("ack", &["--pager", "--filter"]),
    ("zip", &["-TT", "--unzip-command"]),
    ("nc", &["-e", "-c", "--exec", "--sh-exec", "--lua-exec"]),
    ("ncat", &["-e", "-c", "--exec", "--sh-exec", "--lua-exec"]),
    ("netcat", &["-e", "-c"]),
    (
        "socat",
        &["EXEC", "exec", "SYSTEM", "system", "SHELL", "shell"],
    ),
    ("tcpdump", &["-z"]),
    (
        "tmux",
        &["new", "run", "send", "split", "if", "respawn", "pipe"],
    ),
    ("screen", &["-X", "-dm", "-c"]),
    ("psql", &["-c", "--command", "-f"]),
    ("mysql", &["-e", "--execute", "--pager"]),
    ("apt", &["-o", "--option"]),
    ("apt-get", &["-o", "--option"]),
    ("dpkg-architecture", &["-c", "--command"]),
    ("prove", &["-e", "--exec"]),
    ("gcc", COMPILER),
    ("g++", COMPILER),
    ("cc", COMPILER),
    ("c++", COMPILER),
    ("clang", COMPILER),
    ("clang++", COMPILER),
    ("gfortran", COMPILER),
    ("dpkg", &["--pre-invoke", "--post-invoke"]),
    ("deno", &["eval", "repl"]),
    ("less", &["+", "-k", "--lesskey"]),
    ("more", &["+"]),
    ("nmap", &["--script"]),
    ("openssl", &["-engine", "-provider"]),
    ("curl", &["-K", "--config"]),
    ("wget", &["--use-askpass", "-e", "--execute"]),
    ("m4", &[""]),
    ("dc", &["-e", "--expression"]),
    ("pip", &["--config-settings"]),
    ("docker", &["exec", "run"]),
    ("podman", &["exec", "run"]),
    ("kubectl", &["exec"]),
    ("npx", &["-c", "--call"]),
    ("npm", &["exec", "x", "explore"]),
    ("cargo", &["--config"]),
    ("go", &["-exec", "-toolexec", "generate"]),
    ("strace", &["-o"]),
    ("crontab", &["-"]),
];

/// They name the programs and the code with which it compiles.
const COMPILER: &[&str] = &["-wrapper", "-B", "-fplugin", "-specs", "--specs"];

pub(crate) fn carries(name: &str, arguments: &[Text]) -> bool {
    match name {
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => return awk(arguments),
        "sed" | "gsed" | "ssed" => return sed(arguments),
        "git" => return git(arguments),
        "sqlite3" => return sqlite(arguments),
        _ => {}
    }
    let Some((_, prefixes)) = CARRIERS.iter().find(|(it, _)| *it == name) else {
        return false;
    };
    let carries = |it: &Text| prefixes.iter().any(|prefix| it.shown().starts_with(prefix));
    arguments.iter().any(carries)
}

/// Commands by which it starts a program, or reads what may do so. They may be shortened.
const SQLITE: [&str; 10] = [
    "excel", "import", "load", "once", "open", "output", "read", "shell", "system", "www",
];

fn sqlite(arguments: &[Text]) -> bool {
    arguments.iter().map(Text::shown).any(|word| {
        let command = word.strip_prefix('.').unwrap_or_default();
        let command = command.split_ascii_whitespace().next().unwrap_or_default();
        let runs = !command.is_empty() && SQLITE.iter().any(|it| it.starts_with(command));
        let option = ["cmd", "init"].contains(&word.trim_start_matches('-'));
        let calls = ["load_extension", "edit("]
            .iter()
            .any(|it| word.contains(it));
        runs || calls || (option && word.starts_with('-'))
    })
}

fn awk(arguments: &[Text]) -> bool {
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        let Some(word) = argument.known() else {
            return true;
        };
        match word {
            "-F" | "-v" => at += 2,
            _ if word.starts_with("-F") || word.starts_with("-v") => at += 1,
            _ if word.starts_with('-') => return true,
            _ => {
                let reaches = ["system", "|", ">", "getline", "@", "close", "fflush", "ARG"];
                return reaches.iter().any(|it| word.contains(it));
            }
        }
    }
    true
}

/// Only scripts that plainly do no more than substitute, print, delete and quit are seen through.
fn sed(arguments: &[Text]) -> bool {
    let mut scripts: Vec<&Text> = Vec::new();
    let mut operands: Vec<&Text> = Vec::new();
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        at += 1;
        match argument.shown() {
            "-e" | "--expression" => {
                scripts.extend(arguments.get(at));
                at += 1;
            }
            "-n" | "-E" | "-r" | "-i" | "-s" | "-u" | "-z" | "--quiet" | "--silent"
            | "--in-place" | "--posix" | "--debug" | "--sandbox" | "--regexp-extended" | "-ni"
            | "-nE" | "-nr" | "-ri" | "-Ei" => {}
            word if word.starts_with("-i") || word.starts_with("--in-place=") => {}
            word if word.starts_with('-') && word.len() > 1 => return true,
            _ => operands.push(argument),
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first());
    }
    let plain = |it: &&Text| it.known().is_some_and(|it| it.split(';').all(plain_sed));
    !scripts.iter().all(plain)
}

fn plain_sed(command: &str) -> bool {
    let command = command.trim();
    let after = command.trim_start_matches(|it: char| it.is_ascii_digit() || "$,~+ !".contains(it));
    if matches!(
        after,
        "" | "p" | "d" | "q" | "=" | "N" | "n" | "D" | "P" | "G" | "H" | "g" | "h" | "x"
    ) {
        return true;
    }
    let (body, replaces) = match after.strip_prefix('s') {
        Some(body) => (body, true),
        None => (after, false),
    };
    let Some(delimiter) = body.chars().next().filter(|it| "/|#,:@!%".contains(*it)) else {
        return false;
    };
    if !replaces && delimiter != '/' {
        return false;
    }
    if body.contains(['\\', '\n', '[']) {
        // Where the parts end is not plain.
        let escaped = body.replace("\\", "");
        return body.matches('[').count() == body.matches(']').count()
            && !body.contains(&format!("\\{delimiter}"))
            && !body.contains('\n')
            && plain_parts(&escaped, delimiter, replaces);
    }
    plain_parts(body, delimiter, replaces)
}

fn plain_parts(body: &str, delimiter: char, replaces: bool) -> bool {
    let parts: Vec<&str> = body.split(delimiter).collect();
    match (replaces, parts.as_slice()) {
        (true, [_, _, _, flags]) => flags
            .trim()
            .chars()
            .all(|it| "gpiIM".contains(it) || it.is_ascii_digit()),
        (false, [_, _, after]) => matches!(after.trim(), "p" | "d" | "q" | "="),
        _ => false,
    }
}

/// Settings that cannot name a program.
const GIT_PLAIN: [&str; 9] = [
    "color.",
    "user.",
    "advice.",
    "core.quotepath",
    "init.defaultbranch",
    "core.autocrlf",
    "pull.",
    "push.",
    "log.",
];

fn git(arguments: &[Text]) -> bool {
    let mut words = arguments.iter().map(Text::shown).peekable();
    let mut verb = None;
    let mut carries = false;
    while let Some(word) = words.next() {
        match word {
            "-c" | "--config-env" if verb.is_none() => {
                let key = words.next().unwrap_or_default().to_ascii_lowercase();
                carries |= !GIT_PLAIN.iter().any(|it| key.starts_with(it));
            }
            "-C" | "--git-dir" | "--work-tree" | "--namespace" if verb.is_none() => {
                words.next();
            }
            "-x" | "--exec" | "--extcmd" | "-O" | "-u" | "--upload-pack" | "--receive-pack" => {
                let quiet = word == "-u"
                    && matches!(
                        verb,
                        Some("push" | "add" | "diff" | "branch" | "status" | "commit" | "stash")
                    );
                let clean = word == "-x" && verb == Some("clean");
                carries |= !quiet && !clean;
            }
            _ if word.starts_with('-') => {
                let programs = [
                    "--exec-path=",
                    "--config-env=",
                    "--upload-pack=",
                    "--receive-pack=",
                    "--exec=",
                    "--extcmd=",
                    "-x",
                    "--open-files-in-pager",
                    "--ext-diff",
                    "--config=",
                    "--template=",
                ];
                carries |= programs.iter().any(|it| word.starts_with(it)) && verb != Some("clean");
                carries |= verb.is_none() && word.starts_with("-c");
            }
            _ if verb.is_none() => verb = Some(word),
            _ => {
                let runs = match verb {
                    Some("bisect") => word == "run",
                    Some("submodule") => word == "foreach",
                    Some("config") => {
                        let key = word.to_ascii_lowercase();
                        key.contains('.') && !GIT_PLAIN.iter().any(|it| key.starts_with(it))
                            || word.starts_with('!')
                    }
                    _ => word.starts_with("ext::") || word.starts_with("fd::"),
                };
                carries |= runs;
            }
        }
    }
    carries || matches!(verb, Some("filter-branch" | "difftool" | "mergetool"))
}
