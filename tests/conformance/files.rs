//! What the program may see and change, and what stays of it.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use serde_json::json;
use support::{Column, Outcome};

use crate::table::{Case, Ground};

pub const CASES: &[Case] = &[
    Case::new(
        "the workspace can be changed, and is the program's to change",
        read_write,
    ),
    Case::new(
        "a workspace that is read-only stays as it is, and whose it is",
        read_only,
    ),
    Case::new("without a workspace there is an empty one", no_workspace),
    Case::new(
        "inputs are there, under their names, and cannot be changed",
        inputs,
    ),
    Case::new(
        "artifacts are kept with their digests, or dropped and counted",
        artifacts,
    ),
    Case::new(
        "the root directory cannot be changed, and no link leads outside",
        root,
    ),
    Case::new(
        "the user is 1000 and what it makes is the workspace owner's",
        owners,
    ),
];

fn read_write(ground: &Ground) {
    ground.trial.put("before", "there");
    let outcome = ground
        .sh("cat before && echo new > after && rm before")
        .json();
    outcome.expect("succeeded", 0, None);
    assert_eq!(outcome.text("stdout"), "there");
    let work = ground.trial.work();
    assert_eq!(
        fs::read_to_string(work.join("after")).expect("a file"),
        "new\n"
    );
    assert!(!work.join("before").exists());
    assert_given(ground, &outcome, ground.column.is_docker());
}

fn read_only(ground: &Ground) {
    let path = ground.trial.put("before", "there");
    let script = "cat before; echo x >> before; rm -f before; touch new; mkdir d; echo done";
    let outcome = ground.sh(script).with(["--workspace", "ro"]).json();
    assert_eq!(outcome.text("stdout"), "theredone\n", "{}", outcome.record);
    assert_eq!(fs::read_to_string(path).expect("a file"), "there");
    assert_eq!(
        fs::read_dir(ground.trial.work()).expect("a list").count(),
        1
    );
    assert_given(ground, &outcome, false);
}

/// Root's directory: a container's user is never root, and can write only what it is given.
fn assert_given(ground: &Ground, outcome: &Outcome, is_given: bool) {
    let notes = outcome.record["notes"].to_string();
    let owner = fs::metadata(ground.trial.work())
        .expect("a directory")
        .uid();
    assert_eq!(notes.contains("was given to"), is_given, "{notes}");
    assert_eq!(owner != 0, is_given, "{owner}");
}

fn no_workspace(ground: &Ground) {
    ground.trial.put("before", "there");
    let script = "pwd; cat before 2>/dev/null; touch new && echo made";
    let outcome = ground.sh(script).with(["--workspace", "none"]).json();
    outcome.expect("succeeded", 0, None);
    assert_eq!(outcome.text("stdout"), "/workspace/work\nmade\n");
    assert!(!ground.trial.work().join("new").exists());
}

fn inputs(ground: &Ground) {
    let file = ground.trial.home().join("given");
    fs::write(&file, b"\0input\xff").expect("write a file");
    let script = "cd /workspace/inputs; cat given 'na me'; echo x > given; rm -f given; touch new; \
                  chmod 777 given; mv given other; echo done";
    let outcome = ground
        .sh(script)
        .with(["--input", &file.to_string_lossy()])
        .with(["--input", &format!("{}:na me", file.display())])
        .json();
    let seen = ground.kept(&outcome.record, "stdout_path");
    assert_eq!(seen, b"\0input\xff\0input\xffdone\n", "{}", outcome.record);
    assert_eq!(fs::read(&file).expect("a file"), b"\0input\xff");
}

fn artifacts(ground: &Ground) {
    let make = "import os
os.chdir('/workspace/artifacts')
os.makedirs('a/b'); open('a/b/c', 'w').write('hi\\n'); open('empty', 'w').close()
open('na me', 'wb').write(bytes(range(256)))
os.symlink('/etc/passwd', 'link'); os.symlink('a/b/c', 'near'); os.symlink('a', 'tree'); os.mkfifo('fifo')
open('manifest.json', 'w').write('{}')";
    let outcome = ground.python(make).json();
    outcome.expect("succeeded", 0, None);
    // The digests of `hi\n`, of nothing and of every byte, by sha256sum.
    assert_eq!(
        outcome.record["artifacts"],
        json!([
            {"path": "a/b/c", "size": 3,
             "hash": "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4"},
            {"path": "empty", "size": 0,
             "hash": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
            {"path": "na me", "size": 256,
             "hash": "40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880"},
        ])
    );
    let place = outcome.record["artifacts_dir"]
        .as_str()
        .expect("a directory");
    let place = ground.trial.state().join(place);
    assert_eq!(fs::read(place.join("a/b/c")).expect("an artifact"), b"hi\n");
    assert!(outcome.record["artifacts_dropped"].as_u64() >= Some(1));
    // The next has none of them, and too much of its own.
    let make = "cd /workspace/artifacts; ls -A; head -c 3000000 /dev/zero > large; echo x > small";
    let outcome = ground.sh(make).with(["--max-artifacts", "1M"]).json();
    outcome.expect("succeeded", 0, None);
    assert_eq!(outcome.text("stdout"), "");
    let kept = outcome.record["artifacts"].as_array().expect("a list");
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(kept[0]["path"], "small");
    assert_eq!(outcome.record["artifacts_dropped"], 1);
}

fn root(ground: &Ground) {
    let outside = ground.trial.home().join("outside");
    fs::write(&outside, "a secret").expect("write a file");
    symlink(&outside, ground.trial.work().join("link")).expect("a link");
    symlink("../outside", ground.trial.work().join("up")).expect("a link");
    let write = "for place in / /usr /usr/bin /etc /bin /lib /opt /root /var /workspace; do
        touch $place/made 2>/dev/null && echo $place; done
        for place in /tmp /var/tmp /dev/shm /home/sandbox; do touch $place/made || echo no $place; done
        cat link up; echo x > link
        echo done";
    let outcome = ground.sh(write).json();
    assert_eq!(outcome.text("stdout"), "done\n", "{}", outcome.record);
    assert_eq!(fs::read_to_string(outside).expect("a file"), "a secret");
}

fn owners(ground: &Ground) {
    const OWNER: u32 = 23_456;
    std::os::unix::fs::chown(ground.trial.work(), Some(OWNER), Some(OWNER)).expect("chown");
    let make = "import os
os.mkdir('d'); open('d/f', 'w').close(); open('/workspace/artifacts/a', 'w').close()
print(os.stat('d').st_uid == os.getuid(), os.getuid(), os.getgid(), os.getgroups(), os.umask(0))";
    let outcome = ground.python(make).json();
    outcome.expect("succeeded", 0, None);
    let work = ground.trial.work();
    for name in ["d", "d/f", "."] {
        let facts = fs::metadata(work.join(name)).expect("a file");
        assert_eq!((facts.uid(), facts.gid()), (OWNER, OWNER), "{name}");
    }
    let (inside, groups) = match ground.column {
        Column::Native => (1000, "[1000]"),
        // No engine maps one user to another here: it runs as whoever the workspace belongs to.
        Column::Runc | Column::Runsc => (OWNER, "[23456]"),
    };
    let said = outcome.text("stdout").trim();
    let (plain, grouped) = (
        format!("True {inside} {inside} [] 18"),
        format!("True {inside} {inside} {groups} 18"),
    );
    assert!([plain, grouped].contains(&said.to_owned()), "{said}");
}
