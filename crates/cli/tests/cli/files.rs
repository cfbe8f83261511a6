//! The files of a workspace from outside, here and at a server: the same words, the same answers.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::process::Stdio;

use serde_json::Value;

use crate::server::Served;
use crate::trial::{Answer, Running, Trial, names, until};

/// Commands about the workspace `demo`, here or at a server.
struct Desk<'t> {
    trial: &'t Trial,
    server: Option<&'t Served>,
}

impl Desk<'_> {
    fn words<'a>(&'a self, verb: &'a str, args: &[&'a str]) -> Vec<&'a str> {
        let server = self.server.map(|it| ["--server", it.url.as_str()]);
        let mut words: Vec<&str> = server.into_iter().flatten().collect();
        words.extend(["file", verb, "--project", "demo"]);
        words.extend(args);
        words
    }

    fn file(&self, verb: &str, args: &[&str]) -> Answer {
        self.trial.run(&self.words(verb, args))
    }

    fn write(&self, path: &str, contents: &str, args: &[&str]) -> Answer {
        let words = [&[path, "-"][..], args].concat();
        let mut command = self.trial.command(&self.words("write", &words));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // One that refuses before it reads may be gone by now.
        let _ = stdin.write_all(contents.as_bytes());
        drop(stdin);
        child.wait_with_output().unwrap().into()
    }
}

