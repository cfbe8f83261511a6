-- Sandboxes that outlive an exec. The record is the truth of a row; the columns after it are filled
-- from it with every change. `owner_id`: who has the sandbox standing, if anybody.
CREATE TABLE sandboxes (
    sandbox_id   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    space_id     TEXT COLLATE "C" NOT NULL,
    owner_id     TEXT COLLATE "C",
    opened_seq   BIGINT NOT NULL,
    record       TEXT NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    project_id   TEXT,
    lifetime     TEXT,
    scope        TEXT,
    backend      TEXT,
    image        TEXT,
    state        TEXT,
    created_at   TEXT,
    last_used_at TEXT
);

-- Over all spaces: it is also the name of a container, and those share one host.
CREATE UNIQUE INDEX sandboxes_by_name ON sandboxes (name);
CREATE UNIQUE INDEX sandboxes_by_arrival ON sandboxes (space_id, opened_seq);
CREATE INDEX sandboxes_by_owner ON sandboxes (owner_id);
