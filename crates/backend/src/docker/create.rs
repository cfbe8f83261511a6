//! From what is asked to the arguments of `create`. Values stand after `=` in the same argument, so
//! none of them can be taken for an option. What is secret is never here: arguments can be read by
//! everyone on the host.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use glovebox_model::{Limits, NetworkMode, Profile};

use super::cli::Program;
use super::environment::Environment;
use super::mount::Mount;
use super::name::{ContainerName, Labels};
use super::settings::{Settings, Tmpfs, User};

/// A container that is to be made.
#[derive(Debug)]
pub(super) struct Blueprint<'a> {
    pub(super) program: Program,
    pub(super) settings: &'a Settings,
    pub(super) profile: &'a Profile,
    pub(super) name: &'a ContainerName,
    pub(super) labels: &'a Labels,
    pub(super) image: &'a str,
    pub(super) runtime: Option<&'a str>,
    /// More than the engine has is refused by it.
    pub(super) cpus: Option<u32>,
    /// Where that is less than the profile says.
    pub(super) largest_file: Option<u64>,
    pub(super) user: User,
    pub(super) mounts: &'a [Mount],
    /// Places of the sandbox that lie in memory, beside the operator's.
    pub(super) scratch: &'a [Tmpfs],
    pub(super) environment: &'a Environment,
    /// A file with the filter of system calls; none where a runtime answers them itself.
    pub(super) filter: Option<&'a Path>,
    pub(super) stdin: bool,
    pub(super) terminal: bool,
    /// The engine itself ends what still runs then, should all of us be gone.
    pub(super) deadline: Option<Duration>,
    pub(super) cwd: &'a str,
    pub(super) argv: &'a [String],
}

pub(super) fn create_args(asked: &Blueprint<'_>) -> Vec<OsString> {
    let mut args = Args(vec!["create".into()]);
    args.flag("--pull=never");
    args.pair("--name", asked.name.as_str());
    args.flag("--init");
    args.deadline(asked);
    args.pair("--log-driver", "none");
    if asked.stdin {
        args.flag("--interactive");
    }
    if asked.terminal {
        args.flag("--tty");
    }
    for (name, value) in asked.labels {
        args.pair("--label", &format!("{name}={value}"));
    }
    args.isolation(asked);
    args.limits(asked);
    args.files(asked);
    args.0.extend(asked.environment.args());
    if let Some(runtime) = asked.runtime {
        args.pair("--runtime", runtime);
    }
    if let Some(platform) = &asked.settings.config.platform {
        args.pair("--platform", platform);
    }
    args.pair("--workdir", asked.cwd);
    // The image's own entry point would take our command as its arguments.
    let (program, rest) = match asked.argv.split_first() {
        Some((program, rest)) => (program.as_str(), rest),
        None => ("", [].as_slice()),
    };
    args.pair("--entrypoint", program);
    args.0.push(asked.image.into());
    args.0.extend(rest.iter().map(OsString::from));
    args.0
}

struct Args(Vec<OsString>);

impl Args {
    fn flag(&mut self, flag: &str) {
        self.0.push(flag.into());
    }

    fn pair(&mut self, flag: &str, value: &str) {
        self.0.push(format!("{flag}={value}").into());
    }

    /// The image's own check of its health is not asked for. Its place is taken by the one thing
    /// that an engine does in a container by itself after a while: it ends everything there. That
    /// takes a shell in the image and a process more within its limit, so it is what is left when
    /// there is no keeper, and not what the limit rests on.
    fn deadline(&mut self, asked: &Blueprint<'_>) {
        let Some(deadline) = asked.deadline.filter(|_| asked.program == Program::Docker) else {
            return self.flag("--no-healthcheck");
        };
        self.pair("--health-cmd", "kill -9 -1");
        self.pair("--health-interval", &format!("{}ms", deadline.as_millis()));
        self.pair("--health-retries", "1");
    }

