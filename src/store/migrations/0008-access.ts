/** Who may do what, and the audit log of changes and denials. */
export const sql = `
-- Those who send requests, beside the local user, who has no row.
CREATE TABLE kb.principals (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  kind text NOT NULL CHECK (kind IN ('key', 'person')),
  name text NOT NULL,
  -- Where it belongs, and is managed. NULL: to no project.
  project_id uuid REFERENCES kb.projects ON DELETE CASCADE,
  expires_at timestamptz(3),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  UNIQUE NULLS NOT DISTINCT (project_id, name)
);

-- The secrets of keys: several for one that is being rotated. Only their hashes are kept.
CREATE TABLE kb.keys (
  -- The public part of the key.
  id text PRIMARY KEY,
  principal_id uuid NOT NULL REFERENCES kb.principals ON DELETE CASCADE,
  hash bytea NOT NULL CHECK (octet_length(hash) = 32),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  -- Before its principal expires: it has been replaced.
  expires_at timestamptz(3),
  last_used_at timestamptz(3)
);
CREATE INDEX keys_of_principal ON kb.keys (principal_id);

CREATE TABLE kb.groups (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  name text NOT NULL UNIQUE,
  description text NOT NULL DEFAULT '',
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

CREATE TABLE kb.group_members (
  group_id uuid NOT NULL REFERENCES kb.groups ON DELETE CASCADE,
  principal_id uuid NOT NULL REFERENCES kb.principals ON DELETE CASCADE,
  PRIMARY KEY (group_id, principal_id)
);
CREATE INDEX group_members_of_principal ON kb.group_members (principal_id);

CREATE TABLE kb.grants (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  principal_id uuid REFERENCES kb.principals ON DELETE CASCADE,
  group_id uuid REFERENCES kb.groups ON DELETE CASCADE,
  -- NULL: all projects.
  project_id uuid REFERENCES kb.projects ON DELETE CASCADE,
  role text NOT NULL CHECK (role IN ('viewer', 'caller', 'operator', 'owner', 'admin')),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  CHECK (num_nonnulls(principal_id, group_id) = 1),
  UNIQUE NULLS NOT DISTINCT (principal_id, group_id, project_id)
);
CREATE INDEX grants_of_group ON kb.grants (group_id) WHERE group_id IS NOT NULL;
CREATE INDEX grants_of_project ON kb.grants (project_id);

CREATE TABLE kb.rules (
  id text PRIMARY KEY,
  effect text NOT NULL CHECK (effect IN ('allow', 'deny')),
  -- NULL: all projects.
  project_id uuid REFERENCES kb.projects ON DELETE CASCADE,
  subject_kind text NOT NULL CHECK (subject_kind IN ('everyone', 'role', 'group', 'principal')),
  subject_role text CHECK (subject_role IN ('viewer', 'caller', 'operator', 'owner', 'admin')),
  subject_group uuid REFERENCES kb.groups ON DELETE CASCADE,
  subject_principal uuid REFERENCES kb.principals ON DELETE CASCADE,
  -- NULL: all kinds.
  item_kind text CHECK (item_kind IN ('tool', 'prompt', 'resource')),
  -- Patterns.
  server text NOT NULL DEFAULT '*',
  name text NOT NULL DEFAULT '*',
  read_only boolean,
  destructive boolean,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  CHECK ((subject_kind = 'role') = (subject_role IS NOT NULL)),
  CHECK ((subject_kind = 'group') = (subject_group IS NOT NULL)),
  CHECK ((subject_kind = 'principal') = (subject_principal IS NOT NULL))
);
CREATE INDEX rules_of_project ON kb.rules (project_id);
CREATE INDEX rules_about_group ON kb.rules (subject_group) WHERE subject_group IS NOT NULL;
CREATE INDEX rules_about_principal ON kb.rules (subject_principal) WHERE subject_principal IS NOT NULL;

CREATE TABLE kb.limits (
  id text PRIMARY KEY,
  -- NULL in any of these four: all.
  principal_id uuid REFERENCES kb.principals ON DELETE CASCADE,
  project_id uuid REFERENCES kb.projects ON DELETE CASCADE,
  server text,
  tool text,
  per_minute integer CHECK (per_minute > 0),
  concurrent integer CHECK (concurrent > 0),
  is_shared boolean NOT NULL DEFAULT false,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  CHECK (num_nonnulls(per_minute, concurrent) > 0)
);
CREATE INDEX limits_of_project ON kb.limits (project_id);
CREATE INDEX limits_of_principal ON kb.limits (principal_id) WHERE principal_id IS NOT NULL;

-- Every process on this database follows these. Once for each statement, and not for each use of a key.
CREATE FUNCTION kb.announce_access() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('switchboard', 'access');
  RETURN NULL;
END $$;
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON kb.principals
  FOR EACH STATEMENT EXECUTE FUNCTION kb.announce_access();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OF id, principal_id, hash, expires_at OR DELETE ON kb.keys
  FOR EACH STATEMENT EXECUTE FUNCTION kb.announce_access();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON kb.groups
  FOR EACH STATEMENT EXECUTE FUNCTION kb.announce_access();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON kb.group_members
  FOR EACH STATEMENT EXECUTE FUNCTION kb.announce_access();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON kb.grants
  FOR EACH STATEMENT EXECUTE FUNCTION kb.announce_access();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON kb.rules
  FOR EACH STATEMENT EXECUTE FUNCTION kb.announce_access();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON kb.limits
  FOR EACH STATEMENT EXECUTE FUNCTION kb.announce_access();

-- What was changed, and what was denied. Each entry has the hash of the one before it, so that none can be changed, removed
-- or inserted unnoticed. It outlives what it is about: nothing here refers to other tables.
CREATE TABLE kb.audit_log (
  seq bigint PRIMARY KEY,
  at timestamptz(3) NOT NULL,
  actor_kind text NOT NULL CHECK (actor_kind IN ('local', 'key', 'person', 'system')),
  actor_id text NOT NULL,
  actor_name text NOT NULL,
  address text,
  action text NOT NULL,
  project_id uuid,
  project_name text,
  subject text,
  outcome text NOT NULL CHECK (outcome IN ('done', 'denied', 'refused')),
  rule_id text,
  -- How often it happened, for denials that are counted together.
  count integer NOT NULL DEFAULT 1,
  before jsonb,
  after jsonb,
  previous bytea NOT NULL,
  hash bytea NOT NULL
);
CREATE INDEX audit_log_of_project ON kb.audit_log (project_id, seq DESC);
CREATE INDEX audit_log_of_actor ON kb.audit_log (actor_id, seq DESC);
CREATE INDEX audit_log_of_action ON kb.audit_log (action, seq DESC);
CREATE INDEX audit_log_not_done ON kb.audit_log (seq DESC) WHERE outcome <> 'done';
CREATE INDEX audit_log_at ON kb.audit_log (at);

-- The newest entry: whoever adds the next one locks this row. Without it, the removal of the last entries would go unnoticed.
CREATE TABLE kb.audit_head (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  seq bigint NOT NULL,
  hash bytea NOT NULL
);
-- The last entry that was removed because of its age.
CREATE TABLE kb.audit_anchor (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  seq bigint NOT NULL,
  hash bytea NOT NULL
);
INSERT INTO kb.audit_head (seq, hash) VALUES (0, decode(repeat('00', 32), 'hex'));
INSERT INTO kb.audit_anchor (seq, hash) VALUES (0, decode(repeat('00', 32), 'hex'));

CREATE FUNCTION kb.keep_audit_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('switchboard.audit_retention', true) = 'on' AND (TG_TABLE_NAME, TG_OP) IN
    (('audit_log', 'DELETE'), ('audit_anchor', 'UPDATE'))
  THEN
    RETURN NULL;
  END IF;
  RAISE EXCEPTION '% of kb.% is refused: the audit log only grows', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER keep BEFORE UPDATE OR DELETE OR TRUNCATE ON kb.audit_log
  FOR EACH STATEMENT EXECUTE FUNCTION kb.keep_audit_log();
CREATE TRIGGER keep BEFORE DELETE OR TRUNCATE ON kb.audit_head
  FOR EACH STATEMENT EXECUTE FUNCTION kb.keep_audit_log();
CREATE TRIGGER keep BEFORE UPDATE OR DELETE OR TRUNCATE ON kb.audit_anchor
  FOR EACH STATEMENT EXECUTE FUNCTION kb.keep_audit_log();

-- Who made the call; NULL in calls from before, and in those of Switchboard itself. Those of the local user are the most,
-- and need no index.
ALTER TABLE kb.agent_run_tool_calls
  ADD COLUMN principal_id text,
  ADD COLUMN principal_name text;
CREATE INDEX agent_run_tool_calls_of_principal
  ON kb.agent_run_tool_calls (project_id, principal_id, created_at DESC, id DESC) WHERE principal_id <> 'local';
ALTER TABLE kb.agent_runs ADD COLUMN principal_id text;
`;
