//! A directory of the machine's user, worked on through the API as a workspace.

use axum::body::Body;
use axum::http::{Method, Request};
use glovebox_engine::Spawner;
use glovebox_model::Code;
use serde_json::{Value, json};

use crate::desk::{Desk, SHARED, open_rules, place, request};
use crate::house::House;

/// As it is before each exec.
const KEPT: &str = "[workspace]\nsnapshot_before = \"safe\"\n";

pub(crate) fn what_is_shared_is_a_workspace_like_any_other() {
    let desk = Desk::open("");
    let project = desk.project();
    let base = format!("/v1/workspaces/{project}");
    std::fs::write(desk.shared().join("a.txt"), "one\n").unwrap();
    // Read, write, search, list.
    assert_eq!(desk.get(&format!("{base}/files/a.txt")).text(), "one\n");
    let put = Request::builder()
        .method(Method::PUT)
        .uri(format!("{base}/files/b.txt"))
        .body(Body::from("two\n"))
        .unwrap();
    let put = desk.send(&desk.agent(), put);
    assert!(put.status < 300, "{put:?}");
    assert_eq!(desk.file("b.txt"), "two\n");
    let found = desk.post(&format!("{base}/search"), &json!({"pattern": "two"}));
    assert_eq!(found.status, 200, "{found:?}");
    assert!(found.text().contains("b.txt"), "{found:?}");
    let listed = desk.get("/v1/workspaces").text();
    assert!(listed.contains(&project), "{listed}");
    let archive = desk.get(&format!("{base}/archive"));
    assert_eq!(archive.status, 200);
    // An exec writes into it, and what it leaves is found again.
    let ran = desk.run(
        "echo three > c.txt; cat a.txt; echo made > /workspace/artifacts/made.txt",
        &json!({}),
    );
    assert_eq!(ran.status, 200, "{ran:?}");
    let ran = ran.json();
    assert_eq!(ran["status"], "succeeded", "{ran}");
    assert_eq!(desk.file("c.txt"), "three\n");
    let id = ran["exec_id"].as_str().unwrap();
    assert_eq!(desk.get(&format!("/v1/execs/{id}/stdout")).text(), "one\n");
    let artifacts = desk.get(&format!("/v1/execs/{id}/artifacts")).text();
    assert!(artifacts.contains("made.txt"), "{artifacts}");
    // Policy is asked about it as about any other.
    let mut asked = crate::house::shell("true");
    asked["project_id"] = Value::from(project.clone());
    let explained = desk.post("/v1/policy/explain", &asked);
    assert_eq!(explained.status, 200, "{explained:?}");
    // What is somebody's own is neither emptied nor removed.
    let remove = desk.send(&desk.agent(), request(Method::DELETE, &base, None));
    assert_eq!(remove.status, 403, "{remove:?}");
    let reset = desk.post(&format!("{base}/reset"), &json!({}));
    assert_eq!(reset.status, 403, "{reset:?}");
    assert_eq!(desk.file("a.txt"), "one\n");
    // A kept sandbox works on a workspace that Glovebox keeps.
    let kept = desk.run("true", &json!({"sandbox": {"lifetime": "shared"}}));
    assert_eq!(kept.status, 409, "{kept:?}");
    desk.close();
}