    fn isolation(&mut self, asked: &Blueprint<'_>) {
        let config = &asked.settings.config;
        self.pair("--user", &format!("{}:{}", asked.user.uid, asked.user.gid));
        for capability in &config.cap_drop {
            self.pair("--cap-drop", capability);
        }
        self.pair("--security-opt", "no-new-privileges");
        let own = config.seccomp_profile.as_deref().map(Path::new);
        if let Some(file) = own.or(asked.filter) {
            let mut option = OsString::from("--security-opt=seccomp=");
            option.push(file);
            self.0.push(option);
        }
        if let Some(profile) = &config.apparmor_profile {
            self.pair("--security-opt", &format!("apparmor={profile}"));
        }
        if let Some(label) = &config.selinux_label {
            self.pair("--security-opt", &format!("label={label}"));
        }
        self.pair("--ipc", "private");
        self.pair("--cgroupns", "private");
        self.pair("--hostname", "sandbox");
        if asked.program == Program::Podman && !rustix::process::geteuid().is_root() {
            self.pair("--userns", "keep-id");
        }
        if asked.profile.network != NetworkMode::Unrestricted {
            self.pair("--network", "none");
            return;
        }
        self.pair("--network", config.network.as_deref().unwrap_or("bridge"));
        for server in &config.dns {
            self.pair("--dns", server);
        }
        for host in &config.extra_hosts {
            self.pair("--add-host", host);
        }
        for port in &config.publish {
            self.pair("--publish", &format!("127.0.0.1::{port}"));
        }
    }

    fn limits(&mut self, asked: &Blueprint<'_>) {
        let limits = &asked.profile.limits;
        let config = &asked.settings.config;
        let memory = limits.memory_bytes.get();
        self.pair("--memory", &memory.to_string());
        let swap = config
            .memory_swap
            .map_or(memory, |swap| swap.get().max(memory));
        self.pair("--memory-swap", &swap.to_string());
        self.pair("--pids-limit", &limits.pids.get().to_string());
        // When memory runs out on the host, it goes before the server.
        self.pair("--oom-score-adj", "1000");
        let most = asked
            .cpus
            .map_or(u32::MAX, |cpus| cpus.saturating_mul(1000));
        let milli = limits.cpus_milli.get().min(most);
        self.pair("--cpus", &format!("{}.{:03}", milli / 1000, milli % 1000));
        let shared = config.shm_size.map_or(64 << 20, |size| size.get());
        self.pair("--shm-size", &shared.min(scratch_bytes(limits)).to_string());
        let disk = limits.disk_bytes.get();
        let ours = [
            ("core", 0),
            ("nofile", limits.open_files.get()),
            // What a quota leaves of the workspace, for a program that is over before anybody looks.
            ("fsize", asked.largest_file.map_or(disk, |it| it.min(disk))),
            // For a process that is not seen from here; a second later than the watch.
            ("cpu", limits.cpu_ms.get().div_ceil(1000) + 1),
        ];
        for (name, most) in ours {
            let given = config.ulimits.get(name);
            let soft = given.map_or(most, |it| it.soft.min(most));
            let hard = given.map_or(most, |it| it.hard.min(most));
            self.pair("--ulimit", &format!("{name}={soft}:{hard}"));
        }
        let others = config.ulimits.iter();
        for (name, limit) in others.filter(|(name, _)| !ours.iter().any(|it| it.0 == *name)) {
            self.pair("--ulimit", &format!("{name}={}:{}", limit.soft, limit.hard));
        }
        // The one place for devices: they come from the profile alone.
        if limits.gpus.get() > 0 {
            self.pair("--gpus", &limits.gpus.get().to_string());
        }
    }

    fn files(&mut self, asked: &Blueprint<'_>) {
        if asked.settings.config.read_only_root {
            self.flag("--read-only");
        }
        let size = scratch_bytes(&asked.profile.limits);
        for tmpfs in asked.settings.tmpfs.iter().chain(asked.scratch) {
            self.pair("--tmpfs", &tmpfs_option(tmpfs, size));
        }
        for mount in asked.mounts {
            self.pair("--mount", mount.option());
        }
    }
}

/// Memory files count as memory: filling them must end in «no space left», not in a kill.
pub(super) fn scratch_bytes(limits: &Limits) -> u64 {
    limits.disk_bytes.get().min(limits.memory_bytes.get() / 2)
}

