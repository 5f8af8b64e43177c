import { sql } from 'kysely';
import type { Database } from './database.ts';
import { storableJson, storableName } from './text.ts';
import type { CallRecord } from './types.ts';

/**
 * Writes records of calls. What went well and has nothing more to tell, as nearly all do, is sent as a few lists of numbers, and
 * who called what only once: that is less than half of the work for this process. A record that is written twice is
 * kept once; those of projects that are gone are left out.
 */
export async function writeCalls(database: Database, calls: readonly CallRecord[]): Promise<void> {
  const plain: CallRecord[] = [];
  const others: CallRecord[] = [];
  for (const call of calls) (isPlain(call) ? plain : others).push(call);
  if (plain.length > 0) await writePlain(database, plain);
  if (others.length > 0) await writeWhole(database, others);
}

function isPlain({ error, input, output, runId, messageId, step }: CallRecord): boolean {
  return error === null && input === null && output === null && (runId ?? messageId ?? step) === undefined;
}

/** What many calls have in common. */
type Kind = Pick<CallRecord, 'projectId' | 'client' | 'method' | 'server' | 'replica' | 'tool'>;

async function writePlain(database: Database, calls: readonly CallRecord[]): Promise<void> {
  const numbers = new Map<string, number>();
  const kinds: object[] = [];
  const [ids, kindNumbers, statuses, durations, inputs, outputs, times] = Array.from({ length: 7 }, () => [
    '',
  ]) as [List, List, List, List, List, List, List];
  for (const call of calls) {
    const key = keyOf(call);
    let number = numbers.get(key);
    if (number === undefined) {
      number = kinds.length;
      numbers.set(key, number);
      kinds.push(kindOf(call, number));
    }
    ids[0] += `,${call.id}`;
    kindNumbers[0] += `,${number}`;
    statuses[0] += `,${call.status}`;
    durations[0] += `,${call.durationMs}`;
    inputs[0] += `,${call.inputBytes}`;
    outputs[0] += `,${call.outputBytes}`;
    times[0] += `,${call.startedAt.getTime()}`;
  }
  const array = ([text]: List) => `{${text.slice(1)}}`;
  await database.run((queries) =>
    sql`
      WITH kinds AS MATERIALIZED (
        SELECT kind.* FROM json_to_recordset(${storableJson(JSON.stringify(kinds))}::json) AS kind (
          number integer, project_id uuid, client text, method text, server_name text, replica integer, tool_name text
        )
      ), ${present('kinds')}
      INSERT INTO kb.agent_run_tool_calls (
        id, project_id, client, method, server_name, replica, tool_name,
        status, duration_ms, input_bytes, output_bytes, created_at
      )
      SELECT call.id, project_id, client, method, server_name, replica, tool_name,
        call.status, call.duration_ms, call.input_bytes, call.output_bytes, to_timestamp(call.milliseconds / 1000.0)
      FROM unnest(
        ${array(ids)}::uuid[], ${array(kindNumbers)}::integer[], ${array(statuses)}::text[],
        ${array(durations)}::double precision[], ${array(inputs)}::bigint[], ${array(outputs)}::bigint[],
        ${array(times)}::bigint[]
      ) AS call (id, kind, status, duration_ms, input_bytes, output_bytes, milliseconds)
      JOIN kinds ON kinds.number = call.kind
      JOIN present ON present.id = kinds.project_id
      ON CONFLICT (id) DO NOTHING
    `.execute(queries),
  );
}

/** One text that grows. */
type List = [text: string];

function keyOf({ projectId, client, method, server, replica, tool }: Kind): string {
  return `${projectId}\n${client}\n${method}\n${server}\n${replica}\n${tool}`;
}

function kindOf({ projectId, client, method, server, replica, tool }: Kind, number: number): object {
  return { number, project_id: projectId, replica, ...namesOf({ client, method, server, tool }) };
}

function namesOf({ client, method, server, tool }: Pick<Kind, 'client' | 'method' | 'server' | 'tool'>) {
  return {
    client: storableName(client),
    method: storableName(method),
    server_name: server && storableName(server),
    tool_name: tool && storableName(tool),
  };
}

/** The lock keeps projects from going between the look at them and the end of the statement. */
function present(source: string) {
  return sql.raw(`present AS MATERIALIZED (
    SELECT id FROM kb.projects WHERE id IN (SELECT project_id FROM ${source}) FOR KEY SHARE
  )`);
}

/** The columns of a record, with their types. */
const columns = {
  ...{ id: 'uuid', project_id: 'uuid', run_id: 'uuid', message_id: 'uuid', step: 'integer' },
  ...{ client: 'text', method: 'text', server_name: 'text', replica: 'integer', tool_name: 'text' },
  ...{ input: 'text', output: 'text', status: 'text', duration_ms: 'double precision' },
  ...{ input_bytes: 'bigint', output_bytes: 'bigint', error_code: 'text', error: 'text' },
  created_at: 'timestamptz',
};
const names = Object.keys(columns);
/** Runs and payloads that cannot be kept are left out, and not the call. */
const expressions: Record<string, string> = {
  run_id: '(SELECT id FROM kb.agent_runs WHERE id = call.run_id)',
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

async function writeWhole(database: Database, calls: readonly CallRecord[]): Promise<void> {
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
