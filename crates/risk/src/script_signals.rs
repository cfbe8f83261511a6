//! Signals of shell scripts and argument vectors.

use crate::command::{Command, Direction, Position, Unclear, Word};
use crate::interpreter::{is_shell, language_of};
use crate::literal::{is_device, named};
use crate::outline::{Feed, Found, Origin, Outline, Tongue};
use crate::resolve::{base, is_elsewhere};
use crate::signal::*;
use crate::tame::{Tame, tame};

const NETWORK: &[&str] = &[
    "curl",
    "wget",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "telnet",
    "ftp",
    "sftp",
    "scp",
    "rsync",
    "ssh",
    "aria2c",
    "http",
    "https",
    "xh",
    "nmap",
    "dig",
    "nslookup",
    "host",
    "ping",
    "lynx",
    "w3m",
    "tftp",
    "rclone",
    "mosh",
    "whois",
    "openssl",
    "ngrok",
    "cloudflared",
    "tor",
    "masscan",
];

const PRIVILEGED: &[&str] = &[
    "sudo", "su", "doas", "pkexec", "runuser", "setpriv", "capsh", "setcap", "chroot", "unshare",
    "nsenter", "visudo", "passwd", "usermod", "useradd", "groupadd", "chpasswd", "newgrp", "sg",
    "gosu", "su-exec", "run0",
];

const KERNEL: &[&str] = &[
    "mount",
    "umount",
    "insmod",
    "rmmod",
    "modprobe",
    "kexec",
    "sysctl",
    "losetup",
    "swapoff",
    "swapon",
    "pivot_root",
    "reboot",
    "shutdown",
    "halt",
    "poweroff",
    "init",
    "bpftool",
    "iptables",
    "nft",
    "ip",
    "cryptsetup",
    "dmsetup",
    "switch_root",
    "debugfs",
];

const DISKS: &[&str] = &[
    "mkfs",
    "mke2fs",
    "mkswap",
    "fdisk",
    "sfdisk",
    "cfdisk",
    "gdisk",
    "sgdisk",
    "parted",
    "wipefs",
    "blkdiscard",
    "hdparm",
    "badblocks",
];

const INSTALLERS: &[(&str, &[&str])] = &[
    ("pip", &["install", "download"]),
    ("pip3", &["install", "download"]),
    ("pipx", &["install", "run"]),
    ("uv", &["add", "pip", "tool", "sync"]),
    ("poetry", &["add", "install"]),
    ("conda", &["install", "create"]),
    ("npm", &["install", "i", "add", "ci"]),
    ("pnpm", &["install", "add", "i"]),
    ("yarn", &["add", "install"]),
    ("bun", &["install", "add"]),
    ("apt", &["install", "remove", "purge", "upgrade"]),
    ("apt-get", &["install", "remove", "purge", "upgrade"]),
    ("apk", &["add", "del"]),
    ("yum", &["install"]),
    ("dnf", &["install"]),
    ("pacman", &["-S"]),
    ("zypper", &["install"]),
    ("brew", &["install"]),
    ("gem", &["install"]),
    ("cargo", &["install"]),
    ("go", &["install", "get"]),
    ("dpkg", &["-i"]),
    ("rpm", &["-i", "-U"]),
    ("snap", &["install"]),
    ("npx", &[""]),
    ("uvx", &[""]),
];

struct Seen<'a> {
    found: &'a Found,
    name: String,
    raised: bool,
}

