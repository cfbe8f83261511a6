//! What policy takes away is gone by every name and every way.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::ground::{Ground, Way};
use crate::wire::{Http, Lines};

fn http(ground: &Ground) -> Http {
    Http::new(ground.server().address, Some(ground.token()))
}

fn text(answer: &Value) -> String {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_skill_of_code_is_the_tool_that_it_stands_for() {
    for config in [
        "[tools]\ndeny = [\"run_command\", \"run_code\"]\n",
        "[[rule]]\ndecision = \"deny\"\ntool = [\"run_command\", \"run_code\"]\n",
    ] {
        let ground = Ground::new(Way::Http, config);
        let http = http(&ground);
        for (skill, inputs) in [
            ("skill.shell.run", json!({"script": "echo got through"})),
            ("skill.python.run", json!({"code": "print('got through')"})),
            (
                "skill.javascript.run",
                json!({"code": "console.log('got through')"}),
            ),
        ] {
            let said = http.call(skill, inputs);
            assert_eq!(said["result"]["isError"], true, "{config} {said}");
            assert!(!text(&said).contains("got through\n"), "{config} {said}");
        }
        let said = http.call("session_start", json!({"command": ["echo", "got through"]}));
        assert_eq!(said["result"]["isError"], true, "{config} {said}");
        let started = ground.execs();
        let started = started.iter().filter(|it| !it["started_at"].is_null());
        assert_eq!(started.count(), 0, "{config}");
        // Others are there all the same.
        http.call(
            "file_write",
            json!({"path": "t.csv", "content": "a,b\n1,2\n"}),
        );
        let other = http.call("skill.csv.summary", json!({"path": "t.csv"}));
        assert_eq!(other["result"]["isError"], false, "{config} {other}");
        ground.end();
    }
    let ground = Ground::new(Way::Http, "[tools]\ndeny = [\"run_command\"]\n");
    let listed = http(&ground).tools();
    for (name, is_there) in [
        ("run_command", false),
        ("skill.shell.run", false),
        ("session_start", false),
        ("run_code", true),
        ("skill.python.run", true),
        ("skill.csv.summary", true),
    ] {
        assert_eq!(listed.iter().any(|it| it == name), is_there, "{name}");
    }
    ground.end();
}

#[test]
fn resources_are_what_the_tools_for_them_would_show() {
    let config = "[tools]\ndeny = [\"file_read\", \"file_list\", \"exec_output\"]\n";
    let ground = Ground::new(Way::Http, config);
    let http = http(&ground);
    http.call(
        "file_write",
        json!({"path": "note.txt", "content": "a secret plan"}),
    );
    let ran = http.call("run_command", json!({"command": ["echo", "a secret plan"]}));
    let exec = ran["result"]["structuredContent"]["exec_id"].as_str();
    let exec = exec.unwrap_or_else(|| panic!("{ran}"));
    for uri in [
        "glovebox://files/default/note.txt".to_owned(),
        format!("glovebox://execs/{exec}/stdout"),
    ] {
        let read = http.ask("resources/read", json!({ "uri": uri }));
        assert!(read["error"].is_object(), "{uri}: {read}");
        assert!(!read.to_string().contains("a secret plan"), "{uri}: {read}");
    }
    let listed = http.ask("resources/list", json!({}));
    assert_eq!(listed["result"]["resources"], json!([]), "{listed}");
    ground.end();
}

/// Who looks on and stops looking stops nothing.
#[test]
fn to_stop_waiting_for_an_exec_does_not_stop_it() {
    let ground = Ground::new(Way::Stdio, "");
    let mut lines = Lines::start(ground.stdio());
    lines.greet();
    let call = |id: u64, name: &str, arguments: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}})
    };
    let quick = json!({"script": "sleep 2; echo ended", "background": true});
    lines.say(&call(2, "run_command", quick));
    let begun = lines.answer(&json!(2));
    let watched = begun["result"]["structuredContent"]["exec_id"].clone();
    lines.say(&call(3, "exec_status", json!({ "exec_id": watched })));
    lines.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 3}}),
    );
    lines.say(&call(4, "exec_status", json!({ "exec_id": watched })));
    let ended = lines.answer(&json!(4));
    let ended = &ended["result"]["structuredContent"];
    assert_eq!(ended["status"], "succeeded", "{ended}");
    assert_eq!(ended["stdout"], "ended\n", "{ended}");
    assert_eq!(lines.end(), 0);
    ground.end();
}

