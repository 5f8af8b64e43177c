import { sql } from 'kysely';
import { type CallKind, type CallRecord, type PlainCalls, plainStatuses } from './call-record.ts';
import type { Database } from './database.ts';
import { storableJson, storableName } from './text.ts';

/** Writing a record twice stores it once. Calls of deleted projects are skipped. */
export async function writePlainCalls(database: Database, calls: PlainCalls): Promise<void> {
  const { kind, status, durationMs, inputBytes, outputBytes, startedAt } = calls.columns;
  const kinds = storableJson(JSON.stringify(calls.kinds.map(kindOf)));
  await database.run((queries) =>
    sql`
      WITH kinds AS MATERIALIZED (
        SELECT kind.* FROM json_to_recordset(${kinds}::json) AS kind (
          number integer, project_id uuid, principal_id text, principal_name text, client text, method text,
          server_name text, replica integer, tool_name text
        )
      ), ${present('kinds')}
      INSERT INTO kb.agent_run_tool_calls (
        id, project_id, principal_id, principal_name, client, method, server_name, replica, tool_name,
        status, duration_ms, input_bytes, output_bytes, created_at
      )
      SELECT (${calls.idPrefix} || lpad(to_hex(call.number), 3, '0'))::uuid,
        project_id, principal_id, principal_name, client, method, server_name, replica, tool_name,
        (${plainStatuses}::text[])[call.status::integer + 1], call.duration_ms,
        call.input_bytes, call.output_bytes, to_timestamp(call.milliseconds / 1000)
      FROM unnest(
        ${float8Array(kind)}::float8[], ${float8Array(status)}::float8[], ${float8Array(durationMs)}::float8[],
        ${float8Array(inputBytes)}::float8[], ${float8Array(outputBytes)}::float8[], ${float8Array(startedAt)}::float8[]
      ) WITH ORDINALITY AS call (kind, status, duration_ms, input_bytes, output_bytes, milliseconds, number)
      JOIN kinds ON kinds.number = call.kind
      JOIN present ON present.id = kinds.project_id
      ON CONFLICT (id) DO NOTHING
    `.execute(queries),
  );
}

function kindOf({ projectId, replica, ...names }: CallKind, number: number): object {
  return { number, project_id: projectId, replica, ...namesOf(names) };
}

function namesOf({
  principal,
  client,
  method,
  server,
  tool,
}: Pick<CallKind, 'principal' | 'client' | 'method' | 'server' | 'tool'>) {
  return {
    principal_id: principal && storableName(principal.id),
    principal_name: principal && storableName(principal.name),
    client: storableName(client),
    method: storableName(method),
    server_name: server && storableName(server),
    tool_name: tool && storableName(tool),
  };
}

/** The lock keeps projects from being deleted before the statement ends. */
function present(source: string) {
  return sql.raw(`present AS MATERIALIZED (
    SELECT id FROM kb.projects WHERE id IN (SELECT project_id FROM ${source}) FOR KEY SHARE
  )`);
}

const columns = {
  ...{ id: 'uuid', project_id: 'uuid', run_id: 'uuid', message_id: 'uuid', step: 'integer' },
  ...{ principal_id: 'text', principal_name: 'text' },
  ...{ client: 'text', method: 'text', server_name: 'text', replica: 'integer', tool_name: 'text' },
  ...{ input: 'text', output: 'text', status: 'text', duration_ms: 'double precision' },
  ...{ input_bytes: 'bigint', output_bytes: 'bigint', error_code: 'text', error: 'text' },
  created_at: 'timestamptz',
};
const names = Object.keys(columns);
/**
 * Runs that do not exist or are somebody else's, and payloads that cannot be stored, become NULL; the call is still recorded.
 * Runs of the local user have no principal.
 */
const expressions: Record<string, string> = {
  run_id: `(
    SELECT id FROM kb.agent_runs AS run WHERE id = call.run_id AND project_id = call.project_id
      AND run.principal_id IS NOT DISTINCT FROM NULLIF(call.principal_id, 'local')
  )`,
  message_id: '(SELECT id FROM kb.agent_run_messages WHERE id = call.message_id)',
  input: 'kb.jsonb_or_null(call.input)',
  output: 'kb.jsonb_or_null(call.output)',
};

const insertion = sql.raw(`
  INSERT INTO kb.agent_run_tool_calls (${names.join(', ')})
  SELECT ${names.map((name) => expressions[name] ?? `call.${name}`).join(', ')}
  FROM records AS call JOIN present ON present.id = call.project_id
  ON CONFLICT (id) DO NOTHING
`);
const recordType = sql.raw(
  Object.entries(columns)
    .map((column) => column.join(' '))
    .join(', '),
);

/** For calls with an error, run or payload. */
export async function writeCalls(database: Database, calls: readonly CallRecord[]): Promise<void> {
  if (calls.length === 0) return;
  const records = storableJson(JSON.stringify(calls.map(rowOf)));
  await database.run((queries) =>
    sql`
      WITH records AS MATERIALIZED (SELECT * FROM json_to_recordset(${records}::json) AS record (${recordType})),
      ${present('records')}
      ${insertion}
    `.execute(queries),
  );
}

function rowOf(call: CallRecord): Record<keyof typeof columns, unknown> {
  return {
    id: call.id,
    project_id: call.projectId,
    run_id: call.runId,
    message_id: call.messageId,
    step: call.step,
    ...namesOf(call),
    replica: call.replica,
    input: call.input && storableJson(call.input),
    output: call.output && storableJson(call.output),
    status: call.status,
    duration_ms: call.durationMs,
    input_bytes: call.inputBytes,
    output_bytes: call.outputBytes,
    error_code: call.error?.code,
    error: call.error?.message,
    created_at: call.startedAt,
  };
}

const HEADER_BYTES = 20;
const ELEMENT_BYTES = 4 + 8;
const FLOAT8_OID = 701;

/** PostgreSQL's binary format of `float8[]`, at a tenth of the cost of text on both sides. */
function float8Array(values: Float64Array): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + values.length * ELEMENT_BYTES);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // One dimension, no NULLs, the element type, the length, the lower bound.
  [1, 0, FLOAT8_OID, values.length, 1].forEach((word, index) => void view.setInt32(index * 4, word));
  for (let index = 0; index < values.length; index++) {
    const at = HEADER_BYTES + index * ELEMENT_BYTES;
    view.setInt32(at, 8);
    view.setFloat64(at + 4, values[index]!);
  }
  return bytes;
}
