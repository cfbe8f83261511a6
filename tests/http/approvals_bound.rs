//! What people agreed to is what runs, also where the command does not name the file.

use serde_json::json;
use support::wait_until;

use crate::approvals_ground::{House, MANUAL, allow};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

#[test]
fn files_that_a_command_runs_without_naming_them_are_bound() {
    let house = House::open(MANUAL);
    let put = |path: &str, content: &str| {
        let path = format!("/v1/workspaces/p/files/{path}");
        let kind = Some("application/octet-stream");
        let put = house
            .agent
            .try_bytes("PUT", &path, kind, content.as_bytes());
        let put = put.unwrap();
        assert_eq!(put.status, 200, "{}", put.text());
    };
    let python = "open('NAME', 'w')\n";
    let rows: [(&[&str], &str, &str); 5] = [
        (&["python3", "-m", "mod"], "mod.py", python),
        (&["python3", "-m", "pkg"], "pkg/__main__.py", python),
        (&["python3", "pkg"], "pkg/__main__.py", python),
        (&["make"], "Makefile", "all:\n\ttouch NAME\n"),
        (
            &["awk", "-f", "p.awk"],
            "p.awk",
            "BEGIN { print > \"NAME\" }\n",
        ),
    ];
    for (words, file, text) in rows {
        put(file, &text.replace("NAME", "good"));
        let body = json!({"project_id": "p",
            "exec": {"kind": "argv", "command": words[0], "args": words[1..]}});
        let (exec, id) = house.ask(&body);
        let shown = house.ann.get(&format!("/v1/approvals/{id}")).json();
        let bound = shown["ask"]["scripts"].as_array().cloned();
        let bound = bound.unwrap_or_default();
        assert!(
            bound.iter().any(|it| it["path"] == file),
            "{words:?} {shown}"
        );
        put(file, &text.replace("NAME", "bad"));
        allow(&house.ann, &id);
        let is_void = || house.ann.get(&format!("/v1/approvals/{id}")).json()["state"] == "void";
        assert!(wait_until(PATIENCE, is_void), "{words:?}");
        let record = house.agent.ended(&exec);
        assert_eq!(record["error"]["code"], "denied", "{words:?} {record}");
        let work = house.trial.state().join("projects/p/work");
        assert!(!work.join("bad").exists() && !work.join("good").exists());
    }
    house.close();
}
