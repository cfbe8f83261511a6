//! A host with control groups of version 2 and an older kernel, in a virtual machine that is
//! emulated in software. `guest.sh` runs the trials in there; what they must show is said here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

#[derive(Debug)]
struct Trial {
    code: i32,
    /// The exec record, or whatever else the guest had to say.
    said: Value,
}

/// Every trial by its name.
struct Guest(BTreeMap<String, Trial>);

impl Guest {
    fn boot(trials: &str) -> Self {
        let target = repository().join("target/v2-guest");
        let built = Command::new(repository().join("scripts/v2-guest"))
            .arg(binary())
            .arg(&target)
            .status()
            .unwrap();
        assert!(built.success(), "the guest could not be built");
        let drive = format!(
            "file={},format=raw,if=none,id=root,snapshot=on",
            target.join("root.img").display()
        );
        let output = Command::new("timeout")
            .args(["--kill-after=5", "320", "qemu-system-x86_64"])
            // Never KVM: where it is there and broken, it hangs instead of falling back.
            .args(["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2"])
            .args(["-m", "1536", "-nodefaults", "-no-reboot"])
            .args(["-display", "none", "-serial", "stdio"])
            .arg("-kernel")
            .arg(target.join("vmlinuz"))
            .args(["-drive", &drive, "-device", "nvme,drive=root,serial=root"])
            .arg("-append")
            .arg(format!(
                "root=/dev/nvme0n1 rw init=/guest console=ttyS0 quiet loglevel=0 panic=-1 \
                 mitigations=off trials={trials}",
            ))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let console = String::from_utf8_lossy(&output.stdout).into_owned();
        let guest = Self::parse(&console);
        let complete = guest.0.contains_key("end");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(complete, "the guest did not end:\n{console}\n{stderr}");
        guest
    }

    fn parse(console: &str) -> Self {
        let trials = console.lines().filter_map(|line| {
            let (_, line) = line.split_once("@@ ")?;
            let mut parts = line.trim_end().splitn(3, ' ');
            let (name, code, said) = (parts.next()?, parts.next()?, parts.next()?);
            let said = serde_json::from_str(said).unwrap_or_else(|_| said.into());
            let code = code.parse().ok()?;
            Some((name.to_owned(), Trial { code, said }))
        });
        Self(trials.collect())
    }

    #[track_caller]
    fn trial(&self, name: &str) -> &Trial {
        self.0
            .get(name)
            .unwrap_or_else(|| panic!("the guest did not try `{name}`: {:?}", self.0.keys()))
    }

    #[track_caller]
    fn ended(&self, name: &str, code: i32) -> &Value {
        let trial = self.trial(name);
        assert_eq!(trial.code, code, "`{name}`: {}", trial.said);
        &trial.said
    }

    #[track_caller]
    fn is(&self, name: &str, expected: impl Into<Value>) {
        assert_eq!(self.trial(name).said, expected.into(), "`{name}`");
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .find(|path| path.join("scripts/v2-guest").exists())
        .expect("the repository is above this crate")
        .to_owned()
}

fn binary() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let profile = own.ancestors().nth(2).unwrap();
    let binary = profile.join("glovebox");
    assert!(binary.exists(), "`glovebox` is not built");
    binary
}

/// On a machine without the emulator this is no test; in CI it has to be there.
fn emulator_is_missing() -> bool {
    let found = Command::new("qemu-system-x86_64")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if found.is_ok_and(|status| status.success()) {
        return false;
    }
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!ci, "qemu-system-x86_64 is missing");
    eprintln!("SKIPPED: qemu-system-x86_64 is missing, version 2 was not tried");
    true
}

#[test]
fn limits_and_crashes_on_a_host_with_version_2() {
    if emulator_is_missing() {
        return;
    }
    let full = support::is_full();
    let guest = Guest::boot(if full { "all" } else { "root" });
    println!("guest kernel {}", guest.trial("kernel").said);
    isolation(&guest, "root", 0);
    kernel_limits(&guest, "root");
    kill(&guest);
    if full {
        isolation(&guest, "user", 1000);
        kernel_limits(&guest, "delegated");
        supervised_limits(&guest);
        crashes(&guest);
    }
    println!("{} trials", guest.0.len());
}

