import { rejects } from 'node:assert/strict';
import { z } from 'zod';
import type { EndClient } from './end-client.ts';

/** The steps of a client in a scenario; `context` comes from the scenario. */
type Steps = (client: EndClient, context: unknown) => Promise<void>;

/** The steps that make each scenario's server see what it checks. */
export const stepsOf: Record<string, Steps> = {
  initialize: listTools,
  'request-metadata': listTools,
  'json-schema-ref-no-deref': listTools,
  tools_call: (client) => call(client, 'add_numbers', { a: 5, b: 3 }),
  // The client fills in the defaults; Switchboard has to relay them and the response.
  'elicitation-sep1034-client-defaults': (client) => call(client, 'test_client_elicitation_defaults'),
  'sse-retry': (client) => call(client, 'test_reconnection'),
  'sep-2322-client-request-state': callInRounds,
  'http-standard-headers': useEverything,
  'http-custom-headers': makeRequestedCalls,
  'http-invalid-tool-headers': callValidAndInvalid,
  'json-schema-2020-12-preservation': echoSchema,
};

async function listTools({ requests }: EndClient): Promise<void> {
  await requests.listTools();
}

async function call(
  { requests }: EndClient,
  name: string,
  given: Record<string, unknown> = {},
): Promise<void> {
  await requests.listTools();
  await requests.callTool({ name, arguments: given });
}

/** A suspended call must not leak into another one. */
async function callInRounds(client: EndClient): Promise<void> {
  client.beforeAnswering(() => call(client, 'test_mrtr_unrelated'));
  await call(client, 'test_mrtr_echo_state');
  await call(client, 'test_mrtr_no_state');
  await call(client, 'test_mrtr_no_result_type');
}

async function useEverything({ requests }: EndClient): Promise<void> {
  const { tools } = await requests.listTools();
  for (const { name } of tools) await requests.callTool({ name, arguments: {} });
  const { resources } = await requests.listResources();
  for (const { uri } of resources) await requests.readResource({ uri });
  const { prompts } = await requests.listPrompts();
  for (const { name } of prompts) await requests.getPrompt({ name });
}

const requestedCalls = z.object({
  toolCalls: z.array(z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()) })),
});

async function makeRequestedCalls({ requests }: EndClient, context: unknown): Promise<void> {
  await requests.listTools();
  for (const params of requestedCalls.parse(context).toolCalls) await requests.callTool(params);
}

/** Tools whose schemas ask for invalid headers. */
const invalidTools = [
  ...['invalid_empty_header', 'invalid_object_header', 'invalid_array_header', 'invalid_null_header'],
  ...['invalid_number_header', 'invalid_duplicate_same_case', 'invalid_duplicate_diff_case'],
  ...['invalid_space_in_name', 'invalid_colon_in_name'],
  ...['invalid_non_ascii_name', 'invalid_control_char_name'],
];

/** A tool that is not listed cannot be called by name either. */
async function callValidAndInvalid({ requests }: EndClient): Promise<void> {
  const { tools } = await requests.listTools();
  for (const { name } of tools) await requests.callTool({ name, arguments: { region: 'us-west1' } });
  for (const name of invalidTools) await rejects(requests.callTool({ name, arguments: {} }));
}

async function echoSchema({ requests }: EndClient): Promise<void> {
  const { tools } = await requests.listTools();
  const schema = tools.find(({ name }) => name === 'json_schema_2020_12_tool')?.inputSchema;
  await requests.callTool({ name: 'json_schema_echo', arguments: { schema } });
}
