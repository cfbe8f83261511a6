//! A workspace that is an enemy: what a payload leaves in it must never be followed or executed on
//! the host's side, now or in a later run.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use support::{Caller, Fixtures, Trial, python};

/// Whatever executes this on the host leaves a mark.
const MARKING: &str = "#!/bin/sh\ntouch MARK\n";

fn marking(trial: &Trial) -> (PathBuf, String) {
    let mark = trial.home().join("executed");
    (
        mark.clone(),
        MARKING.replace("MARK", &mark.to_string_lossy()),
    )
}

#[test]
fn what_a_payload_writes_for_tools_is_never_executed_on_the_host() {
    let trial = Trial::new(Caller::Root).unwrap();
    let (mark, script) = marking(&trial);
    let plant = format!(
        r#"
import os
script = {script:?}
def put(path, text, mode=0o755):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as file: file.write(text)
    os.chmod(path, mode)
put("trap", script)
for hook in ("pre-commit", "post-checkout", "post-index-change", "fsmonitor-watchman"):
    put(f".git/hooks/{{hook}}", script)
put(".git/HEAD", "ref: refs/heads/main\n")
put(".git/config", "[core]\n\tfsmonitor = {mark}/../work/trap\n\tpager = ./trap\n\thooksPath = .git/hooks\n")
put(".envrc", script); put(".bashrc", script); put(".profile", script)
put(".vscode/tasks.json", '{{"tasks":[{{"command":"./trap"}}]}}')
put("Makefile", "all:\n\t./trap\n"); put("conftest.py", "import os; os.system('./trap')")
put("sitecustomize.py", "import os; os.system('./trap')")
put(".venv/pyvenv.cfg", "home = /root\n"); put(".venv/bin/python", script); put(".venv/bin/python3", script)
put("mise.toml", "[tools]\npython = '3'\n[env]\n_.source = './trap'\n"); put(".tool-versions", "python system\n")
put("node_modules/.bin/node", script); put("python3", script); put("sh", script); put("rustc", script)
"#,
        mark = mark.display(),
    );
    let planted = trial.run([python(), "-c", &plant]).json();
    planted.expect("succeeded", 0, None);

    // Later runs, each in another form, with the workspace's own programs first on the path.
    let path = format!("{}:/usr/bin:/bin", trial.work().display());
    let started = |options: &[&str], toolchain: &str, command: &[&str]| {
        let run = trial.run(command).with(options).toolchain(toolchain);
        let output = run.outside("PATH", &path).plain();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{options:?} {toolchain}: {said}");
    };
    started(&[], "off", &["/bin/true"]);
    started(&["--json"], "auto", &["/bin/true"]);
    started(&[], "auto", &["/usr/bin/python3", "-I", "-S", "-c", "0"]);
    started(&["--workspace", "ro"], "auto", &["/bin/true"]);
    started(&["--report", "report.json"], "off", &["/bin/true"]);
    assert!(
        !mark.exists(),
        "something of the workspace was executed on the host"
    );
    trial.end();
}

#[test]
fn a_toolchain_that_a_payload_made_up_shows_nothing_of_the_host() {
    let trial = Trial::new(Caller::Root).unwrap();
    let fixtures = Fixtures::new(&trial);
    let secret = trial.home().join("private");
    fs::create_dir_all(secret.join("bin")).unwrap();
    // As much like an interpreter's home as can be made up.
    fs::create_dir_all(secret.join("lib/python3.11")).unwrap();
    for name in [
        "bin/python3",
        "bin/python3.11",
        "bin/python",
        "lib/python3.11/os.py",
    ] {
        let path = secret.join(name);
        fs::write(&path, "a canary of the host").unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let venv = trial.work().join(".venv");
    fs::create_dir_all(venv.join("bin")).unwrap();
    fs::write(
        venv.join("pyvenv.cfg"),
        format!("home = {}/bin\n", secret.display()),
    )
    .unwrap();
    symlink(secret.join("bin/python3"), venv.join("bin/python3")).unwrap();
    symlink(&secret, trial.work().join("link")).unwrap();
    let look = format!(
        "cat {0}/bin/python3 link/bin/python3 .venv/bin/python3; ls {0}; echo looked",
        secret.display()
    );
    for toolchain in ["off", "auto", "venv"] {
        let run = trial.run(["/bin/sh", "-c", &look]).toolchain(toolchain);
        for run in [run.clone(), run.outside("VIRTUAL_ENV", &venv)] {
            let output = run.plain();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("looked"), "{output:?}");
            assert!(
                !text.contains("canary"),
                "`{toolchain}` shows the host: {text}"
            );
        }
    }
    drop(fixtures);
    trial.end();
}

