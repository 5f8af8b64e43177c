import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Instance, InstanceSpec } from '../../src/hosting/driver.ts';
import { E2bDriver } from '../../src/hosting/drivers/e2b/driver.ts';
import { freePort } from '../helpers/free-port.ts';
import { Inbox } from '../helpers/inbox.ts';
import { E2bApi, sandboxed } from './e2b-api.ts';

const MINUTE = 60_000;
const ignoreLog = { log() {} };

/** A stand-in for E2B, an installation that uses it, and the instances that it runs. */
class Installation implements AsyncDisposable {
  readonly api: E2bApi;
  readonly owner = randomUUID();
  readonly driver: E2bDriver;
  readonly log = new Inbox<string>();

  private constructor(api: E2bApi) {
    this.api = api;
    this.driver = this.again();
  }

  static async start(): Promise<Installation> {
    const api = await E2bApi.start();
    vi.stubEnv('E2B_API_URL', api.url);
    vi.stubEnv('E2B_SANDBOX_URL', api.url);
    return new Installation(api);
  }

  again(more: Partial<ConstructorParameters<typeof E2bDriver>[0]> = {}): E2bDriver {
    return new E2bDriver({ apiKey: this.api.apiKey, domain: undefined, owner: this.owner, ...more });
  }

  run(spec: InstanceSpec = sandboxed('runs-commands')): Promise<Instance> {
    const events = { log: (line: string) => this.log.add(line) };
    return this.driver.start(spec, events, new AbortController().signal);
  }

  get sandboxes(): string[] {
    return [...this.api.sandboxes.keys()];
  }

