import { randomBytes, randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CallList, CallView } from '../../src/api/views.ts';
import { freePort } from '../helpers/free-port.ts';
import { answerJson, goodResult, HttpPeer, type PeerExchange } from '../helpers/http-peer.ts';
import { EventStream, openExchange, type RpcMessage } from '../helpers/raw-http.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { databases, Site, type TestProject } from './site.ts';

const variable = (name: string) => `\${${name}}`;

/** Each secret has a unique part in characters that no encoding changes. */
function makeSecrets() {
  const needle = () => `Needle${randomBytes(9).toString('hex')}`;
  const needles = Array.from({ length: 4 }, needle);
  const [env = '', url = '', header = '', odd = ''] = needles;
  const values: Record<string, string> = {
    ENV_SECRET: `sk-${env}`,
    URL_SECRET: `${url}/with?signs&and spaces`,
    HEADER_SECRET: `${header}; with=signs, and spaces`,
    ODD_SECRET: `first line\n"${odd}" ü`,
  };
  return { values, needles };
}

/** Prints its input on stderr, then behaves. */
function telling(env: Record<string, string>) {
  const { command, args } = fixtureServer('toolbox');
  const script = 'echo "given: $A $B" >&2; echo "not a message: $A"; exec "$0" "$@"';
  return { command: 'sh', args: ['-c', script, command, ...args], env };
}

/** Prints its input, and exits. */
function dying(env: Record<string, string>) {
  return { command: 'sh', args: ['-c', 'echo "FATAL: bad token $A" >&2; exit 3'], env };
}

/** HTTP servers that repeat their input everywhere. */
function tellingPeer(): Promise<HttpPeer> {
  const given = ({ path, headers }: PeerExchange) => JSON.stringify({ path, token: headers['x-token'] });
  return HttpPeer.start({
    refusing(exchange) {
      exchange.response.writeHead(401, { 'content-type': 'text/plain' }).end(`no: ${given(exchange)}`);
      return true;
    },
    declining(exchange) {
      const { message, response } = exchange;
      if (message?.method !== 'initialize') return false;
      answerJson(response, { id: message.id, error: { code: -32000, message: `no: ${given(exchange)}` } });
      return true;
    },
    babbling({ message, response, ...rest }) {
      if (message?.method !== 'tools/call') return false;
      response.writeHead(200, { 'content-type': 'text/plain' }).end(given({ message, response, ...rest }));
      return true;
    },
    open(exchange) {
      const { message, response } = exchange;
      if (message?.method === 'tools/list') {
        const tools = ['result', 'failure', 'error'].map((name) => ({ ...tool, name }));
        answerJson(response, { id: message.id, result: { tools } });
        return true;
      }
      if (message?.method !== 'tools/call') return false;
      const text = given(exchange);
      const name = String(message.params?.name);
      if (name === 'error') answerJson(response, { id: message.id, error: { code: -1, message: text } });
      else {
        const result = { content: [{ type: 'text', text }], isError: name === 'failure' };
        answerJson(response, { id: message.id, result });
      }
      return true;
    },
  });
}

const tool = (goodResult({ method: 'tools/list' }) as { tools: object[] }).tools[0]!;

/** Every file in a folder except the keys. */
async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name !== 'secret.key')
    .map((entry) => join(entry.parentPath, entry.name));
}

/** The command lines of all processes. */
async function commandLines(): Promise<string> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''));
  return (await Promise.all(lines)).join('\n');
}

/** The responses of the API about a project: every GET in its OpenAPI document. */
async function apiAnswers(
  project: TestProject,
  servers: string[],
  hosted: string[],
): Promise<Record<string, string>> {
  const { site } = project;
  const document = await site.ask<{ paths: Record<string, object> }>('GET /openapi.json');
  const answers: Record<string, string> = { openapi: document.text };
  for (const [path, methods] of Object.entries(document.body.paths)) {
    if (!('get' in methods) || path.endsWith('/events')) continue;
    const names = path.includes('{name}') ? servers : path.includes('{id}') ? hosted : [''];
    for (const name of names) {
      const filled = path
        .replace('/api/v1', '')
        .replace('{project}', project.name)
        .replace(/{(name|id)}/, encodeURIComponent(name))
        // There are no runs here.
        .replace('{run}', randomUUID())
        .replace('{key}', 'reader');
      expect(filled).not.toContain('{');
      answers[filled] = (await site.ask(`GET ${filled}`)).text;
    }
  }
  return answers;
}

