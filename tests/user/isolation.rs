//! Isolation for an ordinary user: the same, and files on disk stay that user's.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use support::{Caller, Fixtures, Trial, Verdict, own_probe, print_table, python, wait_until};

#[test]
fn our_probes_are_held_for_an_ordinary_user_too() {
    let Some(trial) = Trial::new(Caller::User) else {
        return;
    };
    let started = Instant::now();
    let mut fixtures = Fixtures::new(&trial);
    let inside = own_probe(&trial, &fixtures);
    fixtures.assert_untouched(Caller::User);
    print_table(&inside, &fixtures.control(&trial));
    let crossed: Vec<_> = inside
        .iter()
        .filter(|row| row.verdict == Verdict::Crossed)
        .collect();
    assert!(crossed.is_empty(), "crossed: {crossed:#?}");
    let skipped: Vec<_> = inside
        .iter()
        .filter(|row| row.verdict == Verdict::Skipped)
        .collect();
    assert!(skipped.len() <= 5, "{skipped:#?}");
    println!("took {:?}", started.elapsed());
    drop(fixtures);
    trial.end();
}

#[test]
fn files_on_disk_keep_the_users_ownership() {
    let Some(trial) = Trial::new(Caller::User) else {
        return;
    };
    let account = Caller::User.account().unwrap();
    let script = "echo mine > made; mkdir -p below/deep; ln -s made link; cp made below/deep/copy; \
                  echo kept > /workspace/artifacts/kept";
    let outcome = trial.run(["/bin/sh", "-c", script]).json();
    outcome.expect("succeeded", 0, None);
    let artifacts = trial.state().join(outcome.text("artifacts_dir"));
    let made =
        ["made", "below", "below/deep", "link", "below/deep/copy"].map(|it| trial.work().join(it));
    for path in made.iter().chain([
        &artifacts,
        &artifacts.join("kept"),
        &artifacts.join("stdout.txt"),
    ]) {
        let facts = std::fs::symlink_metadata(path).unwrap();
        assert_eq!(
            (facts.uid(), facts.gid()),
            (account.uid, account.gid),
            "{}",
            path.display()
        );
    }
    trial.end();
}

#[test]
fn limits_are_supervised_and_said_to_be() {
    let Some(trial) = Trial::new(Caller::User) else {
        return;
    };
    let outcome = trial.run(["/bin/true"]).json();
    outcome.expect("succeeded", 0, None);
    let isolation = outcome.record["isolation"].as_object().unwrap();
    for (guarantee, grade) in isolation {
        let supervised = ["memory_limit", "cpu_limit", "disk_limit"].contains(&guarantee.as_str());
        let expected = match guarantee.as_str() {
            "own_kernel" => "unavailable",
            _ if supervised => "supervised",
            _ => "kernel",
        };
        assert_eq!(grade, expected, "{guarantee}");
    }
    trial.end();
}

#[test]
fn kernel_limits_that_cannot_be_had_are_refused_before_anything_starts() {
    let Some(trial) = Trial::new(Caller::User) else {
        return;
    };
    let run = trial
        .run(["/bin/touch", "begun"])
        .with(["--require", "kernel-limits"]);
    let outcome = run.json();
    assert_eq!(outcome.code, 125, "{}", outcome.record);
    assert!(!trial.work().join("begun").exists());
    let said = format!("{}{}", outcome.record, outcome.stderr);
    assert!(
        said.contains("memory_limit") && said.contains("--require kernel-limits"),
        "{said}"
    );
    trial.end();
}

#[test]
fn root_files_in_the_workspace_are_neither_readable_nor_writable_for_a_user() {
    let Some(trial) = Trial::new(Caller::User) else {
        return;
    };
    let private = trial.work().join("private");
    std::fs::write(&private, "root's").unwrap();
    std::os::unix::fs::chown(&private, Some(0), Some(0)).unwrap();
    std::fs::set_permissions(
        &private,
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    let script = "cat private; echo x > private; chmod 777 private; exit 0";
    let output = trial.run(["/bin/sh", "-c", script]).plain();
    assert!(output.stdout.is_empty());
    assert_eq!(std::fs::read_to_string(&private).unwrap(), "root's");
    assert_eq!(std::fs::metadata(&private).unwrap().mode() & 0o777, 0o600);
    trial.end();
}

#[test]
fn a_sandbox_that_used_up_its_processes_takes_none_from_another() {
    let Some(trial) = Trial::new(Caller::User) else {
        return;
    };
    let bomb = "
import os, signal, time
try:
    while True:
        if os.fork() == 0: signal.pause()
except OSError:
    open('full', 'w').close()
while not os.path.exists('go'): time.sleep(0.005)
";
    let limits = ["--pids", "20", "--timeout", "120s"];
    let full = trial.run([python(), "-c", bomb]).with(limits).spawn();
    let sign = trial.work().join("full");
    assert!(wait_until(Duration::from_secs(60), || sign.exists()));
    let script = "for i in 1 2 3 4 5 6 7 8; do sleep 0.2 & done; wait; echo all";
    let outcome = trial.run(["/bin/sh", "-c", script]).with(limits).json();
    trial.put("go", "");
    full.wait_with_output().unwrap();
    outcome.expect("succeeded", 0, None);
    assert_eq!(outcome.text("stdout"), "all\n");
    trial.end();
}
