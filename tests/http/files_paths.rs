//! Paths that try to leave a workspace, to stop the server, or to be two things at once. Each case
//! is written out with the answer that it has.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::files::{Desk, put};
use crate::pool_fire::SOON;

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// A file of the host's that nothing here may reach.
fn canary(desk: &Desk) -> std::path::PathBuf {
    let path = desk.trial.home().join("canary");
    fs::write(&path, b"canary").unwrap();
    path
}

#[test]
fn a_path_leads_to_nothing_outside() {
    let desk = Desk::new();
    desk.put("a/b/x", b"x");
    desk.put("c.txt", b"inside");
    let canary = canary(&desk);
    let host = canary.to_str().unwrap();
    // What the path itself says.
    let long = format!("{}x", "d/".repeat(2500));
    for (path, status) in [
        ("../etc/passwd", 404),
        ("a/../../etc/passwd", 404),
        ("/etc/passwd", 404),
        ("//etc/passwd", 404),
        ("./././../x", 404),
        ("%2e%2e/%2e%2e/etc/passwd", 404),
        ("%2Fetc%2Fpasswd", 404),
        ("..%2f..%2fetc%2fpasswd", 404),
        // Decoded once: what is left is a name.
        ("..%252f..%252fetc%252fpasswd", 404),
        ("..%5c..%5cetc%5cpasswd", 404),
        ("a%00.txt", 404),
        ("%00", 404),
        (&"n".repeat(256), 404),
        (&"n".repeat(255), 404),
        (&"n/".repeat(2100), 404),
        (&long, 404),
        ("a/b/../../c.txt", 200),
        ("./c.txt", 200),
        ("a//b///x", 200),
        ("c.txt/", 200),
        ("c.txt/x", 409),
        ("a/b/../../../p/work/c.txt", 404),
        ("~/x", 404),
        ("$HOME", 404),
    ] {
        let answer = desk.get(path);
        let shown = &path[..path.len().min(60)];
        assert_eq!(answer.status, status, "{shown}: {}", answer.text());
        if status != 200 {
            assert!(!answer.code().is_empty(), "{shown}");
            let hints = answer.json()["error"]["hints"].as_array().unwrap().len();
            assert!(hints > 0 || status == 409, "{shown}: {}", answer.text());
        }
    }
    // What links say.
    let link = |name: &str, to: &str| symlink(to, desk.work.join(name)).unwrap();
    link("absolute", host);
    link("relative", "../../../../canary");
    link("directory", desk.trial.home().to_str().unwrap());
    link("l3", host);
    link("l2", "l3");
    link("l1", "l2");
    link("magic", "/proc/self/root/etc/passwd");
    link("own", "/workspace/work/c.txt");
    link("inner", "a/b/x");
    link("loop", "loop");
    link("missing", "/nothing/is/here");
    for outside in [
        "absolute",
        "relative",
        "directory/canary",
        "directory",
        "l1",
        "magic",
        "own",
        "loop",
        "missing",
    ] {
        let answer = desk.get(outside);
        assert_eq!(answer.status, 409, "{outside}: {}", answer.text());
        assert!(!answer.text().contains("canary\""), "{outside}");
    }
    assert_eq!(desk.get("inner").body, b"x");
    // Whether there is something at the other end cannot be told.
    let (there, nowhere) = (desk.get("absolute"), desk.get("missing"));
    let words = |answer: &support::Response| {
        answer.json()["error"]["message"]
            .as_str()
            .unwrap()
            .replace("absolute", "missing")
    };
    assert_eq!(words(&there), words(&nowhere));
    let stat = |path: &str| {
        let mut stat = desk.get(&format!("{path}?stat=true")).json();
        stat.as_object_mut().unwrap().retain(|key, _| key == "type");
        stat
    };
    assert_eq!(stat("absolute"), stat("missing"));
    // What is no file.
    fifo(&desk.work.join("fifo"));
    let _socket = UnixListener::bind(desk.work.join("socket")).unwrap();
    let device = rustix::fs::makedev(1, 5);
    mknodat(
        CWD,
        desk.work.join("zero"),
        FileType::CharacterDevice,
        Mode::RUSR,
        device,
    )
    .unwrap();
    let began = Instant::now();
    for special in ["fifo", "socket", "zero"] {
        let answer = desk.get(special);
        assert_eq!(answer.status, 409, "{special}: {}", answer.text());
        assert_eq!(
            desk.get(&format!("{special}?stat=true")).json()["type"],
            "other"
        );
        for noun in ["replace", "copy"] {
            let body = match noun {
                "replace" => json!({"path": special, "old": "a", "new": "b"}),
                _ => json!({"from": special, "to": "copied"}),
            };
            assert_eq!(desk.post(noun, &body).status, 409, "{noun} {special}");
        }
    }
    let found = desk.done("search", &json!({"pattern": "canary", "hidden": true}));
    assert_eq!(found["matches"], json!([]));
    // Whoever opens one waits for ever.
    assert!(began.elapsed() < SOON, "nobody waited for a FIFO");
    // A size is only believed up to a point.
    let sparse = fs::File::create(desk.work.join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let answer = desk.get("sparse");
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (413, "payload_too_large")
    );
    let part = desk
        .client
        .clone()
        .with("Range", "bytes=1000000000000-1000000000003");
    assert_eq!(part.get(&crate::files::file("sparse")).body, [0; 4]);
    desk.close();
}