fn isolation(guest: &Guest, who: &str, uid: u32) {
    let plain = guest.ended(&format!("{who}-plain"), 1);
    // No home of the host, and a system that cannot be written.
    assert_eq!(plain["stdout"], "hello\n/home:\nsandbox\n");
    let stderr = plain["stderr"].as_str().unwrap();
    assert!(stderr.contains("/root: No such file"), "{stderr}");
    assert!(stderr.contains("/etc/x: Read-only file system"), "{stderr}");
    let guarantees = plain["isolation"].as_object().unwrap();
    for (guarantee, grade) in guarantees {
        // A sandbox of this kernel has no kernel of its own, and says so.
        let expected = match guarantee.as_str() {
            "own_kernel" => "unavailable",
            limit if limit.ends_with("_limit") => continue,
            _ => "kernel",
        };
        assert_eq!(grade, expected, "{who}: `{guarantee}`");
    }
    guest.is(&format!("{who}-kept"), format!("kept {uid}"));
}

fn kernel_limits(guest: &Guest, who: &str) {
    let plain = guest.ended(&format!("{who}-kernel-limits"), 0);
    for limit in ["memory_limit", "pids_limit", "cpu_limit"] {
        assert_eq!(plain["isolation"][limit], "kernel", "{who}: `{limit}`");
    }
    if who == "root" {
        guest.ended("root-memory-enough", 0);
        let time = guest.ended("root-cpu-time", 137);
        assert_eq!(time["limit_hit"], "cpu");
    }
    let memory = guest.ended(&format!("{who}-memory"), 137);
    assert_eq!(
        (&memory["status"], &memory["limit_hit"]),
        (&"killed".into(), &"memory".into()),
        "{who}"
    );
    pids(guest, who);
    assert_eq!(
        guest.trial(&format!("{who}-pids")).said["limit_hit"],
        "pids"
    );
    let cpu = guest.ended(&format!("{who}-cpu"), 124);
    let used = cpu["usage"]["cpu_ms"].as_f64().unwrap();
    let took = cpu["duration_ms"].as_f64().unwrap();
    assert!(
        used < 0.6 * took,
        "{who}: {used} ms of processor time in {took} ms, with a quarter of a processor"
    );
    guest.is(&format!("{who}-left"), 0);
}

fn pids(guest: &Guest, who: &str) {
    let pids = &guest.trial(&format!("{who}-pids")).said;
    let stderr = pids["stderr"].as_str().unwrap();
    assert!(stderr.contains("can't fork"), "{who}: {stderr}");
    let most = pids["usage"]["max_pids"].as_u64().unwrap();
    assert!(most <= 16, "{who}: {most} processes at once");
}

fn supervised_limits(guest: &Guest) {
    let refused = guest.ended("user-kernel-limits", 125);
    let text = refused.to_string();
    assert!(text.contains("backend_unavailable"), "{text}");
    let memory = guest.ended("user-memory", 137);
    assert_eq!(memory["limit_hit"], "memory");
    assert_eq!(memory["isolation"]["memory_limit"], "supervised");
    pids(guest, "user");
    guest.is("user-left", 0);
}

fn kill(guest: &Guest) {
    guest.is("kill-before", 1);
    guest.is("kill-groups", 0);
    guest.is("kill-processes", 0);
    let said = guest.ended("kill-next", 0).to_string();
    assert!(said.contains("was lost in a crash"), "{said}");
}

fn crashes(guest: &Guest) {
    guest.is("crash-groups", 1);
    let said = guest.ended("crash-next", 0).to_string();
    assert!(said.contains("was lost in a crash"), "{said}");
    assert!(said.contains("removed 1 control group"), "{said}");
    guest.is("crash-left", 0);

    let said = guest.ended("keeper-killed", 125).to_string();
    assert!(said.contains("error[internal]"), "{said}");
    guest.is("keeper-left", 0);
}
