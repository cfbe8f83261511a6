CREATE INDEX execs_by_conversation ON sandbox_execs (space_id, conversation_id, opened_seq)
    WHERE conversation_id IS NOT NULL;
CREATE INDEX execs_by_project ON sandbox_execs (space_id, project_id, opened_seq);

-- Idempotency keys. `exec_id`: the exec that the request made. `status`, `content_type`, `body`: the
-- answer to any other request, once there is one; until then `owner_id` is at it.
CREATE TABLE request_keys (
    space_id     TEXT NOT NULL,
    caller       TEXT NOT NULL,
    key          TEXT NOT NULL,
    fingerprint  BLOB NOT NULL,
    owner_id     TEXT NOT NULL,
    exec_id      TEXT,
    status       INTEGER,
    content_type TEXT,
    body         BLOB,
    created_at   INTEGER NOT NULL, -- microseconds since 1970
    PRIMARY KEY (space_id, caller, key)
) STRICT;

CREATE INDEX request_keys_by_age ON request_keys (created_at);

-- `hash` is of the secret, made with a key that is not in here. `token` is what may be shown.
CREATE TABLE tokens (
    token_id   TEXT NOT NULL PRIMARY KEY,
    space_id   TEXT NOT NULL,
    name       TEXT NOT NULL,
    hash       BLOB NOT NULL,
    created_at INTEGER NOT NULL, -- microseconds since 1970, as the others
    expires_at INTEGER,
    revoked_at INTEGER,
    token      TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX tokens_by_name ON tokens (space_id, name) WHERE revoked_at IS NULL;
CREATE INDEX tokens_by_age ON tokens (created_at, token_id);
CREATE INDEX tokens_by_space ON tokens (space_id, created_at, token_id);
CREATE INDEX tokens_not_revoked ON tokens (created_at, token_id) WHERE revoked_at IS NULL;
CREATE INDEX tokens_not_revoked_by_space ON tokens (space_id, created_at, token_id)
    WHERE revoked_at IS NULL;

CREATE TABLE settings (
    one      INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    version  INTEGER NOT NULL,
    settings TEXT NOT NULL
) STRICT;

-- What an agent used, by the minute since 1970.
CREATE TABLE budget_minutes (
    space_id  TEXT NOT NULL,
    agent     TEXT NOT NULL,
    minute    INTEGER NOT NULL,
    execs     INTEGER NOT NULL,
    cpu_ms    INTEGER NOT NULL,
    bytes_out INTEGER NOT NULL,
    PRIMARY KEY (space_id, agent, minute)
) STRICT, WITHOUT ROWID;

CREATE INDEX budget_minutes_by_age ON budget_minutes (minute);

-- The calls of execs that wait for their turn, sealed by the server.
CREATE TABLE sealed_calls (
    space_id TEXT NOT NULL,
    exec_id  TEXT NOT NULL,
    call     BLOB NOT NULL,
    PRIMARY KEY (space_id, exec_id)
) STRICT;

CREATE TABLE cancel_asks (
    space_id TEXT NOT NULL,
    exec_id  TEXT NOT NULL,
    PRIMARY KEY (space_id, exec_id)
) STRICT, WITHOUT ROWID;

-- Written to learn whether anything can be written.
CREATE TABLE pulse (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    at   INTEGER NOT NULL
) STRICT;
