import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CallList, Rotation, SecretView } from '../../src/api/views.ts';
import { HttpBackend } from '../helpers/http-backend.ts';
import { answerJson, HttpPeer, type Quirk } from '../helpers/http-peer.ts';
import { HttpProxy } from '../helpers/http-proxy.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { databases, Site, type TestProject } from './site.ts';
import { textOfCall } from './test-client.ts';

const variable = (name: string) => `\${${name}}`;
const put = (project: TestProject, name: string, value: string) =>
  project.ask(`PUT /secrets/${name}`, { value });
const remote = (name: string, config: object, transport = 'http') => ({ name, transport, config });

/** A server that prints its variable TOKEN to stderr at start. */
function talkative(env: Record<string, string>) {
  const { command, args } = fixtureServer('toolbox');
  return {
    command: 'sh',
    args: ['-c', 'echo "token is $TOKEN" >&2; exec "$0" "$@"', command, ...args],
    env,
  };
}

/** The calls of a tool, once one is recorded. */
async function recordOf(project: TestProject, tool: string): Promise<string> {
  for (;;) {
    const { calls } = await project.done<CallList>(`GET /calls?tool=${tool}`);
    if (calls.length > 0) return JSON.stringify(calls);
  }
}

/** HTTP servers that are closed after the test. */
async function playServers(quirks: Record<string, Quirk>): Promise<HttpPeer> {
  const peer = await HttpPeer.start(quirks);
  onTestFinished(async () => peer[Symbol.asyncDispose]());
  return peer;
}