fn tmpfs_option(tmpfs: &Tmpfs, size: u64) -> String {
    let mut options = tmpfs.options.clone();
    let has = |options: &[String], names: &[&str]| {
        options.iter().any(|option| {
            let name = option.split_once('=').map_or(option.as_str(), |it| it.0);
            names.contains(&name)
        })
    };
    for word in ["nosuid", "nodev"] {
        if !has(&options, &[word]) {
            options.push(word.to_owned());
        }
    }
    if !has(&options, &["exec", "noexec"]) {
        options.push("noexec".to_owned());
    }
    if !has(&options, &["size"]) {
        options.push(format!("size={size}"));
    }
    if !has(&options, &["mode", "uid"]) {
        options.push("mode=1777".to_owned());
    }
    format!("{}:{}", tmpfs.path, options.join(","))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use glovebox_model::{
        Access, Bytes, Count, Cpus, DockerConfig, LimitsDemand, Millis, Result, SecurityMode, Tier,
        Ulimit,
    };

    use glovebox_workspace::adapter::HostPath;

    use super::*;

    fn mount(source: &str, target: &str, access: Access) -> Result<Mount> {
        let source = HostPath::parse(source).unwrap();
        Ok(Mount::new(&source, target, access)?.unwrap())
    }

    fn profile() -> Profile {
        Profile {
            limits: Limits {
                wall_ms: Millis::secs(60),
                session_ms: Millis::secs(30),
                cpu_ms: Millis::secs(30),
                memory_bytes: Bytes::mib(256),
                pids: Count(64),
                cpus_milli: Cpus(1500),
                disk_bytes: Bytes::mib(1024),
                disk_files: Count(1000),
                stdout_bytes: Bytes::mib(1),
                stderr_bytes: Bytes::mib(1),
                artifacts_bytes: Bytes::mib(1),
                open_files: Count(1024),
                gpus: Count(0),
                tpus: Count(0),
                egress_bytes: Bytes::mib(64),
                egress_connections: Count(100),
                network_ms: Millis::secs(60),
            },
            network: NetworkMode::None,
            allow_net: BTreeSet::new(),
            workspace: Access::Rw,
            env_allow: BTreeSet::new(),
            tier: Tier::Safe,
            security: SecurityMode::Strict,
            limits_demand: LimitsDemand::Supervised,
            approval: glovebox_model::ApprovalMode::default(),
            require: BTreeSet::new(),
            backend: None,
            runtime: None,
            image: None,
        }
    }

    fn args(config: DockerConfig, profile: &Profile, argv: &[&str]) -> Result<Vec<String>> {
        args_within(None, config, profile, argv)
    }

    fn args_within(
        largest_file: Option<u64>,
        config: DockerConfig,
        profile: &Profile,
        argv: &[&str],
    ) -> Result<Vec<String>> {
        let settings = Settings::check(config, Path::new("/srv/glovebox"))?;
        let name = ContainerName::parse("glovebox-x")?;
        let argv: Vec<String> = argv.iter().map(|&it| it.to_owned()).collect();
        let environment = Environment::new(&[], &BTreeMap::new())?;
        let mounts = [
            mount("/srv/w", "/workspace/work", Access::Rw)?,
            mount("/srv/a,b \"c\"", "/workspace/inputs", Access::Ro)?,
        ];
        let args = create_args(&Blueprint {
            program: Program::Docker,
            settings: &settings,
            profile,
            name: &name,
            labels: &Labels::from([("glovebox.x".to_owned(), "y".to_owned())]),
            image: "glovebox-sandbox:latest",
            runtime: profile.runtime.as_deref(),
            cpus: Some(2),
            largest_file,
            user: settings.user,
            mounts: &mounts,
            scratch: &[],
            environment: &environment,
            filter: Some(Path::new("/srv/glovebox/filter.json")),
            stdin: false,
            terminal: false,
            deadline: Some(Duration::from_secs(62)),
            cwd: "/workspace/work",
            argv: &argv,
        });
        Ok(args
            .into_iter()
            .map(|it| it.to_string_lossy().into_owned())
            .collect())
    }

    #[test]
    fn a_quota_narrows_the_size_of_a_file_and_never_widens_it() -> Result<()> {
        let fsize = |largest_file| -> Result<Vec<String>> {
            let args = args_within(largest_file, DockerConfig::default(), &profile(), &["true"])?;
            let of_files = args.into_iter();
            Ok(of_files.filter(|arg| arg.contains("fsize")).collect())
        };
        assert_eq!(fsize(Some(4096))?, ["--ulimit=fsize=4096:4096"]);
        let whole = ["--ulimit=fsize=1073741824:1073741824"];
        assert_eq!(fsize(Some(u64::MAX))?, whole);
        assert_eq!(fsize(None)?, whole);
        Ok(())
    }

    #[test]
    fn the_strictest_is_the_default() -> Result<()> {
        let args = args(
            DockerConfig::default(),
            &profile(),
            &["sh", "-c", "--privileged"],
        )?;
        for expected in [
            "--pull=never",
            "--init",
            "--read-only",
            "--network=none",
            "--security-opt=seccomp=/srv/glovebox/filter.json",
            "--user=1000:1000",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            "--ipc=private",
            "--cgroupns=private",
            "--hostname=sandbox",
            "--log-driver=none",
            "--health-cmd=kill -9 -1",
            "--health-interval=62000ms",
            "--memory=268435456",
            "--memory-swap=268435456",
            "--pids-limit=64",
            "--oom-score-adj=1000",
            "--cpus=1.500",
            "--ulimit=core=0:0",
            "--ulimit=nofile=1024:1024",
            "--ulimit=fsize=1073741824:1073741824",
            "--ulimit=cpu=31:31",
            "--shm-size=67108864",
            "--tmpfs=/tmp:nosuid,nodev,noexec,size=134217728,mode=1777",
            "--mount=type=bind,source=/srv/w,target=/workspace/work",
            "--mount=type=bind,\"source=/srv/a,b \"\"c\"\"\",target=/workspace/inputs,readonly",
            "--workdir=/workspace/work",
            "--label=glovebox.x=y",
            "--entrypoint=sh",
        ] {
            assert!(
                args.iter().any(|arg| arg == expected),
                "{expected}: {args:?}"
            );
        }
        // After the image everything is the program's.
        let image = args.iter().position(|arg| arg == "glovebox-sandbox:latest");
        let rest = image.map(|at| args[at + 1..].to_vec());
        assert_eq!(rest, Some(vec!["-c".to_owned(), "--privileged".to_owned()]));
        let options = &args[..image.unwrap_or_default()];
        for never in [
            "--privileged",
            "--cap-add",
            "--device",
            "--gpus",
            "--pid=",
            "--publish",
        ] {
            assert!(!options.iter().any(|arg| arg.starts_with(never)), "{never}");
        }
        Ok(())
    }

    #[test]
    fn a_network_only_by_policy() -> Result<()> {
        let config = DockerConfig {
            network: Some("agents".to_owned()),
            dns: vec!["9.9.9.9".to_owned()],
            extra_hosts: vec!["db:10.0.0.2".to_owned()],
            publish: vec![8080],
            ..DockerConfig::default()
        };
        let closed = args(config.clone(), &profile(), &["true"])?;
        assert!(closed.contains(&"--network=none".to_owned()));
        assert!(!closed.iter().any(|arg| arg.starts_with("--publish")));
        let open = Profile {
            network: NetworkMode::Unrestricted,
            ..profile()
        };
        let open = args(config, &open, &["true"])?;
        for expected in [
            "--network=agents",
            "--dns=9.9.9.9",
            "--add-host=db:10.0.0.2",
            "--publish=127.0.0.1::8080",
        ] {
            assert!(open.iter().any(|arg| arg == expected), "{expected}");
        }
        assert!(!open.contains(&"--network=none".to_owned()));
        Ok(())
    }

    #[test]
    fn the_operators_choices_only_narrow_limits() -> Result<()> {
        let config = DockerConfig {
            runtime: None,
            platform: Some("linux/arm64".to_owned()),
            memory_swap: Some(Bytes::mib(1)),
            shm_size: Some(Bytes::mib(4096)),
            apparmor_profile: Some("strict".to_owned()),
            selinux_label: Some("type:svirt_t".to_owned()),
            read_only_root: false,
            tmpfs: vec!["/tmp:exec,size=1m".to_owned()],
            ulimits: BTreeMap::from([
                (
                    "nofile".to_owned(),
                    Ulimit {
                        soft: 9,
                        hard: 99_999,
                    },
                ),
                ("stack".to_owned(), Ulimit { soft: 1, hard: 2 }),
            ]),
            ..DockerConfig::default()
        };
        let mut profile = profile();
        profile.limits.cpus_milli = Cpus::whole(64);
        profile.limits.gpus = Count(1);
        profile.runtime = Some("runsc".to_owned());
        let args = args(config, &profile, &["-strange"])?;
        for expected in [
            "--memory-swap=268435456",
            "--shm-size=134217728",
            "--cpus=2.000",
            "--ulimit=nofile=9:1024",
            "--ulimit=stack=1:2",
            "--runtime=runsc",
            "--platform=linux/arm64",
            "--security-opt=apparmor=strict",
            "--security-opt=label=type:svirt_t",
            "--tmpfs=/tmp:exec,size=1m,nosuid,nodev,mode=1777",
            "--gpus=1",
            "--entrypoint=-strange",
        ] {
            assert!(
                args.iter().any(|arg| arg == expected),
                "{expected}: {args:?}"
            );
        }
        assert!(!args.contains(&"--read-only".to_owned()));
        Ok(())
    }
}
