export const sql = `
-- Names that clients were shown and that are listed no longer, of a project or, without one, of all together: sessions that
-- go on after a restart go on using them. Few, and written together.
CREATE TABLE kb.former_names (
  project_id uuid REFERENCES kb.projects ON DELETE CASCADE,
  names text NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX former_names_project_id ON kb.former_names (COALESCE(project_id::text, ''));
`;
