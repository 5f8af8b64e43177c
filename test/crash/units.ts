import type { Random } from '../soak/random.ts';

/** The state of a unit; undefined if it does not exist. */
export type Value = unknown;

/** One atomic change to one unit. */
export interface Change {
  /** Such as 'product kit-2'. */
  unit: string;
  method: string;
  path: string;
  body?: object;
  /** The state of the unit after the change. */
  after: Value;
}

type Step = Omit<Change, 'unit'>;

/** Returns a valid change for a unit in this state. `mark` is new each time. */
type Next = (name: string, before: Value, mark: string, random: Random) => Step;

interface Kind {
  names: string[];
  next: Next;
}

export interface ServerValue {
  description: string | null;
  args: string[];
  enabled: boolean;
}

interface ProductValue {
  version: string;
  servers: Record<string, ServerValue>;
}

interface ProjectValue {
  description: string | null;
  retentionDays: number | null;
  servers: string[];
}

/** Never started, because no client uses the project `work`. */
const command = 'unused';

export const switchedTools = ['box__echo', 'box__pid', 'box__progress'];

export const keptSecrets = ['KEPT_1', 'KEPT_2', 'KEPT_3'];

const kinds: Record<string, Kind> = {
  server: { names: numbered('server', 6), next: nextServer },
  product: { names: numbered('kit', 4), next: nextProduct },
  batch: { names: numbered('batch', 3), next: nextBatch },
  project: { names: numbered('project', 4), next: nextProject },
  secret: { names: keptSecrets, next: nextSecret },
  removable: { names: ['REMOVABLE_1', 'REMOVABLE_2'], next: nextRemovable },
  rotation: {
    names: ['of secrets'],
    next: () => ({ method: 'POST', path: '/secrets/rotate', after: undefined }),
  },
  tool: { names: switchedTools, next: nextTool },
  file: { names: ['spare'], next: nextFileServer },
  key: { names: numbered('key', 3), next: nextKey },
  group: { names: numbered('group', 2), next: nextGroup },
  rules: { names: ['of work'], next: nextRule },
};

export const units: { unit: string; kind: string; name: string }[] = Object.entries(kinds).flatMap(
  ([kind, { names }]) => names.map((name) => ({ unit: `${kind} ${name}`, kind, name })),
);

export function nextChange(
  free: typeof units,
  valueNow: (unit: string) => Value,
  mark: string,
  random: Random,
): Change {
  const { unit, kind, name } = random.pick(free);
  return { unit, ...kinds[kind]!.next(name, valueNow(unit), mark, random) };
}

function nextServer(name: string, before: Value, mark: string, random: Random): Step {
  const place = `/projects/work/servers/${name}`;
  const made = { description: `made by ${mark}`, config: { command, args: [mark] } };
  const fresh: ServerValue = { description: made.description, args: [mark], enabled: true };
  if (before === undefined) {
    const body = { name, transport: 'stdio', ...made };
    return { method: 'POST', path: '/projects/work/servers', body, after: fresh };
  }
  const { enabled } = before as ServerValue;
  return random.pick<Step>([
    { method: 'PATCH', path: place, body: made, after: { ...fresh, enabled } },
    {
      method: 'PATCH',
      path: place,
      body: { enabled: !enabled },
      after: { ...(before as object), enabled: !enabled },
    },
    { method: 'DELETE', path: place, after: undefined },
  ]);
}

/** Some servers of a product persist across versions, some do not. All of them show their version. */
function nextProduct(name: string, before: Value, mark: string, random: Random): Step {
  const { servers: present = {} } = (before ?? {}) as Partial<ProductValue>;
  const names = [`${name}-a`, `${name}-b`, `${name}-${random.pick(['c', 'd', 'e'])}`];
  const manifest = names.map((server) => ({ name: server, transport: 'stdio', command, args: [mark] }));
  const servers = Object.fromEntries(
    names.map((server) => [
      server,
      { description: null, args: [mark], enabled: present[server]?.enabled ?? true },
    ]),
  );
  const install: Step = {
    method: 'POST',
    path: '/projects/work/products',
    body: { name, version: mark, mcp: { servers: manifest } },
    after: { version: mark, servers } satisfies ProductValue,
  };
  if (before === undefined) return install;
  const [switched, value] = Object.entries(present)[0]!;
  const enabled = !value.enabled;
  return random.pick<Step>([
    install,
    install,
    { method: 'DELETE', path: `/projects/work/products/${name}`, after: undefined },
    {
      method: 'PATCH',
      path: `/projects/work/servers/${switched}`,
      body: { enabled },
      after: { ...(before as ProductValue), servers: { ...present, [switched]: { ...value, enabled } } },
    },
  ]);
}

