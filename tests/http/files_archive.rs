//! Whole trees as archives, in and out, with the tools that people have.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use support::Response;

use crate::files::{BYTES, Desk};

const ARCHIVE: &str = "/v1/workspaces/p/archive";

fn upload(desk: &Desk, query: &str, archive: &[u8]) -> Response {
    let path = format!("{ARCHIVE}{query}");
    desk.client.try_bytes("PUT", &path, BYTES, archive).unwrap()
}

/// Runs it in a directory of its own beside the workspace.
fn tool(desk: &Desk, name: &str, script: &str, input: &[u8]) -> (PathBuf, Vec<u8>) {
    let place = desk.trial.home().join(name);
    fs::create_dir_all(&place).unwrap();
    let mut child = Command::new("bash")
        .args(["-ec", script])
        .current_dir(&place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap();
    assert!(output.status.success(), "{script}");
    (place, output.stdout)
}

/// Every path with what it is, but for times and owners.
fn tree(root: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let facts = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let mode = facts.permissions().mode() & 0o7777;
            all.push(if facts.is_symlink() {
                format!("{name} -> {}", fs::read_link(&path).unwrap().display())
            } else if facts.is_dir() {
                left.push(path);
                format!("{name}/")
            } else {
                format!("{name} {mode:o} {:?}", fs::read(&path).unwrap().len())
            });
        }
    }
    all.sort();
    all
}

#[test]
fn a_workspace_goes_out_and_comes_in_again_whole() {
    let desk = Desk::new();
    desk.put("a/b/c.txt?mode=0640", &[b'x'; 100_000]);
    desk.put("run.sh?mode=0755", b"#!/bin/sh\n");
    desk.put("a/empty", b"");
    desk.put("a/one%0Aremoved%20%20%20two", b"y");
    fs::create_dir(desk.work.join("nothing")).unwrap();
    symlink("a/b/c.txt", desk.work.join("link")).unwrap();
    let formats = [
        ("tar", "tar -xpf -"),
        ("tar.gz", "tar -xzpf -"),
        ("tar.zst", "zstd -qdc | tar -xpf -"),
        (
            "zip",
            "cat > /tmp/$$.zip; unzip -q -^ /tmp/$$.zip; rm /tmp/$$.zip",
        ),
    ];
    for (format, unpack) in formats {
        let tool_name = unpack.split_whitespace().next().unwrap();
        let has = |name: &str| {
            Command::new("bash")
                .args(["-c", &format!("command -v {name} >/dev/null")])
                .status()
                .unwrap()
                .success()
        };
        let answer = desk.client.get(&format!("{ARCHIVE}?format={format}"));
        assert_eq!(answer.status, 200, "{format}: {}", answer.text());
        let said = answer.header("content-disposition").unwrap();
        assert!(
            said.contains(&format!("p%2E{}", format.replace('.', "%2E"))),
            "{said}"
        );
        let needs = if format == "zip" { "unzip" } else { tool_name };
        if has(needs) {
            let (place, _) = tool(&desk, &format!("out.{format}"), unpack, &answer.body);
            assert_eq!(tree(&place), tree(&desk.work), "{format}");
        }
        // What it gave it takes.
        let back = format!("?path=back-{}", format.replace('.', "-"));
        let answer = upload(&desk, &back, &answer.body);
        assert_eq!(answer.status, 200, "{format}: {}", answer.text());
        assert_eq!(answer.json()["files"], 5);
        let place = desk.work.join(&back["?path=".len()..]);
        let there = tree(&place);
        fs::remove_dir_all(&place).unwrap();
        assert_eq!(there, tree(&desk.work), "{format}");
    }
    let part = desk.client.get(&format!("{ARCHIVE}?path=a/b&format=tar"));
    let (place, _) = tool(&desk, "part", "tar -xpf -", &part.body);
    assert_eq!(tree(&place), ["c.txt 640 100000"]);
    for (query, status) in [
        ("?path=none", 404),
        ("?path=../..", 404),
        ("?path=run.sh", 409),
        ("?format=rar", 400),
        ("?path=a%00", 404),
    ] {
        let answer = desk.client.get(&format!("{ARCHIVE}{query}"));
        assert_eq!(answer.status, status, "{query}: {}", answer.text());
    }
    let ledger = desk.client.get("/v1/audit/export").text();
    assert!(ledger.contains("archive.unpacked"));
    desk.close();
}

/// What somebody who means harm would send, and which entry is to be named.
const HOSTILE: &str = r#"
import io, sys, tarfile, zipfile
kind, out = sys.argv[1], io.BytesIO()
def info(name, **more):
    it = tarfile.TarInfo(name)
    for key, value in more.items(): setattr(it, key, value)
    return it
if kind.startswith("zip"):
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("good.txt", "good")
        if kind == "zip-climbs": z.writestr("../bad.txt", "bad")
        if kind == "zip-absolute": z.writestr("/bad.txt", "bad")
        if kind == "zip-backslash": z.writestr("..\\bad.txt", "bad")
        if kind == "zip-link":
            it = zipfile.ZipInfo("bad.txt"); it.external_attr = 0o120777 << 16; it.create_system = 3
            z.writestr(it, "/etc/passwd")
        if kind == "zip-bomb": z.writestr("bad.txt", b"\0" * (200 << 20))
