//! A workspace that the examples are about, and skills of one's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use support::{Caller, Trial};

/// With the files that the examples of the shipped skills name.
pub(crate) fn furnished() -> Trial {
    let trial = Trial::new(Caller::Root).unwrap();
    let work = trial.work();
    trial.put("hello.py", "print('hello from a file')\n");
    trial.put("notes.txt", "hay\nneedle in a haystack\nhay, no needle\n");
    trial.put("people.csv", "name,age\nann,31\nbob,20\ncid,40\n");
    let people = rusqlite::Connection::open(work.join("people.db")).unwrap();
    people
        .execute_batch(
            "CREATE TABLE people (name TEXT, age INTEGER);
             INSERT INTO people VALUES ('ann', 31), ('bob', 20), ('cid', 40);",
        )
        .unwrap();
    drop(people);
    let sh = |script: &str| {
        let done = Command::new("sh")
            .args(["-euc", script])
            .current_dir(&work)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    sh(
        "git init -q repository; cd repository; echo old > file.txt; git add file.txt;
        git -c user.name=a -c user.email=a@b commit -qm first; echo new > file.txt",
    );
    sh("mkdir inner; printf ab > inner/a.txt; tar czf bundle.tar.gz inner; rm -r inner");
    trial
}

pub(crate) fn skill(trial: &Trial, words: &[&str]) -> Output {
    trial.glovebox().arg("skill").args(words).output().unwrap()
}

/// The same with a directory of skills, and its answer as JSON.
pub(crate) fn call(trial: &Trial, words: &[&str]) -> (Option<i32>, Value) {
    let root = root(trial);
    let mut all = vec!["--skills-dir", root.to_str().unwrap(), "--json"];
    all.extend(words);
    let done = skill(trial, &all);
    let said = match done.stdout.is_empty() {
        true => &done.stderr,
        false => &done.stdout,
    };
    let text = String::from_utf8_lossy(said);
    let value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    (done.status.code(), value)
}

pub(crate) fn root(trial: &Trial) -> PathBuf {
    let root = trial.home().join("skills");
    fs::create_dir_all(&root).unwrap();
    root
}

/// A skill whose program is this Python.
pub(crate) fn write(root: &Path, id: &str, program: &str, outputs: &Value) {
    let dir = root.join(id);
    fs::create_dir_all(&dir).unwrap();
    let manifest = json!({
        "schema_version": "1.0",
        "id": id,
        "name": "Of a test",
        "version": "0.1.0",
        "description": "What a test needs.",
        "runtime": {"kind": "any", "entrypoint": ["python3", "{skill}/run.py"]},
        "interface": {
            "inputs": {"type": "object", "properties": {"text": {"type": "string"}}},
            "outputs": outputs
        },
        "permissions": {
            "fs": {"read": ["inputs/**", "work/**"], "write": ["artifacts/**"]},
            "net": {"mode": "none"}
        },
        "limits": {
            "timeout_ms": 30_000, "memory_mb": 256, "cpu_cores": 1, "pids": 32,
            "max_stdout_bytes": 100_000, "max_stderr_bytes": 100_000,
            "max_artifacts_bytes_total": 2_000_000
        }
    });
    fs::write(dir.join("manifest.json"), manifest.to_string()).unwrap();
    fs::write(dir.join("run.py"), program).unwrap();
}

/// Whether `found` has all that `wanted` names.
pub(crate) fn holds(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| found.get(key).is_some_and(|it| holds(it, value))),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found
                    .iter()
                    .zip(wanted)
                    .all(|(found, wanted)| holds(found, wanted))
        }
        _ => found == wanted,
    }
}
