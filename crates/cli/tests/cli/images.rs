//! Images for the native backend.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::trial::{Answer, Trial};

/// An archive of a root directory with what a program needs: a shell of its own and its libraries.
pub(crate) fn archive(trial: &Trial) -> std::path::PathBuf {
    let path = trial.work().join("root.tar");
    let mut wanted = vec!["bin/sh".to_owned()];
    let shell = std::fs::canonicalize("/bin/sh").unwrap();
    let listed = Command::new("ldd").arg(&shell).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    wanted.extend(
        listed
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
            .map(|path| path.trim_start_matches('/').to_owned()),
    );
    let made = Command::new("tar")
        .args(["--dereference", "-cf"])
        .arg(&path)
        .args(["-C", "/"])
        .args(&wanted)
        .status()
        .unwrap();
    assert!(made.success());
    path
}

fn import_from(trial: &Trial, archive: &Path, name: &str) -> Answer {
    let mut command = trial.command(&["image", "import", "-", "--name", name, "--json"]);
    let file = std::fs::File::open(archive).unwrap();
    command.stdin(Stdio::from(file)).output().unwrap().into()
}

#[test]
fn an_image_is_brought_in_run_on_and_removed() {
    let trial = Trial::new();
    assert_eq!(
        trial.run(&["image", "ls", "--json"]).exits(0).json(),
        json!({"items": []})
    );
    assert!(!trial.state().exists());
    let archive = archive(&trial);
    let file = archive.to_str().unwrap();
    let digest = trial
        .run(&["image", "import", file, "--name", "tiny:1"])
        .exits(0);
    assert!(digest.stdout.starts_with("sha256:"), "{digest:?}");
    // No progress where no terminal is.
    assert!(!digest.stderr.contains('\r'), "{digest:?}");
    let record = import_from(&trial, &archive, "tiny:2").exits(0).json();
    assert_eq!(record["digest"], digest.stdout.trim());
    assert_eq!(
        trial.run(&["image", "ls", "--quiet"]).exits(0).stdout,
        "tiny:1\ntiny:2\n"
    );
    let table = trial.run(&["image", "ls"]).exits(0).stdout;
    assert!(table.starts_with("NAME    DIGEST"), "{table}");

    let run = [
        "run",
        "--scratch",
        "--image",
        "tiny:1",
        "--json",
        "--",
        "/bin/sh",
        "-c",
        "echo here; test -e /usr/bin/env && echo there",
    ];
    let record = trial.run(&run).json();
    assert_eq!(
        (&record["stdout"], &record["image"], &record["backend"]),
        (&json!("here\n"), &json!("tiny:1"), &json!("native")),
        "{record}"
    );

    let gone = trial
        .run(&["image", "rm", "tiny:1", "--json"])
        .exits(0)
        .json();
    assert_eq!(gone["files_removed"], false);
    let gone = trial.run(&["image", "rm", "nobody", "tiny:2"]).exits(1);
    assert_eq!(gone.stdout, "tiny:2\n");
    assert!(gone.stderr.contains("error[not_found]"), "{gone:?}");
    trial.run(&["image", "rm", "tiny:2"]).exits(1);
    let native = [
        "run",
        "--scratch",
        "--backend",
        "native",
        "--image",
        "tiny:1",
        "--",
        "true",
    ];
    let missing = trial.run(&native).exits(125);
    assert!(
        missing.stderr.contains("glovebox image import"),
        "{missing:?}"
    );
}

#[test]
fn what_is_no_image_is_refused_and_leaves_nothing() {
    let trial = Trial::new();
    let text = trial.file("text", "this is not an archive");
    for args in [
        &["image", "import", "/nowhere", "--name", "x"][..],
        &["image", "import", text.to_str().unwrap(), "--name", "x"],
        &["image", "import", text.to_str().unwrap(), "--name", "../x"],
        &["image", "import", ".", "--name", "x"],
    ] {
        let refused = trial.run(args).exits(2);
        assert!(refused.stderr.contains("error"), "{args:?}: {refused:?}");
    }
    assert_eq!(trial.run(&["image", "ls", "--quiet"]).exits(0).stdout, "");
    let server = trial
        .run(&["--server", "http://127.0.0.1:1", "image", "ls"])
        .exits(2);
    assert!(
        server.stderr.contains("works on this machine"),
        "{server:?}"
    );
}
