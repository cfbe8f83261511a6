//! A host that lacks something isolation needs: the exec is refused and nothing is started.

use support::{Caller, Trial, python};

/// Numbers on x86_64; what answers them is the kernel that does not have or allow them.
#[cfg(target_arch = "x86_64")]
const MISSING: &[(&str, u32, &str)] = &[
    ("clone3 (namespaces)", 435, "EPERM"),
    ("seccomp", 317, "ENOSYS"),
    ("seccomp forbidden", 317, "EPERM"),
    ("mount", 165, "EPERM"),
    ("pivot_root", 155, "EPERM"),
    ("umount2", 166, "EPERM"),
    ("open_tree", 428, "ENOSYS"),
    ("move_mount", 429, "ENOSYS"),
    ("mount_setattr", 442, "ENOSYS"),
    ("openat2", 437, "ENOSYS"),
    ("capset", 126, "EPERM"),
    ("prctl", 157, "EINVAL"),
    ("setresuid", 117, "EPERM"),
    ("setgroups", 116, "EPERM"),
    ("sethostname", 170, "EPERM"),
    ("landlock_restrict_self", 446, "EPERM"),
    ("setsid", 112, "EPERM"),
    ("close_range", 436, "ENOSYS"),
    ("prlimit64", 302, "EPERM"),
];

fn assert_refused(trial: &Trial, what: &str, wrapper: &[&str]) {
    let begun = trial.work().join("begun");
    let run = trial.run(["/bin/touch", "begun"]).through(wrapper);
    let outcome = run.json();
    let started = begun.exists();
    let _ = std::fs::remove_file(&begun);
    assert!(
        !started,
        "without {what} the payload was started: {}",
        outcome.record
    );
    assert_eq!(outcome.code, 125, "without {what}: {}", outcome.stderr);
    let said = format!("{}{}", outcome.stderr, outcome.record["error"]);
    assert!(
        said.contains("message") || said.contains("error["),
        "without {what}: {said}"
    );
    println!(
        "{what}: {}",
        said.chars()
            .take(110)
            .collect::<String>()
            .replace('\n', " ")
    );
}

#[cfg(target_arch = "x86_64")]
#[test]
fn without_a_call_that_isolation_needs_nothing_is_started() {
    let trial = Trial::new(Caller::Root).unwrap();
    let deny = trial.put("deny.py", include_str!("deny.py"));
    for (what, number, answer) in MISSING {
        let number = number.to_string();
        let wrapper = [python(), deny.to_str().unwrap(), &number, answer];
        assert_refused(&trial, what, &wrapper);
    }
    trial.end();
}

#[test]
fn without_user_namespaces_nothing_is_started() {
    // The limit counts in each user namespace for itself, so the host's stays as it is.
    let trial = Trial::new(Caller::Root).unwrap();
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let wrapper = [
        "unshare",
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        script,
        "sh",
    ];
    assert_refused(&trial, "user namespaces", &wrapper);
    trial.end();
}

#[test]
fn without_control_groups_limits_are_watched_and_kernel_limits_are_refused() {
    let trial = Trial::new(Caller::Root).unwrap();
    let hide = "mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"";
    let wrapper = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        hide,
        "sh",
    ];
    let outcome = trial.run(["/bin/true"]).through(wrapper).json();
    outcome.expect("succeeded", 0, None);
    assert_eq!(outcome.record["isolation"]["memory_limit"], "supervised");
    assert_eq!(outcome.record["isolation"]["cpu_limit"], "supervised");
    let run = trial
        .run(["/bin/touch", "begun"])
        .with(["--require", "kernel-limits"]);
    assert_eq!(run.through(wrapper).json().code, 125);
    assert!(!trial.work().join("begun").exists());
    trial.end();
}

#[cfg(target_arch = "x86_64")]
#[test]
fn without_file_rules_the_record_never_claims_them() {
    let trial = Trial::new(Caller::Root).unwrap();
    let deny = trial.put("deny.py", include_str!("deny.py"));
    let wrapper = [python(), deny.to_str().unwrap(), "444", "ENOSYS"];
    let outcome = trial.run(["/bin/touch", "begun"]).through(wrapper).json();
    if trial.work().join("begun").exists() {
        assert_eq!(outcome.record["isolation"]["file_rules"], "unavailable");
    } else {
        assert_eq!(outcome.code, 125, "{}", outcome.stderr);
    }
    trial.end();
}
