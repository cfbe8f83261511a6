//! The files of a workspace: read, written, listed, arranged and searched.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use support::{Caller, Client, Response, Server, Trial};

pub(crate) const BYTES: Option<&str> = Some("application/octet-stream");

/// A server with a workspace `p`, and where its files are.
pub(crate) struct Desk {
    pub(crate) trial: Trial,
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) work: PathBuf,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    pub(crate) fn with(config: &str) -> Self {
        let trial = Trial::in_memory(Caller::Root).unwrap();
        let server = crate::pool_fire::serve(&trial, config).on(&trial);
        let desk = Self {
            client: server.client(),
            work: trial.state().join("projects/p/work"),
            trial,
            server,
        };
        desk.put("first", b"first");
        desk
    }

    #[track_caller]
    pub(crate) fn put(&self, path: &str, contents: &[u8]) -> Value {
        let answer = put(&self.client, path, contents);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.client.get(&file(path))
    }

    pub(crate) fn post(&self, noun: &str, body: &Value) -> Response {
        self.client.post(&format!("/v1/workspaces/p/{noun}"), body)
    }

    #[track_caller]
    pub(crate) fn done(&self, noun: &str, body: &Value) -> Value {
        let answer = self.post(noun, body);
        assert!(
            matches!(answer.status, 200 | 201),
            "{noun} {body}: {} {}",
            answer.status,
            answer.text()
        );
        answer.json()
    }

    pub(crate) fn delete(&self, path: &str) -> Response {
        self.client.send("DELETE", &file(path), None)
    }

    pub(crate) fn close(self) {
        self.client.verify_ledger();
        assert_eq!(self.server.stop(), 0);
        self.trial.end();
    }
}

pub(crate) fn file(path: &str) -> String {
    format!("/v1/workspaces/p/files/{path}")
}

pub(crate) fn put(client: &Client, path: &str, contents: &[u8]) -> Response {
    client
        .try_bytes("PUT", &file(path), BYTES, contents)
        .unwrap()
}

fn paths(listing: &Value, field: &str) -> Vec<String> {
    let entries = listing[field].as_array().unwrap();
    let path = |entry: &Value| entry["path"].as_str().unwrap().to_owned();
    entries.iter().map(path).collect()
}

#[test]
fn a_file_is_read_whole_in_parts_or_not_again() {
    let desk = Desk::new();
    let written = desk.put("a/b.txt", b"0123456789");
    assert_eq!(written["path"], "a/b.txt");
    assert_eq!(
        (&written["name"], &written["size"]),
        (&json!("b.txt"), &json!(10))
    );
    let whole = desk.get("a/b.txt");
    assert_eq!(whole.body, b"0123456789");
    let etag = whole.header("etag").unwrap().to_owned();
    assert_eq!(etag, format!("\"{}\"", written["etag"].as_str().unwrap()));
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    let asked = |name: &str, value: &str| {
        let client = desk.client.clone().with(name, value);
        client.get(&file("a/b.txt"))
    };
    for (range, bytes, said) in [
        ("bytes=0-3", "0123", "bytes 0-3/10"),
        ("bytes=4-", "456789", "bytes 4-9/10"),
        ("bytes=-2", "89", "bytes 8-9/10"),
        ("bytes=8-99", "89", "bytes 8-9/10"),
        ("bytes=-99", "0123456789", "bytes 0-9/10"),
    ] {
        let part = asked("Range", range);
        assert_eq!(
            (part.status, part.text()),
            (206, bytes.to_owned()),
            "{range}"
        );
        assert_eq!(part.header("content-range"), Some(said));
        let length = bytes.len().to_string();
        assert_eq!(part.header("content-length"), Some(length.as_str()));
        assert_eq!(part.header("etag"), Some(etag.as_str()));
    }
    for beyond in ["bytes=10-", "bytes=99-100", "bytes=-0"] {
        let answer = asked("Range", beyond);
        assert_eq!(answer.status, 416, "{beyond}: {}", answer.text());
        assert_eq!(answer.header("content-range"), Some("bytes */10"));
        assert_eq!(answer.code(), "invalid_argument");
    }
    for unread in ["bytes=1-2,4-5", "lines=1-2", "bytes=2-1"] {
        assert_eq!(asked("Range", unread).status, 200, "{unread}");
    }
    let known = asked("If-None-Match", &etag);
    assert_eq!((known.status, known.body.len()), (304, 0));
    assert_eq!(asked("If-None-Match", "W/\"x\", *").status, 400);
    assert_eq!(asked("If-None-Match", "\"x\"").status, 200);
    let of = |tag: &str| {
        let client = desk.client.clone().with("Range", "bytes=0-0");
        client.with("If-Range", tag).get(&file("a/b.txt")).status
    };
    assert_eq!((of(&etag), of("\"x\"")), (206, 200));
    let head = desk.client.send("HEAD", &file("a/b.txt"), None);
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, Some("10"))
    );
    assert!(head.body.is_empty());
    // No page of ours, whatever it holds.
    desk.put("page.html", b"<script>alert(1)</script>");
    let page = desk.get("page.html");
    assert_eq!(
        page.header("content-type"),
        Some("application/octet-stream")
    );
    assert!(
        page.header("content-disposition")
            .unwrap()
            .starts_with("attachment")
    );
    desk.close();
}

