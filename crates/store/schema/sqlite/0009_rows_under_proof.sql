-- Where the last entry about a row stands, of the rows that authorise something: that entry has the
-- row's digest. `kind` is the row's table, `key` its key; of a space's chain itself `spaces`, with the
-- operator's last entry about it. Nothing here is believed: verification compares it with the entries.
CREATE TABLE ledger_rows (
    space_id TEXT NOT NULL,
    kind     TEXT NOT NULL,
    key      TEXT NOT NULL,
    seq      INTEGER NOT NULL,
    PRIMARY KEY (space_id, kind, key)
) STRICT, WITHOUT ROWID;
