export const sql = `
-- What an agent calls itself that runs elsewhere; NULL: it is a chat of Switchboard's own.
ALTER TABLE kb.agent_runs ADD COLUMN agent text;

-- Those that nobody has seen for long are looked for every minute.
CREATE INDEX agent_runs_running ON kb.agent_runs (seen_at) WHERE status = 'running';
`;
