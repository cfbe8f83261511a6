-- From here on `ledger_terms` reaches up to the last entry whose number is a multiple of 64, and no
-- further; a program that does not know this would not find the entries after it.
DELETE FROM ledger_terms WHERE seq > (
    SELECT max(e.seq) - max(e.seq) % 64 FROM ledger_entries e
    WHERE e.space_id = ledger_terms.space_id);