pub(crate) fn of(outline: &Outline, signals: &mut Signals) {
    for found in &outline.commands {
        command(found, outline, signals);
    }
    for dark in &outline.dark {
        let (at, origin) = (dark.blind.at, dark.origin);
        let kind = match dark.blind.why {
            Unclear::Syntax => UNREADABLE,
            Unclear::Evaluation => EVALUATION,
            Unclear::Name => UNKNOWN_PROGRAM,
            Unclear::Definition => REDEFINITION,
            Unclear::Environment => CHANGED_ENVIRONMENT,
            Unclear::TooLarge => TOO_LARGE,
            // The commands in it are read, the program in it has signals of its own.
            Unclear::Substitution | Unclear::Interpreter | Unclear::Dialect => continue,
        };
        signals.add(kind, at, origin);
        if dark.blind.why == Unclear::Definition {
            bomb(&dark.blind.source, outline, at, origin, signals);
        }
    }
    for inline in &outline.inline {
        match (inline.tongue, inline.code.as_deref()) {
            (Tongue::Other, _) => signals.add(INLINE_PROGRAM, inline.at, inline.origin),
            (_, None) => signals.add(EVALUATION, inline.at, inline.origin),
            (tongue, Some(code)) => {
                let base = matches!(inline.origin, Origin::Program).then_some(inline.at);
                crate::code::read(tongue, code, base, inline.origin, signals);
            }
        }
    }
}

/// A function that pipes into itself.
fn bomb(source: &str, outline: &Outline, at: Position, origin: Origin, signals: &mut Signals) {
    let name = source.split(['(', ' ', '\t']).next().unwrap_or_default();
    let calls = |it: &Found| it.command.words.first().is_some_and(|it| shown(it) == name);
    let bombs = outline.commands.iter().any(|it| match it.feed {
        Feed::Pipe(from, to) => {
            calls(it)
                && outline
                    .commands
                    .get(from..to)
                    .unwrap_or_default()
                    .iter()
                    .any(calls)
        }
        Feed::Inherited => false,
    });
    if bombs && !name.is_empty() {
        signals.add(FORK_BOMB, at, origin);
    }
}

fn shown(word: &Word) -> &str {
    match word {
        Word::Known(text) | Word::Unknown(text) => text,
    }
}

fn program(command: &Command) -> String {
    command
        .words
        .first()
        .map(|it| base(shown(it)).to_owned())
        .unwrap_or_default()
}

impl Seen<'_> {
    fn add(&mut self, kind: SignalKind, signals: &mut Signals) {
        self.raised = true;
        signals.add(kind, self.found.command.at, self.found.origin);
    }

    fn arguments(&self) -> impl Iterator<Item = &str> {
        self.found.command.words.iter().skip(1).map(shown)
    }

    fn has(&self, options: &[&str]) -> bool {
        self.arguments().any(|it| options.contains(&it))
    }

    /// A short option, alone or among others.
    fn letter(&self, letters: &[char]) -> bool {
        let mut short = self
            .arguments()
            .filter(|it| it.starts_with('-') && !it.starts_with("--"));
        short.any(|it| it.contains(letters))
    }

    /// Behind the options of `git` itself, of which some have a value.
    fn git_verb(&self) -> &str {
        let mut arguments = self.arguments();
        while let Some(word) = arguments.next() {
            match word {
                "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--config-env" => {
                    arguments.next();
                }
                _ if word.starts_with('-') => {}
                _ => return word,
            }
        }
        ""
    }

    fn verb(&self) -> &str {
        self.arguments()
            .find(|it| !it.starts_with('-'))
            .unwrap_or_default()
    }
}

