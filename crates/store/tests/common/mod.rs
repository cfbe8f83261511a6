//! Records and state directories for the tests.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::path::Path;

use glovebox_model::{Exec, ExecId, SpaceId, Status};
use glovebox_store::{Expectations, StateDir, Store, Verification};
use serde_json::json;
use tempfile::TempDir;

pub(crate) struct Fixture {
    pub(crate) dir: TempDir,
    pub(crate) state: StateDir,
    pub(crate) store: Store,
}

pub(crate) fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path().join("state")).unwrap();
    let store = Store::open(&state).unwrap();
    Fixture { dir, state, store }
}

impl Fixture {
    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.state.database()).unwrap()
    }

    pub(crate) fn verify(&self) -> Verification {
        self.store
            .verify(&SpaceId::local(), &Expectations::default())
            .unwrap()
    }
}

pub(crate) fn copy_state(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    std::fs::set_permissions(to, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() && entry.file_name() != "glovebox.db-shm" {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

pub(crate) fn exec_id() -> ExecId {
    let mut random = [0; 16];
    getrandom::fill(&mut random).unwrap();
    ExecId::from_random(random)
}

pub(crate) fn running() -> Exec {
    running_in(SpaceId::local())
}

pub(crate) fn running_in(space: SpaceId) -> Exec {
    let mib = 1 << 20;
    serde_json::from_value(json!({
        "exec_id": exec_id(),
        "project_id": "proj",
        "mode": "run",
        "cmd": "curl",
        "args": ["-H", "Authorization: hunter2"],
        "cwd": "/workspace/work",
        "env_keys": ["API_KEY"],
        "status": "running",
        "timed_out": false,
        "killed": false,
        "started_at": "2026-01-02T03:04:05.000000006Z",
        "stdout": "",
        "stderr": "",
        "stdout_bytes": 0,
        "stderr_bytes": 0,
        "stdout_truncated": false,
        "stderr_truncated": false,
        "artifacts": [],
        "isolation": { "own_pids": "kernel" },
        "policy_snapshot": {
            "limits": {
                "wall_ms": 60_000, "cpu_ms": 60_000, "memory_bytes": mib, "pids": 256,
                "cpus_milli": 1000, "disk_bytes": mib, "disk_files": 1000, "stdout_bytes": mib,
                "stderr_bytes": mib, "artifacts_bytes": mib, "open_files": 1024,
            },
            "network": "none",
            "allow_net": [],
            "workspace": "rw",
            "env_allow": [],
            "tier": "safe",
            "security": "strict",
            "limits_demand": "supervised",
        },
        "capped": [],
        "risk": { "tier": "safe", "signals": [] },
        "usage": { "cpu_ms": 0, "max_memory_bytes": 0, "max_pids": 0 },
        "effects": [],
        "gates": [],
        "ids": { "space_id": space },
    }))
    .unwrap()
}

pub(crate) fn ended(mut record: Exec, status: Status) -> Exec {
    record.status = status;
    record.exit_code = Some(0);
    record.ended_at = Some("2026-01-02T03:04:06Z".parse().unwrap());
    record.duration_ms = Some(1000);
    record.stdout = "the password is hunter2\n".to_owned();
    record
}

/// Opens and closes one exec.
pub(crate) fn run_one(store: &Store) -> Exec {
    run(store, running())
}

pub(crate) fn run(store: &Store, record: Exec) -> Exec {
    let opened = store.plan("0123456789abcdef", &record).unwrap();
    store
        .close(opened, ended(record, Status::Succeeded))
        .unwrap()
}