#[test]
fn nothing_is_written_or_removed_outside() {
    let desk = Desk::new();
    let canary = canary(&desk);
    let link = |name: &str, to: &Path| symlink(to, desk.work.join(name)).unwrap();
    let fresh = desk.trial.home().join("fresh");
    link("final", &canary);
    link("dangling", &fresh);
    link("home", desk.trial.home());
    desk.put("dir/f", b"f");
    for (path, status) in [
        ("../x", 404),
        ("newdir/../../x", 404),
        // Nor back and forth inside: what is on the way may change meanwhile.
        ("dir/../g", 404),
        ("final", 409),
        ("dangling", 409),
        ("home/new", 409),
        ("home/canary", 409),
        ("home/new/deeper", 409),
        ("dir", 409),
        ("dir/f/g", 409),
        (".", 404),
        ("..", 404),
        ("%2e%2e%2fx", 404),
        ("/tmp/x", 404),
        ("a%00b", 404),
        (&"n".repeat(256), 404),
    ] {
        let answer = put(&desk.client, path, b"stranger");
        assert_eq!(answer.status, status, "PUT {path}: {}", answer.text());
    }
    for path in [
        ".",
        "..",
        "/",
        "%2e",
        "../p",
        "dir/..",
        "home/canary",
        "a%00b",
    ] {
        let answer = desk.delete(path);
        assert!(
            matches!(answer.status, 404 | 409),
            "DELETE {path}: {}",
            answer.text()
        );
    }
    for (from, to) in [
        ("dir/f", "../../x"),
        ("../../x", "y"),
        ("dir/f", "home/taken"),
        ("home/canary", "taken"),
        (".", "z"),
        ("dir", "."),
        ("/etc/passwd", "z"),
    ] {
        for noun in ["move", "copy"] {
            let answer = desk.post(noun, &json!({"from": from, "to": to, "overwrite": true}));
            let refused = matches!(answer.status, 404 | 409);
            assert!(
                refused,
                "{noun} {from} {to}: {} {}",
                answer.status,
                answer.text()
            );
        }
    }
    for path in ["../d", "home/d", ".", "/d", "dangling/d"] {
        let answer = desk.post("mkdir", &json!({"path": path}));
        assert!(
            matches!(answer.status, 404 | 409),
            "mkdir {path}: {}",
            answer.text()
        );
    }
    assert_eq!(
        desk.post(
            "replace",
            &json!({"path": "final", "old": "canary", "new": "x"})
        )
        .status,
        409
    );
    // A link goes, what it points at stays.
    assert_eq!(desk.delete("home").status, 204);
    assert_eq!(desk.delete("final").status, 204);
    assert_eq!(fs::read(&canary).unwrap(), b"canary");
    assert!(!fresh.exists());
    let mut names: Vec<_> = fs::read_dir(desk.trial.home())
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["canary", "config.toml", "state", "work"]);
    desk.close();
}

