import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { RawModern } from '../eras/raw-modern.ts';
import { patienceMs } from '../helpers/patience.ts';
import { bothTypes, exchange, type RawAnswer, RawSession } from '../helpers/raw-http.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { addKey, type NewKey, tokenHeader } from '../helpers/with-key.ts';
import { Witness } from '../helpers/witness.ts';

const POLL_MS = 20;

export interface AuditEntry {
  action: string;
  outcome: string;
  subject: string | null;
  actor: { kind: string; id: string; name: string };
  address: string | null;
  rule: string | null;
  [key: string]: unknown;
}

interface SceneOptions {
  settings?: object;
  servers?: Record<string, object>;
  args?: string[];
  env?: Record<string, string>;
  url?: string;
}

/** A Switchboard with authentication in front of a server with guarded items, and keys for it. */
export class AccessScene implements AsyncDisposable {
  readonly switchboard: RunningSwitchboard;
  readonly witness: Witness;
  private readonly local: { authorization: string };
  private readonly resources: AsyncDisposableStack;

  private constructor(
    switchboard: RunningSwitchboard,
    witness: Witness,
    local: { authorization: string },
    resources: AsyncDisposableStack,
  ) {
    this.switchboard = switchboard;
    this.witness = witness;
    this.local = local;
    this.resources = resources;
  }

  static async start({ settings, servers, args, env, url }: SceneOptions = {}): Promise<AccessScene> {
    await using stack = new AsyncDisposableStack();
    const witness = stack.use(await Witness.open());
    const switchboard = stack.use(
      await startSwitchboard(
        servers ?? { github: fixtureServer('offers-guarded-items', witness.env('github')) },
        { auth: true, ...settings },
        {
          database: url === undefined ? 'shared' : { url },
          ...(args === undefined ? {} : { args }),
          ...(env === undefined ? {} : { env }),
        },
      ),
    );
    return new AccessScene(switchboard, witness, await tokenHeader(switchboard.home), stack.move());
  }

  get url(): string {
    return this.switchboard.url;
  }

  /** As the local user, unless `key` is given. The path is below /api/v1. */
  ask(what: string, body?: object, key?: string): Promise<RawAnswer> {
    const [method = 'GET', path = ''] = what.split(' ');
    const credential = key === undefined ? this.local : { authorization: `Bearer ${key}` };
    return exchange(`${this.switchboard.baseUrl}/api/v1${path}`, {
      method,
      headers: { ...credential, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body }),
    });
  }

  /** Throws unless the request succeeds. */
  async done<Body>(what: string, body?: object, key?: string): Promise<Body> {
    const { status, text } = await this.ask(what, body, key);
    if (status >= 300) throw new Error(`${what}: HTTP ${status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as Body;
  }

  addKey(key: Partial<NewKey> = {}): Promise<string> {
    return addKey(this.switchboard, {
      name: `key-${randomUUID().slice(0, 8)}`,
      role: 'caller',
      project: 'default',
      ...key,
    });
  }

  /** Adds a key and returns it with its id. */
  async newKey(key: Partial<NewKey> = {}): Promise<{ id: string; name: string; key: string }> {
    const body = { name: `key-${randomUUID().slice(0, 8)}`, role: 'caller', project: 'default', ...key };
    return this.done('POST /keys', body);
  }

  async addProject(name: string): Promise<void> {
    await this.done('POST /projects', { name });
    await this.done(`POST /projects/${name}/servers`, {
      name: 'github',
      transport: 'stdio',
      config: fixtureServer('offers-guarded-items', this.witness.env(name)),
    });
  }

  /** Returns the id of the rule. */
  async addRule(rule: object): Promise<string> {
    return (await this.done<{ id: string }>('POST /rules', { effect: 'deny', project: 'default', ...rule }))
      .id;
  }

  localHeaders(): Promise<{ authorization: string }> {
    return tokenHeader(this.switchboard.home);
  }

  session(key: string, path = '/mcp', capabilities: object = {}): Promise<RawSession> {
    return RawSession.open(this.switchboard.baseUrl + path, '2025-11-25', capabilities, bearer(key));
  }

  modern(key: string, path = '/mcp'): RawModern {
    return new RawModern(this.switchboard.baseUrl + path, { headers: bearer(key) });
  }

  /** A request to the MCP endpoint with these headers. */
  initialize(headers: Record<string, string>, path = '/mcp'): Promise<RawAnswer> {
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'raw', version: '1' },
    };
    return exchange(this.switchboard.baseUrl + path, {
      headers: { 'content-type': 'application/json', accept: bothTypes, ...headers },
      body: { jsonrpc: '2.0', id: 0, method: 'initialize', params },
    });
  }

  /** Waits until the audit log has an entry: denials are written in the background. */
  async audited(query: string, fits: (entry: AuditEntry) => boolean): Promise<AuditEntry> {
    const deadline = Date.now() + patienceMs / 2;
    for (;;) {
      const { entries } = await this.done<{ entries: AuditEntry[] }>(`GET /audit?limit=200&${query}`);
      const found = entries.find(fits);
      if (found !== undefined) return found;
      if (Date.now() > deadline) throw new Error(`No such entry: ${JSON.stringify(entries.slice(0, 5))}`);
      await delay(POLL_MS);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.resources.disposeAsync();
  }
}

export function bearer(key: string): { authorization: string } {
  return { authorization: `Bearer ${key}` };
}
