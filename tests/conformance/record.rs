//! What is written down of an exec.

use std::process::Command;

use serde_json::{Value, json};
use support::{Column, glovebox};

use crate::table::{Case, Ground};

pub const CASES: &[Case] = &[
    Case::new(
        "the record says where it ran and what it used, now and later",
        record,
    ),
    Case::new(
        "every receipt is in the ledger, and the ledger verifies",
        receipts,
    ),
    Case::new(
        "a guarantee that the backend cannot keep refuses the run",
        required,
    ),
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

fn record(ground: &Ground) {
    let burn = "import time
print('said'); open('/workspace/artifacts/a', 'w').write('x')
x = bytearray(48 << 20)
end = time.process_time() + 0.4
while time.process_time() < end: pass
time.sleep(0.5)";
    // The account of a container is read now and then and gone with it, so it stays a while.
    let run = ground.python(burn);
    let outcome = run.with(["--require", "no_capabilities"]).json();
    outcome.expect("succeeded", 0, None);
    isolation(ground.column, &outcome.record);
    let used = |name: &str| outcome.record["usage"][name].as_u64().expect("a number");
    // A program in gVisor is told the time that it was let run, on a busy host more than it had.
    let least = if ground.column == Column::Runsc {
        50
    } else {
        350
    };
    assert!(
        (least..5000).contains(&used("cpu_ms")),
        "{}",
        outcome.record
    );
    assert!(used("max_memory_bytes") > 48 << 20, "{}", outcome.record);
    assert!(used("max_pids") >= 1, "{}", outcome.record);
    assert!(outcome.record["duration_ms"].as_u64() >= Some(350));
    let (code, shown) = ask(ground, &["show", outcome.text("exec_id")]);
    assert_eq!((code, &shown), (0, &outcome.record));
}

fn isolation(column: Column, record: &Value) {
    assert_eq!(record["backend"], column.backend());
    assert_eq!(record["runtime"], json!(column.runtime()));
    assert_eq!(record["image"].is_string(), column.is_docker());
    for name in EVERYWHERE {
        assert_eq!(record["isolation"][name], "kernel", "{name}: {record}");
    }
    let (users, rules, kernel) = match column {
        Column::Native => ("kernel", "kernel", "unavailable"),
        Column::Runc => ("unavailable", "unavailable", "unavailable"),
        Column::Runsc => ("kernel", "unavailable", "kernel"),
    };
    assert_eq!(record["isolation"]["own_users"], users);
    assert_eq!(record["isolation"]["file_rules"], rules);
    assert_eq!(record["isolation"]["own_kernel"], kernel);
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
}
