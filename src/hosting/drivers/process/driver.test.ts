import { once } from 'node:events';
import { mkdtemp, readdir, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Inbox } from '../../../../test/helpers/inbox.ts';
import { specOf } from '../../../../test/hosting/contract.ts';
import { ProcessRecord } from '../../../channels/process-record.ts';
import { groupRuns } from '../../../channels/process-table.ts';
import { asSwitchboardError, type SwitchboardError } from '../../../errors.ts';
import type { Instance, InstanceSpec } from '../../driver.ts';
import { ProcessDriver } from './driver.ts';

let home: string;
let children: ProcessRecord;
let driver: ProcessDriver;
let log: Inbox<string>;

beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'switchboard-test-')));
  children = ProcessRecord.open(join(home, 'processes'), (warning) => expect.unreachable(warning));
  driver = new ProcessDriver({ home, children });
  log = new Inbox();
});
afterEach(async () => {
  children.close();
  // The record is removed with its last process.
  expect(await readdir(join(home, 'processes'))).toEqual([]);
  await rm(home, { recursive: true });
});

function start(spec: InstanceSpec): Promise<Instance> {
  return driver.start(spec, { log: (line) => log.add(line) }, new AbortController().signal);
}

/** Runs a shell script and returns its stdout. */
async function outputOf(script: string, more: Partial<InstanceSpec> = {}): Promise<string> {
  const instance = await start(specOf({ command: 'sh', args: ['-c', script], ...more }));
  const output = await text(instance.stdio!.output);
  await instance.stop(0);
  return output;
}

async function refusal(starting: Promise<Instance>): Promise<SwitchboardError> {
  return starting.then(
    () => expect.unreachable('it runs'),
    (error) => asSwitchboardError(error),
  );
}

describe('a server fails to start', () => {
  it('without a command', async () => {
    const error = await refusal(start(specOf({ image: 'some/image' })));
    expect(error.code).toBe('invalid_config');
    expect(error.message).toContain('"process" needs a `command`');
    expect(error.message).toContain('"some/image"');
  });

  it('with a missing command', async () => {
    const error = await refusal(start(specOf({ command: '/nowhere/server' })));
    expect(error.code).toBe('server_start_failed');
    expect(error.message).toContain('"/nowhere/server" was not found');
  });

  it('with a file that is not executable', async () => {
    const error = await refusal(start(specOf({ command: home })));
    expect(error.code).toBe('server_start_failed');
    expect(error.message).toContain('is not executable');
  });

  it('with volumes that cannot be created', async () => {
    driver = new ProcessDriver({ home: '/dev/null', children });
    const error = await refusal(start(specOf({ command: 'true', volumes: ['/data'] })));
    expect(error.code).toBe('server_start_failed');
    expect(error.message).toContain('Cannot create the volume "/data"');
  });
});

describe('the environment', () => {
  it('contains the published port', async () => {
    const spec = { port: 4_567, environment: { PORT: '80' } };
    expect(await outputOf('echo $PORT', spec)).toBe('4567\n');
    const instance = await start(specOf({ command: 'true', ...spec }));
    expect(instance.url).toBe('http://127.0.0.1:4567');
    await instance.stop(0);
  });

  it('contains the mark that identifies leftovers at the next start, whatever is configured', async () => {
    const environment = { SWITCHBOARD_INSTANCE: 'other' };
    expect(await outputOf('echo $SWITCHBOARD_INSTANCE', { environment })).toBe(
      `${children.environment.SWITCHBOARD_INSTANCE}\n`,
    );
  });
});

describe('volumes', () => {
  it('are folders that the server receives in its environment; a single one is its working directory', async () => {
    const server = { name: 'notes', project: 'home' };
    const folder = join(home, 'volumes/home/notes/%2Fdata');
    const script = 'echo "$SWITCHBOARD_VOLUMES"; pwd';
    expect(await outputOf(script, { ...server, volumes: ['/data'] })).toBe(
      `${JSON.stringify({ '/data': folder })}\n${folder}\n`,
    );
    const other = join(home, 'volumes/home/notes/%2Fother');
    expect(await outputOf(script, { ...server, volumes: ['/data', '/other'] })).toBe(
      `${JSON.stringify({ '/data': folder, '/other': other })}\n${process.cwd()}\n`,
    );
    expect(await outputOf(script, server)).toBe(`\n${process.cwd()}\n`);
    expect((await driver.volumes.remove(server)).sort()).toEqual([folder, other]);
  });

  it('never leave their parent folder, whatever their names', async () => {
    for (const odd of ['..', '.', '../..', '/', 'a/b', '%2E%2E']) {
      const spec = { name: odd, project: odd, volumes: [odd] };
      const folder = (await outputOf('pwd', spec)).trimEnd();
      // Three levels deep: project, name and path.
      const steps = folder.slice(`${home}/volumes/`.length).split('/');
      expect(folder.startsWith(`${home}/volumes/`)).toBe(true);
      expect(steps.map(decodeURIComponent)).toEqual([odd, odd, odd]);
      expect(await driver.volumes.remove(spec)).toEqual([folder]);
    }
    expect(await readdir(home)).toEqual(['processes', 'volumes']);
  });
});

describe('the exit of a server', () => {
  it('ends the processes that it left behind', async () => {
    const spec = specOf({
      command: 'sh',
      args: ['-c', "(trap '' TERM; echo ready >&2; while :; do sleep 600; done) & read line; exit 7"],
    });
    const instance = await start(spec);
    await log.first((line) => line === 'ready');
    instance.stdio!.input.write('\n');
    expect((await instance.exited).code).toBe(7);
    await instance.stop(0);
    expect(groupRuns(Number(instance.id))).toBe(false);
  });

  it('is reported while a process outside its group holds its pipes', async () => {
    const spec = specOf({
      command: 'sh',
      args: ['-c', "setsid sh -c 'echo $$ >&2; exec sleep 600' & read line; echo last; exit 7"],
    });
    const instance = await start(spec);
    const daemon = Number(await log.first((line) => /^\d+$/.test(line)));
    try {
      instance.stdio!.input.write('\n');
      expect((await instance.exited).code).toBe(7);
      expect(await text(instance.stdio!.output)).toBe('last\n');
      expect(groupRuns(daemon)).toBe(true);
    } finally {
      process.kill(daemon, 'SIGKILL');
    }
  });

  it('is reported without a reader, and the output stays available', async () => {
    const length = 60_000;
    const spec = specOf({ command: 'sh', args: ['-c', `head -c ${length} /dev/zero; exit 7`] });
    const instance = await start(spec);
    expect((await instance.exited).code).toBe(7);
    await instance.stop(0);
    expect(await text(instance.stdio!.output)).toHaveLength(length);
  });

  it('is reported if its output was discarded', async () => {
    const instance = await start(specOf({ command: 'sh', args: ['-c', 'read line; echo answer; exit 7'] }));
    instance.stdio!.output.destroy();
    await once(instance.stdio!.output, 'close');
    instance.stdio!.input.write('\n');
    expect((await instance.exited).code).toBe(7);
    await instance.stop(0);
  });
});

it('skips log lines that are too long, so that no part of a secret leaks', async () => {
  await outputOf("head -c 40000 /dev/zero | tr '\\0' y >&2; echo >&2; echo short >&2");
  expect(log.items).toEqual(['skipped a line longer than 32768 bytes', 'short']);
});