/// Nobody can come back to a session on standard input and output; what was put into its workspace,
/// and what has a name of its own, stays.
#[test]
fn what_is_kept_for_a_session_goes_with_it() {
    let ground = Ground::new(Way::Stdio, "");
    let listed = |what: &str| -> Vec<String> {
        let mut command = ground.trial.glovebox();
        let output = command.args([what, "ls", "--json"]).output().unwrap();
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let items = listed["items"].as_array().unwrap().iter();
        let word = |it: &Value| {
            it["name"]
                .as_str()
                .or(it["project_id"].as_str())
                .map(str::to_owned)
        };
        items.filter_map(word).collect()
    };
    let mut lines = Lines::start(ground.stdio());
    lines.greet();
    let own = lines.call(2, "sandbox_create", json!({}));
    let own = &own["result"]["structuredContent"];
    let made_for_it = own["project_id"].as_str().unwrap().to_owned();
    assert!(made_for_it.starts_with("agent-session-"), "{own}");
    let named = json!({"lifetime": "session", "owner": "ann", "project": "apart"});
    let named = lines.call(3, "sandbox_create", named);
    let named = named["result"]["structuredContent"]["name"].clone();
    assert_eq!(listed("sandbox").len(), 2);
    assert!(listed("workspace").contains(&made_for_it));
    assert_eq!(lines.end(), 0);
    assert_eq!(listed("sandbox"), [named.as_str().unwrap()]);
    assert_eq!(listed("workspace"), ["apart"]);

    // It is still at work when the host leaves, and has left a file.
    let mut lines = Lines::start(ground.stdio());
    lines.greet();
    let own = lines.call(2, "sandbox_create", json!({}));
    let own = &own["result"]["structuredContent"];
    let script = "echo 1 > kept; sleep 1000";
    let begun = lines.call(
        3,
        "run_command",
        json!({"script": script, "sandbox": own["name"], "background": true}),
    );
    assert_eq!(begun["result"]["isError"], false, "{begun}");
    let project = own["project_id"].as_str().unwrap();
    let kept = ground
        .trial
        .state()
        .join("projects")
        .join(project)
        .join("work/kept");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !kept.exists() {
        assert!(Instant::now() < deadline, "{begun}");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(lines.end(), 0);
    assert_eq!(listed("sandbox"), [named.as_str().unwrap()]);
    assert!(listed("workspace").contains(&project.to_owned()));
    assert!(kept.exists());
    ground.end();
}

/// A directory goes only when that is said.
#[test]
fn a_directory_with_files_is_not_removed_by_accident() {
    let ground = Ground::new(Way::Http, "");
    let http = http(&ground);
    http.call("file_write", json!({"path": "full/x/y", "content": "kept"}));
    for arguments in [
        json!({"path": "full"}),
        json!({"path": "full", "recursive": false}),
    ] {
        let said = http.call("file_remove", arguments);
        assert_eq!(said["result"]["isError"], true, "{said}");
    }
    // As programs print it.
    let read = http.call("file_read", json!({"path": "/workspace/work/full/x/y"}));
    assert_eq!(
        read["result"]["structuredContent"]["content"], "kept",
        "{read}"
    );
    let gone = http.call("file_remove", json!({"path": "full", "recursive": true}));
    assert_eq!(gone["result"]["isError"], false, "{gone}");
    ground.end();
}
