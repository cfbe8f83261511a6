//! Records and state directories for the tests.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

pub(crate) mod approval;
pub(crate) mod older;
#[allow(clippy::print_stderr, reason = "what is skipped is said")]
pub(crate) mod postgres;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::postgres::SimpleQueryMessage;
use glovebox_model::{
    Access, BackendName, Exec, ExecId, Lifetime, NetworkMode, Sandbox, SandboxConfig, SandboxId,
    SandboxState, SpaceId, Status,
};
use glovebox_store::{Expectations, Kind, RequestKey, StateDir, Store, Verification};
use serde_json::json;
use tempfile::TempDir;

use self::postgres::Database;

/// Runs each test over SQLite and over PostgreSQL, as `sqlite::NAME` and `postgres::NAME`.
macro_rules! on_both_databases {
    ($($name:ident,)+) => {
        mod sqlite {
            $(#[test] fn $name() { super::$name($crate::common::fixture()); })+
        }
        mod postgres {
            $(#[test] fn $name() {
                if let Some(it) = $crate::common::postgres_fixture() { super::$name(it); }
            })+
        }
    };
}
pub(crate) use on_both_databases;

/// Owners that the tests use. On PostgreSQL only who has a lease may write.
const OWNERS: [&str; 5] = ["o", "owner", "gone", "alive", "0123456789abcdef"];

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// For many writers on a disk that is busy elsewhere.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

// Fields are dropped in this order: nobody uses a database that is dropped.
pub(crate) struct Fixture {
    pub(crate) store: Store,
    pub(crate) state: StateDir,
    pub(crate) dir: TempDir,
    pub(crate) shared: Option<Database>,
    unguarded: AtomicBool,
}

pub(crate) fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path().join("state")).unwrap();
    let store = opened(&state, None);
    Fixture {
        store,
        state,
        dir,
        shared: None,
        unguarded: AtomicBool::default(),
    }
}

pub(crate) fn postgres_fixture() -> Option<Fixture> {
    Some(over(Database::create()?))
}

pub(crate) fn over(database: Database) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path().join("state")).unwrap();
    let store = opened(&state, Some(&database.url));
    for owner in OWNERS {
        store.enlist(owner, HOUR).unwrap();
    }
    Fixture {
        store,
        state,
        dir,
        shared: Some(database),
        unguarded: AtomicBool::default(),
    }
}

/// On SQLite, or on the PostgreSQL of this URL.
pub(crate) fn opened(state: &StateDir, url: Option<&str>) -> Store {
    let store = match url {
        Some(url) => Store::connect_with_patience(state, url, PATIENCE),
        None => Store::open_with_patience(state, PATIENCE),
    };
    store.unwrap()
}

impl Fixture {
    /// As another process on the same machine would, or another server with the same key.
    pub(crate) fn open_again(&self) -> Store {
        self.open_over(&self.state)
    }

    pub(crate) fn open_over(&self, state: &StateDir) -> Store {
        opened(state, self.shared.as_ref().map(|it| it.url.as_str()))
    }

    /// Everything as it is now, to be changed without changing this.
    pub(crate) fn copy(&self) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy");
        copy_state(self.state.path(), &path);
        let state = StateDir::open(&path).unwrap();
        let shared = self.shared.as_ref().map(Database::copy);
        let store = opened(&state, shared.as_ref().map(|it| it.url.as_str()));
        Fixture {
            store,
            state,
            dir,
            shared,
            unguarded: self.unguarded.load(Ordering::Relaxed).into(),
        }
    }

    /// The owner is known to be dead from now on.
    pub(crate) fn dies(&self, owner: &str) {
        if self.shared.is_some() {
            let expire = format!(
                "UPDATE owners SET expires_at = clock_timestamp() - interval '1 second'
                 WHERE owner_id = '{owner}'"
            );
            assert_eq!(self.execute(&expire), 1);
        }
    }

    /// What somebody with a database shell does; returns how many rows were changed.
    pub(crate) fn execute(&self, sql: &str) -> u64 {
        self.try_execute(sql).unwrap()
    }

    pub(crate) fn try_execute(&self, sql: &str) -> Result<u64, String> {
        let Some(database) = &self.shared else {
            let connection = self.database();
            let guards = match self.unguarded.load(Ordering::Relaxed) {
                true => lift_triggers(&connection),
                false => String::new(),
            };
            let before = connection.total_changes();
            let done = connection
                .execute_batch(sql)
                .map_err(|error| error.to_string());
            let changed = connection.total_changes() - before;
            connection.execute_batch(&guards).unwrap();
            return done.map(|()| changed);
        };
        let done = database.client().simple_query(&translated(sql));
        let done = done.map_err(|error| match error.as_db_error() {
            Some(error) => error.message().to_owned(),
            None => error.to_string(),
        })?;
        let counts = done.iter().map(|message| match message {
            SimpleQueryMessage::CommandComplete(rows) => *rows,
            _ => 0,
        });
        Ok(counts.sum())
    }

    /// Texts of one column.
    pub(crate) fn texts(&self, sql: &str) -> Vec<String> {
        match &self.shared {
            Some(database) => {
                let rows = database.client().query(sql, &[]).unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
            None => {
                let connection = self.database();
                let mut select = connection.prepare(sql).unwrap();
                let rows = select.query_map((), |row| row.get(0)).unwrap();
                rows.collect::<Result<_, _>>().unwrap()
            }
        }
    }

    pub(crate) fn database(&self) -> rusqlite::Connection {
        assert!(self.shared.is_none());
        rusqlite::Connection::open(self.state.database()).unwrap()
    }

    pub(crate) fn verify(&self) -> Verification {
        self.store.verify_all(&Expectations::default()).unwrap()
    }

    pub(crate) fn assert_sound(&self) {
        let verification = self.verify();
        assert!(verification.is_sound(), "{verification:?}");
    }

    /// As people do who do not want to be held back: from now on the triggers are dropped before
    /// each [`Fixture::execute`], and put back after it so that nobody misses them.
    pub(crate) fn drop_triggers(&self) {
        self.unguarded.store(true, Ordering::Relaxed);
    }

    /// The same on PostgreSQL, which can also take it back.
    pub(crate) fn set_triggers(&self, on: bool) {
        let to = if on { "ENABLE" } else { "DISABLE" };
        for table in ["ledger_entries", "ledger_checkpoints"] {
            self.execute(&format!("ALTER TABLE {table} {to} TRIGGER ALL"));
        }
    }
}

