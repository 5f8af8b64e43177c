export const sql = `
CREATE TYPE kb.mcp_transport AS ENUM ('stdio', 'sse', 'http');

-- Its condition looks at every column, so it is in the way of another type of one.
DROP TRIGGER count_change ON kb.project_mcp_servers;
ALTER TABLE kb.project_mcp_servers
  DROP CONSTRAINT project_mcp_servers_transport_check,
  ALTER COLUMN transport TYPE kb.mcp_transport USING transport::kb.mcp_transport;
CREATE TRIGGER count_change BEFORE UPDATE ON kb.project_mcp_servers
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION kb.count_change();
`;