fn command(found: &Found, outline: &Outline, signals: &mut Signals) {
    let name = program(&found.command);
    let mut seen = Seen {
        found,
        name: name.clone(),
        raised: false,
    };
    for wrapper in &found.command.through {
        if PRIVILEGED.contains(&wrapper.as_str()) {
            seen.add(PRIVILEGE, signals);
        }
        if matches!(wrapper.as_str(), "find" | "xargs" | "parallel" | "fd") {
            seen.add(RUNS_COMMANDS, signals);
        }
        match crate::runner::fetches(wrapper) {
            Some(true) => seen.add(PACKAGE_INSTALL, signals),
            Some(false) => seen.add(OTHER_COMMAND, signals),
            None => {}
        }
    }
    let echoes = matches!(name.as_str(), "echo" | "printf");
    for word in &found.command.words {
        for kind in named(shown(word)) {
            // Reading a disk is worth a question too, but saying its name is not.
            if !(echoes && kind == DEVICE_WRITE) {
                seen.add(kind, signals);
            }
        }
        if matches!(shown(word), "~/.ssh" | "~/.aws" | "~/.gnupg") {
            seen.add(CREDENTIAL_PATH, signals);
        }
    }
    redirects(&mut seen, signals);
    fed(&mut seen, outline, signals);
    by_name(&mut seen, signals);
    git(&mut seen, signals);
    let known = matches!(found.command.words.first(), Some(Word::Known(_)));
    if !seen.raised && known && !found.inline {
        // `sub/cat` is whatever somebody put there.
        let elsewhere = found
            .command
            .words
            .first()
            .is_some_and(|it| is_elsewhere(shown(it)));
        if elsewhere || is_shell(&name) || language_of(&name).is_some() {
            seen.add(SCRIPT_FILE, signals);
        }
        if elsewhere || !only_reads(&name, &found.command.words) {
            seen.add(OTHER_COMMAND, signals);
        }
    }
}

fn only_reads(name: &str, words: &[Word]) -> bool {
    fn known(word: &Word) -> Option<&str> {
        match word {
            Word::Known(text) => Some(text),
            Word::Unknown(_) => None,
        }
    }
    let arguments: Vec<_> = words.iter().skip(1).map(known).collect();
    tame(name, &arguments) == Some(Tame::Reads)
}

fn redirects(seen: &mut Seen<'_>, signals: &mut Signals) {
    let found = seen.found;
    for redirect in found
        .command
        .redirects
        .iter()
        .filter(|it| !it.is_harmless())
    {
        let target = shown(&redirect.target);
        for kind in named(target) {
            seen.add(kind, signals);
        }
        if redirect.direction == Direction::Read {
            continue;
        }
        seen.add(
            if is_device(target) {
                DEVICE_WRITE
            } else {
                FILE_WRITE
            },
            signals,
        );
    }
}

/// What runs that comes from a pipe.
fn fed(seen: &mut Seen<'_>, outline: &Outline, signals: &mut Signals) {
    if !seen.found.fed_script {
        return;
    }
    let Feed::Pipe(from, to) = seen.found.feed else {
        return seen.add(PIPE_TO_SHELL, signals);
    };
    seen.add(PIPE_TO_SHELL, signals);
    // All before it in the pipeline, as far as it is one.
    let mut from = from;
    let mut names = Vec::new();
    let mut to = to;
    for _ in 0..8 {
        let part = outline.commands.get(from..to).unwrap_or_default();
        names.extend(part.iter().map(|it| program(&it.command)));
        match part.first().map(|it| it.feed) {
            Some(Feed::Pipe(earlier, until)) if earlier < from => (from, to) = (earlier, until),
            _ => break,
        }
    }
    if names.iter().any(|it| NETWORK.contains(&it.as_str())) {
        seen.add(DOWNLOAD_TO_SHELL, signals);
    }
    let decoders = [
        "base64", "base32", "xxd", "openssl", "gunzip", "zcat", "rev", "tr", "uudecode", "basenc",
    ];
    if names.iter().any(|it| decoders.contains(&it.as_str())) {
        seen.add(ENCODED_PROGRAM, signals);
    }
}

