//! What is written down of an exec.

use std::process::Command;

use serde_json::{Value, json};
use support::{Column, glovebox};

use crate::table::{Case, Ground};

pub const CASES: &[Case] = &[
    Case::new("the record says where it ran and what held it", isolation),
    Case::new("the record says what it used", usage),
    Case::new(
        "every receipt is in the ledger, and the ledger verifies",
        receipts,
    ),
    Case::new(
        "a guarantee that the backend cannot keep refuses the run",
        required,
    ),
    Case::new("what is shown later is what was said at once", shown_later),
];

/// Those that every column keeps by the kernel, its own or the host's.
const EVERYWHERE: &[&str] = &[
    "own_pids",
    "own_mounts",
    "own_ipc",
    "own_hostname",
    "no_network",
    "read_only_root",
    "no_capabilities",
    "no_new_privileges",
    "syscall_filter",
    "no_survivors",
    "memory_limit",
    "pids_limit",
    "cpu_limit",
];

fn isolation(ground: &Ground) {
    let outcome = ground.run(["true"]).json();
    outcome.expect("succeeded", 0, None);
    let record = &outcome.record;
    assert_eq!(record["backend"], ground.column.backend());
    assert_eq!(record["runtime"], json!(ground.column.runtime()));
    assert_eq!(record["image"].is_string(), ground.column.is_docker());
    for name in EVERYWHERE {
        assert_eq!(record["isolation"][name], "kernel", "{name}: {record}");
    }
    let (users, rules, kernel) = match ground.column {
        Column::Native => ("kernel", "kernel", "unavailable"),
        Column::Runc => ("unavailable", "unavailable", "unavailable"),
        Column::Runsc => ("kernel", "unavailable", "kernel"),
    };
    assert_eq!(record["isolation"]["own_users"], users);
    assert_eq!(record["isolation"]["file_rules"], rules);
    assert_eq!(record["isolation"]["own_kernel"], kernel);
}

fn usage(ground: &Ground) {
    let burn = "import time
x = bytearray(48 << 20)
end = time.process_time() + 0.4
while time.process_time() < end: pass";
    let outcome = ground.python(burn).json();
    outcome.expect("succeeded", 0, None);
    let used = |name: &str| outcome.record["usage"][name].as_u64().expect("a number");
    assert!((350..5000).contains(&used("cpu_ms")), "{}", outcome.record);
    assert!(used("max_memory_bytes") > 48 << 20, "{}", outcome.record);
    assert!(used("max_pids") >= 1, "{}", outcome.record);
    assert!(outcome.record["duration_ms"].as_u64() >= Some(350));
}

fn ask(ground: &Ground, words: &[&str]) -> (i32, Value) {
    let output = Command::new(glovebox())
        .arg("--state-dir")
        .arg(ground.trial.state())
        .args(words)
        .arg("--json")
        .output()
        .expect("start glovebox");
    let said = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code().unwrap_or(-1), said)
}

fn receipts(ground: &Ground) {
    let runs = [
        ground.run(["true"]).json(),
        ground.sh("exit 3").json(),
        ground.run(["no-such-program"]).json(),
    ];
    for run in runs {
        let receipt = &run.record["receipt"];
        let hash = receipt["hash"].as_str().expect("a receipt");
        let word = format!("{}:{hash}", receipt["seq"]);
        let (code, said) = ask(ground, &["audit", "verify", "--receipt", &word]);
        assert_eq!(code, 0, "{said}");
    }
}

fn required(ground: &Ground) {
    let lacking = match ground.column {
        Column::Native => "own_kernel",
        Column::Runc | Column::Runsc => "file_rules",
    };
    let outcome = ground.sh("touch begun").with(["--require", lacking]).json();
    assert!(
        !ground.trial.work().join("begun").exists(),
        "it was started"
    );
    assert!(outcome.code != 0, "{}", outcome.record);
    let said = format!("{}{}", outcome.stderr, outcome.record["error"]);
    assert!(said.contains(lacking), "{said}");
    let kept = ground.run(["true"]).with(["--require", "no_capabilities"]);
    kept.json().expect("succeeded", 0, None);
}

fn shown_later(ground: &Ground) {
    let outcome = ground
        .sh("echo said; echo x > /workspace/artifacts/a")
        .json();
    let id = outcome.text("exec_id").to_owned();
    let (code, shown) = ask(ground, &["show", &id]);
    assert_eq!((code, &shown), (0, &outcome.record));
}
