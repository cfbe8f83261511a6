//! What a text names, in any language: files that matter wherever they appear.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use crate::signal::{
    CONTAINER_SOCKET, CREDENTIAL_PATH, DEVICE_WRITE, KERNEL_INTERFACE, PERSISTENCE, REVERSE_SHELL,
    SANDBOX_PROBE, SignalKind,
};

/// Longer texts are looked at only so far.
const LOOKED_AT: usize = 64 * 1024;

const CREDENTIALS: &[&str] = &[
    ".ssh/",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "id_dsa",
    ".aws/",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".kube/config",
    ".docker/config.json",
    ".config/gcloud",
    ".azure/",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    ".gnupg",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    "credentials.json",
    "service-account.json",
    "Login Data",
    "logins.json",
    "key4.db",
    "Cookies.sqlite",
    "cookies.sqlite",
    ".mozilla/",
    "google-chrome",
    ".config/chromium",
    "keychain",
    ".password-store",
    "/proc/self/environ",
    "/run/secrets",
    "/var/run/secrets",
    ".cargo/credentials",
    ".terraformrc",
    ".config/gh/hosts",
    ".htpasswd",
    "wallet.dat",
    ".bash_history",
    ".zsh_history",
    "169.254.169.254",
    "metadata.google.internal",
];

const PERSISTENT: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    "/etc/profile",
    "/etc/cron",
    "/var/spool/cron",
    "authorized_keys",
    ".git/hooks",
    "/etc/systemd",
    "systemd/user",
    "/lib/systemd",
    "/etc/init.d",
    "/etc/rc.local",
    "/etc/ld.so.preload",
    ".config/autostart",
    "LaunchAgents",
    "LaunchDaemons",
    "/etc/passwd-",
    "sitecustomize.py",
    "usercustomize.py",
    "/etc/pam.d",
    "/etc/udev",
    "/etc/update-motd.d",
    ".vimrc",
    ".inputrc",
    ".xinitrc",
    ".xprofile",
];

const SOCKETS: &[&str] = &[
    "docker.sock",
    "containerd.sock",
    "crio.sock",
    "podman.sock",
    "/var/run/docker",
];

const KERNEL: &[&str] = &[
    "/proc/sys/",
    "/proc/sysrq-trigger",
    "/proc/kcore",
    "/dev/mem",
    "/dev/kmem",
    "/dev/port",
    "/sys/kernel",
    "/sys/fs/cgroup/release_agent",
    "release_agent",
    "core_pattern",
    "binfmt_misc",
    "/lib/modules",
    "/proc/1/root",
    "/proc/self/mem",
];

const PROBES: &[&str] = &[
    "/.dockerenv",
    "/proc/1/cgroup",
    "/proc/self/cgroup",
    "/proc/self/status",
    "/proc/self/uid_map",
    "/proc/self/mountinfo",
    "/proc/self/mounts",
    "/run/.containerenv",
    "/proc/1/sched",
    "/sys/class/dmi",
    "GLOVEBOX_",
];

const DISKS: &[&str] = &[
    "/dev/sd",
    "/dev/hd",
    "/dev/vd",
    "/dev/xvd",
    "/dev/nvme",
    "/dev/mmcblk",
    "/dev/disk/",
    "/dev/dm-",
    "/dev/mapper/",
    "/dev/loop",
    "/dev/md",
];

const STREAMS: &[&str] = &["/dev/tcp/", "/dev/udp/"];

/// All names in one automaton: every word and every text of a program is looked at.
static NAMES: LazyLock<Option<(AhoCorasick, Vec<SignalKind>)>> = LazyLock::new(|| {
    let tables = [
        (CREDENTIALS, CREDENTIAL_PATH),
        (PERSISTENT, PERSISTENCE),
        (SOCKETS, CONTAINER_SOCKET),
        (KERNEL, KERNEL_INTERFACE),
        (PROBES, SANDBOX_PROBE),
        (DISKS, DEVICE_WRITE),
        (STREAMS, REVERSE_SHELL),
    ];
    let all = tables
        .iter()
        .flat_map(|(names, kind)| names.iter().map(|it| (*it, *kind)));
    let (names, kinds): (Vec<&str>, Vec<SignalKind>) = all.unzip();
    Some((AhoCorasick::new(names).ok()?, kinds))
});

pub(crate) fn named(text: &str) -> Vec<SignalKind> {
    let text = text
        .get(..text.floor_char_boundary(LOOKED_AT))
        .unwrap_or(text);
    let mut found: Vec<SignalKind> = Vec::new();
    let mut add = |kind| {
        if !found.contains(&kind) {
            found.push(kind);
        }
    };
    match &*NAMES {
        Some((names, kinds)) => {
            for hit in names.find_overlapping_iter(text) {
                if let Some(kind) = kinds.get(hit.pattern().as_usize()) {
                    add(*kind);
                }
            }
        }
        // The tables are constant and this does not happen; if it did, nothing would be harmless.
        None => add(CREDENTIAL_PATH),
    }
    if is_dotenv(text) || text.ends_with("/.ssh") || text.ends_with("/.aws") {
        add(CREDENTIAL_PATH);
    }
    if ends_with_profile(text) {
        add(PERSISTENCE);
    }
    found
}

/// `.env`, `config/.env.production`; not `process.env`.
fn is_dotenv(text: &str) -> bool {
    text.split(|it: char| it == '/' || it == '=' || it.is_whitespace())
        .any(|it| it == ".env" || it.starts_with(".env."))
}

fn ends_with_profile(text: &str) -> bool {
    text.split(|it: char| it == '/' || it.is_whitespace())
        .any(|it| it == ".profile")
}

/// A device that is more than a sink or the terminal.
pub(crate) fn is_device(path: &str) -> bool {
    let plain = [
        "/dev/null",
        "/dev/stdin",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/tty",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
    ];
    path.starts_with("/dev/")
        && !plain.contains(&path)
        && !path.starts_with("/dev/fd/")
        && !path.starts_with("/dev/shm/")
}