fn by_name(seen: &mut Seen<'_>, signals: &mut Signals) {
    let name = seen.name.clone();
    let name = name.as_str();
    if NETWORK.contains(&name) {
        seen.add(NETWORK_CLIENT, signals);
    }
    if PRIVILEGED.contains(&name) {
        seen.add(PRIVILEGE, signals);
    }
    if KERNEL.contains(&name) {
        seen.add(KERNEL_INTERFACE, signals);
    }
    if DISKS.contains(&name) || name.starts_with("mkfs.") {
        seen.add(MAKE_FILESYSTEM, signals);
    }
    let installs = INSTALLERS.iter().find(|(it, _)| *it == name);
    if installs.is_some_and(|(_, verbs)| verbs.iter().any(|it| it.is_empty() || seen.has(&[it]))) {
        seen.add(PACKAGE_INSTALL, signals);
    }
    match name {
        "rm" | "rmdir" | "unlink" | "shred" | "srm" | "wipe" | "truncate" => {
            seen.add(FILE_REMOVE, signals);
            let recursive = seen.letter(&['r', 'R'])
                || seen
                    .arguments()
                    .any(|it| "--recursive".starts_with(it) && it.len() > 3);
            let root = seen.arguments().any(is_root);
            if name == "rm" && ((recursive && root) || seen.has(&["--no-preserve-root"])) {
                seen.add(DESTROYS_ROOT, signals);
            }
        }
        "mv" | "rename" => {
            seen.add(FILE_RENAME, signals);
            if seen.arguments().next().is_some_and(is_root) {
                seen.add(DESTROYS_ROOT, signals);
            }
        }
        "cp" | "install" | "ln" | "tee" | "rsync" | "sponge" | "patch" | "touch" | "mkdir" => {
            let device = seen.arguments().any(is_device);
            let kind = if device { DEVICE_WRITE } else { FILE_WRITE };
            let harmless = name == "tee"
                && seen
                    .arguments()
                    .all(|it| it.starts_with('-') || it == "/dev/null");
            // Making something new is no loss.
            if device || !(matches!(name, "touch" | "mkdir") || harmless) {
                seen.add(kind, signals);
            }
        }
        "dd" => {
            let input = seen.arguments().any(|it| it.starts_with("if="));
            let device = seen
                .arguments()
                .any(|it| it.strip_prefix("of=").is_some_and(is_device));
            if device {
                seen.add(DEVICE_WRITE, signals);
            }
            seen.add(if input { DISK_COPY } else { FILE_WRITE }, signals);
        }
        "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" => {
            seen.add(PERMISSION_CHANGE, signals);
            let set_id = |it: &str| {
                it.contains("+s") || (it.len() == 4 && it.starts_with(['2', '4', '6', '7']))
            };
            if name == "chmod" && seen.arguments().any(set_id) {
                seen.add(PRIVILEGE, signals);
            }
        }
        "kill" | "killall" | "pkill" | "skill" | "xkill" | "killall5" => {
            let everyone = name == "killall5"
                || (name == "kill" && seen.arguments().skip(1).any(|it| it == "-1"));
            seen.add(if everyone { KILL_ALL } else { PROCESS_KILL }, signals);
        }
        "crontab" | "at" | "batch" | "systemctl" | "systemd-run" | "launchctl" | "update-rc.d"
        | "chkconfig" => {
            let lists = name == "crontab" && seen.has(&["-l"]);
            let shows = name == "systemctl"
                && matches!(
                    seen.verb(),
                    "status" | "show" | "list-units" | "is-active" | "cat"
                );
            if !lists && !shows {
                seen.add(PERSISTENCE, signals);
            }
        }
        "nc" | "ncat" | "netcat"
            if seen.letter(&['e', 'c'])
                || seen
                    .arguments()
                    .any(|it| it.starts_with("--exec") || it.starts_with("--sh-exec")) =>
        {
            seen.add(REVERSE_SHELL, signals)
        }
        "socat" => {
            let runs = |it: &str| {
                ["exec", "system", "shell"]
                    .iter()
                    .any(|kind| it.to_ascii_lowercase().starts_with(kind))
            };
            if seen.arguments().any(runs) {
                seen.add(REVERSE_SHELL, signals);
            }
        }
        "find" | "gfind" => {
            if seen.has(&["-delete"]) {
                seen.add(FILE_REMOVE, signals);
                if seen.arguments().next().is_some_and(is_root) {
                    seen.add(DESTROYS_ROOT, signals);
                }
            }
            if seen.has(&["-exec", "-execdir", "-ok", "-okdir"]) {
                seen.add(RUNS_COMMANDS, signals);
            }
        }
        "tree" if seen.letter(&['o']) => seen.add(FILE_WRITE, signals),
        "file" if seen.letter(&['C']) => seen.add(FILE_WRITE, signals),
        "less"
            if seen.letter(&['o', 'O'])
                || seen.arguments().any(|it| {
                    it.starts_with("--log-file")
                        || it.to_ascii_uppercase().starts_with("--LOG-FILE")
                }) =>
        {
            seen.add(FILE_WRITE, signals);
        }
        "sed" | "perl" | "ruby"
            if seen
                .arguments()
                .any(|it| it.starts_with("-i") || it.starts_with("--in-place")) =>
        {
            seen.add(FILE_WRITE, signals);
        }
        "docker" | "podman" | "nerdctl" | "ctr" | "crictl" | "kubectl" => {
            seen.add(CONTAINER_SOCKET, signals)
        }
        "env" | "printenv" | "set" | "export" if seen.found.command.words.len() == 1 => {
            seen.add(ENVIRONMENT_READ, signals);
        }
        "base64" | "base32" if seen.letter(&['d', 'D']) || seen.has(&["--decode"]) => {
            seen.add(DECODES, signals)
        }
        "gdb" | "strace" | "ltrace" | "ptrace" => seen.add(NATIVE_CODE, signals),
        "systemd-detect-virt" | "virt-what" | "dmidecode" | "lscpu" => {
            seen.add(SANDBOX_PROBE, signals)
        }
        _ => {}
    }
    if INLINE_BY_OPTION.contains(&name)
        && seen
            .arguments()
            .any(|it| it.starts_with("--pre") || it.starts_with("--pager"))
    {
        seen.add(INLINE_PROGRAM, signals);
    }
}

