//! One exec over HTTP, from its request to its record.

use serde_json::json;
use support::{Caller, Start, Trial};

#[test]
fn an_exec_runs_and_its_record_comes_back() {
    let trial = Trial::new(Caller::Root).unwrap();
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
