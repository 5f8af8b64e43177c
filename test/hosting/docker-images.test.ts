import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { dockerRequest, type Engine, sharedEngine } from '../helpers/docker.ts';
import { Inbox } from '../helpers/inbox.ts';
import { dockerDriver } from './docker-driver.ts';
import { startRegistry } from './docker-registry.ts';

const never = new AbortController().signal;
const ignoreLog = { log() {} };

describe.concurrent('the image of a container', () => {
  it('is pulled only if it is missing', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, 'docker');
    await using registry = await startRegistry(someFiles(), { Entrypoint: ['/nothing'] });
    const image = `${registry.host}/files`;
    await using _removed = removedLater(engine, image);
    const spec = made.spec('runs-commands', { image });
    const log = new Inbox<string>();
    const instance = await made.driver.start(spec, { log: (line) => log.add(line) }, never);
    expect(await instance.exited).toMatchObject({ code: 127 });
    expect(log.items[0]).toBe(`pulling the image ${image}`);
    expect(log.items).toContain(`pulled the image ${image}`);
    expect(log.items.some((line) => /: \d of 1 layers, .* MB so far$/.test(line))).toBe(true);

    const again = new Inbox<string>();
    const second = await made.driver.start(spec, { log: (line) => again.add(line) }, never);
    await second.exited;
    expect(again.items.join('\n')).not.toContain('pulling');
  });

  it('stops being pulled when the start is cancelled, and leaves nothing behind', async ({ skip }) => {
    const engine = await sharedEngine({ skip });
    await using made = await dockerDriver(engine, 'docker');
    await using registry = await startRegistry(someFiles(), {});
    const spec = made.spec('runs-commands', { image: `${registry.host}/stalling`, volumes: ['/data'] });
    const controller = new AbortController();
    const started = made.driver.start(spec, ignoreLog, controller.signal);
    await registry.stalled;
    controller.abort();
    await expect(started).rejects.toThrow('aborted');
    expect(await made.running()).toEqual([]);
    expect(await made.volumes()).toEqual([]);
  });

  it('is reported as unknown to its registry', async ({ skip }) => {
    await using made = await dockerDriver(await sharedEngine({ skip }), 'docker');
    await using registry = await startRegistry(someFiles(), {});
    for (const image of [`${registry.host}/unknown:1.0`, `${registry.host}/files:another`]) {
      await expect(
        made.driver.start(made.spec('runs-commands', { image }), ignoreLog, never),
      ).rejects.toMatchObject({
        code: 'invalid_config',
        message: expect.stringContaining(
          `The image "${image}" is not on this machine and could not be pulled`,
        ),
      });
    }
  });

  it('is reported as unreachable', async ({ skip }) => {
    await using made = await dockerDriver(await sharedEngine({ skip }), 'docker');
    // Nothing listens on that port.
    const spec = made.spec('runs-commands', { image: '127.0.0.1:1/server:latest' });
    await expect(made.driver.start(spec, ignoreLog, never)).rejects.toMatchObject({
      code: 'server_start_failed',
      message: expect.stringMatching(/could not be pulled: .*127\.0\.0\.1:1.*connection to the registry/s),
    });
  });

  it.for(['', 'has space', '../containers/json?', 'UPPER/case'])(
    'cannot have the name "%s"',
    async (image, { skip }) => {
      await using made = await dockerDriver(await sharedEngine({ skip }), 'docker');
      const spec = made.spec('runs-commands', { image });
      await expect(made.driver.start(spec, ignoreLog, never)).rejects.toMatchObject({
        code: 'invalid_config',
      });
    },
  );
});

/** New content each time, because an engine does not request a layer that it already has. */
function someFiles() {
  return [{ path: 'note', mode: 0o644, text: randomUUID() }];
}

function removedLater({ socketPath }: Engine, image: string): AsyncDisposable {
  return {
    async [Symbol.asyncDispose]() {
      await dockerRequest(socketPath, 'DELETE', `/images/${image}:latest`);
    },
  };
}