pub(crate) fn changes_of_what_is_shared_wait_are_applied_and_taken_back() {
    let desk = Desk::open(KEPT);
    let base = format!("/v1/workspaces/{}", desk.project());
    std::fs::write(desk.shared().join("a.txt"), "one\n").unwrap();
    // Simulated: nothing changes until it is applied.
    let simulated = desk.run("echo two > a.txt", &json!({"mode": "simulate"}));
    assert_eq!(simulated.status, 200, "{simulated:?}");
    let id = simulated.json()["exec_id"].as_str().unwrap().to_owned();
    assert_eq!(desk.file("a.txt"), "one\n");
    let effects = desk.get(&format!("/v1/execs/{id}/effects"));
    assert!(effects.text().contains("a.txt"), "{effects:?}");
    let applied = desk.post(&format!("/v1/execs/{id}/apply"), &json!({}));
    assert_eq!(applied.status, 200, "{applied:?}");
    assert_eq!(desk.file("a.txt"), "two\n");
    // Done for real instead.
    let simulated = desk.run("echo three > a.txt", &json!({"mode": "simulate"}));
    let id = simulated.json()["exec_id"].as_str().unwrap().to_owned();
    let rerun = desk.post(&format!("/v1/execs/{id}/rerun"), &json!({}));
    assert_eq!(rerun.status, 200, "{rerun:?}");
    assert_eq!(desk.file("a.txt"), "three\n");
    // Held, looked at, discarded.
    let held = desk.run("echo four > a.txt", &json!({"writes": "held"}));
    let id = held.json()["exec_id"].as_str().unwrap().to_owned();
    let changes = desk.get(&format!("/v1/execs/{id}/changes"));
    assert!(changes.text().contains("a.txt"), "{changes:?}");
    let gone = desk.post(&format!("/v1/execs/{id}/discard"), &json!({}));
    assert_eq!(gone.status, 200, "{gone:?}");
    assert_eq!(desk.file("a.txt"), "three\n");
    // Snapshot, damage, undo; restore.
    let taken = desk.post(&format!("{base}/snapshots"), &json!({}));
    assert_eq!(taken.status, 201, "{taken:?}");
    let snapshot = taken.json()["snapshot"]["snapshot_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let ran = desk.run("echo five > a.txt; rm -f b; mkdir d", &json!({}));
    assert_eq!(ran.status, 200, "{ran:?}");
    let undone = desk.post(&format!("{base}/undo"), &json!({}));
    assert_eq!(undone.status, 200, "{undone:?}");
    assert_eq!(desk.file("a.txt"), "three\n");
    std::fs::write(desk.shared().join("a.txt"), "six\n").unwrap();
    let restored = desk.post(&format!("{base}/snapshots/{snapshot}/restore"), &json!({}));
    assert_eq!(restored.status, 200, "{restored:?}");
    assert_eq!(desk.file("a.txt"), "three\n");
    desk.close();
}

pub(crate) fn nothing_else_of_the_machine_is_shared() {
    let spawner = Spawner::fork().unwrap();
    let desk = Desk::open("");
    let other = "cwd-0123456789abcdef";
    for path in ["files/a", "archive", "snapshots", ""] {
        let path = format!("/v1/workspaces/{other}/{path}");
        let path = path.trim_end_matches('/');
        assert_eq!(desk.get(path).status, 404, "{path}");
    }
    let mut body = crate::house::shell("true");
    body["project_id"] = json!(other);
    assert_eq!(desk.post("/v1/execs", &body).status, 403);
    // A conversation of that name is no way in.
    body = crate::house::shell("pwd");
    body["task_ref"] = json!({"conversation_id": desk.project()});
    let ran = desk.post("/v1/execs", &body).json();
    assert_ne!(ran["project_id"], json!(desk.project()), "{ran}");
    // A server that shares nothing does not know it.
    let (project, house) = (desk.project(), House::of(spawner, |_| {}));
    desk.close();
    let files = format!("/v1/workspaces/{project}/files");
    assert_eq!(house.get(&files).status, 404);
    let mut body = crate::house::shell("true");
    body["project_id"] = json!(project);
    assert_eq!(house.post("/v1/execs", &body).status, 403);
    house.close();
}

pub(crate) fn a_home_and_the_system_are_never_shared() {
    let directory = place();
    let shared = directory.path().join(SHARED);
    let home = vec![shared.clone()];
    let refused = |shared: std::path::PathBuf, homes| {
        let spawner = Spawner::fork().unwrap();
        let opened = open_rules(spawner, directory.path(), shared, homes, "");
        opened.err().map(|error| error.code)
    };
    assert_eq!(refused(shared, home), Some(Code::WorkspaceRefused));
    for path in ["/", "/etc", "/usr/lib"] {
        let code = refused(path.into(), Vec::new());
        assert_eq!(code, Some(Code::WorkspaceRefused), "{path}");
    }
    let state = directory.path().join("state");
    assert_eq!(refused(state, Vec::new()), Some(Code::WorkspaceRefused));
    let missing = directory.path().join("missing");
    assert_eq!(refused(missing, Vec::new()), Some(Code::WorkspaceRefused));
}

pub(crate) fn another_directory_in_its_place_is_not_shared() {
    let directory = place();
    let (shared, elsewhere) = (
        directory.path().join(SHARED),
        directory.path().join("other"),
    );
    std::fs::write(shared.join("mine"), "mine\n").unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("secret"), "secret\n").unwrap();
    let desk = Desk::at(directory, KEPT);
    let base = format!("/v1/workspaces/{}", desk.project());
    let moved = desk.directory.path().join("moved");
    std::fs::rename(&shared, &moved).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &shared).unwrap();
    let check = || {
        assert_eq!(desk.get(&format!("{base}/files/secret")).status, 404);
        assert_eq!(desk.get(&format!("{base}/files/mine")).text(), "mine\n");
        let ran = desk.run("ls; echo new > made", &json!({})).json();
        assert_eq!(ran["status"], "succeeded", "{ran}");
        let id = ran["exec_id"].as_str().unwrap();
        let listed = desk.get(&format!("/v1/execs/{id}/stdout")).text();
        assert!(
            listed.contains("mine") && !listed.contains("secret"),
            "{listed}"
        );
        assert!(moved.join("made").exists() && !elsewhere.join("made").exists());
        let undone = desk.post(&format!("{base}/undo"), &json!({}));
        assert_eq!(undone.status, 200, "{undone:?}");
        assert!(!moved.join("made").exists() && elsewhere.join("secret").exists());
    };
    check();
    // Also a real directory that has the name now.
    std::fs::remove_file(&shared).unwrap();
    std::fs::create_dir(&shared).unwrap();
    check();
    assert_eq!(std::fs::read_dir(&shared).unwrap().count(), 0);
    desk.close();
}
