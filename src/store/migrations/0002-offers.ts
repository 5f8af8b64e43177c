export const sql = `
-- What servers offered when they were last seen: it is listed before they run again. Not only servers with rows have one.
CREATE TABLE kb.server_offers (
  project_id uuid NOT NULL REFERENCES kb.projects ON DELETE CASCADE,
  server_name text NOT NULL,
  -- Of what the server is run by: what another one offered says nothing.
  fingerprint text NOT NULL,
  offer text NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (project_id, server_name)
);
`;
