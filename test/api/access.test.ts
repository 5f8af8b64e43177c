import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import type { AuditEntry, IssuedKey } from '../../src/api/access-views.ts';
import type { Route } from '../../src/api/http/route.ts';
import { routes } from '../../src/api/routes.ts';
import { actions, type Role, roleMay, roles } from '../../src/identity/roles.ts';
import { exchange, openExchange } from '../helpers/raw-http.ts';
import { setUp } from '../helpers/set-up.ts';
import { type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { tokenHeader } from '../helpers/with-key.ts';

interface Example {
  params?: Record<string, string>;
  query?: string;
  body?: object;
}

interface TestKey {
  id: string;
  text: string;
  /** In the project `web`, or in all. */
  role: Role | undefined;
  isEverywhere: boolean;
}

interface Outcome {
  status: number;
  code: string | undefined;
}

const PROJECT = 'web';
const refusals = ['unauthorized', 'forbidden', 'unknown_project', 'too_many_requests'];
/** Nothing gets past them, so that no request changes anything that others need. */
const never = { 'if-match': '"999999"' };

let switchboard: RunningSwitchboard;
let local: Record<string, string>;

/** Throws unless it succeeds. */
async function asLocal<Body>(method: string, path: string, body?: object): Promise<Body> {
  const headers = { ...local, 'content-type': 'application/json' };
  const answer = await exchange(`${switchboard.baseUrl}/api/v1${path}`, { method, headers, body });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return answer.json as Body;
}

async function addKey(role: Role, project: string | undefined): Promise<IssuedKey> {
  return asLocal('POST', '/keys', { name: `${role}-${randomUUID()}`, role, project });
}

const made = async (path: string, body: object): Promise<{ id: string }> => asLocal('POST', path, body);
const victim = async (): Promise<Example> => ({ params: { key: (await addKey('viewer', PROJECT)).id } });
const ruleBody = { effect: 'deny', project: PROJECT, name: 'delete_*' };
const limitBody = { project: PROJECT, per_minute: 1_000_000 };
const hosted = { params: { id: 'hosted' } };
const ofProject = { query: `?project=${PROJECT}` };

/** For routes whose request names the project; each makes what it needs. */
const examples: Record<string, () => Promise<Example> | Example> = {
  listHosted: () => ofProject,
  createHosted: () => ({ body: { name: `h-${randomUUID()}.`, image: 'mcp/none', project_id: PROJECT } }),
  getHosted: () => hosted,
  changeHosted: () => ({ ...hosted, body: {} }),
  removeHosted: () => hosted,
  callHosted: () => ({ ...hosted, body: { method: 'tools/call', params: { name: 'none' } } }),
  restartHosted: () => hosted,
  stopHosted: () => hosted,
  startHosted: () => hosted,
  getHostedLog: () => hosted,
  listKeys: () => ofProject,
  createKey: () => ({ body: { name: `made-${randomUUID()}.`, project: PROJECT, role: 'viewer' } }),
  getKey: victim,
  changeKey: async () => ({ ...(await victim()), body: { expires_at: null } }),
  revokeKey: victim,
  rotateKey: async () => ({ ...(await victim()), body: {} }),
  listGrants: () => ofProject,
  grantRole: async () => ({
    body: { principal: (await victim()).params!.key, project: PROJECT, role: 'caller' },
  }),
  async revokeGrant() {
    const { id } = await addKey('viewer', PROJECT);
    const { grants } = await asLocal<{ grants: { id: string; holder: { id: string } }[] }>('GET', '/grants');
    return { params: { grant: grants.find(({ holder }) => holder.id === id)!.id } };
  },
  listRules: () => ofProject,
  createRule: () => ({ body: ruleBody }),
  removeRule: async () => ({ params: { rule: (await made('/rules', ruleBody)).id } }),
  listLimits: () => ofProject,
  createLimit: () => ({ body: limitBody }),
  removeLimit: async () => ({ params: { limit: (await made('/limits', limitBody)).id } }),
  listAudit: () => ofProject,
};

async function ask(route: Route, key: TestKey): Promise<Outcome> {
  const { params = {}, query = '', body = {} } = (await examples[route.operationId]?.()) ?? {};
  const path = route.path.replace(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? (name === 'project' ? PROJECT : 'nothing')),
  );
  const headers = {
    ...{ authorization: `Bearer ${key.text}`, 'content-type': 'application/json' },
    ...(route.isConditional ? never : {}),
  };
  const response = await openExchange(`${switchboard.baseUrl}/api/v1${path}${query}`, {
    ...{ method: route.method, headers },
    ...(route.method === 'GET' || route.method === 'DELETE' ? {} : { body }),
  });
  const status = response.statusCode!;
  if (status < 300) {
    response.destroy();
    return { status, code: undefined };
  }
  const { error } = JSON.parse((await buffer(response)).toString()) as { error: { code: string } };
  return { status, code: error.code };
}

