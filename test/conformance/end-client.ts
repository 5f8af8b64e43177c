import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import type { Era } from '../eras/peer.ts';

interface Requests {
  listTools(): Promise<{ tools: { name: string; inputSchema: object }[] }>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<object>;
  listResources(): Promise<{ resources: { uri: string }[] }>;
  readResource(params: { uri: string }): Promise<object>;
  listPrompts(): Promise<{ prompts: { name: string }[] }>;
  getPrompt(params: { name: string }): Promise<object>;
}

/** A client of Switchboard, of either era. It accepts every elicitation with the form's defaults. */
export interface EndClient extends AsyncDisposable {
  requests: Requests;
  /** Sets what it does before each response to a server request. */
  beforeAnswering(act: () => Promise<unknown>): void;
}

const identity = { name: 'end-client', version: '1.0.0' };
const capabilities = { elicitation: { form: { applyDefaults: true } } };

export function connectEndClient(era: Era, url: string): Promise<EndClient> {
  return era === 'legacy' ? connectLegacy(url) : connectModern(url);
}

async function connectLegacy(url: string): Promise<EndClient> {
  const client = new LegacyClient(identity, { capabilities });
  const transport = new LegacyTransport(new URL(url));
  const beforeAnswering = (act: () => Promise<unknown>) =>
    client.setRequestHandler(ElicitRequestSchema, () => acceptAfter(act));
  beforeAnswering(async () => {});
  await client.connect(transport as Transport);
  return {
    requests: client,
    beforeAnswering,
    async [Symbol.asyncDispose]() {
      await transport.terminateSession();
      await client.close();
    },
  };
}

async function connectModern(url: string): Promise<EndClient> {
  const client = new ModernClient(identity, {
    capabilities,
    versionNegotiation: { mode: { pin: '2026-07-28' } },
  });
  const beforeAnswering = (act: () => Promise<unknown>) =>
    client.setRequestHandler('elicitation/create', () => acceptAfter(act));
  beforeAnswering(async () => {});
  await client.connect(new ModernTransport(new URL(url)));
  return { requests: client, beforeAnswering, [Symbol.asyncDispose]: () => client.close() };
}

async function acceptAfter(act: () => Promise<unknown>) {
  await act();
  return { action: 'accept' as const, content: {} };
}
