export const sql = `
-- Sessions of clients, so that those go on after a restart. Whoever knows the id of one can use it: only its hash is kept.
CREATE TABLE kb.sessions (
  id_hash text PRIMARY KEY,
  project_id uuid REFERENCES kb.projects ON DELETE CASCADE,
  state text NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sessions_seen_at ON kb.sessions (seen_at);
CREATE INDEX sessions_project_id ON kb.sessions (project_id);
`;
