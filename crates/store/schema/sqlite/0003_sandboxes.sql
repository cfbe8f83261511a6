-- Sandboxes that outlive an exec. The record is the only truth of a row, as with execs; beside it
-- stand who has the sandbox standing, if anybody, and its place in the ledger.
CREATE TABLE sandboxes (
    sandbox_id   TEXT NOT NULL PRIMARY KEY,
    space_id     TEXT NOT NULL,
    owner_id     TEXT,
    opened_seq   INTEGER NOT NULL,
    record       TEXT NOT NULL,
    name         TEXT GENERATED ALWAYS AS (json_extract(record, '$.name')) VIRTUAL,
    project_id   TEXT GENERATED ALWAYS AS (json_extract(record, '$.project_id')) VIRTUAL,
    lifetime     TEXT GENERATED ALWAYS AS (json_extract(record, '$.lifetime')) VIRTUAL,
    scope        TEXT GENERATED ALWAYS AS (json_extract(record, '$.scope')) VIRTUAL,
    backend      TEXT GENERATED ALWAYS AS (json_extract(record, '$.config.backend')) VIRTUAL,
    image        TEXT GENERATED ALWAYS AS (json_extract(record, '$.config.image')) VIRTUAL,
    state        TEXT GENERATED ALWAYS AS (json_extract(record, '$.state')) VIRTUAL,
    created_at   TEXT GENERATED ALWAYS AS (json_extract(record, '$.created_at')) VIRTUAL,
    last_used_at TEXT GENERATED ALWAYS AS (json_extract(record, '$.last_used_at')) VIRTUAL
) STRICT;

-- Over all spaces: it is also the name of a container, and those share one host.
CREATE UNIQUE INDEX sandboxes_by_name ON sandboxes (name);
CREATE UNIQUE INDEX sandboxes_by_arrival ON sandboxes (space_id, opened_seq);
CREATE INDEX sandboxes_by_owner ON sandboxes (owner_id);
