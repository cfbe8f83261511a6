//! Workspaces as a whole: quotas, templates, changes that wait, and what is undone.

use std::fs;

use serde_json::{Value, json};
use support::{sh, with};

use crate::files::{BYTES, Desk, put};

#[test]
fn what_would_pass_the_quota_is_refused_and_nothing_is_written() {
    let desk = Desk::with("[workspace]\nmax_bytes = \"1M\"\nmax_files = 16\n");
    let info = desk.client.get("/v1/workspaces/p").json();
    assert_eq!(
        (&info["max_bytes"], &info["max_files"]),
        (&json!(1 << 20), &json!(16))
    );
    desk.put("large", &vec![b'x'; 800 << 10]);
    let refused = put(&desk.client, "more", &vec![b'y'; 400 << 10]);
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (507, "disk_full")
    );
    let error = &refused.json()["error"];
    assert_eq!(
        (&error["blame"], &error["retry"]["allowed"]),
        (&json!("policy"), &json!(false))
    );
    assert!(
        error["message"].as_str().unwrap().contains("1048576"),
        "{error}"
    );
    assert!(
        error["hints"][1].as_str().unwrap().contains("max_bytes"),
        "{error}"
    );
    assert_eq!(desk.get("more").status, 404);
    // What is replaced makes room for what replaces it.
    desk.put("large", &vec![b'z'; 900 << 10]);
    let refused = desk.post("copy", &json!({"from": "large", "to": "copy"}));
    assert_eq!(refused.status, 507, "{}", refused.text());
    assert_eq!(desk.get("copy").status, 404);
    let script = "head -c 300000 /dev/urandom > f; tar -cf - f";
    let tar = std::process::Command::new("bash")
        .args(["-c", script])
        .current_dir(desk.trial.work())
        .output()
        .unwrap();
    let archive = |bytes: &[u8]| {
        desk.client
            .try_bytes("PUT", "/v1/workspaces/p/archive", BYTES, bytes)
            .unwrap()
    };
    let refused = archive(&tar.stdout);
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (507, "disk_full")
    );
    assert_eq!(desk.get("f").status, 404);
    assert_eq!(desk.delete("large").status, 204);
    assert_eq!(archive(&tar.stdout).status, 200);
    // Files are counted too: two are there.
    for number in 0..14 {
        desk.put(&format!("n{number}"), b"");
    }
    assert_eq!(put(&desk.client, "one-more", b"").code(), "disk_full");
    assert_eq!(
        desk.post("mkdir", &json!({"path": "d"})).code(),
        "disk_full"
    );
    desk.put("n0", b"replaced");
    // A neighbour has its own.
    let other = desk
        .client
        .try_bytes(
            "PUT",
            "/v1/workspaces/q/files/f",
            BYTES,
            &vec![0; 900 << 10],
        )
        .unwrap();
    assert_eq!(other.status, 200, "{}", other.text());
    // At the same moment too.
    desk.client.send("DELETE", "/v1/workspaces/p", None);
    desk.put("first", b"x");
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let many: Vec<_> = (0..8)
            .map(|number| {
                let client = desk.client.clone();
                let name = format!("at-once-{number}");
                scope.spawn(move || put(&client, &name, &vec![b'x'; 400 << 10]).status)
            })
            .collect();
        many.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(
        statuses.iter().filter(|it| **it == 200).count(),
        2,
        "{statuses:?}"
    );
    desk.close();
}

#[test]
fn a_new_workspace_has_the_operators_template_and_a_reset_brings_it_back() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("src")).unwrap();
    fs::write(place.path().join("src/main.py"), b"print(1)\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", place.path().join("out")).unwrap();
    let desk = Desk::with(&format!("[workspace]\ntemplate = {:?}\n", place.path()));
    assert_eq!(desk.get("src/main.py").body, b"print(1)\n");
    desk.put("src/main.py", b"mine");
    let seeded = desk.client.send("POST", "/v1/workspaces/p/seed", None);
    assert_eq!(seeded.status, 200, "{}", seeded.text());
    assert_eq!(seeded.json()["made"], 0);
    assert_eq!(seeded.json()["skipped"][0]["path"], "out");
    assert_eq!(
        desk.get("src/main.py").body,
        b"mine",
        "nothing that is there is touched"
    );
    let reset = desk.done("reset", &json!({}));
    assert!(reset["seeded"]["made"].as_u64().unwrap() >= 2, "{reset}");
    assert_eq!(desk.get("src/main.py").body, b"print(1)\n");
    assert_eq!(desk.get("first").status, 404);
    let ledger = desk.client.get("/v1/audit/export").text();
    assert!(ledger.contains("workspace.reset") && ledger.contains("workspace.seeded"));
    desk.close();
}

#[test]
fn without_a_template_a_reset_empties_and_there_is_nothing_to_seed_from() {
    let desk = Desk::new();
    let ran = desk
        .client
        .post("/v1/execs", &sh("echo x > /workspace/artifacts/a"));
    let id = ran.json()["exec_id"].as_str().unwrap().to_owned();
    assert_eq!(
        desk.client
            .send("POST", "/v1/workspaces/p/seed", None)
            .status,
        409
    );
    desk.done("reset", &json!({}));
    assert_eq!(desk.get(".").json()["entries"], json!([]));
    let artifact = format!("/v1/execs/{id}/artifacts/a");
    assert_eq!(desk.client.get(&artifact).body, b"x\n");
    desk.done("reset", &json!({"artifacts": true, "inputs": true}));
    assert_eq!(desk.client.get(&artifact).status, 404);
    assert_eq!(
        desk.client
            .send("POST", "/v1/workspaces/nobody/seed", None)
            .status,
        404
    );
    desk.close();
}