describe.each(databases)('a secret (%s database)', (kind) => {
  it('[P4] is seen only by the servers that use it', async () => {
    const { values, needles } = makeSecrets();
    await using peer = await tellingPeer();
    await using site = await Site.start(kind);
    const printed: string[] = [];
    for (const output of [site.switchboard.process.stdout, site.switchboard.process.stderr]) {
      output?.on('data', (chunk: Buffer) => printed.push(chunk.toString()));
    }
    const project = await site.createProject('vault', { record_payloads: true });
    await site.done('POST /keys', { name: 'reader', project: 'vault', role: 'viewer' });
    const events = new EventStream(
      await openExchange(`${site.baseUrl}/api/v1/projects/vault/events`, { method: 'GET' }),
    );
    const answers: string[] = [];
    for (const [name, value] of Object.entries(values)) {
      answers.push((await project.ask(`PUT /secrets/${name}`, { value })).text);
    }

    const env = { A: variable('ENV_SECRET'), B: variable('ODD_SECRET') };
    const stdio = { telling: telling(env), dying: dying(env) };
    const port = await freePort();
    const remote = {
      ...Object.fromEntries(
        ['refusing', 'declining', 'babbling', 'open'].map((name) => [name, `${peer.origin}/${name}`]),
      ),
      unreachable: `http://127.0.0.1:${port}/mcp`,
      named: `http://user:${variable('ENV_SECRET')}@127.0.0.1:${port}/mcp`,
      malformed: `http://127.0.0.1:${variable('URL_SECRET')}/mcp`,
    };
    for (const [name, config] of Object.entries(stdio)) {
      await project.done('POST /servers', { name, transport: 'stdio', config });
    }
    for (const [name, base] of Object.entries(remote)) {
      const url = `${base}?key=${variable('URL_SECRET')}`;
      const config = { url, headers: { 'x-token': variable('HEADER_SECRET') } };
      await project.done('POST /servers', { name, transport: 'http', config });
    }
    const hosted = ['hosted-telling', 'hosted-dying'];
    for (const name of hosted) {
      const { env: environment, ...run } = name === 'hosted-dying' ? dying(env) : telling(env);
      const body = { name, ...run, environment, provider: 'process', project_id: 'vault' };
      answers.push((await site.ask('POST /mcp/servers', body)).text);
    }
    const servers = [...Object.keys(stdio), ...Object.keys(remote), ...hosted];

    // Triggers everything that might leak a secret.
    const session = await project.session();
    await session.toolNames();
    const calls: [tool: string, given?: object][] = [
      ['telling__environment', { name: 'A' }],
      ['telling__environment', { name: 'B' }],
      ['telling__echo', { text: Object.values(values).join(' and ') }],
      ['telling__log', { level: 'info', text: values.ENV_SECRET }],
      ['open__result'],
      ['open__failure'],
      ['open__error'],
      ['babbling__greet'],
      ...servers.map((server): [string] => [`${server}__any`]),
    ];
    const results: RpcMessage[] = [];
    for (const [name, given] of calls) results.push(await session.call(name, given));
    await session.request('resources/read', { uri: `resource://telling/${values.ENV_SECRET}` });
    const pid = await session.callText('telling__pid');
    const waiting = await session.openCall('telling__wait', {}, 'token');
    await waiting.message(({ method }) => method === 'notifications/progress');
    process.kill(Number(pid), 'SIGKILL');
    results.push(await waiting.message(({ id }) => id !== undefined));
    for (const server of servers) answers.push((await project.ask(`POST /servers/${server}/test`)).text);
    for (const name of hosted) {
      answers.push((await site.ask(`POST /mcp/servers/${name}/call`, { method: 'tools/list' })).text);
    }
    const before = await apiAnswers(project, servers, hosted);
    expect(before['/mcp/servers/hosted-telling/logs']).toContain('given: ***');
    expect(before['/mcp/servers/hosted-dying']).toContain('"exit_code":3');
    expect(before['/projects/vault/servers/telling/logs']).toContain('given: ***');
    // Changes are reported too.
    answers.push((await project.ask('PUT /secrets/ENV_SECRET', { value: values.ENV_SECRET })).text);
    answers.push((await site.ask('POST /secrets/rotate')).text);

    // The servers have received them, and results reach the calling client unchanged.
    expect(results[0]?.result?.content).toMatchObject([{ text: values.ENV_SECRET }]);
    expect(results[1]?.result?.content).toMatchObject([{ text: values.ODD_SECRET }]);
    expect(JSON.stringify(results[4])).toContain(needles[1]);
    expect(JSON.stringify(results[4])).toContain(needles[2]);
    const ours = results.filter(({ error }) => typeof error?.data?.code === 'string');
    expect(ours.length).toBeGreaterThan(servers.length - 3);

    // Waits until all calls are recorded.
    const routed = (calls: CallView[]) => calls.filter(({ tool: name }) => name === 'wait');
    while (routed((await project.done<CallList>('GET /calls?limit=500')).calls).length === 0);
    const shown: Record<string, string> = {
      ...prefixed('before the change: ', before),
      ...(await apiAnswers(project, servers, hosted)),
      'answers to changes': answers.join('\n'),
      'events of the API': JSON.stringify(events.events.items),
      'what is printed': printed.join(''),
      'errors for clients': JSON.stringify(ours.map(({ error }) => error)),
      'command lines': await commandLines(),
      database: await contentsOf(site),
    };
    expect(shown.database).toContain('telling');
    expect(shown['what is printed']).toContain('bad token ***');

    const found = Object.entries(shown).flatMap(([where, text]) => occurrences(text, needles, where));
    for (const file of await filesIn(site.home)) {
      found.push(...occurrences((await readFile(file)).toString('latin1'), needles, file));
    }
    expect(found).toEqual([]);
    await events.cut();
  });
});

function prefixed(prefix: string, texts: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [prefix + name, text]));
}

/** All rows of all tables as text, bytes as hexadecimal digits. */
async function contentsOf(site: Site): Promise<string> {
  await using client = await site.connect();
  const { rows: tables } = await client.query<{ name: string }>(
    `SELECT quote_ident(table_name) AS name FROM information_schema.tables WHERE table_schema = 'kb'`,
  );
  const texts: string[] = [];
  for (const { name } of tables) {
    const { rows } = await client.query<{ text: string }>(`SELECT t::text AS text FROM kb.${name} t`);
    texts.push(name, ...rows.map(({ text }) => text));
  }
  return texts.join('\n');
}

/** Finds needles in a text, ignoring case and also as hexadecimal, with the text around them. */
function occurrences(text: string, needles: string[], where: string): string[] {
  return needles.flatMap((needle) =>
    [needle, Buffer.from(needle).toString('hex')].flatMap((form) => {
      const at = text.toLowerCase().indexOf(form.toLowerCase());
      return at === -1 ? [] : [`${where}: …${text.slice(Math.max(0, at - 120), at + 60)}…`];
    }),
  );
}