function isAllowed({ action, path, authorizesItself = false }: Route, key: TestKey): boolean {
  if (action === 'any') return true;
  const isOfProject = authorizesItself || path.includes(':project');
  return (isOfProject || key.isEverywhere) && roleMay(key.role, action);
}

/** The error that it gets if it is not allowed. */
function refusalOf({ operationId, path }: Route, { role }: TestKey): Outcome {
  const namesProject = path.includes(':project') || !/:(id|key|grant|rule|limit)/.test(path);
  if (role !== undefined) return { status: 403, code: 'forbidden' };
  const isOfAll = ['createProject', 'rotateSecrets', 'verifyAudit'].includes(operationId);
  if (isOfAll || path.startsWith('/groups')) return { status: 403, code: 'forbidden' };
  return { status: 404, code: namesProject ? 'unknown_project' : 'not_found' };
}

describe('the page about the API', () => {
  it('says which role each route needs', async () => {
    const page = await readFile(join(import.meta.dirname, '../../docs/api.md'), 'utf8');
    const told = page.split('\n').flatMap(rolesInRow);
    const needed = routes.map(({ method, path, action }) => [
      `${method} ${path}`,
      action === 'any' ? 'any' : actions[action].role,
    ]);
    expect(Object.fromEntries(told)).toEqual(
      Object.fromEntries(needed.filter(([what]) => what !== 'GET /openapi.json')),
    );
  });
});

/** What a row of the tables says: the role of each method and path in it. */
function rolesInRow(line: string): [what: string, role: string][] {
  const [, first = '', roleCell = ''] = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
  const allowed = roleCell.split(', ');
  let methods: string[] = [];
  return [...first.matchAll(/`((?:[A-Z]+(?:, )?)*) ?([/…][^`]*)`/g)].flatMap(([, list = '', path = '']) => {
    if (list !== '') methods = list.split(', ');
    const full = path.replace('…', '/projects/:project');
    return methods.map((method, index): [string, string] => [
      `${method} ${full}`,
      allowed[index] ?? allowed[0]!,
    ]);
  });
}

describe('each route', () => {
  const keys: TestKey[] = [];
  /** How many denials each key must have in the audit log. */
  const denials = new Map<string, number>();

  setUp(async (use) => {
    switchboard = use(await startSwitchboard({}, { auth: true }, { database: 'shared' }));
    local = await tokenHeader(switchboard.home);
    await made('/projects', { name: PROJECT });
    await made('/projects', { name: 'elsewhere' });
    await made('/mcp/servers', { name: 'hosted', image: 'mcp/none', project_id: PROJECT, enabled: false });
    for (const role of roles) {
      for (const isEverywhere of [false, true]) {
        const { id, key: text } = await addKey(role, isEverywhere ? undefined : PROJECT);
        keys.push({ id, text, role, isEverywhere });
      }
    }
    const { id, key: text } = await addKey('admin', 'elsewhere');
    keys.push({ id, text, role: undefined, isEverywhere: false });
  });

  it('has an example, if its request names the project', () => {
    const needed = routes.filter(({ authorizesItself }) => authorizesItself);
    expect(needed.map(({ operationId }) => operationId).toSorted()).toEqual(Object.keys(examples).toSorted());
  });

  it.each(routes.map((route) => [`${route.method} ${route.path}`, route] as const))(
    '%s is open to those with the role for its action alone',
    async (_what, route) => {
      for (const key of keys) {
        const outcome = await ask(route, key);
        const who = `${key.role ?? 'stranger'}${key.isEverywhere ? ' everywhere' : ''}`;
        if (isAllowed(route, key)) {
          expect(refusals, `${who}: ${JSON.stringify(outcome)}`).not.toContain(outcome.code);
          continue;
        }
        expect(outcome, who).toEqual(refusalOf(route, key));
        denials.set(key.id, (denials.get(key.id) ?? 0) + 1);
      }
    },
  );

  it('and each denial is in the audit log', async () => {
    for (const { id, role } of keys) {
      const expected = denials.get(id) ?? 0;
      for (let found = 0; found < expected; ) {
        const query = `?principal=${id}&outcome=denied&limit=500`;
        const { entries } = await asLocal<{ entries: AuditEntry[] }>('GET', `/audit${query}`);
        found = entries.reduce((total, { count }) => total + count, 0);
        expect(found, role).toBeLessThanOrEqual(expected);
      }
    }
  });
});