  /** Requests to the REST API, without those to sandboxes. */
  get control() {
    return this.api.seen.items.filter(({ headers }) => headers['e2b-sandbox-id'] === undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api[Symbol.asyncDispose]();
  }
}

async function say(instance: Instance, line: string): Promise<string> {
  const answered = once(instance.stdio!.output, 'data');
  instance.stdio!.input.write(`${line}\n`);
  const [chunk] = (await answered) as [Buffer];
  return chunk.toString().trimEnd();
}

describe('the driver e2b', () => {
  let installation: Installation;

  beforeEach(async () => {
    installation = await Installation.start();
  });

  afterEach(async () => {
    vi.unstubAllEnvs();
    await installation[Symbol.asyncDispose]();
  });

  describe('creates sandboxes', () => {
    it('with the key in a header, and with secrets only in the start of the server', async () => {
      const { api, owner } = installation;
      const spec = sandboxed('runs-commands', { environment: { TOKEN: 'hush-hush' } });
      const instance = await installation.run(spec);
      expect(await say(instance, 'env TOKEN')).toBe('"hush-hush"');
      await instance.stop(MINUTE);
      await installation.driver.survivors.reap([]);
      expect(installation.control.length).toBeGreaterThan(0);
      for (const { headers } of installation.control) expect(headers['x-api-key']).toBe(api.apiKey);
      const withSecret = api.seen.items.filter((request) => JSON.stringify(request).includes('hush-hush'));
      expect(withSecret.map(({ path }) => path)).toEqual(['/process.Process/Start']);
      expect(api.seen.items.map(({ path }) => path).join('\n')).not.toContain(api.apiKey);
      const inside = api.seen.items.filter(({ headers }) => headers['e2b-sandbox-id'] !== undefined);
      expect(JSON.stringify(inside)).not.toContain(api.apiKey);
      const created = installation.control.find(
        ({ path, method }) => method === 'POST' && path === '/v2/sandboxes',
      );
      expect(JSON.parse(created!.body)).toEqual({
        templateID: 'node',
        timeout: 600,
        allow_internet_access: false,
        network: { allowPublicTraffic: false },
        metadata: {
          'dev.switchboard.owner': owner,
          'dev.switchboard.id': spec.id,
          'dev.switchboard.name': spec.name,
          'dev.switchboard.project': spec.project,
          'dev.switchboard.revision': expect.stringMatching(/^[0-9a-f]{64}$/),
        },
      });
    });

    it('without a time limit for the server', async () => {
      const { api } = installation;
      const start = api.seen.next(({ path }) => path === '/process.Process/Start');
      await installation.run();
      const { headers } = await start;
      // E2B would end the process after this time.
      expect(headers['connect-timeout-ms']).toBe(undefined);
      expect(headers['keepalive-ping-interval']).toBe('50');
    });

    it('with a network if the server needs one', async () => {
      const created = installation.api.seen.next(({ path }) => path === '/v2/sandboxes');
      await installation.run(sandboxed('runs-commands', { hasNetwork: true }));
      expect(JSON.parse((await created).body)).toMatchObject({ allow_internet_access: true });
    });

    it('and warns that their limits differ', async () => {
      await installation.run();
      expect(installation.log.items.join('\n')).toMatch(/the template limits CPU/);
    });
  });

  describe('rejects, before any request to E2B,', () => {
    it.each([
      ['volumes', { volumes: ['/data'] }, /does not support volumes: remove `volumes`/],
      ['a server without an image', { image: undefined }, /requires an `image`, the name of an E2B template/],
      ['a server without a command', { command: undefined }, /requires a `command`/],
    ])('%s', async (_what, more, message) => {
      const asked = installation.api.seen.items.length;
      const started = installation.run(sandboxed('runs-commands', more));
      await expect(started).rejects.toMatchObject({
        code: 'invalid_config',
        message: expect.stringMatching(message),
      });
      expect(installation.api.seen.items.length).toBe(asked);
    });
  });

  describe('reports why it cannot be used', () => {
    it('without a key', async () => {
      vi.stubEnv('E2B_API_KEY', 'e2b_of_somebody_else');
      for (const apiKey of [undefined, '']) {
        const driver = installation.again({ apiKey });
        expect(await driver.unavailable()).toMatch(/^E2B_API_KEY is not set: /);
        const started = driver.start(sandboxed('runs-commands'), ignoreLog, new AbortController().signal);
        await expect(started).rejects.toMatchObject({ code: 'invalid_config' });
      }
    });

    it('with a key that E2B rejects', async () => {
      const driver = installation.again({ apiKey: `e2b_${'0'.repeat(40)}` });
      expect(await driver.unavailable()).toMatch(/Invalid API key.*Check E2B_API_KEY\.$/);
    });

    it('while E2B is unreachable', async () => {
      await installation.api.goAway();
      expect(await installation.driver.unavailable()).toMatch(/ECONNREFUSED.*connection to E2B/);
      await installation.api.comeBack();
      expect(await installation.driver.unavailable()).toBe(undefined);
    });
  });

  describe('reports why a server does not start, and leaves nothing behind', () => {
    it.each([
      [401, 'Invalid API key', 'invalid_config', /Check E2B_API_KEY/],
      [429, 'too many sandboxes', 'server_start_failed', /too many sandboxes.*limits of your plan/],
      [500, 'no idea', 'server_start_failed', /no idea/],
      [503, 'no room', 'server_start_failed', /no room/],
    ])('if E2B responds with %i', async (status, text, code, message) => {
      installation.api.refuseNext(status, text);
      await expect(installation.run()).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
      });
      expect(installation.sandboxes).toEqual([]);
    });

    it('if the template does not exist', async () => {
      await expect(
        installation.run(sandboxed('runs-commands', { image: 'acme/none' })),
      ).rejects.toMatchObject({
        code: 'invalid_config',
        message: expect.stringMatching(/template 'acme\/none' not found.*an E2B template of your team/),
      });
    });

    it('if the template is too old', async () => {
      await expect(installation.run(sandboxed('runs-commands', { image: 'old' }))).rejects.toMatchObject({
        code: 'invalid_config',
        message: expect.stringMatching(/template is too old.*rebuild it/),
      });
      expect(installation.sandboxes).toEqual([]);
    });

    it('if the template lacks the command', async () => {
      await expect(
        installation.run(sandboxed('runs-commands', { command: 'no-such' })),
      ).rejects.toMatchObject({
        message: expect.stringMatching(
          /could not run "no-such" in a sandbox of the template "node": .*ENOENT/,
        ),
      });
      expect(installation.sandboxes).toEqual([]);
    });
  });

