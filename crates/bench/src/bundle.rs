//! A bundle for OCI runtimes: the namespaces, mounts and limits of our own sandboxes. It has no
//! filter, since theirs are written in another language; so these runtimes do less than we do.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::Path;

use glovebox_model::{Code, Error, Limits, Result, Stage};
use serde_json::{Value, json};

use crate::command::{Environment, Invocation};
use crate::payload::Payload;
use crate::setup::{ENVIRONMENT, Setup};

const PERIOD_US: u64 = 100_000;
/// Of ids that no user of the host has, as our own sandboxes get them.
const FIRST_HOST_ID: u32 = 0x7fff_0000;

pub(crate) fn invocation(program: OsString, setup: &Setup, payload: Payload) -> Result<Invocation> {
    let name = Path::new(&program)
        .file_name()
        .unwrap_or_default()
        .to_owned();
    let bundle = setup.bundle().join(&name).join(payload.name());
    write(&bundle, setup, payload).map_err(|error| {
        let message = "cannot write the bundle for OCI runtimes";
        Error::new(Code::StoreUnavailable, Stage::Parse, message).caused_by(error)
    })?;
    let mut container = OsString::from("glovebox-bench-");
    container.push(std::process::id().to_string());
    let words = [
        "--root".into(),
        bundle.join("run").into_os_string(),
        "run".into(),
    ];
    let rest = ["--bundle".into(), bundle.into_os_string(), container];
    Ok(Invocation {
        argv: std::iter::once(program).chain(words).chain(rest).collect(),
        expected: payload.expected(),
        environment: Environment::Empty,
        directory: setup.work(),
        inherited: None,
        container: None,
    })
}

fn write(bundle: &Path, setup: &Setup, payload: Payload) -> std::io::Result<()> {
    let root = bundle.join("rootfs");
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
    let mut mounts = mounts(setup);
    for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
        let host = Path::new("/").join(name);
        match std::fs::symlink_metadata(&host) {
            Ok(metadata) if metadata.is_symlink() => {
                symlink(std::fs::read_link(&host)?, root.join(name))?
            }
            Ok(metadata) if metadata.is_dir() => {
                std::fs::create_dir_all(root.join(name))?;
                mounts.push(bind(&host, &format!("/{name}"), "ro"));
            }
            Ok(_) | Err(_) => {}
        }
    }
    let config = config(&setup.profile().limits, payload, mounts);
    std::fs::write(bundle.join("config.json"), serde_json::to_vec(&config)?)
}

fn bind(host: &Path, guest: &str, access: &str) -> Value {
    let options = ["rbind", "nosuid", "nodev", access];
    json!({"destination": guest, "type": "bind", "source": host, "options": options})
}

fn mounts(setup: &Setup) -> Vec<Value> {
    let fresh = |guest: &str, kind: &str, options: &[&str]| json!({"destination": guest, "type": kind, "source": kind, "options": options});
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
        bind(&setup.work(), "/workspace/work", "rw"),
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
    let map = json!([{"containerID": 0, "hostID": FIRST_HOST_ID, "size": 2000}]);
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