function nextBatch(name: string, _before: Value, mark: string): Step {
  const names = numbered(name, 4);
  const entry = { command, args: [mark] };
  const value: ServerValue = { description: null, args: [mark], enabled: true };
  return {
    method: 'POST',
    path: '/projects/work/import?replace=true',
    body: { mcpServers: Object.fromEntries(names.map((server) => [server, entry])) },
    after: Object.fromEntries(names.map((server) => [server, value])),
  };
}

function nextProject(name: string, before: Value, mark: string, random: Random): Step {
  const place = `/projects/${name}`;
  const description = `made by ${mark}`;
  const retentionDays = 1 + random.below(100);
  const body = { description, retention_days: retentionDays };
  if (before === undefined) {
    const after: ProjectValue = { description, retentionDays, servers: [] };
    return { method: 'POST', path: '/projects', body: { name, ...body }, after };
  }
  const value = before as ProjectValue;
  const server = { name: `in-${mark}`, transport: 'http', config: { url: 'http://127.0.0.1:1/' } };
  return random.pick<Step>([
    { method: 'PATCH', path: place, body, after: { ...value, description, retentionDays } },
    {
      method: 'POST',
      path: `${place}/servers`,
      body: server,
      after: { ...value, servers: [...value.servers, server.name] },
    },
    { method: 'DELETE', path: place, after: undefined },
  ]);
}

function nextSecret(name: string, _before: Value, mark: string): Step {
  const value = `value of ${mark}`;
  return { method: 'PUT', path: `/projects/default/secrets/${name}`, body: { value }, after: value };
}

/** Its value is not visible. */
function nextRemovable(name: string, before: Value, mark: string): Step {
  const path = `/projects/default/secrets/${name}`;
  return before === undefined
    ? { method: 'PUT', path, body: { value: mark }, after: 'there' }
    : { method: 'DELETE', path, after: undefined };
}

function nextTool(name: string, before: Value): Step {
  const enabled = !before;
  return { method: 'PATCH', path: `/projects/default/tools/${name}`, body: { enabled }, after: enabled };
}

/** A server of the configuration file can only be enabled or disabled. */
function nextFileServer(name: string, before: Value): Step {
  const enabled = !before;
  return { method: 'PATCH', path: `/projects/default/servers/${name}`, body: { enabled }, after: enabled };
}

export interface KeyValue {
  role: string;
  expires: string;
}

function nextKey(name: string, before: Value, mark: string, random: Random): Step {
  const path = `/keys/${name}`;
  const expires = new Date(2_000_000_000_000 + Number(mark.slice(1)) * 1_000).toISOString();
  if (before === undefined) {
    const after: KeyValue = { role: 'caller', expires };
    const body = { name, project: 'default', role: after.role, expires_at: expires };
    return { method: 'POST', path: '/keys', body, after };
  }
  const value = before as KeyValue;
  const role = random.pick(['viewer', 'caller', 'operator', 'owner'].filter((other) => other !== value.role));
  return random.pick<Step>([
    { method: 'PATCH', path, body: { expires_at: expires }, after: { ...value, expires } satisfies KeyValue },
    { method: 'POST', path: `${path}/rotate`, body: { overlap_ms: 60_000 }, after: value },
    {
      method: 'PUT',
      path: '/grants',
      body: { principal: name, project: 'default', role },
      after: { ...value, role } satisfies KeyValue,
    },
    { method: 'DELETE', path, after: undefined },
  ]);
}

function nextGroup(name: string, before: Value): Step {
  return before === undefined
    ? { method: 'POST', path: '/groups', body: { name }, after: 'there' }
    : { method: 'DELETE', path: `/groups/${name}`, after: undefined };
}

/** Rules are never removed here, because their ids are new. */
function nextRule(_name: string, before: Value, mark: string): Step {
  const names = (before ?? []) as string[];
  return {
    method: 'POST',
    path: '/rules',
    body: { effect: 'deny', project: 'default', subject: { role: 'viewer' }, name: mark },
    after: [...names, mark],
  };
}

function numbered(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index + 1}`);
}