  describe('reports a server', () => {
    it('as lost when its stream is cut, and can adopt it', async () => {
      const { api } = installation;
      const spec = sandboxed('runs-commands');
      const instance = await installation.run(spec);
      const ended = once(instance.stdio!.output.resume(), 'end');
      api.sandboxes.get(instance.id)!.envd.cutStreams();
      expect(await instance.exited).toMatchObject({
        isLost: true,
        code: undefined,
        signal: undefined,
        reason: expect.stringMatching(/^the connection to its sandbox was lost/),
      });
      await ended;
      const adopted = await installation.again().survivors.adopt(spec, ignoreLog);
      expect(adopted?.id).toBe(instance.id);
      expect(await say(adopted!, 'echo still here')).toBe('still here');
    });

    it('as lost when E2B is unreachable, and can adopt it later', async () => {
      const { api } = installation;
      const spec = sandboxed('runs-commands');
      const instance = await installation.run(spec);
      await api.goAway();
      expect(await instance.exited).toMatchObject({ isLost: true, signal: undefined });
      const driver = installation.again();
      await expect(driver.survivors.adopt(spec, ignoreLog)).rejects.toMatchObject({
        code: 'server_start_failed',
      });
      await api.comeBack();
      const adopted = await driver.survivors.adopt(spec, ignoreLog);
      expect(adopted?.id).toBe(instance.id);
      expect(adopted?.startedAt).toEqual(api.sandboxes.get(instance.id)!.startedAt);
    });

    it('as killed when its sandbox is ended from outside', async () => {
      const instance = await installation.run();
      const ended = once(instance.stdio!.output.resume(), 'end');
      await installation.api.endSandbox(instance.id);
      expect(await instance.exited).toEqual({
        code: undefined,
        signal: 'SIGKILL',
        reason: expect.stringMatching(/^its sandbox no longer exists/),
        isLost: false,
      });
      await ended;
      await instance.stop(MINUTE);
    });

    it('with the name of the signal when it crashes', async () => {
      const instance = await installation.run(sandboxed('runs-commands', { args: ['kill SIGSEGV'] }));
      expect(await instance.exited).toMatchObject({ code: undefined, signal: 'SIGSEGV', isLost: false });
    });
  });

  describe('ends sandboxes', () => {
    it('when the server exits', async () => {
      const instance = await installation.run(sandboxed('runs-commands', { args: ['exit 0'] }));
      const removed = installation.api.seen.first(
        ({ method, path }) => method === 'DELETE' && path === `/sandboxes/${instance.id}`,
      );
      await instance.exited;
      await removed;
      await instance.stop(0);
      expect(installation.sandboxes).toEqual([]);
    });

    it('of an earlier start of the same server, on every page of a long list', async () => {
      const spec = sandboxed('runs-commands');
      const instances = [];
      for (let count = 0; count < 5; count++) instances.push(await installation.run(spec));
      for (const instance of instances) instance.release!();
      const adopted = await installation.again().survivors.adopt(spec, ignoreLog);
      expect(installation.sandboxes).toEqual([adopted!.id]);
    });

    it('or reports that they expire when E2B is unreachable', async () => {
      const instance = await installation.run();
      await installation.api.goAway();
      await instance.stop(0);
      await installation.log.first((line) => line.includes('E2B kills it within 10 minutes'));
    });
  });

  it('keeps a sandbox as long as its server runs', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { api } = installation;
      const instance = await installation.run();
      const path = `/sandboxes/${instance.id}/timeout`;
      for (let count = 1; count <= 2; count++) {
        vi.advanceTimersByTime(3 * MINUTE);
        const extended = await api.seen.several(count, (request) => request.path === path);
        expect(JSON.parse(extended.at(-1)!.body)).toEqual({ timeout: 600 });
      }
      // The keep-alives of E2B are not output of the server.
      expect(await say(instance, 'echo awake')).toBe('awake');
      await instance.stop(MINUTE);
      const before = api.seen.items.length;
      vi.advanceTimersByTime(30 * MINUTE);
      expect(api.seen.items.length).toBe(before);
    } finally {
      vi.useRealTimers();
    }
  });

  it('publishes a port on loopback only, and closes it with the server', async () => {
    const { api } = installation;
    const port = await freePort();
    const spec = sandboxed('runs-commands', { args: [`listen ${port}`], hasStdio: false, port });
    const instance = await installation.run(spec);
    await installation.log.first((line) => line === 'listening');
    expect(instance.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const posted = await fetch(`${instance.url}/mcp?x=1`, { method: 'POST', body: 'much' });
    expect(await posted.text()).toBe('served /mcp?x=1');
    const headers = { 'E2b-Sandbox-Id': instance.id, 'E2b-Sandbox-Port': String(port) };
    expect((await fetch(`${api.url}/mcp`, { headers })).status).toBe(403);
    await instance.stop(MINUTE);
    await expect(fetch(`${instance.url}/mcp`)).rejects.toThrow();
  });

  it('reports that a port cannot be reached', async () => {
    const port = await freePort();
    const instance = await installation.run(sandboxed('runs-commands', { port }));
    expect((await fetch(instance.url!)).status).toBe(502);
  });

  it('reports no usage for a sandbox that is gone', async () => {
    const instance = await installation.run();
    await installation.api.endSandbox(instance.id);
    await expect(instance.usage()).rejects.toThrow(/E2B could not report the usage of its sandbox/);
  });
});
