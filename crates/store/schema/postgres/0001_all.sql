-- The same tables as in SQLite, with the same names and columns. Texts compare by their bytes.
CREATE SCHEMA IF NOT EXISTS glovebox;

-- `version` of this schema, and the `public_key` that signs the ledgers.
CREATE TABLE facts (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- The record is the truth of a row. The columns after it are filled from it with every change, and
-- compared with it by verification.
CREATE TABLE sandbox_execs (
    space_id         TEXT COLLATE "C" NOT NULL,
    exec_id          TEXT COLLATE "C" NOT NULL,
    owner_id         TEXT COLLATE "C" NOT NULL,
    opened_seq       BIGINT NOT NULL,
    closed_seq       BIGINT,
    closed_hash      BYTEA,
    record           TEXT NOT NULL,
    client_id        TEXT COLLATE "C",
    idempotency_key  TEXT COLLATE "C",
    project_id       TEXT COLLATE "C",
    task_id          TEXT COLLATE "C",
    conversation_id  TEXT COLLATE "C",
    skill_id         TEXT,
    image            TEXT,
    cmd              TEXT,
    args             TEXT,
    cwd              TEXT,
    env_keys         TEXT,
    policy_snapshot  TEXT,
    sandbox_id       TEXT,
    status           TEXT COLLATE "C" NOT NULL,
    exit_code        BIGINT,
    error_reason     TEXT,
    started_at       TEXT,
    ended_at         TEXT,
    duration_ms      BIGINT,
    artifacts_path   TEXT,
    stdout_truncated BIGINT,
    stderr_truncated BIGINT,
    PRIMARY KEY (space_id, exec_id),
    CHECK ((closed_seq IS NULL) = (closed_hash IS NULL))
);

CREATE UNIQUE INDEX execs_by_arrival ON sandbox_execs (space_id, opened_seq);
CREATE INDEX execs_by_status ON sandbox_execs (space_id, status, opened_seq);
CREATE INDEX execs_by_task ON sandbox_execs (space_id, task_id, opened_seq)
    WHERE task_id IS NOT NULL;
CREATE INDEX execs_by_conversation ON sandbox_execs (space_id, conversation_id, opened_seq)
    WHERE conversation_id IS NOT NULL;
CREATE INDEX execs_by_project ON sandbox_execs (space_id, project_id, opened_seq);
CREATE UNIQUE INDEX execs_by_client ON sandbox_execs (space_id, client_id)
    WHERE client_id IS NOT NULL;
CREATE INDEX execs_still_open ON sandbox_execs (owner_id) WHERE closed_seq IS NULL;

CREATE TABLE ledger_entries (
    space_id  TEXT COLLATE "C" NOT NULL,
    seq       BIGINT NOT NULL,
    at        BIGINT NOT NULL, -- microseconds since 1970
    kind      TEXT NOT NULL,
    exec_id   TEXT COLLATE "C" NOT NULL, -- empty when the entry is about no exec
    ids       TEXT NOT NULL,
    tags      TEXT NOT NULL,
    body      TEXT NOT NULL,
    prev_hash BYTEA NOT NULL,
    hash      BYTEA NOT NULL,
    PRIMARY KEY (space_id, seq)
);

CREATE INDEX entries_by_time ON ledger_entries (space_id, at, seq);

-- Everything an entry can be found by, so that one index answers every query.
CREATE TABLE ledger_terms (
    space_id TEXT COLLATE "C" NOT NULL,
    term     TEXT COLLATE "C" NOT NULL,
    at       BIGINT NOT NULL,
    seq      BIGINT NOT NULL,
    PRIMARY KEY (space_id, term, at, seq)
);

CREATE TABLE ledger_heads (
    space_id   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    seq        BIGINT NOT NULL,
    hash       BYTEA NOT NULL,
    public_key BYTEA NOT NULL,
    signature  BYTEA NOT NULL
);

CREATE TABLE ledger_checkpoints (
    space_id  TEXT COLLATE "C" NOT NULL,
    seq       BIGINT NOT NULL,
    hash      BYTEA NOT NULL,
    signature BYTEA NOT NULL,
    PRIMARY KEY (space_id, seq)
);

-- Against mistakes, ours and those of a person with a database shell. Against intent there is the
-- chain.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE EXCEPTION 'the ledger is append-only'; END$$;
CREATE TRIGGER entries_are_not_edited BEFORE UPDATE ON ledger_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER entries_are_not_deleted BEFORE DELETE OR TRUNCATE ON ledger_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER checkpoints_are_not_edited BEFORE UPDATE ON ledger_checkpoints
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER checkpoints_are_not_deleted BEFORE DELETE OR TRUNCATE ON ledger_checkpoints
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE owners (
    owner_id   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    expires_at TIMESTAMPTZ NOT NULL
);

-- Idempotency keys. `exec_id`: the exec that the request made. `status`, `content_type`, `body`: the
-- answer to any other request, once there is one; until then `owner_id` is at it.
CREATE TABLE request_keys (
    space_id     TEXT COLLATE "C" NOT NULL,
    caller       TEXT COLLATE "C" NOT NULL,
    key          TEXT COLLATE "C" NOT NULL,
    fingerprint  BYTEA NOT NULL,
    owner_id     TEXT NOT NULL,
    exec_id      TEXT,
    status       BIGINT,
    content_type TEXT,
    body         BYTEA,
    created_at   BIGINT NOT NULL, -- microseconds since 1970
    PRIMARY KEY (space_id, caller, key)
);

CREATE INDEX request_keys_by_age ON request_keys (created_at);

-- `hash` is of the secret, made with a key that is not in here. `token` is what may be shown.
CREATE TABLE tokens (
    token_id   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    space_id   TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    hash       BYTEA NOT NULL,
    created_at BIGINT NOT NULL, -- microseconds since 1970, as the others
    expires_at BIGINT,
    revoked_at BIGINT,
    token      TEXT NOT NULL
);

CREATE UNIQUE INDEX tokens_by_name ON tokens (space_id, name) WHERE revoked_at IS NULL;
CREATE INDEX tokens_by_age ON tokens (created_at, token_id);
CREATE INDEX tokens_by_space ON tokens (space_id, created_at, token_id);
CREATE INDEX tokens_not_revoked ON tokens (created_at, token_id) WHERE revoked_at IS NULL;
CREATE INDEX tokens_not_revoked_by_space ON tokens (space_id, created_at, token_id)
    WHERE revoked_at IS NULL;

CREATE TABLE settings (
    one      BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    version  BIGINT NOT NULL,
    settings TEXT NOT NULL
);

-- What an agent used, by the minute since 1970.
CREATE TABLE budget_minutes (
    space_id  TEXT COLLATE "C" NOT NULL,
    agent     TEXT COLLATE "C" NOT NULL,
    minute    BIGINT NOT NULL,
    execs     BIGINT NOT NULL,
    cpu_ms    BIGINT NOT NULL,
    bytes_out BIGINT NOT NULL,
    PRIMARY KEY (space_id, agent, minute)
);

CREATE INDEX budget_minutes_by_age ON budget_minutes (minute);

-- The calls of execs that wait for their turn, sealed by the server.
CREATE TABLE sealed_calls (
    space_id TEXT COLLATE "C" NOT NULL,
    exec_id  TEXT COLLATE "C" NOT NULL,
    call     BYTEA NOT NULL,
    PRIMARY KEY (space_id, exec_id)
);

CREATE TABLE cancel_asks (
    space_id TEXT COLLATE "C" NOT NULL,
    exec_id  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (space_id, exec_id)
);

-- Written to learn whether anything can be written.
CREATE TABLE pulse (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    at   BIGINT NOT NULL
);
