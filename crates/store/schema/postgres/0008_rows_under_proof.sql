-- Where the last entry about a row stands, of the rows that authorise something: that entry has the
-- row's digest. `kind` is the row's table, `key` its key; of a space's chain itself `spaces`, with the
-- operator's last entry about it. Nothing here is believed: verification compares it with the entries.
CREATE TABLE ledger_rows (
    space_id TEXT COLLATE "C" NOT NULL,
    kind     TEXT COLLATE "C" NOT NULL,
    key      TEXT COLLATE "C" NOT NULL,
    seq      BIGINT NOT NULL,
    PRIMARY KEY (space_id, kind, key)
);