#[test]
fn what_is_written_is_what_was_expected_to_be_replaced() {
    let desk = Desk::new();
    let first = desk.put("f", b"one")["etag"].as_str().unwrap().to_owned();
    let expect = |name: &str, value: &str, contents: &[u8]| {
        put(&desk.client.clone().with(name, value), "f", contents)
    };
    let second = expect("If-Match", &format!("\"{first}\""), b"two");
    assert_eq!(second.status, 200, "{}", second.text());
    let late = expect("If-Match", &format!("\"{first}\""), b"late");
    assert_eq!((late.status, late.code().as_str()), (412, "conflict"));
    assert_eq!(expect("If-None-Match", "*", b"new").status, 412);
    assert_eq!(expect("If-None-Match", "\"x\"", b"new").status, 400);
    assert_eq!(expect("If-Match", "x", b"new").status, 400);
    assert_eq!(expect("If-Match", "\"a,b\", W/\",\"", b"new").status, 412);
    // There cannot be something where there is nothing.
    let both = desk.client.clone().with("If-Match", "*");
    let both = put(&both.with("If-None-Match", "*"), "f", b"new");
    assert_eq!(both.status, 412, "{}", both.text());
    assert_eq!(desk.get("f").body, b"two");
    assert_eq!(expect("If-Match", "*", b"three").status, 200);
    let client = desk.client.clone().with("If-Match", "*");
    assert_eq!(put(&client, "none", b"x").status, 412);
    assert_eq!(desk.get("none").status, 404);
    let client = desk.client.clone().with("If-None-Match", "*");
    assert_eq!(put(&client, "none", b"x").status, 200);
    // A workspace that is not there is not made for a file that must be.
    let missing = "/v1/workspaces/nobody/files/f";
    let client = desk.client.clone().with("If-Match", "*");
    let refused = client.try_bytes("PUT", missing, BYTES, b"x").unwrap();
    assert_eq!(refused.status, 412);
    assert_eq!(desk.client.get("/v1/workspaces/nobody").status, 404);
    // Modes are kept, and given; set-id bits are not.
    let mode = |path: &str| {
        fs::metadata(desk.work.join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    desk.put("run?mode=0755", b"#!/bin/sh\n");
    assert_eq!(mode("run"), 0o755);
    desk.put("run", b"#!/bin/sh\nexit 1\n");
    assert_eq!(mode("run"), 0o755);
    desk.put("set?mode=6755", b"");
    assert_eq!(mode("set"), 0o755);
    assert_eq!(put(&desk.client, "set?mode=999", b"").status, 400);
    // Two who both know the same version: one of them wins.
    let etag = desk.put("race", b"0")["etag"].as_str().unwrap().to_owned();
    let client = desk.client.clone().with("If-Match", format!("\"{etag}\""));
    let won: Vec<u16> = std::thread::scope(|scope| {
        let many: Vec<_> = (0..8)
            .map(|number: u8| {
                let client = client.clone();
                scope.spawn(move || put(&client, "race", &[number]).status)
            })
            .collect();
        many.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(won.iter().filter(|it| **it == 200).count(), 1, "{won:?}");
    assert_eq!(won.iter().filter(|it| **it == 412).count(), 7, "{won:?}");
    let left = fs::read_dir(&desk.work).unwrap().count();
    assert_eq!(left, 6, "nothing that was made aside is left");
    desk.close();
}

#[test]
fn a_directory_is_listed_page_by_page_and_level_by_level() {
    let desk = Desk::new();
    for path in ["d/a", "d/b/c", "d/b/e", "d/z"] {
        desk.put(path, b"x");
    }
    std::os::unix::fs::symlink("/etc/passwd", desk.work.join("d/link")).unwrap();
    let flat = desk.get("d").json();
    assert_eq!(paths(&flat, "entries"), ["d/a", "d/b", "d/link", "d/z"]);
    assert_eq!(
        (&flat["truncated"], &flat["next"]),
        (&json!(false), &Value::Null)
    );
    let link = &flat["entries"][2];
    assert_eq!(link["type"], "symlink");
    assert_eq!(
        (&link["target"], &link["size"]),
        (&json!("/etc/passwd"), &json!(11))
    );
    let deep = desk.get("d?depth=5").json();
    let all = ["d/a", "d/b", "d/b/c", "d/b/e", "d/link", "d/z"];
    assert_eq!(paths(&deep, "entries"), all);
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = desk.get(&format!("d?depth=5&limit=2{after}")).json();
        seen.extend(paths(&page, "entries"));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen, all);
    let top = desk.client.get("/v1/workspaces/p/files?depth=2").json();
    assert!(paths(&top, "entries").contains(&"d/a".to_owned()));
    assert_eq!(desk.get(".").json()["entries"].as_array().unwrap().len(), 2);
    for bad in [
        "d?limit=0",
        "d?limit=10001",
        "d?after=zz",
        "d?depth=0",
        "d?page=1",
    ] {
        assert_eq!(desk.get(bad).status, 400, "{bad}");
    }
    let stat = desk.get("d/link?stat=true").json();
    assert_eq!(
        (&stat["type"], &stat["path"]),
        (&json!("symlink"), &json!("d/link"))
    );
    assert_eq!(desk.get(".?stat=true").json()["type"], "directory");
    desk.close();
}

#[test]
fn files_are_arranged_and_searched() {
    let desk = Desk::new();
    let made = desk.done("mkdir", &json!({"path": "src/deep"}));
    assert_eq!(made["type"], "directory");
    let refused = desk.post("mkdir", &json!({"path": "x/y", "parents": false}));
    assert_eq!(refused.status, 404, "{}", refused.text());
    let refused = desk.post("mkdir", &json!({"path": "src", "parents": false}));
    assert_eq!((refused.status, refused.code().as_str()), (409, "conflict"));
    desk.put("src/main.py", b"import os\nprint('one')\n# NEEDLE: two\n");
    desk.put("src/deep/other.py", b"# needle\n");
    desk.put("src/.hidden", b"NEEDLE\n");
    desk.put("src/data.bin", b"NEEDLE\0NEEDLE");
    let copied = desk.done("copy", &json!({"from": "src", "to": "copies/src"}));
    assert_eq!(
        (&copied["files"], &copied["path"]),
        (&json!(4), &json!("copies/src"))
    );
    let again = desk.post(
        "copy",
        &json!({"from": "src/main.py", "to": "copies/src/main.py"}),
    );
    assert_eq!(again.code(), "conflict");
    let moved = desk.done("move", &json!({"from": "copies/src", "to": "old/place"}));
    assert_eq!(moved["path"], "old/place");
    assert_eq!(desk.get("copies/src").status, 404);
    assert_eq!(
        desk.post("move", &json!({"from": "old", "to": "old/in"}))
            .status,
        409
    );
    assert_eq!(
        desk.post("move", &json!({"from": "none", "to": "x"}))
            .status,
        404
    );
    let occupied = json!({"from": "first", "to": "src/main.py"});
    assert_eq!(desk.post("move", &occupied).code(), "conflict");
    assert_eq!(desk.get("first").body, b"first");
    let replaced = desk.done(
        "replace",
        &json!({"path": "src/main.py", "old": "'one'", "new": "'three'"}),
    );
    assert_eq!(replaced["times"], 1);
    let etag = replaced["file"]["etag"].as_str().unwrap();
    assert!(desk.get("src/main.py").text().contains("print('three')"));
    for (body, status) in [
        (
            json!({"path": "src/main.py", "old": "nothing", "new": ""}),
            409,
        ),
        (json!({"path": "src/main.py", "old": "o", "new": "0"}), 409),
        (json!({"path": "src/main.py", "old": "", "new": "0"}), 400),
        (json!({"path": "none", "old": "a", "new": "b"}), 404),
        (json!({"path": "src", "old": "a", "new": "b"}), 409),
        (
            json!({"path": "src/main.py", "old": "os", "new": "re", "etag": "0".repeat(32)}),
            409,
        ),
        (
            json!({"path": "src/main.py", "old": "os", "new": "re", "etag": etag}),
            200,
        ),
    ] {
        let answer = desk.post("replace", &body);
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
    }
    let found = desk.done(
        "search",
        &json!({"pattern": "NEEDLE", "path": "src", "context": 1}),
    );
    assert_eq!(paths(&found, "matches"), ["src/main.py"]);
    let hit = &found["matches"][0];
    assert_eq!((&hit["line"], &hit["column"]), (&json!(3), &json!(2)));
    assert_eq!(hit["before"][0]["text"], "print('three')");
    assert_eq!(found["binary"], 1);
    let found = desk.done(
        "search",
        &json!({"pattern": "nee.le$", "regex": true, "ignore_case": true, "hidden": true,
                "path": "src", "exclude": ["deep"]}),
    );
    assert_eq!(paths(&found, "matches"), ["src/.hidden"]);
    for (bad, status) in [
        (json!({"pattern": ""}), 400),
        (json!({"pattern": "x", "context": 21}), 400),
        (json!({"pattern": "x".repeat(5000)}), 400),
        (json!({"pattern": "(", "regex": true}), 409),
        (json!({"pattern": "x", "include": ["/etc/*"]}), 409),
        (json!({"pattern": "x", "path": "../.."}), 404),
        (json!({"pattern": "x", "path": "first"}), 409),
    ] {
        let answer = desk.post("search", &bad);
        assert_eq!(answer.status, status, "{bad}: {}", answer.text());
    }
    let found = desk.done("glob", &json!({"pattern": "**/*.py", "path": "src"}));
    assert_eq!(paths(&found, "paths"), ["src/deep/other.py", "src/main.py"]);
    assert_eq!(desk.post("glob", &json!({"pattern": "../*"})).status, 409);
    assert_eq!(desk.get(".?after=00").status, 409, "no cursor of ours");
    assert_eq!(desk.delete("src?recursive=false").code(), "conflict");
    assert_eq!(desk.delete("src").status, 204);
    assert_eq!(desk.delete("src").status, 404);
    desk.close();
}

#[test]
fn names_are_bytes() {
    let desk = Desk::new();
    // Composed and not: two files, as on any Linux.
    desk.put("%C3%A9", b"composed");
    desk.put("e%CC%81", b"not");
    assert_eq!(desk.get("%C3%A9").body, b"composed");
    assert_eq!(desk.get("e%CC%81").body, b"not");
    desk.put("%ff%fe", b"no text");
    assert_eq!(desk.get("%ff%fe").body, b"no text");
    let listing = desk.get(".").json();
    let odd = listing["entries"].as_array().unwrap();
    assert!(
        odd.iter().any(|entry| entry["path"]["hex"] == "fffe"),
        "{listing}"
    );
    let moved = desk.done(
        "move",
        &json!({"from": {"hex": "fffe"}, "to": {"hex": "ff0a"}}),
    );
    assert_eq!(moved["path"]["hex"], "ff0a");
    assert_eq!(desk.delete("%ff%0a").status, 204);
    desk.put("a%20b%3Fc%2523", b"signs");
    assert_eq!(fs::read(desk.work.join("a b?c%23")).unwrap(), b"signs");
    assert_eq!(desk.get("a%20b%3Fc%2523").body, b"signs");
    desk.close();
}

#[test]
fn every_change_is_written_down_without_what_was_in_it() {
    let desk = Desk::new();
    let secret = "the-secret-of-the-file";
    desk.put("notes/a", secret.as_bytes());
    desk.done("mkdir", &json!({"path": "made"}));
    desk.done("copy", &json!({"from": "notes/a", "to": "b"}));
    desk.done("move", &json!({"from": "b", "to": "c"}));
    desk.done(
        "replace",
        &json!({"path": "c", "old": secret, "new": "another-secret"}),
    );
    assert_eq!(desk.delete("c").status, 204);
    let ledger = desk.client.get("/v1/audit/export").text();
    for (event, path) in [
        ("file.written", "\"notes/a\""),
        ("directory.made", "\"made\""),
        ("file.copied", "\"notes/a\""),
        ("file.moved", "\"c\""),
        ("file.replaced", "\"c\""),
        ("file.removed", "\"c\""),
    ] {
        let mut lines = ledger.lines();
        let line = lines.find(|line| line.contains(event) && line.contains(path));
        let line = line.unwrap_or_else(|| panic!("`{event}` of {path} is not written down"));
        assert!(line.contains("bootstrap"), "who did it: {line}");
    }
    for content in [secret, "another-secret"] {
        assert!(!ledger.contains(content), "what is in files is nobody's");
    }
    let size = format!("{}", secret.len());
    let written = ledger.lines().filter(|line| line.contains("file.written"));
    assert!(written.into_iter().any(|line| line.contains(&size)));
    desk.close();
}

#[test]
fn who_may_only_look_changes_nothing() {
    let desk = Desk::new();
    let reader = desk.client.post(
        "/v1/tokens",
        &json!({"name": "reader", "role": "agent", "space_id": "local", "scopes": ["files:read"]}),
    );
    assert_eq!(reader.status, 201, "{}", reader.text());
    let reader = desk
        .server
        .client_of(reader.json()["secret"].as_str().unwrap());
    assert_eq!(reader.get(&file("first")).body, b"first");
    let search = reader.post("/v1/workspaces/p/search", &json!({"pattern": "first"}));
    assert_eq!(search.status, 200, "{}", search.text());
    for (noun, body) in [
        ("mkdir", json!({"path": "d"})),
        ("move", json!({"from": "first", "to": "x"})),
        ("copy", json!({"from": "first", "to": "x"})),
        ("replace", json!({"path": "first", "old": "f", "new": "g"})),
        ("snapshots", json!({})),
        ("undo", json!({})),
        ("fork", json!({"into": "q"})),
        ("reset", json!({})),
    ] {
        let answer = reader.post(&format!("/v1/workspaces/p/{noun}"), &body);
        assert_eq!(answer.status, 403, "{noun}: {}", answer.text());
    }
    assert_eq!(put(&reader, "x", b"x").status, 403);
    assert_eq!(reader.send("DELETE", &file("first"), None).status, 403);
    assert_eq!(fs::read_dir(&desk.work).unwrap().count(), 1);
    desk.close();
}