/// Drops the triggers, and returns what makes them again.
pub(crate) fn lift_triggers(connection: &rusqlite::Connection) -> String {
    let sql = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'";
    let mut select = connection.prepare(sql).unwrap();
    let rows = select.query_map((), |row| Ok((row.get(0)?, row.get(1)?)));
    let triggers: Vec<(String, String)> = rows.unwrap().collect::<Result<_, _>>().unwrap();
    drop(select);
    let mut again = String::new();
    for (name, sql) in triggers {
        connection
            .execute_batch(&format!("DROP TRIGGER {name}"))
            .unwrap();
        again.push_str(&format!("{sql};"));
    }
    again
}

/// From SQLite's SQL, as far as the tests use what PostgreSQL says otherwise.
fn translated(sql: &str) -> String {
    let mut parts = sql.split("zeroblob(");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (count, rest) = part.split_once(')').unwrap();
        let zeros = "00".repeat(count.parse().unwrap());
        text.push_str(&format!("'\\x{zeros}'::bytea{rest}"));
    }
    text
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

pub(crate) fn sandbox(name: &str) -> Sandbox {
    sandbox_in(SpaceId::local(), name)
}

pub(crate) fn sandbox_in(space: SpaceId, name: &str) -> Sandbox {
    let mut random = [0; 16];
    getrandom::fill(&mut random).unwrap();
    let profile = running().policy_snapshot.unwrap();
    Sandbox {
        sandbox_id: SandboxId::from_random(random),
        name: name.to_owned(),
        space_id: space,
        project_id: "proj".parse().unwrap(),
        lifetime: Lifetime::Session,
        scope: Some("session 1".to_owned()),
        agent_id: None,
        config: SandboxConfig {
            backend: BackendName::Native,
            image: None,
            workspace: Access::Rw,
            network: NetworkMode::None,
            limits: profile.limits,
            keep_root: false,
            docker: None,
        },
        config_hash: "00".repeat(32),
        state: SandboxState::Idle,
        exec_id: None,
        container_id: None,
        created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
        last_used_at: "2026-01-02T03:04:05Z".parse().unwrap(),
        uses: 0,
        asked: glovebox_model::PartialProfile::default(),
        trouble: None,
        ports: Vec::new(),
    }
}

pub(crate) fn ended(mut record: Exec, status: Status) -> Exec {
    record.status = status;
    record.exit_code = Some(0);
    record.ended_at = Some("2026-01-02T03:04:06Z".parse().unwrap());
    record.duration_ms = Some(1000);
    record.stdout = "the password is hunter2\n".to_owned();
    record
}

pub(crate) fn queued() -> Exec {
    let mut record = running();
    record.status = Status::Queued;
    record.started_at = None;
    record
}

pub(crate) fn started(mut record: Exec) -> Exec {
    record.status = Status::Running;
    record.started_at = Some("2026-01-02T03:04:05Z".parse().unwrap());
    record
}

pub(crate) fn key(name: &str, body: u8) -> RequestKey {
    RequestKey {
        caller: "t_caller".to_owned(),
        key: name.to_owned(),
        fingerprint: [body; 32],
    }
}

/// The kinds of the entries of a space, oldest first.
pub(crate) fn kinds(store: &Store) -> Vec<Kind> {
    let tail = store.tail(&SpaceId::local(), 1000).unwrap();
    tail.iter().map(|entry| entry.kind).collect()
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
