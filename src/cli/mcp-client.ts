import type { ProjectView } from '../api/views.ts';
import type { Receiver } from '../channels/channel.ts';
import { HttpChannel } from '../channels/http.ts';
import type { SwitchboardError } from '../errors.ts';
import {
  type Chunks,
  join,
  notificationMessage,
  type RpcError,
  requestMessage,
} from '../protocol/jsonrpc.ts';
import { newestVersion } from '../protocol/versions.ts';
import { identity } from '../self-identity.ts';
import { type Pass, passFor, trustFor } from './access.ts';
import { callApi, projectPath } from './api.ts';
import { endpointOf } from './defaults.ts';
import { RpcFailure, UnreachableError } from './exit.ts';
import { explained, noSwitchboard, redirection } from './reach.ts';
import { request } from './request.ts';

const MAX_BYTES = 256 * 1024 * 1024;
const HEALTH_TIMEOUT_MS = 5_000;

interface Pending {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** A minimal MCP client: one request, one response. */
export class McpClient implements Receiver {
  private readonly channel: HttpChannel;
  private readonly pending = new Map<number, Pending>();
  private nextId = 1;

  private constructor(endpoint: string, pass: Pass) {
    this.channel = new HttpChannel({ url: endpoint, ...pass }, MAX_BYTES, this);
  }

  /** Without a project, connects to the endpoint of all projects. */
  static async connect(url: string, project?: string): Promise<McpClient> {
    if (project === undefined) await checkReachable(url);
    // The API has a better error for an unknown project.
    else await callApi(url, 'GET', projectPath(project));
    const client = new McpClient(endpointOf({ url, project }), await passFor(url));
    try {
      await client.request('initialize', {
        protocolVersion: newestVersion,
        capabilities: {},
        clientInfo: { ...identity(), name: 'switchboard-cli' },
      });
    } catch (error) {
      // An open connection would keep the process alive.
      await client.close();
      throw error;
    }
    client.channel.send([notificationMessage('notifications/initialized')]);
    return client;
  }

  request(method: string, params: object): Promise<unknown> {
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject });
      this.channel.send([requestMessage(id, method, params)], id);
    });
  }

  /** All pages of a list. */
  async list(method: string, key: string): Promise<Record<string, unknown>[]> {
    const items: Record<string, unknown>[] = [];
    let cursor: unknown;
    do {
      const page = (await this.request(method, cursor === undefined ? {} : { cursor })) as Record<
        string,
        unknown
      >;
      items.push(...(page[key] as Record<string, unknown>[]));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return items;
  }

  close(): Promise<void> {
    return this.channel.close();
  }

  onMessage(chunks: Chunks, request?: number): void {
    const response = JSON.parse(join(chunks).toString()) as {
      id?: number;
      result?: unknown;
      error?: RpcError;
    };
    const pending = response.id === request && request !== undefined ? this.pending.get(request) : undefined;
    if (pending === undefined || (response.result === undefined && response.error === undefined)) return;
    this.pending.delete(request!);
    this.channel.settle(request!);
    if (response.error === undefined) pending.resolve(response.result);
    else pending.reject(new RpcFailure(response.error));
  }

  onRequestError(request: number, error: SwitchboardError): void {
    this.pending.get(request)?.reject(quotedError(error));
    this.pending.delete(request);
  }

  onClosed(error: SwitchboardError): void {
    for (const { reject } of this.pending.values()) reject(error);
  }

  onRequestPaused(): void {}

  onStale(): void {}

  onMissed(): void {}

  log(): void {}
}

const RESPONSE = ' Response: ';

/** An error that Switchboard sent as the body of an HTTP error, which is quoted. */
function quotedError(error: SwitchboardError): Error {
  const at = error.message.indexOf(RESPONSE);
  try {
    const { error: rpc } = JSON.parse(at === -1 ? '' : error.message.slice(at + RESPONSE.length)) as {
      error?: RpcError;
    };
    if (typeof rpc?.message === 'string') return new RpcFailure(rpc);
  } catch {
    // It is of another program.
  }
  return error;
}

export async function projectNames(url: string): Promise<string[]> {
  const { projects } = await callApi<{ projects: ProjectView[] }>(url, 'GET', '/projects');
  return projects.map(({ name }) => name);
}

export async function checkReachable(url: string): Promise<void> {
  const options = { timeoutMs: HEALTH_TIMEOUT_MS, ...(await trustFor(url)) };
  const failure = await request('GET', `${url}/healthz`, options).then(
    (response) =>
      response.status === 200
        ? undefined
        : (redirection(url, response) ?? new Error(`HTTP ${response.status}`)),
    (error: unknown) => error,
  );
  if (failure === undefined) return;
  const why = await explained(url, failure);
  throw why instanceof UnreachableError ? why : noSwitchboard(url, why);
}
