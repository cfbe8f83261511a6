//! A bundle for OCI runtimes: the same namespaces, mounts and limits as ours. The filter is left
//! out, since theirs is written in another language; so they do less than we do.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::Path;

use glovebox_model::{Code, Error, Limits, Result, Stage as PathStage};
use serde_json::{Value, json};

use super::command::{Environment, Invocation};
use super::stage::{ENVIRONMENT, Payload, Stage};

const PERIOD_US: u64 = 100_000;
/// Ids that no user of the host has, as our own sandboxes get one.
const OUTER: u32 = 0x7fff_0000;

pub(super) fn invocation(program: OsString, stage: &Stage, payload: Payload) -> Result<Invocation> {
    let name = Path::new(&program)
        .file_name()
        .unwrap_or_default()
        .to_owned();
    let place = stage.bundle().join(&name).join(payload.name());
    write(&place, stage, payload).map_err(|error| {
        let message = "cannot write the bundle for OCI runtimes";
        Error::new(Code::StoreUnavailable, PathStage::Parse, message).caused_by(error)
    })?;
    let mut container = OsString::from("glovebox-bench-");
    container.push(std::process::id().to_string());
    let words = [
        "--root".into(),
        place.join("run").into_os_string(),
        "run".into(),
    ];
    let rest = ["--bundle".into(), place.into_os_string(), container];
    Ok(Invocation {
        argv: std::iter::once(program).chain(words).chain(rest).collect(),
        expected: payload.expected(),
        environment: Environment::Empty,
        directory: stage.work(),
        inherited: None,
        within: None,
    })
}

fn write(place: &Path, stage: &Stage, payload: Payload) -> std::io::Result<()> {
    let root = place.join("rootfs");
    for name in [
        "usr",
        "proc",
        "dev",
        "tmp",
        "workspace/work",
        "home/sandbox",
    ] {
        std::fs::create_dir_all(root.join(name))?;
    }
    let mut mounts = mounts(stage);
    for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
        let host = Path::new("/").join(name);
        match std::fs::symlink_metadata(&host) {
            Ok(facts) if facts.is_symlink() => {
                symlink(std::fs::read_link(&host)?, root.join(name))?
            }
            Ok(facts) if facts.is_dir() => {
                std::fs::create_dir_all(root.join(name))?;
                mounts.push(bind(&host, &format!("/{name}"), "ro"));
            }
            Ok(_) | Err(_) => {}
        }
    }
    let config = config(&stage.profile().limits, payload, mounts);
    std::fs::write(place.join("config.json"), serde_json::to_vec(&config)?)
}

fn bind(host: &Path, guest: &str, access: &str) -> Value {
    let options = ["rbind", "nosuid", "nodev", access];
    json!({"destination": guest, "type": "bind", "source": host, "options": options})
}

fn mounts(stage: &Stage) -> Vec<Value> {
    let fresh = |place: &str, kind: &str, options: &[&str]| json!({"destination": place, "type": kind, "source": kind, "options": options});
    vec![
        bind(Path::new("/usr"), "/usr", "ro"),
        fresh("/proc", "proc", &["nosuid", "nodev", "noexec"]),
        fresh("/dev", "tmpfs", &["nosuid", "mode=755", "size=65536k"]),
        fresh(
            "/dev/pts",
            "devpts",
            &["nosuid", "noexec", "newinstance", "ptmxmode=0666"],
        ),
        fresh("/tmp", "tmpfs", &["nosuid", "nodev", "mode=1777"]),
        fresh("/home/sandbox", "tmpfs", &["nosuid", "nodev", "mode=1777"]),
        bind(&stage.work(), "/workspace/work", "rw"),
    ]
}

fn config(limits: &Limits, payload: Payload, mounts: Vec<Value>) -> Value {
    let environment: Vec<String> = ENVIRONMENT
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let none: [&str; 0] = [];
    let namespaces: Vec<Value> = ["user", "mount", "pid", "network", "ipc", "uts", "cgroup"]
        .iter()
        .map(|kind| json!({ "type": kind }))
        .collect();
    let map = json!([{"containerID": 0, "hostID": OUTER, "size": 2000}]);
    let quota = PERIOD_US * u64::from(limits.cpus_milli.get()) / 1000;
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 1000, "gid": 1000},
            "args": payload.argv(),
            "env": environment,
            "cwd": "/workspace/work",
            "capabilities": {
                "bounding": none, "effective": none, "inheritable": none,
                "permitted": none, "ambient": none,
            },
            "noNewPrivileges": true,
        },
        "root": {"path": "rootfs", "readonly": true},
        "hostname": "sandbox",
        "mounts": mounts,
        "linux": {
            "namespaces": namespaces,
            "uidMappings": map,
            "gidMappings": map,
            "maskedPaths": ["/proc/keys", "/proc/kallsyms"],
            "resources": {
                "memory": {"limit": limits.memory_bytes.get()},
                "pids": {"limit": limits.pids.get()},
                "cpu": {"quota": quota, "period": PERIOD_US},
            },
        },
    })
}
