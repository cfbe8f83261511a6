-- The record is the only truth of a row: every other column of it is generated, so that a column
-- and the record can never disagree. `opened_seq` and `closed_seq` are places in the ledger.
CREATE TABLE sandbox_execs (
    space_id         TEXT NOT NULL,
    exec_id          TEXT NOT NULL,
    owner_id         TEXT NOT NULL,
    opened_seq       INTEGER NOT NULL,
    closed_seq       INTEGER,
    closed_hash      BLOB,
    record           TEXT NOT NULL,
    client_id        TEXT GENERATED ALWAYS AS (json_extract(record, '$.client_id')) VIRTUAL,
    idempotency_key  TEXT GENERATED ALWAYS AS (json_extract(record, '$.client_id')) VIRTUAL,
    project_id       TEXT GENERATED ALWAYS AS (json_extract(record, '$.project_id')) VIRTUAL,
    task_id          TEXT GENERATED ALWAYS AS (json_extract(record, '$.ids.task_id')) VIRTUAL,
    conversation_id  TEXT GENERATED ALWAYS AS (json_extract(record, '$.ids.conversation_id')) VIRTUAL,
    skill_id         TEXT GENERATED ALWAYS AS (json_extract(record, '$.skill_id')) VIRTUAL,
    image            TEXT GENERATED ALWAYS AS (json_extract(record, '$.image')) VIRTUAL,
    cmd              TEXT GENERATED ALWAYS AS (json_extract(record, '$.cmd')) VIRTUAL,
    args             TEXT GENERATED ALWAYS AS (json_extract(record, '$.args')) VIRTUAL,
    cwd              TEXT GENERATED ALWAYS AS (json_extract(record, '$.cwd')) VIRTUAL,
    env_keys         TEXT GENERATED ALWAYS AS (json_extract(record, '$.env_keys')) VIRTUAL,
    policy_snapshot  TEXT GENERATED ALWAYS AS (json_extract(record, '$.policy_snapshot')) VIRTUAL,
    sandbox_id       TEXT GENERATED ALWAYS AS (json_extract(record, '$.sandbox_id')) VIRTUAL,
    status           TEXT GENERATED ALWAYS AS (json_extract(record, '$.status')) VIRTUAL,
    exit_code        INTEGER GENERATED ALWAYS AS (json_extract(record, '$.exit_code')) VIRTUAL,
    error_reason     TEXT GENERATED ALWAYS AS (json_extract(record, '$.error')) VIRTUAL,
    started_at       TEXT GENERATED ALWAYS AS (json_extract(record, '$.started_at')) VIRTUAL,
    ended_at         TEXT GENERATED ALWAYS AS (json_extract(record, '$.ended_at')) VIRTUAL,
    duration_ms      INTEGER GENERATED ALWAYS AS (json_extract(record, '$.duration_ms')) VIRTUAL,
    artifacts_path   TEXT GENERATED ALWAYS AS (json_extract(record, '$.artifacts_dir')) VIRTUAL,
    stdout_truncated INTEGER GENERATED ALWAYS AS (json_extract(record, '$.stdout_truncated')) VIRTUAL,
    stderr_truncated INTEGER GENERATED ALWAYS AS (json_extract(record, '$.stderr_truncated')) VIRTUAL,
    PRIMARY KEY (space_id, exec_id),
    CHECK ((closed_seq IS NULL) = (closed_hash IS NULL))
) STRICT;

CREATE UNIQUE INDEX execs_by_arrival ON sandbox_execs (space_id, opened_seq);
CREATE INDEX execs_by_status ON sandbox_execs (space_id, status, opened_seq);
CREATE INDEX execs_by_task ON sandbox_execs (space_id, task_id, opened_seq)
    WHERE task_id IS NOT NULL;
CREATE UNIQUE INDEX execs_by_client ON sandbox_execs (space_id, client_id)
    WHERE client_id IS NOT NULL;
CREATE INDEX execs_still_open ON sandbox_execs (owner_id) WHERE closed_seq IS NULL;

CREATE TABLE ledger_entries (
    space_id  TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    at        INTEGER NOT NULL, -- microseconds since 1970
    kind      TEXT NOT NULL,
    exec_id   TEXT NOT NULL,    -- empty when the entry is about no exec
    ids       TEXT NOT NULL,
    tags      TEXT NOT NULL,
    body      TEXT NOT NULL,
    prev_hash BLOB NOT NULL,
    hash      BLOB NOT NULL,
    PRIMARY KEY (space_id, seq)
) STRICT;

CREATE INDEX entries_by_time ON ledger_entries (space_id, at, seq);

-- Everything an entry can be found by, so that one index answers every query.
CREATE TABLE ledger_terms (
    space_id TEXT NOT NULL,
    term     TEXT NOT NULL,
    at       INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    PRIMARY KEY (space_id, term, at, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger_heads (
    space_id   TEXT NOT NULL PRIMARY KEY,
    seq        INTEGER NOT NULL,
    hash       BLOB NOT NULL,
    public_key BLOB NOT NULL,
    signature  BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger_checkpoints (
    space_id  TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    hash      BLOB NOT NULL,
    signature BLOB NOT NULL,
    PRIMARY KEY (space_id, seq)
) STRICT, WITHOUT ROWID;

-- Against mistakes, ours and those of a person with a database shell. Against intent there is the
-- chain.
CREATE TRIGGER entries_are_not_edited BEFORE UPDATE ON ledger_entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON ledger_entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER checkpoints_are_not_edited BEFORE UPDATE ON ledger_checkpoints
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER checkpoints_are_not_deleted BEFORE DELETE ON ledger_checkpoints
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