describe.each(databases)('secrets (%s database)', (kind) => {
  let site: Site;

  setUp(async (use) => {
    site = use(
      await Site.start(
        kind,
        {
          mcpServers: {
            filed: fixtureServer('toolbox', {
              OURS: variable('SWITCHBOARD_TEST_VARIABLE'),
              THEIRS: variable('FILED_TOKEN'),
            }),
          },
        },
        { env: { SWITCHBOARD_TEST_VARIABLE: 'of the environment' } },
      ),
    );
  });

  it('[P4] fill variables in env and args of a process', async () => {
    const project = await site.project();
    const odd = `two\nlines, "quotes", \\backslashes\\, $HOME, ${variable('OTHER')} and ü`;
    expect((await put(project, 'TOKEN', odd)).status).toBe(201);
    await put(project, 'LEVEL', 'loud');
    const config = fixtureServer(
      'toolbox',
      { TOKEN: variable('TOKEN'), BEARER: `Bearer ${variable('env:LEVEL')}` },
      `--level=${variable('LEVEL')}`,
    );
    await project.done('POST /servers', { name: 'box', transport: 'stdio', config });
    const session = await project.session();
    expect(await session.callText('environment', { name: 'TOKEN' })).toBe(odd);
    expect(await session.callText('environment', { name: 'BEARER' })).toBe('Bearer loud');
    const words = (await readFile(`/proc/${await session.callText('pid')}/cmdline`, 'utf8')).split('\0');
    expect(words).toContain('--level=loud');
    expect(await project.server('box')).toMatchObject({ config: { env: { TOKEN: variable('TOKEN') } } });
  });

  it('[P4] fill variables in url and headers of a remote server', async () => {
    const project = await site.project();
    const peer = await playServers({ far: () => false });
    await put(project, 'KEY', 'a-key');
    await put(project, 'TOKEN', 'a-token');
    await project.done(
      'POST /servers',
      remote('far', {
        url: `${peer.origin}/far?key=${variable('KEY')}`,
        headers: { authorization: `Bearer ${variable('TOKEN')}` },
      }),
    );
    expect(await (await project.session()).toolNames()).toEqual(['greet']);
    for (const { path, headers } of peer.exchanges.items) {
      expect([path, headers.authorization]).toEqual(['/far?key=a-key', 'Bearer a-token']);
    }
  });

  it('[P4] fill variables in the headers of an SSE server', async () => {
    const project = await site.project();
    await using backend = await HttpBackend.start('sse', { transport: 'sse' });
    await using gate = await HttpProxy.start(backend.url, ['authorization', 'Bearer a-token']);
    await put(project, 'TOKEN', 'a-token');
    const headers = { authorization: `Bearer ${variable('TOKEN')}` };
    await project.done('POST /servers', remote('far', { url: gate.url, headers }, 'sse'));
    expect(await (await project.session()).toolNames()).toContain('whoami');
    await project.done('DELETE /servers/far');
  });

  it('[P4] that are missing fail the connection with the names of the variable and the server until they are set', async () => {
    const project = await site.project();
    await put(project, 'KNOWN', 'the-known-value');
    await project.add('box', { env: { KNOWN: variable('KNOWN'), TOKEN: variable('TOKEN') } });
    const client = await project.client();
    expect(await client.tools()).toEqual([]);
    const complaint =
      'the server "box" needs the variable TOKEN (in env.TOKEN), which is not a secret of its project: set it with: switchboard secret set TOKEN';
    const { message } = await client.errorOf('box__echo');
    expect(message).toContain(complaint);
    expect(message).not.toContain('the-known-value');
    const { state, error } = await project.server('box');
    expect([state, error]).toEqual(['failed', expect.stringContaining(complaint)]);
    expect(await project.done('POST /servers/box/test')).toMatchObject({
      ok: false,
      error: expect.stringContaining(complaint),
    });

    const heal = () => put(project, 'TOKEN', 'at last');
    await client.toolsAfter(heal, (names) => names.includes('environment'));
    expect(await client.session.callText('environment', { name: 'TOKEN' })).toBe('at last');
    expect(await project.done('POST /servers/box/test')).toMatchObject({ ok: true, error: null });
  });

  it('[P4] that are missing are all named, in every field', async () => {
    const project = await site.project();
    await project.done(
      'POST /servers',
      remote('far', { url: `https://${variable('HOST')}/mcp`, headers: { 'x-key': variable('KEY') } }),
    );
    const box = { ...fixtureServer('toolbox'), args: [variable('SCRIPT')] };
    await project.done('POST /servers', { name: 'box', transport: 'stdio', config: box });
    await (await project.session()).toolNames();
    const far = (await project.server('far')).error;
    for (const words of ['"far"', 'HOST (in url)', 'KEY (in headers.x-key)']) expect(far).toContain(words);
    expect((await project.server('box')).error).toContain('SCRIPT (in args[0])');
  });

  it('[P4] with a default are used once they are set', async () => {
    const project = await site.project();
    await project.add('box', { env: { TOKEN: `\${TOKEN:-none}` } });
    const session = await project.session();
    expect(await session.callText('environment', { name: 'TOKEN' })).toBe('none');
    await put(project, 'TOKEN', 'some');
    expect(await session.callText('environment', { name: 'TOKEN' })).toBe('some');
  });

  it('[P4] that change reconnect only the servers that use them, and calls in flight finish', async () => {
    const project = await site.project();
    // The witness identifies each process by the value at its start.
    const [before, after] = [`${project.name} before`, `${project.name} after`];
    await put(project, 'TOKEN', before);
    await put(project, 'OTHER', 'other');
    await project.add('user', { who: variable('TOKEN') });
    await project.add('other', { env: { TOKEN: variable('OTHER') } });
    await project.add('plain');
    const client = await project.client();
    await client.toolsOnce((names) => names.includes('user__pid'));
    const pids = async () =>
      Promise.all(['user', 'other', 'plain'].map((name) => client.session.callText(`${name}__pid`)));
    const [user, ...others] = await pids();
    const call = await client.waitingCall('user__wait');

    expect((await put(project, 'TOKEN', after)).status).toBe(200);
    expect(await client.session.callText('user__environment', { name: 'WITNESS_NAME' })).toBe(after);
    const [userAfter, ...othersAfter] = await pids();
    expect(userAfter).not.toBe(user);
    expect(othersAfter).toEqual(others);
    site.witness.tell(before, 'go');
    expect(await textOfCall(call)).toBe('waited');
    await site.witness.sees(before, 'end', ({ pid }) => String(pid) === user);

    await put(project, 'UNUSED', 'by nobody');
    expect(await pids()).toEqual([userAfter, ...others]);
  });

  it('[P4] that are deleted fail the servers that use them', async () => {
    const project = await site.project();
    await put(project, 'TOKEN', 'a-token');
    await project.add('box', { env: { TOKEN: variable('TOKEN') } });
    const client = await project.client();
    await client.toolsOnce((names) => names.includes('echo'));
    await client.toolsAfter(() => project.done('DELETE /secrets/TOKEN'));
    const { error } = await client.session.call('echo', { text: 'anybody there?' });
    expect(error?.message).toContain('the server "box" needs the variable TOKEN');
    expect(await project.done('GET /secrets')).toEqual({ secrets: [] });
    expect((await project.ask('DELETE /secrets/TOKEN')).body.error).toMatchObject({ code: 'not_found' });
    await put(project, 'TOKEN', 'another');
    expect(await client.session.callText('environment', { name: 'TOKEN' })).toBe('another');
  });

  it('[P4] are listed by name and user, never with a value', async () => {
    const project = await site.project();
    const created = await put(project, 'TOKEN', 'shown-to-nobody');
    await project.add('box', { env: { TOKEN: variable('TOKEN') } });
    const changed = await put(project, 'TOKEN', 'shown-to-nobody');
    const list = await project.ask<{ secrets: SecretView[] }>('GET /secrets');
    expect(list.body.secrets).toEqual([
      {
        name: 'TOKEN',
        created_at: expect.any(String),
        updated_at: expect.any(String),
        used_by: ['box'],
      },
    ]);
    for (const { text } of [created, changed, list]) expect(text).not.toContain('shown-to-nobody');
    expect((await project.ask('GET /secrets/TOKEN')).status).toBe(405);
  });

  it('[P4] belong to their project', async () => {
    const [one, other] = [await site.project(), await site.project()];
    for (const [project, value] of [
      [one, 'of one'],
      [other, 'of the other'],
    ] as const) {
      await put(project, 'TOKEN', value);
      await project.add('box', { env: { TOKEN: variable('TOKEN'), ONLY: `\${ONLY:-nothing}` } });
    }
    await put(one, 'ONLY', 'something');
    const [inOne, inOther] = [await one.session(), await other.session()];
    expect(await inOne.callText('environment', { name: 'TOKEN' })).toBe('of one');
    expect(await inOther.callText('environment', { name: 'TOKEN' })).toBe('of the other');
    expect(await inOne.callText('environment', { name: 'ONLY' })).toBe('something');
    expect(await inOther.callText('environment', { name: 'ONLY' })).toBe('nothing');
  });

  it("[P4] are all that a project's servers can refer to, not the environment of Switchboard", async () => {
    const project = await site.project();
    const names = ['PATH', 'HOME', 'DATABASE_URL', 'SWITCHBOARD_TEST_VARIABLE', 'SWITCHBOARD_SECRET_KEY'];
    for (const name of names) await project.add(name, { env: { STOLEN: variable(name) } });
    await project.add('prefixed', { env: { STOLEN: variable('env:SWITCHBOARD_TEST_VARIABLE') } });
    await project.add('careful', { env: { STOLEN: `\${PATH:-nothing}` } });
    const session = await project.session();
    expect(await session.callText('environment', { name: 'STOLEN' })).toBe('nothing');
    for (const name of [...names, 'prefixed']) {
      const { state, error } = await project.server(name);
      expect([name, state]).toEqual([name, 'failed']);
      expect(error).toContain('(in env.STOLEN), which is not a secret of its project');
      expect(error).not.toContain('of the environment');
    }
    // Nor does a server inherit it.
    for (const name of ['DATABASE_URL', 'SWITCHBOARD_HOME', 'SWITCHBOARD_TEST_VARIABLE']) {
      expect(await session.callText('environment', { name })).toBe('not set');
    }
  });

  it('[P4] and the environment fill the servers of the configuration file', async () => {
    const project = await site.defaultProject();
    await put(project, 'FILED_TOKEN', 'of the project');
    const session = await project.session();
    expect(await session.callText('environment', { name: 'OURS' })).toBe('of the environment');
    expect(await session.callText('environment', { name: 'THEIRS' })).toBe('of the project');
    const { secrets } = await project.done<{ secrets: SecretView[] }>('GET /secrets');
    expect(secrets).toMatchObject([{ name: 'FILED_TOKEN', used_by: ['filed'] }]);
    await project.done('DELETE /secrets/FILED_TOKEN');
  });

  it('[P4] are encrypted with another key while servers run, and stay correct after a restart', async () => {
    const project = await site.project();
    await put(project, 'TOKEN', 'kept-through-it-all');
    await project.add('box', { env: { TOKEN: variable('TOKEN') } });
    const client = await project.client();
    await client.toolsOnce((names) => names.includes('pid'));
    const pid = await client.session.callText('pid');
    const rows = () =>
      site.query<Record<'key_id' | 'version' | 'sealed', string>>(
        `SELECT key_id, version::text, encode(nonce || ciphertext, 'hex') AS sealed FROM kb.secrets`,
      );
    const [before] = await rows();
    const { rotated, key_id } = await site.done<Rotation>('POST /secrets/rotate');
    const [after] = await rows();
    expect([rotated, after?.key_id]).toEqual([1, key_id]);
    expect(after?.key_id).not.toBe(before?.key_id);
    expect(after?.sealed).not.toBe(before?.sealed);
    expect(after?.version).toBe(before?.version);
    expect(await client.session.callText('pid')).toBe(pid);

    await site.restart();
    expect(await (await project.session()).callText('environment', { name: 'TOKEN' })).toBe(
      'kept-through-it-all',
    );
    await put(project, 'TOKEN', 'sealed after it');
    expect(await (await project.session()).callText('environment', { name: 'TOKEN' })).toBe(
      'sealed after it',
    );
    const lines = (await readFile(join(site.home, 'secret.key'), 'utf8')).trim().split('\n');
    expect(lines).toHaveLength(1);
  });

  describe('with an old value', () => {
    it('[P4] are hidden in the records of calls that were in flight', async () => {
      const project = await site.project({ record_payloads: true });
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      const peer = await playServers({
        far({ message, headers, response }) {
          if (message?.method !== 'tools/call') return false;
          const content = [{ type: 'text', text: headers.authorization }];
          void released.then(() => answerJson(response, { id: message.id, result: { content } }));
          return true;
        },
      });
      await put(project, 'TOKEN', 'the-old-value');
      const headers = { authorization: variable('TOKEN') };
      await project.done('POST /servers', remote('far', { url: `${peer.origin}/far`, headers }));
      const session = await project.session();
      const call = session.callText('greet');
      await peer.exchanges.first(({ message }) => message?.method === 'tools/call');
      await put(project, 'TOKEN', 'the-new-value');
      release();
      expect(await call).toBe('the-old-value');
      expect(await recordOf(project, 'greet')).not.toContain('the-old-value');
    });

    it('[P4] are hidden in records that were not yet written', async () => {
      const project = await site.project({ record_payloads: true });
      await put(project, 'TOKEN', 'the-old-value');
      await project.add('box', { env: { TOKEN: variable('TOKEN') } });
      const session = await project.session();
      await session.callText('environment', { name: 'TOKEN' });
      await project.done('DELETE /secrets/TOKEN');
      expect(await recordOf(project, 'environment')).not.toContain('the-old-value');
    });

    it('[P4] are hidden in the output of a process that had them', async () => {
      const project = await site.project();
      await put(project, 'TOKEN', 'the-old-value');
      const env = { ...site.witness.env(project.who('box')), TOKEN: variable('TOKEN') };
      await project.done('POST /servers', { name: 'box', transport: 'stdio', config: talkative(env) });
      const client = await project.client();
      const pid = await client.session.callText('pid');
      const call = await client.waitingCall();
      await put(project, 'TOKEN', 'the-new-value');
      process.kill(Number(pid), 'SIGKILL');
      const { error } = await call.message(({ id }) => id !== undefined);
      expect(error?.message).toContain('last output: token is');
      expect(error?.message).not.toContain('the-old-value');
      expect(JSON.stringify(site.switchboard.events)).not.toContain('the-old-value');
    });
  });

  it('[P4] are hidden in records of JSON inside a text', async () => {
    const project = await site.project({ record_payloads: true });
    await put(project, 'TOKEN', '"needle"');
    await project.add('box', { env: { TOKEN: variable('TOKEN') } });
    const session = await project.session();
    const text = JSON.stringify({ token: await session.callText('environment', { name: 'TOKEN' }) });
    expect(await session.callText('echo', { text })).toBe(text);
    expect(await recordOf(project, 'echo')).not.toContain('needle');
  });

  it('[P4] are hidden inside an address', async () => {
    const project = await site.project();
    await put(project, 'TENANT', 'NeedleInAHost');
    await project.done('POST /servers', remote('far', { url: `http://${variable('TENANT')}.invalid/mcp` }));
    const { message } = await (await project.client()).errorOf('far__any');
    expect(message).toContain('Server "far" is not available');
    for (const text of [message, (await project.server('far')).error, await project.logOf('far')]) {
      expect(text?.toLowerCase()).not.toContain('needle');
    }
  });

  it('[P4] are hidden even in part when a line is truncated', async () => {
    const project = await site.project();
    const value = 'abcdefghijklmnopqrstuvwxyz';
    await put(project, 'TOKEN', value);
    const { command, args } = fixtureServer('toolbox');
    // Junk on stdout is shown up to its 200th byte, which is in the middle of the value.
    const script = 'printf "%0190d$TOKEN and more\\n" 0; exec "$0" "$@"';
    const config = {
      command: 'sh',
      args: ['-c', script, command, ...args],
      env: { TOKEN: variable('TOKEN') },
    };
    await project.done('POST /servers', { name: 'box', transport: 'stdio', config });
    await (await project.session()).callText('pid');
    const log = await project.logOf('box');
    expect(log).toContain('stdout: skipped a line that is not JSON-RPC');
    expect(log).not.toContain(value.slice(0, 8));
  });
});
