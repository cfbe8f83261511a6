-- Agents of one space are kept apart: each lists its own execs, and names them as it likes.
ALTER TABLE sandbox_execs ADD COLUMN agent_id TEXT
    GENERATED ALWAYS AS (json_extract(record, '$.ids.agent_id')) VIRTUAL;
CREATE INDEX execs_by_agent ON sandbox_execs (space_id, agent_id, opened_seq)
    WHERE agent_id IS NOT NULL;
DROP INDEX IF EXISTS execs_by_client;
CREATE UNIQUE INDEX execs_by_client ON sandbox_execs (space_id, client_id, coalesce(agent_id, ''))
    WHERE client_id IS NOT NULL;
