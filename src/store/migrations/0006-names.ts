export const sql = `
-- Whether names of tools and prompts are made to fit the APIs of all models, or stay as their servers have them.
ALTER TABLE kb.projects
  ADD COLUMN names text NOT NULL DEFAULT 'model-safe' CHECK (names IN ('model-safe', 'as-is'));
`;
