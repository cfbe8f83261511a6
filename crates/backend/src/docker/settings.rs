//! The operator's container settings, checked once. What would open the host is refused here, with
//! every reason, before any container is made.

use std::net::IpAddr;
use std::path::Path;

use glovebox_model::{Code, DockerConfig, Error, Result, Stage};

use super::binds::{Bind, BindRules, plain};

const LONGEST_VALUE: usize = 32 << 10;

const ULIMITS: [&str; 15] = [
    "core",
    "cpu",
    "data",
    "fsize",
    "locks",
    "memlock",
    "msgqueue",
    "nice",
    "nofile",
    "nproc",
    "rss",
    "rtprio",
    "rttime",
    "sigpending",
    "stack",
];

/// Who programs are inside; never root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tmpfs {
    pub(super) path: String,
    pub(super) options: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) config: DockerConfig,
    pub(super) user: User,
    pub(super) tmpfs: Vec<Tmpfs>,
    pub(super) binds: Vec<Bind>,
    pub(super) bind_rules: BindRules,
}

impl Settings {
    pub(super) fn check(config: DockerConfig, state: &Path) -> Result<Self> {
        let mut reasons = Reasons::default();
        let user = reasons.take("user", &config.user, user(&config.user));
        let mut tmpfs_mounts = Vec::new();
        for text in &config.tmpfs {
            tmpfs_mounts.extend(reasons.take("tmpfs", text, tmpfs(text)));
        }
        for root in &config.bind_roots {
            reasons.take("bind_roots", root, plain(Path::new(root)));
        }
        let bind_rules = BindRules::new(&config.bind_roots, state);
        let mut binds = Vec::new();
        for text in &config.binds {
            binds.extend(reasons.take("binds", text, bind_rules.parse(text)));
        }
        words(&config, &mut reasons);
        confinement(&config, &mut reasons);
        network(&config, &mut reasons);
        environment(&config, &mut reasons);
        for (name, limit) in &config.ulimits {
            let known = ULIMITS.contains(&name.as_str());
            reasons.unless(known, "ulimits", name, "is not a limit of processes");
            let ordered = limit.soft <= limit.hard;
            reasons.unless(
                ordered,
                "ulimits",
                name,
                "has a soft limit above the hard one",
            );
        }
        match (user, reasons.0.is_empty()) {
            (Some(user), true) => Ok(Self {
                config,
                user,
                tmpfs: tmpfs_mounts,
                binds,
                bind_rules,
            }),
            _ => Err(reasons.refusal()),
        }
    }
}

#[derive(Default)]
struct Reasons(Vec<String>);

impl Reasons {
    fn take<T>(&mut self, key: &str, shown: &str, outcome: Result<T, String>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(why) => {
                let shown: String = shown
                    .chars()
                    .take(200)
                    .flat_map(char::escape_debug)
                    .collect();
                self.0.push(format!("`{key}`: `{shown}` {why}"));
                None
            }
        }
    }

    fn unless(&mut self, holds: bool, key: &str, shown: &str, why: &str) {
        let outcome = if holds { Ok(()) } else { Err(why.to_owned()) };
        self.take(key, shown, outcome);
    }

    fn refusal(self) -> Error {
        let error = Error::new(
            Code::InvalidConfig,
            Stage::Resolve,
            "the settings of containers cannot be used",
        );
        let error = self.0.into_iter().fold(error, Error::caused_by);
        error.hint("each is a key under `[docker]` in the configuration; `docs/reference/config.md` says what it may be")
    }
}

