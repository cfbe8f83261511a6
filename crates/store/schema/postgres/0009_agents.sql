-- Agents of one space are kept apart: each lists its own execs, and names them as it likes.
ALTER TABLE sandbox_execs ADD COLUMN agent_id TEXT COLLATE "C";
-- Only the ids are unescaped: elsewhere a record may have a NUL, which no text of this database has.
UPDATE sandbox_execs SET agent_id = said.agent FROM (
    SELECT space_id, exec_id, (record::json -> 'ids') ->> 'agent_id' AS agent FROM sandbox_execs
) said
WHERE said.space_id = sandbox_execs.space_id AND said.exec_id = sandbox_execs.exec_id
    AND said.agent IS NOT NULL;
-- As all long ones are kept.
UPDATE sandbox_execs
SET agent_id = 'sha256:' || encode(sha256(convert_to(agent_id, 'UTF8')), 'hex')
WHERE octet_length(agent_id) > 1024;
CREATE INDEX execs_by_agent ON sandbox_execs (space_id, agent_id, opened_seq)
    WHERE agent_id IS NOT NULL;
DROP INDEX IF EXISTS execs_by_client;
CREATE UNIQUE INDEX execs_by_client ON sandbox_execs (space_id, client_id, coalesce(agent_id, ''))
    WHERE client_id IS NOT NULL;
