-- What is known of secrets. `version` and `last_used_at` are the truth; the record has the rest.
CREATE TABLE secrets (
    space_id     TEXT NOT NULL,
    name         TEXT NOT NULL,
    version      INTEGER NOT NULL,
    last_used_at INTEGER,
    record       TEXT NOT NULL,
    PRIMARY KEY (space_id, name)
) STRICT, WITHOUT ROWID;

-- Their values, sealed with the key of that id: the latest, and those before it, which are only
-- looked for in what programs say.
CREATE TABLE secret_values (
    space_id TEXT NOT NULL,
    name     TEXT NOT NULL,
    version  INTEGER NOT NULL,
    key_id   TEXT NOT NULL,
    sealed   BLOB NOT NULL,
    PRIMARY KEY (space_id, name, version)
) STRICT;

-- The key that seals every value.
CREATE TABLE secrets_key (
    one    INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    key_id TEXT NOT NULL
) STRICT;

-- Counts the changes of a space's secrets and grants, for whoever remembers them.
CREATE TABLE secrets_stamps (
    space_id TEXT NOT NULL PRIMARY KEY,
    stamp    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who may have which secret without being asked about. '' where it is for any. `revoked_at` is the
-- truth; the record has the rest.
CREATE TABLE secret_grants (
    grant_id        TEXT NOT NULL PRIMARY KEY,
    space_id        TEXT NOT NULL,
    secret          TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    agent_id        TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    revoked_at      INTEGER,
    record          TEXT NOT NULL
) STRICT;

CREATE INDEX secret_grants_by_space ON secret_grants (space_id, created_at, grant_id);
CREATE INDEX secret_grants_by_secret ON secret_grants (space_id, secret, created_at, grant_id);
