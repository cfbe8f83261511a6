-- What people are asked. The record is the truth of a row; the columns before it are written with it
-- and only found by. `open_until`: when it expires, while it can. Times are microseconds since 1970.
CREATE TABLE approvals (
    approval_id     TEXT NOT NULL PRIMARY KEY,
    space_id        TEXT NOT NULL,
    exec_id         TEXT NOT NULL,
    conversation_id TEXT,
    opened_seq      INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    open_until      INTEGER,
    state           TEXT NOT NULL,
    record          TEXT NOT NULL
) STRICT;

CREATE INDEX approvals_by_age ON approvals (created_at, approval_id);
CREATE INDEX approvals_by_space ON approvals (space_id, created_at, approval_id);
CREATE INDEX approvals_by_state ON approvals (state, created_at, approval_id);
CREATE INDEX approvals_by_space_and_state ON approvals (space_id, state, created_at, approval_id);
CREATE INDEX approvals_by_exec ON approvals (exec_id, created_at, approval_id);
CREATE INDEX approvals_by_conversation
    ON approvals (space_id, conversation_id, created_at, approval_id)
    WHERE conversation_id IS NOT NULL;
CREATE INDEX approvals_by_expiry ON approvals (open_until, approval_id)
    WHERE open_until IS NOT NULL;

-- Kinds of actions that were allowed in a conversation. `used` and `revoked_at` are the truth; the
-- record has the rest.
CREATE TABLE grants (
    grant_id        TEXT NOT NULL PRIMARY KEY,
    space_id        TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    kind            TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    revoked_at      INTEGER,
    used            INTEGER NOT NULL,
    record          TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX grants_in_force ON grants (space_id, conversation_id, kind)
    WHERE revoked_at IS NULL;
CREATE INDEX grants_by_age ON grants (created_at, grant_id);
CREATE INDEX grants_by_space ON grants (space_id, created_at, grant_id);
CREATE INDEX grants_by_conversation ON grants (space_id, conversation_id, created_at, grant_id);
