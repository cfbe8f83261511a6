-- What is known of secrets. `version` and `last_used_at` are the truth; the record has the rest.
CREATE TABLE secrets (
    space_id     TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    version      BIGINT NOT NULL,
    last_used_at BIGINT,
    record       TEXT NOT NULL,
    PRIMARY KEY (space_id, name)
);

-- Their values, sealed with the key of that id: the latest, and those before it, which are only
-- looked for in what programs say.
CREATE TABLE secret_values (
    space_id TEXT COLLATE "C" NOT NULL,
    name     TEXT COLLATE "C" NOT NULL,
    version  BIGINT NOT NULL,
    key_id   TEXT COLLATE "C" NOT NULL,
    sealed   BYTEA NOT NULL,
    PRIMARY KEY (space_id, name, version)
);

-- The key that seals every value.
CREATE TABLE secrets_key (
    one    BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    key_id TEXT COLLATE "C" NOT NULL
);

-- Counts the changes of a space's secrets and grants, for whoever remembers them.
CREATE TABLE secrets_stamps (
    space_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    stamp    BIGINT NOT NULL
);

-- Who may have which secret without being asked about. '' where it is for any. `revoked_at` is the
-- truth; the record has the rest.
CREATE TABLE secret_grants (
    grant_id        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    space_id        TEXT COLLATE "C" NOT NULL,
    secret          TEXT COLLATE "C" NOT NULL,
    conversation_id TEXT COLLATE "C" NOT NULL,
    agent_id        TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    revoked_at      BIGINT,
    record          TEXT NOT NULL
);

CREATE INDEX secret_grants_by_space ON secret_grants (space_id, created_at, grant_id);
CREATE INDEX secret_grants_by_secret ON secret_grants (space_id, secret, created_at, grant_id);