fn held(desk: &Desk, script: &str) -> String {
    let ran = desk
        .client
        .post("/v1/execs", &with(sh(script), json!({"writes": "held"})));
    assert_eq!(ran.status, 200, "{}", ran.text());
    assert_eq!(ran.json()["status"], "succeeded", "{}", ran.text());
    ran.json()["exec_id"].as_str().unwrap().to_owned()
}

#[test]
fn changes_wait_until_they_are_kept_or_discarded() {
    let desk = Desk::new();
    desk.put("text", b"one\ntwo\n");
    let exec = held(&desk, "echo three >> text; echo new > new; rm first");
    assert_eq!(desk.get("new").status, 404);
    assert_eq!(desk.get("first").body, b"first");
    let changes = desk.client.get(&format!("/v1/execs/{exec}/changes")).json();
    let count = &changes["count"];
    assert_eq!(
        (&count["created"], &count["modified"], &count["removed"]),
        (&json!(1), &json!(1), &json!(1)),
        "{changes}"
    );
    let text = changes["texts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["path"] == "text");
    assert!(
        text.unwrap()["unified"]
            .as_str()
            .unwrap()
            .contains("+three"),
        "{changes}"
    );
    let info = desk.client.get("/v1/workspaces/p").json();
    assert_eq!(info["waiting"], json!([exec]));
    let keep = |exec: &str| {
        desk.client
            .send("POST", &format!("/v1/execs/{exec}/keep"), None)
    };
    let kept = keep(&exec);
    assert_eq!(kept.status, 200, "{}", kept.text());
    assert_eq!(desk.get("text").body, b"one\ntwo\nthree\n");
    assert_eq!(desk.get("first").status, 404);
    let again = keep(&exec);
    assert_eq!((again.status, again.code().as_str()), (404, "not_found"));
    let decided = desk.client.get(&format!("/v1/execs/{exec}/changes"));
    assert_eq!(decided.status, 404, "{}", decided.text());
    // One that wrote nothing has nothing to decide, and is no stranger.
    let idle = held(&desk, "cat new");
    let changes = desk.client.get(&format!("/v1/execs/{idle}/changes"));
    assert_eq!(changes.status, 200, "{}", changes.text());
    assert_eq!(changes.json()["changes"], json!([]));
    assert_eq!(keep(&idle).status, 404);
    let exec = held(&desk, "echo gone > new");
    let discard = |exec: &str| {
        desk.client
            .send("POST", &format!("/v1/execs/{exec}/discard"), None)
    };
    assert_eq!(discard(&exec).status, 200);
    assert_eq!(desk.get("new").body, b"new\n");
    assert_eq!(discard(&exec).status, 404);
    // Somebody changed the same file meanwhile.
    let exec = held(&desk, "echo theirs > new");
    desk.put("new", b"mine");
    let clash = keep(&exec);
    assert_eq!((clash.status, clash.code().as_str()), (409, "conflict"));
    assert!(clash.text().contains("new"), "{}", clash.text());
    assert_eq!(desk.get("new").body, b"mine");
    assert_eq!(discard(&exec).status, 200);
    let ran = desk.client.post("/v1/execs", &sh("true")).json();
    let direct = ran["exec_id"].as_str().unwrap();
    let none = desk.client.get(&format!("/v1/execs/{direct}/changes"));
    assert_eq!(none.status, 404, "{}", none.text());
    let ledger = desk.client.get("/v1/audit/export").text();
    assert!(ledger.contains("changes.kept") && ledger.contains("changes.discarded"));
    desk.close();
}

#[test]
fn an_exec_is_undone_and_the_one_before_it_too() {
    let desk = Desk::with("[workspace]\nsnapshot_before = \"safe\"\n");
    let run = |script: &str| {
        let ran = desk.client.post("/v1/execs", &sh(script)).json();
        assert_eq!(ran["status"], "succeeded", "{ran}");
        ran
    };
    let one = run("echo one > state");
    assert!(one["snapshot_before"].is_string(), "{one}");
    let two = run("echo two > state");
    run("rm -rf ./*");
    assert_eq!(desk.get(".").json()["entries"], json!([]));
    desk.done("undo", &json!({}));
    assert_eq!(desk.get("state").body, b"two\n");
    assert_eq!(desk.get("first").body, b"first");
    let undone = desk.done("undo", &json!({}));
    assert_eq!(undone["exec_id"], two["exec_id"]);
    assert_eq!(desk.get("state").body, b"one\n");
    let undone = desk.done("undo", &json!({"exec_id": one["exec_id"]}));
    assert_eq!(desk.get("state").status, 404);
    let before = undone["before"].as_str().unwrap();
    desk.done(&format!("snapshots/{before}/restore"), &Value::Null);
    assert_eq!(desk.get("state").body, b"one\n");
    let unknown = json!({"exec_id": "e_00000000000000000000000000000000"});
    assert_eq!(desk.post("undo", &unknown).status, 404);
    desk.close();
}

#[test]
fn what_was_never_saved_cannot_be_undone_and_says_how() {
    let desk = Desk::new();
    let refused = desk.post("undo", &json!({}));
    assert_eq!(refused.status, 404);
    let hints = refused.json()["error"]["hints"].to_string();
    assert!(hints.contains("snapshot_before"), "{hints}");
    desk.close();
}
