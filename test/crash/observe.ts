import type { ProductView, ProjectView, SecretView, ServerView, ToolView } from '../../src/api/views.ts';
import { exchange, RawSession } from '../helpers/raw-http.ts';
import type { RunningSwitchboard } from '../helpers/switchboard.ts';
import { tokenHeader } from '../helpers/with-key.ts';
import { type KeyValue, keptSecrets, type ServerValue, switchedTools, type Value } from './units.ts';

/** The state of every unit as clients see it: through the API, and for secrets through a tool. */
export async function observe({ baseUrl, url, home }: RunningSwitchboard): Promise<Map<string, Value>> {
  // That the token is enough shows that no one is locked out.
  const headers = await tokenHeader(home);
  const get = async <Body>(path: string): Promise<Body> => {
    const { status, text } = await exchange(`${baseUrl}/api/v1${path}`, { method: 'GET', headers });
    if (status !== 200) throw new Error(`GET ${path}: HTTP ${status} ${text}`);
    return JSON.parse(text) as Body;
  };
  const { projects } = await get<{ projects: ProjectView[] }>('/projects');
  const found = new Map<string, Value>();
  await noteAccess(found, get);
  for (const project of projects) {
    const place = `/projects/${project.id}`;
    const { servers } = await get<{ servers: ServerView[] }>(`${place}/servers`);
    const { products } = await get<{ products: ProductView[] }>(`${place}/products`);
    if (project.name === 'default') {
      const { secrets } = await get<{ secrets: SecretView[] }>(`${place}/secrets`);
      const { tools } = await get<{ tools: ToolView[] }>(`${place}/tools`);
      noteSwitches(found, servers, tools);
      await noteSecrets(found, url, headers, secrets);
    } else if (project.name === 'work') {
      noteServers(found, servers, products);
    } else {
      found.set(`project ${project.name}`, {
        description: project.description,
        retentionDays: project.retention_days,
        servers: servers.map(({ name }) => name),
      });
    }
  }
  return found;
}

/** Also checks that the audit log is whole, and has every rule that exists. */
async function noteAccess(
  found: Map<string, Value>,
  get: <Body>(path: string) => Promise<Body>,
): Promise<void> {
  const { keys } = await get<{ keys: { name: string; role: string; expires_at: string }[] }>('/keys');
  for (const { name, role, expires_at } of keys)
    found.set(`key ${name}`, { role, expires: expires_at } satisfies KeyValue);
  const { groups } = await get<{ groups: { name: string }[] }>('/groups');
  for (const { name } of groups) found.set(`group ${name}`, 'there');
  const { rules } = await get<{ rules: { name: string }[] }>('/rules');
  if (rules.length > 0)
    found.set(
      'rules of work',
      rules.map(({ name }) => name).toSorted((one, other) => Number(one.slice(1)) - Number(other.slice(1))),
    );
  const { problem } = await get<{ problem: unknown }>('/audit/verify');
  if (problem !== null) throw new Error(`The audit log is broken: ${JSON.stringify(problem)}`);
  const { entries } = await get<{ entries: { after: { name?: string } }[] }>(
    '/audit?action=rule.create&limit=500',
  );
  const audited = new Set(entries.map(({ after }) => after.name));
  const missing = rules.filter(({ name }) => !audited.has(name));
  if (missing.length > 0) throw new Error(`The audit log lacks ${JSON.stringify(missing)}`);
}

function noteServers(found: Map<string, Value>, servers: ServerView[], products: ProductView[]): void {
  for (const { name, version, servers: names } of products) {
    const own = servers.filter(({ product }) => product === name);
    if (own.length !== names.length) throw new Error(`${name} says that it has ${names}, not ${own.length}`);
    found.set(`product ${name}`, { version, servers: valuesOfServers(own) });
  }
  const others = servers.filter(({ product_id }) => product_id === null);
  for (const [name, batch] of Map.groupBy(others, (server) => /^batch-\d+/.exec(server.name)?.[0])) {
    if (name !== undefined) found.set(`batch ${name}`, valuesOfServers(batch));
    else for (const server of batch) found.set(`server ${server.name}`, valueOfServer(server));
  }
}

function noteSwitches(found: Map<string, Value>, servers: ServerView[], tools: ToolView[]): void {
  for (const name of switchedTools) {
    found.set(`tool ${name}`, tools.find(({ qualified_name }) => qualified_name === name)?.enabled);
  }
  found.set('file spare', servers.find(({ name }) => name === 'spare')?.enabled);
}

/** The API never shows the values, but the server `reader` has them in its environment. */
async function noteSecrets(
  found: Map<string, Value>,
  url: string,
  headers: Record<string, string>,
  secrets: SecretView[],
): Promise<void> {
  const session = await RawSession.open(url, undefined, undefined, headers);
  for (const { name } of secrets) {
    if (keptSecrets.includes(name)) {
      found.set(`secret ${name}`, await session.callText('reader__environment', { name }));
    } else {
      found.set(`removable ${name}`, 'there');
    }
  }
  await session.end();
}

function valuesOfServers(servers: ServerView[]): Record<string, ServerValue> {
  return Object.fromEntries(servers.map((server) => [server.name, valueOfServer(server)]));
}

function valueOfServer({ description, config, enabled }: ServerView): ServerValue {
  return { description, args: config !== null && 'args' in config ? (config.args ?? []) : [], enabled };
}