fn on_both(test: impl Fn(&Desk<'_>)) {
    let trial = Trial::new();
    test(&Desk {
        trial: &trial,
        server: None,
    });
    let trial = Trial::new();
    let server = Served::start(&trial, &[]);
    test(&Desk {
        trial: &trial,
        server: Some(&server),
    });
}

#[test]
fn a_file_is_written_read_moved_and_removed() {
    on_both(|desk| {
        let info = desk
            .write("a/b.txt", "one two three\n", &["--json"])
            .exits(0)
            .json();
        assert_eq!(
            (&info["path"], &info["size"]),
            (&"a/b.txt".into(), &14.into())
        );
        assert_eq!(
            desk.file("cat", &["a/b.txt"]).exits(0).stdout,
            "one two three\n"
        );
        for (range, part) in [("4-6", "two"), ("8-", "three\n"), ("-6", "three\n")] {
            let printed = desk.file("cat", &["a/b.txt", "--range", range]);
            assert_eq!(printed.exits(0).stdout, part, "{range}");
        }
        desk.file("cat", &["a/b.txt", "--range", "99-"]).exits(2);
        let json = desk
            .file("cat", &["a/b.txt", "--range", "0-2", "--json"])
            .exits(0)
            .json();
        assert_eq!(json["content_base64"], "b25l");

        // Only over what is known.
        let etag = info["etag"].as_str().unwrap();
        desk.write("a/b.txt", "x", &["--new"]).exits(2);
        desk.write("a/b.txt", "four\n", &["--if-match", etag])
            .exits(0);
        desk.write("a/b.txt", "five\n", &["--if-match", etag])
            .exits(2);
        assert_eq!(desk.file("cat", &["a/b.txt"]).stdout, "four\n");
        desk.file("replace", &["a/b.txt", "o", "0"]).exits(0);
        desk.file("replace", &["a/b.txt", "absent", "0"]).exits(2);
        assert_eq!(desk.file("cat", &["a/b.txt"]).stdout, "f0ur\n");

        desk.file("mkdir", &["c/d"]).exits(1);
        desk.file("mkdir", &["c/d", "--parents"]).exits(0);
        desk.file("mv", &["a/b.txt", "c/d/e"]).exits(0);
        desk.file("cp", &["c", "f"]).exits(0);
        desk.file("cp", &["c", "f"]).exits(2);
        desk.file("cp", &["c/d/e", "f/d/e", "--force"]).exits(0);
        let listed = desk
            .file("ls", &["--depth", "9", "--quiet"])
            .exits(0)
            .stdout;
        assert_eq!(listed, "a\nc\nc/d\nc/d/e\nf\nf/d\nf/d/e\n");
        let listed = desk.file("ls", &["f", "--json"]).exits(0).json();
        assert_eq!(listed["entries"][0]["path"], "f/d");
        desk.file("rm", &["f"]).exits(2);
        desk.file("rm", &["f", "gone", "--recursive"]).exits(1);
        desk.file("stat", &["f"]).exits(1);
        assert_eq!(
            desk.file("stat", &[".", "--json"]).exits(0).json()["type"],
            "directory"
        );
    });
}

#[test]
fn files_are_found_by_what_they_hold_and_by_their_names() {
    on_both(|desk| {
        desk.write("src/a.py", "import os\nx = [1]\n", &[]).exits(0);
        desk.write("src/b.rs", "let x = 1;\n\x1b]0;title\x07", &[])
            .exits(0);
        let found = desk.file("grep", &["x = "]).exits(0).stdout;
        assert_eq!(found, "src/a.py:2:x = [1]\nsrc/b.rs:1:let x = 1;\n");
        let found = desk
            .file("grep", &["--fixed", "[1]", "src", "-C", "1"])
            .exits(0)
            .stdout;
        assert_eq!(found, "src/a.py-1-import os\nsrc/a.py:2:x = [1]\n");
        let shown = desk.file("grep", &["title"]).exits(0).stdout;
        assert!(
            !shown.contains('\x1b') && !shown.contains('\x07'),
            "{shown:?}"
        );
        desk.file("grep", &["absent"]).exits(1);
        desk.file("grep", &["("]).exits(2);
        let found = desk.file("glob", &["**/*.py", "--json"]).exits(0).json();
        assert_eq!(found["paths"][0]["path"], "src/a.py");
        desk.file("glob", &["*.none"]).exits(1);
    });
}

/// Whatever a path says, it stays in the workspace.
#[test]
fn no_path_leads_out() {
    on_both(|desk| {
        desk.write("dir/file", "x", &[]).exits(0);
        let work = desk.trial.state().join("projects/demo/work");
        fs::write(desk.trial.state().join("projects/demo/secret"), "s").unwrap();
        symlink("/etc", work.join("etc")).unwrap();
        symlink("../../secret", work.join("up")).unwrap();
        for path in [
            "/etc/passwd",
            "../secret",
            "dir/../../secret",
            "up",
            "etc/passwd",
        ] {
            for verb in ["cat", "rm"] {
                if verb == "rm" && path == "up" {
                    continue;
                }
                let refused = desk.file(verb, &[path]);
                assert!(
                    matches!(refused.code, Some(1 | 2)),
                    "{verb} {path}: {refused:?}"
                );
                assert_eq!(refused.stdout, "", "{verb} {path}");
            }
            let refused = desk.write(path, "bad", &[]);
            assert!(
                matches!(refused.code, Some(1 | 2)),
                "write {path}: {refused:?}"
            );
        }
        assert_eq!(
            fs::read_to_string(desk.trial.state().join("projects/demo/secret")).unwrap(),
            "s"
        );
        assert!(fs::read_to_string("/etc/passwd").unwrap().contains("root"));
        // A FIFO is neither waited for nor read.
        let fifo = work.join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        desk.file("cat", &["fifo"]).exits(2);
        desk.file("grep", &["x"]).exits(0);
        desk.file("rm", &["fifo", "up", "etc"]).exits(0);
        assert!(desk.trial.state().join("projects/demo/secret").exists());
    });
}

#[test]
fn whole_trees_come_and_go_or_not_at_all() {
    on_both(|desk| {
        let place = desk.trial.work();
        let tree = place.join("tree");
        fs::create_dir_all(tree.join("sub")).unwrap();
        fs::write(tree.join("sub/x"), "x\n").unwrap();
        symlink("sub/x", tree.join("link")).unwrap();
        let tree = tree.to_str().unwrap();
        desk.file("upload", &[tree, "up"]).exits(0);
        let archive = place.join("out.tar.gz");
        let archive = archive.to_str().unwrap();
        desk.file("download", &["--output", archive]).exits(0);
        let again = desk.file("download", &["--output", archive]).exits(2);
        assert!(again.stderr.contains("is there already"), "{again:?}");
        let back = place.join("back");
        desk.file("download", &["up", "--output", back.to_str().unwrap()])
            .exits(0);
        assert_eq!(fs::read_to_string(back.join("link")).unwrap(), "x\n");
        desk.file("rm", &["up", "--recursive"]).exits(0);
        desk.file("upload", &[archive, "again"]).exits(0);
        assert_eq!(desk.file("cat", &["again/up/sub/x"]).exits(0).stdout, "x\n");
        // One that leads out is refused as a whole.
        symlink("/etc/passwd", place.join("tree/zz")).unwrap();
        let refused = desk.file("upload", &[tree, "bad"]).exits(2);
        assert!(refused.stderr.contains("zz"), "{refused:?}");
        assert_eq!(desk.file("ls", &["bad", "--quiet"]).stdout, "");
        assert_eq!(names(&place), ["back", "out.tar.gz", "tree"]);
    });
}

#[test]
fn changes_are_told_as_they_happen() {
    on_both(|desk| {
        desk.write("first", "x", &[]).exits(0);
        let mut command = desk.trial.command(&desk.words("watch", &["--json"]));
        let mut child = Running::spawn(&mut command);
        let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        let (send, receive) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            while let Some(Ok(line)) = lines.next() {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        // Nothing says when it begins to see: one write after another until it does.
        let work = desk.trial.state().join("projects/demo/work");
        let mut number = 0;
        let line = until(|| {
            number += 1;
            fs::write(work.join(format!("file-{number}")), "x").unwrap();
            receive
                .recv_timeout(std::time::Duration::from_millis(100))
                .ok()
        });
        let event: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["event"], "change");
        assert!(
            event["path"].as_str().unwrap().starts_with("file-"),
            "{event}"
        );
        child.end();
        reader.join().unwrap();
    });
}

/// Asked to stop, a command that reads leaves nothing half written.
#[test]
fn an_interrupted_write_leaves_nothing() {
    let trial = Trial::new();
    let desk = Desk {
        trial: &trial,
        server: None,
    };
    desk.write("there", "x", &[]).exits(0);
    let mut command = trial.command(&desk.words("write", &["file"]));
    let mut child = Running::spawn(command.stdin(Stdio::piped()));
    let mut stdin = child.0.stdin.take().unwrap();
    stdin.write_all(&[b'x'; 200_000]).unwrap();
    let work = trial.state().join("projects/demo/work");
    until(|| (names(&work).len() == 2).then_some(()));
    let pid = rustix::process::Pid::from_child(&child.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = child.answer().exits(130);
    assert!(ended.stderr.contains("error[canceled]"), "{ended:?}");
    assert_eq!(names(&work), ["there"]);
    drop(stdin);
}

#[test]
fn artifacts_are_listed_and_checked_when_they_are_got() {
    let trial = Trial::new();
    let record =
        trial.record("echo hi > /workspace/artifacts/a; echo two > /workspace/artifacts/b");
    let id = record["exec_id"].as_str().unwrap();
    let server = Served::start(&trial, &[]);
    for server in [None, Some(["--server", server.url.as_str()])] {
        let run = |args: &[&str]| {
            let words: Vec<&str> = server
                .into_iter()
                .flatten()
                .chain(args.iter().copied())
                .collect();
            trial.run(&words)
        };
        assert_eq!(
            run(&["artifact", "ls", id, "--quiet"]).exits(0).stdout,
            "a\nb\n"
        );
        assert_eq!(run(&["artifact", "get", id, "a"]).exits(0).stdout, "hi\n");
        run(&["artifact", "get", id, "none"]).exits(1);
        run(&["artifact", "get", id, "../x"]).exits(2);
        let output = trial.work().join("got");
        let output = output.to_str().unwrap();
        run(&["artifact", "get", id, "b", "--output", output]).exits(0);
        run(&["artifact", "get", id, "b", "--output", output]).exits(2);
        assert_eq!(fs::read_to_string(output).unwrap(), "two\n");
        fs::remove_file(output).unwrap();
    }
    let dir = trial
        .state()
        .join(record["artifacts_dir"].as_str().unwrap());
    fs::write(dir.join("b"), "TWO\n").unwrap();
    let output = trial.work().join("got");
    let refused = trial
        .run(&[
            "artifact",
            "get",
            id,
            "b",
            "--output",
            output.to_str().unwrap(),
        ])
        .exits(125);
    assert!(
        refused.stderr.contains("not what the record says"),
        "{refused:?}"
    );
    assert!(!output.exists());
}