/// Begins with a letter or digit, so that it can never be an option.
fn is_word(text: &str, others: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.len() <= 255
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

pub(super) fn is_image(text: &str) -> bool {
    is_word(text, "._-/:@+")
}

pub(super) fn is_runtime(text: &str) -> bool {
    is_word(text, "._-")
}

fn words(config: &DockerConfig, reasons: &mut Reasons) {
    let cli = config.cli.starts_with('/') && plain(Path::new(&config.cli)).is_ok();
    let cli = cli || is_word(&config.cli, "._-");
    reasons.unless(
        cli,
        "cli",
        &config.cli,
        "is neither a name nor an absolute path",
    );
    let image = is_image(&config.image);
    reasons.unless(image, "image", &config.image, "is not the name of an image");
    if let Some(platform) = &config.platform {
        let fits =
            platform.split('/').count() <= 3 && platform.split('/').all(|part| is_word(part, "_."));
        reasons.unless(fits, "platform", platform, "is not like `linux/arm64`");
    }
    if let Some(runtime) = &config.runtime {
        let fits = is_runtime(runtime);
        reasons.unless(fits, "runtime", runtime, "is not the name of a runtime");
    }
    let prefix = &config.container_prefix;
    let fits = is_word(prefix, "-")
        && prefix.len() <= 30
        && !prefix.contains(|c: char| c.is_ascii_uppercase());
    let why = "is not 1 to 30 lower case letters, digits and `-`";
    reasons.unless(fits, "container_prefix", prefix, why);
    if let Some(command) = &config.setup_command {
        let fits = !command.trim().is_empty() && !command.contains('\0');
        reasons.unless(fits, "setup_command", command, "is not a command");
    }
    if let Some(dir) = &config.host_state_dir {
        reasons.take("host_state_dir", dir, plain(Path::new(dir)));
    }
}

fn confinement(config: &DockerConfig, reasons: &mut Reasons) {
    for capability in &config.cap_drop {
        let fits = is_word(capability, "_");
        reasons.unless(fits, "cap_drop", capability, "is not a capability");
    }
    let all = config
        .cap_drop
        .iter()
        .any(|it| it.eq_ignore_ascii_case("all"));
    let shown = config.cap_drop.join(" ");
    let why = "leaves capabilities to programs; `ALL` must be in it";
    reasons.unless(all, "cap_drop", &shown, why);
    if let Some(file) = &config.seccomp_profile {
        let open = file == "unconfined";
        reasons.unless(!open, "seccomp_profile", file, "takes the filter away");
        if !open {
            let outcome = plain(Path::new(file)).and_then(|()| {
                let found = Path::new(file).is_file();
                found
                    .then_some(())
                    .ok_or_else(|| "is not a file".to_owned())
            });
            reasons.take("seccomp_profile", file, outcome);
        }
    }
    if let Some(profile) = &config.apparmor_profile {
        let open = profile == "unconfined";
        reasons.unless(
            !open,
            "apparmor_profile",
            profile,
            "takes the confinement away",
        );
        let fits = is_word(profile, "._-");
        reasons.unless(
            fits,
            "apparmor_profile",
            profile,
            "is not the name of a profile",
        );
    }
    if let Some(label) = &config.selinux_label {
        let open = label.split(',').any(|part| part.trim() == "disable");
        reasons.unless(!open, "selinux_label", label, "takes the confinement away");
        let fits = is_word(label, "._:-");
        reasons.unless(fits, "selinux_label", label, "is not like `type:svirt_t`");
    }
}

fn network(config: &DockerConfig, reasons: &mut Reasons) {
    if let Some(network) = &config.network {
        let key = "network";
        if network == "host" || network.starts_with("container:") || network.starts_with("ns:") {
            reasons.unless(false, key, network, "is a network of somebody else's");
        } else {
            reasons.unless(
                is_word(network, "._-"),
                key,
                network,
                "is not the name of a network",
            );
        }
        let useless = network == "none" && !config.publish.is_empty();
        reasons.unless(
            !useless,
            "publish",
            network,
            "is a network that publishes nothing",
        );
    }
    for port in &config.publish {
        reasons.unless(*port != 0, "publish", "0", "is not a port");
    }
    for server in &config.dns {
        let fits = server.parse::<IpAddr>().is_ok();
        reasons.unless(fits, "dns", server, "is not an address");
    }
    for host in &config.extra_hosts {
        let fits = host
            .split_once(':')
            .is_some_and(|(name, at)| is_word(name, "._-") && at.parse::<IpAddr>().is_ok());
        reasons.unless(fits, "extra_hosts", host, "is not `name:address`");
    }
}

fn environment(config: &DockerConfig, reasons: &mut Reasons) {
    for (name, value) in &config.env {
        let fits = is_variable(name);
        reasons.unless(fits, "env", name, "is not the name of a variable");
        let fits = value.len() <= LONGEST_VALUE && !value.contains(['\0', '\n', '\r']);
        reasons.unless(
            fits,
            "env",
            name,
            "has a value with NUL or a new line, or over 32 KiB",
        );
    }
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn user(text: &str) -> Result<User, String> {
    let (uid, gid) = text.split_once(':').unwrap_or((text, text));
    let number = |text: &str| -> Result<u32, String> {
        let number = text
            .parse()
            .map_err(|_| "is not `uid:gid` in numbers".to_owned())?;
        match number {
            0 => Err("is root".to_owned()),
            // All bits set means «no change» to the kernel.
            u32::MAX => Err("is not an id".to_owned()),
            _ => Ok(number),
        }
    };
    Ok(User {
        uid: number(uid)?,
        gid: number(gid)?,
    })
}

fn tmpfs(text: &str) -> Result<Tmpfs, String> {
    let (path, options) = text.split_once(':').unwrap_or((text, ""));
    plain(Path::new(path))?;
    let taken = ["/workspace", "/proc", "/sys", "/dev"].map(Path::new);
    if path == "/" || taken.iter().any(|it| Path::new(path).starts_with(it)) {
        return Err("is a reserved place".to_owned());
    }
    let mut kept = Vec::new();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        let number = |text: &str| {
            text.strip_suffix(['k', 'm', 'g'])
                .unwrap_or(text)
                .parse::<u64>()
        };
        let known = match option.split_once('=') {
            None => ["rw", "ro", "exec", "noexec", "nosuid", "nodev"].contains(&option),
            Some(("size" | "nr_inodes" | "uid" | "gid" | "mode", value)) => number(value).is_ok(),
            Some(_) => false,
        };
        if !known {
            return Err(format!("has the option `{option}`"));
        }
        kept.push(option.to_owned());
    }
    Ok(Tmpfs {
        path: path.to_owned(),
        options: kept,
    })
}

#[cfg(test)]
mod tests {
    use glovebox_model::Ulimit;

    use super::*;

    fn check(change: impl FnOnce(&mut DockerConfig)) -> Result<Settings> {
        let mut config = DockerConfig::default();
        change(&mut config);
        Settings::check(config, Path::new("/srv/glovebox"))
    }

    #[test]
    fn the_default_is_fine() -> Result<()> {
        assert_eq!(
            check(|_| {})?.user,
            User {
                uid: 1000,
                gid: 1000
            }
        );
        Ok(())
    }

    type Change = fn(&mut DockerConfig);

    #[test]
    fn what_opens_the_host_is_refused() {
        let table: &[(&str, Change)] = &[
            ("host network", |c| c.network = Some("host".into())),
            ("another's network", |c| {
                c.network = Some("container:db".into())
            }),
            ("a network's path", |c| {
                c.network = Some("ns:/proc/1/ns/net".into())
            }),
            ("an option as network", |c| {
                c.network = Some("--privileged".into())
            }),
            ("none and ports", |c| {
                c.network = Some("none".into());
                c.publish = vec![80];
            }),
            ("port 0", |c| c.publish = vec![0]),
            ("no filter", |c| {
                c.seccomp_profile = Some("unconfined".into())
            }),
            ("a filter that is not there", |c| {
                c.seccomp_profile = Some("/nowhere.json".into())
            }),
            ("no apparmor", |c| {
                c.apparmor_profile = Some("unconfined".into())
            }),
            ("no selinux", |c| c.selinux_label = Some("disable".into())),
            ("root", |c| c.user = "0:0".into()),
            ("root by name", |c| c.user = "root".into()),
            ("root's group", |c| c.user = "1000:0".into()),
            ("no change of id", |c| c.user = "4294967295:1".into()),
            ("capabilities", |c| c.cap_drop = vec!["NET_RAW".into()]),
            ("no drop at all", |c| c.cap_drop.clear()),
            ("an option as capability", |c| {
                c.cap_drop.push("--cap-add=ALL".into())
            }),
            ("an option as image", |c| c.image = "--privileged".into()),
            ("an empty image", |c| c.image = String::new()),
            ("an option as platform", |c| {
                c.platform = Some("-x/y".into())
            }),
            ("an option as runtime", |c| {
                c.runtime = Some("-v=/:/h".into())
            }),
            ("a path as runtime", |c| {
                c.runtime = Some("/usr/bin/runc".into())
            }),
            ("an option as prefix", |c| c.container_prefix = "-x".into()),
            ("a long prefix", |c| c.container_prefix = "a".repeat(31)),
            ("a relative program", |c| c.cli = "./docker".into()),
            ("programs with set-id", |c| {
                c.tmpfs = vec!["/tmp:suid".into()]
            }),
            ("devices", |c| c.tmpfs = vec!["/tmp:dev".into()]),
            ("a tmpfs over the workspace", |c| {
                c.tmpfs = vec!["/workspace/work".into()]
            }),
            ("a tmpfs over proc", |c| c.tmpfs = vec!["/proc".into()]),
            ("a name server's name", |c| {
                c.dns = vec!["dns.example".into()]
            }),
            ("the host's gateway", |c| {
                c.extra_hosts = vec!["h:host-gateway".into()]
            }),
            ("a strange variable", |c| {
                drop(c.env.insert("A B".into(), String::new()))
            }),
            ("an assignment as name", |c| {
                drop(c.env.insert("A=B".into(), String::new()))
            }),
            ("two lines", |c| {
                drop(c.env.insert("A".into(), "1\nB=2".into()))
            }),
            ("NUL", |c| drop(c.env.insert("A".into(), "\0".into()))),
            ("an unknown limit", |c| {
                c.ulimits
                    .insert("x=1 --privileged".into(), Ulimit { soft: 1, hard: 1 });
            }),
            ("soft over hard", |c| {
                c.ulimits
                    .insert("nofile".into(), Ulimit { soft: 2, hard: 1 });
            }),
            ("an empty set-up", |c| c.setup_command = Some(" ".into())),
            ("a relative state", |c| {
                c.host_state_dir = Some("state".into())
            }),
            ("the host's secrets", |c| {
                c.bind_roots = vec!["/".into()];
                c.binds = vec!["/etc:/e".into()];
            }),
            ("the engine", |c| {
                c.bind_roots = vec!["/".into()];
                c.binds = vec!["/var/run/docker.sock:/s".into()];
            }),
            ("our own state", |c| {
                c.bind_roots = vec!["/srv".into()];
                c.binds = vec!["/srv/glovebox:/s:rw".into()];
            }),
        ];
        for (what, change) in table {
            let refused = check(change).err();
            assert_eq!(
                refused.map(|it| it.code),
                Some(Code::InvalidConfig),
                "{what}"
            );
        }
    }

    #[test]
    fn every_reason_is_told() {
        let refused = check(|config| {
            config.network = Some("host".into());
            config.user = "root".into();
            config.tmpfs = vec!["/tmp:suid".into()];
        });
        let causes = refused.err().map(|error| error.causes).unwrap_or_default();
        assert_eq!(causes.len(), 3, "{causes:?}");
    }

    #[test]
    fn a_tmpfs_may_be_executable_and_sized() {
        let tmpfs = tmpfs("/tmp:exec,size=64m,mode=1777");
        let options = tmpfs.map(|it| it.options.join(","));
        assert_eq!(options.as_deref(), Ok("exec,size=64m,mode=1777"));
    }
}
