//! The programs that only run another one, with the options that they take before its name.

use crate::wrapper::Wrapper;

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

pub(crate) const ALL: &[Wrapper] = &[
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
        names: &["chronic"],
        flags: "ev",
        ..PLAIN
    },
    Wrapper {
        names: &["ifne"],
        flags: "n",
        ..PLAIN
    },
    Wrapper {
        names: &["fakechroot"],
        flags: "s",
        values: "lecbd",
        long: &["use-system-libs"],
        long_values: &["lib", "environment", "config-dir", "bindir", "elfloader"],
        ..PLAIN
    },
    Wrapper {
        names: &["proot"],
        flags: "0lSv",
        values: "bmrRqwkip",
        long: &["root-id", "link2symlink", "netcoop"],
        long_values: &[
            "bind",
            "mount",
            "rootfs",
            "qemu",
            "cwd",
            "pwd",
            "kernel-release",
            "change-id",
        ],
        ..PLAIN
    },
    Wrapper {
        names: &["run0"],
        values: "ugDM",
        long: &["no-ask-password", "pty", "pipe", "via-shell"],
        long_values: &[
            "background",
            "chdir",
            "description",
            "group",
            "machine",
            "nice",
            "property",
            "setenv",
            "shell-prompt-prefix",
            "slice",
            "unit",
            "user",
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
            "i386",
            "i486",
            "i586",
            "i686",
            "x86_64",
            "aarch64",
            "uname26",
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
