-- Who is told of what, as the servers' configuration says; written anew when a server starts.
-- `space_id`: only of that space.
CREATE TABLE webhooks (
    name     TEXT COLLATE "C" NOT NULL,
    event    TEXT COLLATE "C" NOT NULL,
    space_id TEXT COLLATE "C",
    PRIMARY KEY (name, event)
);

-- What webhooks are told: written with what happened, removed some time after it was sent or given
-- up. `due_at`: when it is to be sent, or, while somebody is at it (`claimed_by`), when another may;
-- nothing once it has ended. Times are microseconds since 1970.
CREATE TABLE outbox (
    delivery_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    message_id  TEXT COLLATE "C" NOT NULL,
    webhook     TEXT COLLATE "C" NOT NULL,
    event       TEXT COLLATE "C" NOT NULL,
    space_id    TEXT COLLATE "C",
    exec_id     TEXT COLLATE "C",
    approval_id TEXT COLLATE "C",
    created_at  BIGINT NOT NULL,
    state       TEXT COLLATE "C" NOT NULL,
    attempts    BIGINT NOT NULL,
    due_at      BIGINT,
    claimed_by  TEXT COLLATE "C",
    status_code BIGINT,
    problem     TEXT,
    ended_at    BIGINT,
    facts       TEXT NOT NULL
);

CREATE INDEX outbox_by_age ON outbox (created_at, delivery_id);
CREATE INDEX outbox_by_webhook ON outbox (webhook, created_at, delivery_id);
CREATE INDEX outbox_by_state ON outbox (state, created_at, delivery_id);
CREATE INDEX outbox_due ON outbox (webhook, due_at, delivery_id) WHERE due_at IS NOT NULL;
CREATE INDEX outbox_claimed ON outbox (claimed_by) WHERE claimed_by IS NOT NULL;
CREATE INDEX outbox_ended ON outbox (ended_at, delivery_id) WHERE ended_at IS NOT NULL;
