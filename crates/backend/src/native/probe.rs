//! What the native backend can enforce on this host right now, with what was seen.

use glovebox_model::{Evidence, Grade, Guarantee};

use super::facts::{Facts, Privilege};

/// Looks at the host; starts nothing. `glovebox doctor` adds a real run to it.
pub fn probe() -> Vec<Evidence> {
    let facts = Facts::look();
    Guarantee::ALL
        .into_iter()
        .map(|guarantee| examine(guarantee, &facts))
        .collect()
}

fn examine(guarantee: Guarantee, facts: &Facts) -> Evidence {
    let (grade, evidence, fix) = match guarantee {
        Guarantee::OwnUsers => users(facts),
        Guarantee::OwnPids => namespace("pid"),
        Guarantee::OwnMounts => namespace("mnt"),
        Guarantee::OwnIpc => namespace("ipc"),
        Guarantee::OwnHostname => namespace("uts"),
        Guarantee::OwnCgroupView => namespace("cgroup"),
        Guarantee::NoNetwork => namespace("net"),
        Guarantee::EgressOnly => way_out(),
        Guarantee::ReadOnlyRoot => always("a memory root with read-only binds"),
        Guarantee::NoCapabilities => always("all sets emptied before the program starts"),
        Guarantee::NoNewPrivileges => always("set before the program starts"),
        Guarantee::SyscallFilter => filter(),
        Guarantee::FileRules => landlock(facts),
        Guarantee::NoSurvivors => always("everything inside dies with pid 1"),
        Guarantee::MemoryLimit => limit(facts, "memory", "memory is watched and the sandbox ended"),
        Guarantee::PidsLimit => pids(facts),
        Guarantee::CpuLimit => limit(facts, "cpu", "held to whole processors, time is watched"),
        Guarantee::DiskLimit => (
            Grade::Supervised,
            "temporary files, scratch workspaces and, where the kernel's limit is demanded, \
             writes that are held back by the kernel; other workspaces watched"
                .to_owned(),
            None,
        ),
        Guarantee::OwnKernel => (
            Grade::Unavailable,
            "programs speak to the host's kernel, through a filter".to_owned(),
            Some("use the `docker` backend with the runtime `runsc`".to_owned()),
        ),
    };
    Evidence {
        guarantee,
        grade,
        evidence,
        fix,
    }
}

type Finding = (Grade, String, Option<String>);

fn always(evidence: &str) -> Finding {
    (Grade::Kernel, evidence.to_owned(), None)
}

fn namespace(name: &str) -> Finding {
    let path = format!("/proc/self/ns/{name}");
    if std::fs::symlink_metadata(&path).is_ok() {
        (Grade::Kernel, format!("{path} exists"), None)
    } else {
        let fix = format!("use a kernel built with {name} namespaces");
        (Grade::Unavailable, format!("{path} is missing"), Some(fix))
    }
}

/// The rules that steer what is sent are set by this protocol. A run with a network tries them all,
/// and is refused where one is missing.
fn way_out() -> Finding {
    match (namespace("net"), glovebox_cage::can_ask_netfilter()) {
        ((Grade::Kernel, ..), Ok(())) => always(
            "netfilter can be asked: all that is sent is redirected in the sandbox's own namespace",
        ),
        ((Grade::Kernel, ..), Err(error)) => (
            Grade::Unavailable,
            format!("netfilter cannot be asked: {error}"),
            Some("as root: `modprobe nf_tables nft_redir nft_nat`".to_owned()),
        ),
        (missing, _) => missing,
    }
}

fn users(facts: &Facts) -> Finding {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let most = read("/proc/sys/user/max_user_namespaces");
    let closed = most.trim() == "0"
        || (facts.privilege != Privilege::Root
            && read("/proc/sys/kernel/unprivileged_userns_clone").trim() == "0");
    if closed {
        let fix = "as root: `sysctl user.max_user_namespaces=15000 \
                   kernel.unprivileged_userns_clone=1`";
        let evidence = "user namespaces are switched off".to_owned();
        return (Grade::Unavailable, evidence, Some(fix.to_owned()));
    }
    let who = match facts.privilege {
        Privilege::Root => "root: each sandbox gets an unprivileged id of its own".to_owned(),
        Privilege::User { uid, .. } => format!("user {uid}: the sandbox is this user, alone"),
    };
    (
        Grade::Kernel,
        format!("{who}; up to {} user namespaces", most.trim()),
        None,
    )
}

fn filter() -> Finding {
    let actions = std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail");
    match actions {
        Ok(actions) if actions.contains("kill_process") => (
            Grade::Kernel,
            "seccomp filters are available".to_owned(),
            None,
        ),
        _ => (
            Grade::Unavailable,
            "/proc/sys/kernel/seccomp/actions_avail names no filter actions".to_owned(),
            Some("use a kernel built with CONFIG_SECCOMP_FILTER".to_owned()),
        ),
    }
}

fn landlock(facts: &Facts) -> Finding {
    match facts.landlock_abi {
        0 => (
            Grade::Unavailable,
            "the kernel has no Landlock; the mounts alone guard the files".to_owned(),
            Some("use Linux 5.13 or newer with `landlock` among the `lsm=` modules".to_owned()),
        ),
        abi => (Grade::Kernel, format!("Landlock version {abi}"), None),
    }
}

fn limit(facts: &Facts, controller: &str, otherwise: &str) -> Finding {
    match &facts.cgroups {
        Ok(host) if host.limits(controller) => (
            Grade::Kernel,
            format!("control group version {}", host.version()),
            None,
        ),
        Ok(host) => (
            Grade::Supervised,
            format!(
                "control groups version {} without `{controller}`; {otherwise}",
                host.version()
            ),
            Some(format!(
                "enable the `{controller}` controller in the parent group"
            )),
        ),
        Err(why) => (
            Grade::Supervised,
            format!("{why}; {otherwise}"),
            Some(
                "run as root, or in a session with a delegated control group: \
                 `systemd-run --user --scope -p Delegate=yes glovebox …`"
                    .to_owned(),
            ),
        ),
    }
}

fn pids(facts: &Facts) -> Finding {
    match limit(facts, "pids", "") {
        (Grade::Kernel, evidence, fix) => (Grade::Kernel, evidence, fix),
        _ => always("the kernel counts processes per user namespace"),
    }
}
