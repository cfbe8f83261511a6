-- Who is told of what, as the servers' configuration says; written anew when a server starts.
-- `space_id`: only of that space.
CREATE TABLE webhooks (
    name     TEXT NOT NULL,
    event    TEXT NOT NULL,
    space_id TEXT,
    PRIMARY KEY (name, event)
) STRICT, WITHOUT ROWID;

-- What webhooks are told: written with what happened, removed some time after it was sent or given
-- up. `due_at`: when it is to be sent, or, while somebody is at it (`claimed_by`), when another may;
-- nothing once it has ended. Times are microseconds since 1970.
CREATE TABLE outbox (
    delivery_id TEXT NOT NULL PRIMARY KEY,
    message_id  TEXT NOT NULL,
    webhook     TEXT NOT NULL,
    event       TEXT NOT NULL,
    space_id    TEXT,
    exec_id     TEXT,
    approval_id TEXT,
    created_at  INTEGER NOT NULL,
    state       TEXT NOT NULL,
    attempts    INTEGER NOT NULL,
    due_at      INTEGER,
    claimed_by  TEXT,
    status_code INTEGER,
    problem     TEXT,
    ended_at    INTEGER,
    facts       TEXT NOT NULL
) STRICT;

CREATE INDEX outbox_by_age ON outbox (created_at, delivery_id);
CREATE INDEX outbox_by_webhook ON outbox (webhook, created_at, delivery_id);
CREATE INDEX outbox_by_state ON outbox (state, created_at, delivery_id);
CREATE INDEX outbox_due ON outbox (webhook, due_at, delivery_id) WHERE due_at IS NOT NULL;
CREATE INDEX outbox_claimed ON outbox (claimed_by) WHERE claimed_by IS NOT NULL;
CREATE INDEX outbox_ended ON outbox (ended_at, delivery_id) WHERE ended_at IS NOT NULL;