#[test]
fn whatever_is_in_a_directory_it_can_be_removed() {
    let desk = Desk::new();
    let deep = desk.work.join("tree");
    fs::create_dir(&deep).unwrap();
    // Deeper than any path can say.
    let mut at = rustix::fs::open(&deep, rustix::fs::OFlags::RDONLY, Mode::empty()).unwrap();
    for _ in 0..5000 {
        rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        at = rustix::fs::openat(&at, "d", flags, Mode::empty()).unwrap();
    }
    let wide = deep.join("wide");
    fs::create_dir(&wide).unwrap();
    for number in 0..3000 {
        fs::write(wide.join(number.to_string()), b"").unwrap();
    }
    fifo(&deep.join("fifo"));
    symlink("/etc", deep.join("etc")).unwrap();
    fs::set_permissions(&wide, fs::Permissions::from_mode(0o000)).unwrap();
    let gone = desk.delete("tree");
    assert_eq!(gone.status, 204, "{}", gone.text());
    assert!(!deep.exists());
    assert!(Path::new("/etc/passwd").exists());
    desk.close();
}

#[test]
fn a_file_that_is_swapped_all_the_time_never_leads_out() {
    let desk = Desk::new();
    let canary = canary(&desk);
    desk.put("d/f", b"inside");
    fs::create_dir(desk.work.join("real")).unwrap();
    fs::write(desk.work.join("real/canary"), b"inside").unwrap();
    symlink(desk.trial.home(), desk.work.join("fake")).unwrap();
    symlink(&canary, desk.work.join("d/g")).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let swap = |one: &str, two: &str| {
                let (one, two) = (desk.work.join(one), desk.work.join(two));
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let _ = rustix::fs::renameat_with(CWD, one, CWD, two, flags);
            };
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                swap("real", "fake");
                swap("d/f", "d/g");
            }
        });
        let began = Instant::now();
        for round in 0..300 {
            // Each file that is written waits for the disk, which may be busy elsewhere.
            if round >= 20 && began.elapsed() >= SOON {
                break;
            }
            for path in ["real/canary", "d/f"] {
                let answer = desk.get(path);
                assert_ne!(answer.body, b"canary", "{path}");
                let answer = put(&desk.client, path, b"inside");
                assert!(
                    matches!(answer.status, 200 | 404 | 409 | 503),
                    "{}",
                    answer.text()
                );
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(fs::read(&canary).unwrap(), b"canary");
    desk.close();
}

#[test]
fn reads_and_refusals_are_in_the_ledger_where_the_operator_wants_them() {
    for (audit, refused, read) in [
        ("changes", false, false),
        ("refusals", true, false),
        ("reads", true, true),
    ] {
        let desk = Desk::with(&format!("[workspace]\naudit = \"{audit}\"\n"));
        std::os::unix::fs::symlink("/etc", desk.work.join("out")).unwrap();
        let outside = [
            desk.get("..%2F..%2Fglovebox.db"),
            desk.get("out/passwd"),
            desk.get("%2Fetc%2Fpasswd"),
            desk.client.get("/v1/workspaces/p/archive?path=../.."),
            desk.post("search", &json!({"pattern": "x", "path": "out"})),
        ];
        for answer in &outside {
            assert!(answer.status >= 400, "{}", answer.text());
        }
        assert_eq!(desk.get("first").body, b"first");
        assert_eq!(desk.get(".").status, 200);
        assert_eq!(desk.post("glob", &json!({"pattern": "*"})).status, 200);
        let archive = desk.client.get("/v1/workspaces/p/archive");
        assert_eq!(archive.status, 200);
        let ledger = desk.client.get("/v1/audit/export").text();
        let count = |event: &str| ledger.matches(&format!("\"{event}\"")).count();
        let expected = |wanted: bool, all: usize| if wanted { all } else { 0 };
        assert_eq!(
            count("file.refused"),
            expected(refused, outside.len()),
            "{audit}"
        );
        assert_eq!(count("file.read"), expected(read, 4), "{audit}: {ledger}");
        assert_eq!(
            ledger.contains("p/files/../../glovebox.db"),
            refused,
            "{ledger}"
        );
        assert_eq!(ledger.contains("p/files/out/passwd"), refused);
        // A caller without a token is in no space's ledger.
        assert_eq!(
            desk.server
                .nobody()
                .get("/v1/workspaces/p/files/first")
                .status,
            401
        );
        let after = desk.client.get("/v1/audit/export").text();
        assert_eq!(after.lines().count(), ledger.lines().count());
        desk.client.verify_ledger();
        desk.close();
    }
}
