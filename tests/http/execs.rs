//! One exec over HTTP, from its request to its record.

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::json;
use support::{Caller, Start, Trial, sh, wait_until};

#[test]
fn an_exec_runs_and_its_record_comes_back() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let server = Start::default().on(&trial);
    let answer = server.exec(&json!({
        "project_id": "p",
        "exec": {"kind": "python", "command": "python", "args": ["-c", "print(6 * 7)"]},
    }));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let record = answer.json();
    assert_eq!(record["status"], "succeeded");
    assert_eq!(record["stdout"], "42\n");
    let id = record["exec_id"].as_str().unwrap();
    let events: Vec<_> = server
        .client()
        .events(id, 0)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [1, 2, 3], "{events:?}");
    assert_eq!(events[0].data["status"], "running");
    assert_eq!(events[1].data["text"], "42\n");
    assert_eq!(events[2].data["status"], "succeeded");
    assert_eq!(server.stop(), 0);
    trial.end();
}

/// Its end is written before its files are sealed and its workspace is left: nobody hears of it in
/// between.
#[test]
fn whoever_is_told_of_an_end_finds_its_files_whole_and_its_workspace_free() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let mark = trial.home().join("closed");
    let pause = format!("close:{}", mark.display());
    let server = Start::default()
        .outside("GLOVEBOX_PAUSE_AT", pause)
        .on(&trial);
    let client = server.client();
    let id = client.begin(&sh("echo kept > /workspace/artifacts/file"));
    let patience = Duration::from_secs(60);
    assert!(wait_until(patience, || mark.exists()), "it does not end");
    let early = thread::scope(|scope| {
        let asked = scope.spawn(|| client.record(&id));
        // Silence can only be seen by waiting.
        let early = wait_until(Duration::from_millis(300), || asked.is_finished());
        fs::write(trial.home().join("closed.go"), "").unwrap();
        assert_eq!(asked.join().unwrap()["status"], "succeeded");
        early
    });
    assert!(!early, "its end was told before it was over");
    let listed = client.get(&format!("/v1/execs/{id}/artifacts"));
    assert_eq!(listed.status, 200, "{}", listed.text());
    let gone = client.send("DELETE", "/v1/workspaces/p", None);
    assert_eq!(gone.status, 204, "{}", gone.text());
    assert_eq!(server.stop(), 0);
    trial.end();
}