else:
    with tarfile.open(fileobj=out, mode="w:gz" if kind == "bomb" else "w") as t:
        data = b"good"
        t.addfile(info("good.txt", size=len(data)), io.BytesIO(data))
        if kind == "climbs": t.addfile(info("../bad.txt"))
        if kind == "absolute": t.addfile(info("/bad.txt"))
        if kind == "link": t.addfile(info("bad.txt", type=tarfile.SYMTYPE, linkname="/etc/passwd"))
        if kind == "through":
            t.addfile(info("l", type=tarfile.SYMTYPE, linkname="."))
            t.addfile(info("l/bad.txt", size=0))
        if kind == "hard": t.addfile(info("bad.txt", type=tarfile.LNKTYPE, linkname="../../canary"))
        if kind == "device": t.addfile(info("bad.txt", type=tarfile.CHRTYPE, devmajor=1, devminor=3))
        if kind == "fifo": t.addfile(info("bad.txt", type=tarfile.FIFOTYPE))
        if kind == "deep": t.addfile(info("bad.txt/" * 70 + "x"))
        if kind == "bomb": t.addfile(info("bad.txt", size=200 << 20), io.BytesIO(b"\0" * (200 << 20)))
        if kind == "setid": t.addfile(info("bad.txt", mode=0o6755))
sys.stdout.buffer.write(out.getvalue())
"#;

#[test]
fn a_hostile_archive_changes_nothing_and_is_told_why() {
    let desk = Desk::new();
    fs::write(desk.trial.home().join("canary"), b"canary").unwrap();
    fs::write(desk.trial.home().join("hostile.py"), HOSTILE).unwrap();
    let make = |kind: &str| {
        let script = format!("python3 ../hostile.py {kind}");
        tool(&desk, "make", &script, b"").1
    };
    let before = tree(&desk.work);
    for (kind, status) in [
        ("climbs", 409),
        ("absolute", 409),
        ("link", 409),
        ("through", 409),
        ("hard", 409),
        ("device", 409),
        ("fifo", 409),
        ("deep", 413),
        ("bomb", 413),
        ("zip-climbs", 409),
        ("zip-absolute", 409),
        ("zip-backslash", 409),
        ("zip-link", 409),
        ("zip-bomb", 413),
    ] {
        let answer = upload(&desk, "?path=new/in", &make(kind));
        assert_eq!(answer.status, status, "{kind}: {}", answer.text());
        let error = &answer.json()["error"];
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("bad.txt") || kind.contains("bomb"),
            "{kind}: {message}"
        );
        assert!(!error["hints"].as_array().unwrap().is_empty(), "{kind}");
        assert_eq!(tree(&desk.work), before, "{kind}");
    }
    // Bits that give a program more than its caller has are left behind.
    assert_eq!(upload(&desk, "", &make("setid")).status, 200);
    let mode = fs::metadata(desk.work.join("bad.txt"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o755);
    for nothing in [&b""[..], b"no archive", b"PK\x03\x04", b"\x1f\x8b"] {
        let answer = upload(&desk, "?path=x", nothing);
        assert_eq!(answer.status, 409, "{nothing:?}: {}", answer.text());
    }
    // A directory of the workspace is not replaced by a file, nor written through a link.
    fs::create_dir(desk.work.join("bad")).unwrap();
    fs::write(desk.work.join("bad/f"), b"f").unwrap();
    let (_, archive) = tool(&desk, "clash", "echo x > bad; tar -cf - bad", b"");
    assert_eq!(upload(&desk, "", &archive).status, 409);
    symlink(desk.trial.home(), desk.work.join("home")).unwrap();
    assert_eq!(upload(&desk, "?path=home", &archive).status, 409);
    let (_, archive) = tool(
        &desk,
        "under",
        "mkdir home; echo x > home/canary; tar -cf - home",
        b"",
    );
    assert_eq!(upload(&desk, "", &archive).status, 409);
    assert_eq!(
        fs::read(desk.trial.home().join("canary")).unwrap(),
        b"canary"
    );
    desk.close();
}

#[test]
fn a_client_that_leaves_an_archive_leaves_nothing() {
    let desk = Desk::new();
    let noise = fs::File::create(desk.work.join("large")).unwrap();
    noise.set_len(512 << 20).unwrap();
    let head = format!(
        "GET {ARCHIVE} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        desk.server.address, desk.server.token
    );
    // More often than a space may have at once.
    for _ in 0..12 {
        let mut stream = desk.client.connect().unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut piece = [0; 64];
        stream.read_exact(&mut piece).unwrap();
        if !piece.starts_with(b"HTTP/1.1 200") {
            // Somebody who left was not noticed yet.
            assert!(piece.starts_with(b"HTTP/1.1 503"));
        }
    }
    fs::remove_file(desk.work.join("large")).unwrap();
    let free = support::wait_until(std::time::Duration::from_secs(60), || {
        desk.client.get(ARCHIVE).status == 200
    });
    assert!(free, "its places are given back");
    desk.close();
}

#[test]
fn an_archive_is_unpacked_once_for_one_key() {
    let desk = Desk::new();
    let (_, archive) = tool(&desk, "once", "echo x > f; tar -cf - f", b"");
    let client = desk.client.clone().with("Idempotency-Key", "archive");
    let send = || client.try_bytes("PUT", ARCHIVE, BYTES, &archive).unwrap();
    assert_eq!(send().status, 200);
    desk.delete("f");
    let again = send();
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.json(), json!({"entries": 1, "files": 1, "bytes": 2}));
    assert_eq!(desk.get("f").status, 404);
    desk.close();
}
