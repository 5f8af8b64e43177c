/** Projects and all that they own: products, servers, secrets, switches, runs, calls and workspaces. */
export const sql = `
CREATE TABLE kb.projects (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  name text NOT NULL UNIQUE,
  description text NOT NULL DEFAULT '',
  record_payloads boolean NOT NULL DEFAULT false,
  retention_days integer DEFAULT 30 CHECK (retention_days > 0),
  version bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO kb.projects (name, description) VALUES ('default', 'Where servers are that name no project');

CREATE TABLE kb.products (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  project_id uuid NOT NULL REFERENCES kb.projects ON DELETE CASCADE,
  name text NOT NULL,
  version text NOT NULL,
  manifest jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (project_id, name),
  UNIQUE (project_id, id)
);

CREATE TABLE kb.project_mcp_servers (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  project_id uuid NOT NULL REFERENCES kb.projects ON DELETE CASCADE,
  product_id uuid,
  name text NOT NULL,
  description text NOT NULL DEFAULT '',
  transport text NOT NULL CHECK (transport IN ('stdio', 'sse', 'http')),
  config jsonb NOT NULL CHECK (jsonb_typeof(config) = 'object'),
  settings jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(settings) = 'object'),
  enabled boolean NOT NULL DEFAULT true,
  version bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (project_id, name),
  -- A product brings servers into its own project only.
  FOREIGN KEY (project_id, product_id) REFERENCES kb.products (project_id, id) ON DELETE CASCADE
);
CREATE INDEX project_mcp_servers_of_product ON kb.project_mcp_servers (product_id) WHERE product_id IS NOT NULL;

CREATE TABLE kb.secrets (
  project_id uuid NOT NULL REFERENCES kb.projects ON DELETE CASCADE,
  name text NOT NULL,
  key_id text NOT NULL,
  nonce bytea NOT NULL,
  ciphertext bytea NOT NULL,
  -- Another one for each value; a rotation of keys leaves it as it is.
  version uuid NOT NULL DEFAULT gen_random_uuid(),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (project_id, name)
);

CREATE TABLE kb.switches (
  project_id uuid NOT NULL REFERENCES kb.projects ON DELETE CASCADE,
  server_name text NOT NULL,
  -- NULL: the whole server.
  tool_name text,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE NULLS NOT DISTINCT (project_id, server_name, tool_name)
);

CREATE TABLE kb.agent_runs (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  project_id uuid NOT NULL REFERENCES kb.projects ON DELETE CASCADE,
  status text NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'cancelled')),
  model text NOT NULL,
  system text,
  -- Names and patterns of the tools that it may use; NULL: all.
  tools jsonb,
  input jsonb,
  output jsonb,
  usage jsonb,
  steps integer NOT NULL DEFAULT 0,
  stop_reason text,
  error_code text,
  error text,
  started_at timestamptz(3) NOT NULL DEFAULT now(),
  -- When its process was last there. One that is still to finish, and was not seen for long, is lost.
  seen_at timestamptz(3) NOT NULL DEFAULT now(),
  finished_at timestamptz(3)
);
CREATE INDEX agent_runs_of_project ON kb.agent_runs (project_id, started_at DESC, id DESC);

CREATE TABLE kb.agent_run_messages (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  run_id uuid NOT NULL REFERENCES kb.agent_runs ON DELETE CASCADE,
  position integer NOT NULL,
  role text NOT NULL CHECK (role IN ('user', 'assistant')),
  content jsonb NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  UNIQUE (run_id, position)
);

-- Times in milliseconds, as a cursor of a page carries them.
CREATE TABLE kb.agent_run_tool_calls (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  project_id uuid NOT NULL REFERENCES kb.projects ON DELETE CASCADE,
  run_id uuid REFERENCES kb.agent_runs ON DELETE CASCADE,
  message_id uuid REFERENCES kb.agent_run_messages ON DELETE SET NULL,
  step integer,
  client text NOT NULL DEFAULT '',
  method text NOT NULL,
  server_name text,
  replica integer,
  tool_name text,
  input jsonb,
  output jsonb,
  status text NOT NULL CHECK (status IN ('ok', 'tool_error', 'error', 'timeout', 'cancelled')),
  duration_ms double precision NOT NULL,
  input_bytes bigint NOT NULL DEFAULT 0,
  output_bytes bigint NOT NULL DEFAULT 0,
  error_code text,
  error text,
  created_at timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX agent_run_tool_calls_newest ON kb.agent_run_tool_calls (project_id, created_at DESC, id DESC);
CREATE INDEX agent_run_tool_calls_of_server
  ON kb.agent_run_tool_calls (project_id, server_name, created_at DESC, id DESC);
CREATE INDEX agent_run_tool_calls_of_tool
  ON kb.agent_run_tool_calls (project_id, tool_name, created_at DESC, id DESC);
CREATE INDEX agent_run_tool_calls_not_ok
  ON kb.agent_run_tool_calls (project_id, status, created_at DESC, id DESC) WHERE status <> 'ok';
CREATE INDEX agent_run_tool_calls_of_run ON kb.agent_run_tool_calls (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX agent_run_tool_calls_of_message ON kb.agent_run_tool_calls (message_id) WHERE message_id IS NOT NULL;

-- Hosted servers: what users set, and behind it what whoever runs them has found.
CREATE TABLE kb.agent_workspaces (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  project_id uuid NOT NULL REFERENCES kb.projects ON DELETE CASCADE,
  container_type text NOT NULL DEFAULT 'mcp_server',
  name text NOT NULL,
  enabled boolean NOT NULL DEFAULT true,
  -- What was asked for, then what was chosen.
  provider text,
  provider_workspace_id text,
  lifecycle text NOT NULL DEFAULT 'persistent',
  status text NOT NULL,
  resource_limits jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(resource_limits) = 'object'),
  mcp_config jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(mcp_config) = 'object'),
  metadata jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(metadata) = 'object'),
  version bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (project_id, name)
);

-- What changes by plain SQL is dated and counted too.
CREATE FUNCTION kb.date_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.updated_at := now();
  RETURN NEW;
END $$;

CREATE FUNCTION kb.count_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.version := OLD.version + 1;
  NEW.updated_at := now();
  RETURN NEW;
END $$;

CREATE TRIGGER count_change BEFORE UPDATE ON kb.projects
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION kb.count_change();
CREATE TRIGGER count_change BEFORE UPDATE ON kb.project_mcp_servers
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION kb.count_change();
CREATE TRIGGER date_change BEFORE UPDATE ON kb.products
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION kb.date_change();
-- How a hosted server fares is no change of it.
CREATE TRIGGER count_change BEFORE UPDATE ON kb.agent_workspaces
  FOR EACH ROW WHEN (
    (OLD.project_id, OLD.name, OLD.enabled, OLD.resource_limits, OLD.mcp_config)
      IS DISTINCT FROM (NEW.project_id, NEW.name, NEW.enabled, NEW.resource_limits, NEW.mcp_config)
  ) EXECUTE FUNCTION kb.count_change();
-- It is noted often, and mostly the same: nobody is told of that.
CREATE TRIGGER skip_same BEFORE UPDATE ON kb.agent_workspaces
  FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
CREATE TRIGGER date_change BEFORE UPDATE ON kb.secrets
  FOR EACH ROW WHEN (OLD.version IS DISTINCT FROM NEW.version) EXECUTE FUNCTION kb.date_change();

CREATE FUNCTION kb.keep_default_project() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the project "default" cannot be deleted or renamed' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER keep_default BEFORE DELETE ON kb.projects
  FOR EACH ROW WHEN (OLD.name = 'default') EXECUTE FUNCTION kb.keep_default_project();
CREATE TRIGGER keep_default_name BEFORE UPDATE OF name ON kb.projects
  FOR EACH ROW WHEN (OLD.name = 'default' AND NEW.name <> 'default') EXECUTE FUNCTION kb.keep_default_project();

-- A switch of a tool belongs to a name, that of a group or of a server without one, and stays when the server goes: it may
-- come back. A server that gets another such name takes what was switched off along. Switches of whole servers are for
-- those of the configuration file, which have no row.
CREATE FUNCTION kb.switch_owner(name text, settings jsonb) RETURNS text LANGUAGE sql IMMUTABLE
  RETURN coalesce(settings ->> 'group', name);

CREATE FUNCTION kb.move_switches() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- All that the statement changed is looked at together: several may leave one group for different names.
  INSERT INTO kb.switches (project_id, server_name, tool_name)
    SELECT after.project_id, kb.switch_owner(after.name, after.settings), switches.tool_name
    FROM before JOIN after USING (id)
    JOIN kb.switches ON switches.project_id = before.project_id
      AND switches.server_name = kb.switch_owner(before.name, before.settings)
    WHERE switches.tool_name IS NOT NULL
      AND (before.project_id, kb.switch_owner(before.name, before.settings))
        <> (after.project_id, kb.switch_owner(after.name, after.settings))
    ON CONFLICT DO NOTHING;
  DELETE FROM kb.switches USING before
    WHERE switches.project_id = before.project_id
      AND switches.server_name = kb.switch_owner(before.name, before.settings)
      AND switches.tool_name IS NOT NULL
      AND NOT EXISTS (
        SELECT FROM kb.project_mcp_servers AS server
        WHERE server.project_id = before.project_id
          AND kb.switch_owner(server.name, server.settings) = switches.server_name
      );
  RETURN NULL;
END $$;
CREATE TRIGGER move_switches AFTER UPDATE ON kb.project_mcp_servers
  REFERENCING OLD TABLE AS before NEW TABLE AS after
  FOR EACH STATEMENT EXECUTE FUNCTION kb.move_switches();

-- Every process on this database follows the projects by these.
CREATE FUNCTION kb.announce_project() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('switchboard', coalesce(NEW.id, OLD.id)::text);
  RETURN NULL;
END $$;
CREATE FUNCTION kb.announce_part() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('switchboard', coalesce(NEW.project_id, OLD.project_id)::text);
  IF OLD.project_id IS DISTINCT FROM NEW.project_id AND OLD.project_id IS NOT NULL THEN
    PERFORM pg_notify('switchboard', OLD.project_id::text);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON kb.projects
  FOR EACH ROW EXECUTE FUNCTION kb.announce_project();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON kb.products
  FOR EACH ROW EXECUTE FUNCTION kb.announce_part();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON kb.project_mcp_servers
  FOR EACH ROW EXECUTE FUNCTION kb.announce_part();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON kb.agent_workspaces
  FOR EACH ROW EXECUTE FUNCTION kb.announce_part();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON kb.secrets
  FOR EACH ROW EXECUTE FUNCTION kb.announce_part();
CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON kb.switches
  FOR EACH ROW EXECUTE FUNCTION kb.announce_part();

-- Payloads come from outside: one that cannot be kept must not take the calls beside it along.
CREATE FUNCTION kb.jsonb_or_null(text) RETURNS jsonb LANGUAGE plpgsql STRICT AS $$
BEGIN
  RETURN $1::jsonb;
EXCEPTION WHEN OTHERS THEN
  RETURN NULL;
END $$;
`;