const INLINE_BY_OPTION: [&str; 3] = ["rg", "ag", "ack"];

fn git(seen: &mut Seen<'_>, signals: &mut Signals) {
    if seen.name != "git" {
        return;
    }
    match seen.git_verb() {
        "push" => {
            seen.add(GIT_PUSH, signals);
            let forced = |it: &str| {
                it.starts_with("--force")
                    || it.starts_with("--mirror")
                    || it.starts_with('+')
                    || it == "--delete"
            };
            if seen.arguments().any(forced) || seen.letter(&['f', 'd']) {
                seen.add(DISCARDS_CHANGES, signals);
            }
        }
        "reset" if seen.has(&["--hard"]) => seen.add(DISCARDS_CHANGES, signals),
        "clean" | "filter-branch" | "filter-repo" => seen.add(DISCARDS_CHANGES, signals),
        "checkout" | "restore" | "switch" | "branch" | "stash"
            if seen.letter(&['f', 'D']) || seen.has(&["--force", ".", "drop", "clear"]) =>
        {
            seen.add(DISCARDS_CHANGES, signals)
        }
        "clone" | "fetch" | "pull" | "ls-remote" | "submodule" => seen.add(NETWORK_CLIENT, signals),
        _ => {}
    }
    if seen.has(&["--force", "--force-with-lease"]) {
        seen.add(DISCARDS_CHANGES, signals);
    }
}

/// The root, a home, or a directory of the system, however it is spelt.
fn is_root(path: &str) -> bool {
    let path = path.trim_matches('"');
    let homes = ["~", "$HOME", "${HOME}", "$PWD/..", "${HOME:?}"];
    let bare = path.trim_end_matches(['/', '*', '.']);
    if homes.contains(&bare) || bare.starts_with('~') && !bare.contains('/') {
        return true;
    }
    if !path.starts_with('/') {
        return false;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." | "*" | "?*" | ".*" | "{,.}*" => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    const SYSTEM: [&str; 17] = [
        "bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "opt", "proc", "root", "run",
        "sbin", "srv", "sys", "usr", "var",
    ];
    match parts.as_slice() {
        [] => true,
        [one] => SYSTEM.contains(one) || one.contains(['*', '?', '[']),
        ["home", _] => true,
        _ => false,
    }
}