#[test]
fn links_and_special_files_in_artifacts_are_not_followed() {
    let trial = Trial::new(Caller::Root).unwrap();
    let mut fixtures = Fixtures::new(&trial);
    let canary = fixtures.canaries().next().unwrap().to_owned();
    let make = format!(
        r#"
import os, socket
os.chdir("/workspace/artifacts")
os.symlink({canary:?}, "link"); os.symlink("/", "root"); os.symlink("loop", "loop")
os.symlink("/etc/shadow", "shadow"); os.symlink("../../../../../etc", "up")
os.mkfifo("fifo"); socket.socket(socket.AF_UNIX).bind("socket")
with open("sparse", "wb") as file: file.truncate(64 << 20)
os.makedirs("closed"); open("closed/file", "w").close(); os.chmod("closed", 0)
at = os.open(".", os.O_RDONLY)
for _ in range(600):
    os.mkdir("deep", dir_fd=at); at = os.open("deep", os.O_RDONLY, dir_fd=at)
open("plain", "w").write("mine")
"#
    );
    let outcome = trial
        .run([python(), "-c", &make])
        .with(["--max-artifacts", "8M"])
        .json();
    outcome.expect("succeeded", 0, None);
    let artifacts = outcome.record["artifacts"].as_array().unwrap();
    let listed: Vec<&str> = artifacts
        .iter()
        .filter_map(|it| it["path"].as_str())
        .collect();
    assert!(listed.contains(&"plain"), "{listed:?}");
    for name in ["link", "root", "shadow", "up", "fifo", "socket", "loop"] {
        assert!(
            !listed.contains(&name),
            "`{name}` is kept as if it were a file: {listed:?}"
        );
    }
    let secret = fs::read(&canary).unwrap();
    let mut waiting = vec![trial.state().join("projects")];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if kind.is_file() {
                assert_ne!(
                    fs::read(entry.path()).unwrap(),
                    secret,
                    "{:?}",
                    entry.path()
                );
            }
        }
    }
    fixtures.assert_untouched(Caller::Root);
    drop(fixtures);
    trial.end();
}

#[test]
fn a_workspace_full_of_traps_shows_the_same_inside() {
    let trial = Trial::new(Caller::Root).unwrap();
    let mut fixtures = Fixtures::new(&trial);
    for (name, target) in [
        ("etc", "/etc"),
        ("proc", "/proc"),
        ("dev", "/dev"),
        ("up", "../.."),
    ] {
        symlink(target, trial.work().join(name)).unwrap();
    }
    let look = "ls etc/shadow etc/machine-id dev/sda up/../etc/shadow; cat up/state/ledger.db; ls /workspace";
    let output = trial.run(["/bin/sh", "-c", look]).plain();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        text.split_whitespace().collect::<Vec<_>>(),
        ["artifacts", "inputs", "work"],
        "{text}"
    );
    for cwd in [
        "etc",
        "up",
        "proc/1",
        "../../etc",
        "/etc",
        "/workspace/work/up/../..",
    ] {
        let output = trial
            .run(["/bin/cat", "shadow"])
            .with(["--cwd", cwd])
            .plain();
        assert!(output.stdout.is_empty(), "{cwd} reaches the host");
    }
    // In the place of its own directories.
    for name in ["inputs", "artifacts"] {
        symlink("/etc", trial.work().join(name)).unwrap();
    }
    trial.run(["/bin/true"]).json().expect("succeeded", 0, None);
    fixtures.assert_untouched(Caller::Root);
    drop(fixtures);
    trial.end();
}
