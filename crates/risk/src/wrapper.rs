//! Programs that only run another one, and the options that they take before its name.

use crate::environment::{assigned, changes_meaning};
use crate::shell::Text;

#[derive(Debug)]
pub(crate) struct Wrapper {
    names: &'static [&'static str],
    /// Short options without and with a value.
    flags: &'static str,
    values: &'static str,
    long: &'static [&'static str],
    long_values: &'static [&'static str],
    /// Operands before the command.
    operands: usize,
    assignments: bool,
    /// Where its command begins is not told by its options.
    vague: bool,
}

const PLAIN: Wrapper = Wrapper {
    names: &[],
    flags: "",
    values: "",
    long: &[],
    long_values: &[],
    operands: 0,
    assignments: false,
    vague: false,
};

const ALL: &[Wrapper] = &[
    Wrapper {
        names: &["env"],
        flags: "i0v",
        values: "uCa",
        long: &[
            "ignore-environment",
            "null",
            "debug",
            "block-signal",
            "default-signal",
            "ignore-signal",
            "list-signal-handling",
        ],
        long_values: &["unset", "chdir", "argv0"],
        assignments: true,
        ..PLAIN
    },
    Wrapper {
        names: &["nice"],
        values: "n",
        long_values: &["adjustment"],
        ..PLAIN
    },
    Wrapper {
        names: &["ionice"],
        flags: "t",
        values: "cn",
        long: &["ignore"],
        long_values: &["class", "classdata"],
        ..PLAIN
    },
    Wrapper {
        names: &["setsid"],
        flags: "cfw",
        long: &["ctty", "fork", "wait"],
        ..PLAIN
    },
    Wrapper {
        names: &["timeout", "gtimeout"],
        flags: "vfp",
        values: "ks",
        long: &["foreground", "preserve-status", "verbose"],
        long_values: &["kill-after", "signal"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["stdbuf"],
        values: "ioe",
        long_values: &["input", "output", "error"],
        ..PLAIN
    },
    Wrapper {
        names: &["sudo"],
        flags: "AbBEHKknNPSis",
        values: "ugpCrtTDRU",
        long: &[
            "askpass",
            "background",
            "bell",
            "preserve-env",
            "set-home",
            "login",
            "reset-timestamp",
            "non-interactive",
            "preserve-groups",
            "stdin",
            "shell",
            "no-update",
        ],
        long_values: &[
            "user",
            "group",
            "prompt",
            "close-from",
            "role",
            "type",
            "command-timeout",
            "chdir",
            "chroot",
            "host",
            "other-user",
        ],
        assignments: true,
        ..PLAIN
    },
    Wrapper {
        names: &["doas"],
        flags: "Lns",
        values: "uCa",
        ..PLAIN
    },
    Wrapper {
        names: &["chroot"],
        long: &["skip-chdir"],
        long_values: &["userspec", "groups"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["time"],
        flags: "apv",
        values: "f",
        long: &["append", "portability", "verbose", "quiet"],
        long_values: &["format"],
        ..PLAIN
    },
    // Not `-o`: it may be a command.
    Wrapper {
        names: &["strace"],
        flags: "cCdfFiknqrtTvwxyYzZ",
        values: "abeIOPsSuUX",
        long: &[
            "follow-forks",
            "summary-only",
            "summary",
            "quiet",
            "decode-fds",
        ],
        ..PLAIN
    },
    Wrapper {
        names: &["ltrace"],
        flags: "bcCfiLrStT",
        values: "aAeFlnsux",
        ..PLAIN
    },
    Wrapper {
        names: &["taskset"],
        flags: "ac",
        long: &["all-tasks", "cpu-list"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["chrt"],
        flags: "abdfioRrv",
        values: "TPD",
        long: &[
            "batch",
            "deadline",
            "fifo",
            "idle",
            "other",
            "rr",
            "reset-on-fork",
        ],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["flock"],
        flags: "esxnouFv",
        values: "wE",
        long: &[
            "exclusive",
            "shared",
            "nonblock",
            "nb",
            "unlock",
            "close",
            "no-fork",
            "verbose",
        ],
        long_values: &["timeout", "wait", "conflict-exit-code"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["unshare"],
        flags: "imnpuUCTfrc",
        values: "RwSG",
        long: &[
            "ipc",
            "mount",
            "net",
            "pid",
            "uts",
            "user",
            "cgroup",
            "time",
            "fork",
            "map-root-user",
            "map-current-user",
            "map-auto",
            "kill-child",
            "mount-proc",
            "keep-caps",
        ],
        long_values: &[
            "root",
            "wd",
            "setuid",
            "setgid",
            "map-user",
            "map-group",
            "propagation",
            "setgroups",
            "map-users",
            "map-groups",
        ],
        ..PLAIN
    },
    Wrapper {
        names: &["nsenter"],
        flags: "aFeZmuinpUCTrw",
        values: "tSGW",
        long: &[
            "all",
            "mount",
            "uts",
            "ipc",
            "net",
            "pid",
            "user",
            "cgroup",
            "time",
            "root",
            "wd",
            "no-fork",
            "env",
            "follow-context",
            "preserve-credentials",
        ],
        long_values: &["target", "setuid", "setgid", "wdns"],
        ..PLAIN
    },
    Wrapper {
        names: &["systemd-run"],
        flags: "GdtPSqr",
        values: "uMH",
        long: &[
            "user",
            "system",
            "scope",
            "pty",
            "pipe",
            "wait",
            "quiet",
            "collect",
            "same-dir",
            "remain-after-exit",
            "no-block",
            "no-ask-password",
        ],
        long_values: &[
            "unit",
            "description",
            "slice",
            "uid",
            "gid",
            "nice",
            "working-directory",
        ],
        ..PLAIN
    },
    Wrapper {
        names: &["setpriv"],
        long: &[
            "clear-groups",
            "keep-groups",
            "init-groups",
            "no-new-privs",
            "nnp",
            "reset-env",
        ],
        long_values: &[
            "reuid",
            "regid",
            "ruid",
            "euid",
            "rgid",
            "egid",
            "groups",
            "inh-caps",
            "ambient-caps",
            "bounding-set",
            "securebits",
            "pdeathsig",
            "selinux-label",
            "apparmor-profile",
        ],
        ..PLAIN
    },
    Wrapper {
        names: &["command"],
        flags: "p",
        ..PLAIN
    },
    Wrapper {
        names: &["exec"],
        flags: "cl",
        values: "a",
        ..PLAIN
    },
    Wrapper {
        names: &["xargs", "gxargs"],
        flags: "0rtpxoile",
        values: "InLPsdEa",
        long: &[
            "null",
            "no-run-if-empty",
            "verbose",
            "interactive",
            "exit",
            "open-tty",
            "replace",
            "max-lines",
            "eof",
        ],
        long_values: &[
            "max-args",
            "max-procs",
            "max-chars",
            "delimiter",
            "arg-file",
            "process-slot-var",
        ],
        ..PLAIN
    },
    Wrapper {
        names: &["busybox", "toybox"],
        ..PLAIN
    },
    Wrapper {
        names: &["gosu", "su-exec", "faketime"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: &[
            "nohup",
            "builtin",
            "unbuffer",
            "nocache",
            "eatmydata",
            "catchsegv",
            "fakeroot",
            "proxychains",
            "proxychains4",
            "torsocks",
            "dbus-run-session",
            "xvfb-run",
            "rlwrap",
            "linux32",
            "linux64",
            "prlimit",
            "cpulimit",
            "firejail",
            "bwrap",
            "chpst",
            "tini",
            "dumb-init",
            "cgexec",
            "start-stop-daemon",
            "pkexec",
            "entr",
            "caffeinate",
            "valgrind",
        ],
        ..PLAIN
    },
    // `setarch ARCH rm` and `setarch rm` are both right.
    Wrapper {
        names: &["setarch", "coresched"],
        vague: true,
        ..PLAIN
    },
    Wrapper {
        names: &["choom"],
        values: "n",
        long_values: &["adjust"],
        ..PLAIN
    },
    Wrapper {
        names: &["uclampset"],
        flags: "asR",
        values: "mM",
        long: &["all-tasks", "system", "reset-on-fork"],
        ..PLAIN
    },
    Wrapper {
        names: &["numactl"],
        flags: "alb",
        values: "NmCip",
        long: &["all", "localalloc", "balancing"],
        ..PLAIN
    },
    Wrapper {
        names: &["ssh-agent"],
        flags: "csDd",
        values: "aEPtO",
        ..PLAIN
    },
    Wrapper {
        names: &["logsave"],
        flags: "asv",
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: &["systemd-inhibit"],
        long: &["no-pager", "no-legend", "no-ask-password"],
        long_values: &["what", "who", "why", "mode"],
        ..PLAIN
    },
    Wrapper {
        names: &["ld.so"],
        long: &["inhibit-cache"],
        long_values: &[
            "library-path",
            "argv0",
            "glibc-hwcaps-prepend",
            "glibc-hwcaps-mask",
        ],
        ..PLAIN
    },
];

/// How the command behind a wrapper is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    /// It begins at this word.
    Command(usize),
    /// There is none: the wrapper does something of its own.
    Nothing,
    /// It begins at this word or at a later one: an option is not known, or there is a choice.
    Unsure(usize),
}

#[derive(Debug)]
pub(crate) struct Stripped {
    pub(crate) behind: Behind,
    /// A variable is set that changes what names mean.
    pub(crate) environment: bool,
}

pub(crate) fn named(base: &str) -> Option<&'static Wrapper> {
    let loader = base.starts_with("ld-linux")
        || base.starts_with("ld-musl")
        || (base.starts_with("ld") && base.contains(".so"));
    let base = if loader { "ld.so" } else { base };
    ALL.iter().find(|it| it.names.contains(&base))
}

impl Wrapper {
    pub(crate) fn strip(&self, words: &[Text]) -> Stripped {
        let mut environment = false;
        let mut operands = self.operands;
        let mut options = true;
        let mut at = 1;
        let unsure = |at: usize, environment| Stripped {
            behind: Behind::Unsure(at),
            environment,
        };
        if self.vague && words.len() > 1 {
            return unsure(1, false);
        }
        while let Some(text) = words.get(at) {
            let Some(word) = text.known() else {
                if operands > 0 && !options {
                    operands -= 1;
                    at += 1;
                    continue;
                }
                // It may be an option, the command, or several words.
                return unsure(at, environment);
            };
            if options && word == "--" {
                options = false;
                at += 1;
            } else if options && word.len() > 1 && word.starts_with('-') {
                match self.option(word) {
                    Some(taken) => at += taken,
                    None => return unsure(at + 1, environment),
                }
            } else if options && word == "-" && self.names == ["env"] {
                at += 1;
            } else if self.assignments && word.contains('=') {
                environment |= assigned(word).is_none_or(changes_meaning);
                options = false;
                at += 1;
            } else if operands > 0 {
                options = false;
                operands -= 1;
                at += 1;
            } else {
                return Stripped {
                    behind: Behind::Command(at),
                    environment,
                };
            }
        }
        Stripped {
            behind: Behind::Nothing,
            environment,
        }
    }

    /// Whether these options start the command in another directory or under another root.
    pub(crate) fn moves(&self, options: &[Text]) -> bool {
        let letters: &[char] = match self.names.first() {
            Some(&("chroot" | "nsenter" | "systemd-run")) => return true,
            Some(&"env") => &['C'],
            Some(&"sudo") => &['D', 'R'],
            Some(&"unshare") => &['R', 'w'],
            _ => return false,
        };
        let long = ["--chdir", "--chroot", "--root", "--wd"];
        options.iter().map(Text::shown).any(|it| {
            let short = it.starts_with('-') && !it.starts_with("--") && it.contains(letters);
            short || long.iter().any(|name| it.starts_with(name))
        })
    }

    /// How many words the option takes; none if it is not known.
    fn option(&self, word: &str) -> Option<usize> {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            if self.long.contains(&name) {
                return Some(1);
            }
            let valued = self.long_values.contains(&name);
            return valued.then_some(if value.is_some() { 1 } else { 2 });
        }
        let letters = word.strip_prefix('-')?;
        // `nice -10`.
        if self.names == ["nice"] && letters.bytes().all(|it| it.is_ascii_digit()) {
            return Some(1);
        }
        for (at, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                let attached = at + letter.len_utf8() < letters.len();
                return Some(if attached { 1 } else { 2 });
            }
            // Their value is optional, and only attached.
            if self.names.first() == Some(&"xargs") && "ile".contains(letter) {
                return Some(1);
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(1)
    }
}
