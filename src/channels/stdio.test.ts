import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Inbox } from '../../test/helpers/inbox.ts';
import type { Receiver } from './channel.ts';
import { ProcessRecord } from './process-record.ts';
import { groupRuns } from './process-table.ts';
import { StdioChannel, type StdioTarget } from './stdio.ts';

let folder: string;
let record: ProcessRecord;
const warnings: string[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'switchboard-test-'));
  record = ProcessRecord.open(folder, (message) => warnings.push(message));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** A channel to a shell script whose stderr is the log. */
function open(script: string, env: Record<string, string> = {}) {
  return openTarget({ command: 'sh', args: ['-c', script], env, cwd: folder });
}

function openTarget(target: StdioTarget) {
  const log = new Inbox<string>();
  const ends = new Inbox<string>();
  const receiver: Receiver = {
    onMessage() {},
    onRequestError() {},
    onRequestPaused() {},
    onStale() {},
    onMissed() {},
    onClosed: (error) => ends.add(error.message),
    log: (line) => log.add(line),
  };
  const channel = new StdioChannel(target, 1_000_000, record, receiver);
  return { channel, log, ends };
}

const anyLine = () => true;

/** Closing an empty record removes it. */
async function isRecordEmpty(): Promise<boolean> {
  record.close();
  return (await readdir(folder)).length === 0;
}

describe('an orderly stop', () => {
  it('waits for a child that ignores signals and keeps forking [M12]', async () => {
    const forking = "trap '' TERM; echo ready >&2; while :; do sleep 600 & sleep 0.2; done";
    const { channel, log } = open(forking);
    await log.first(anyLine);
    await channel.close();
    expect(groupRuns(channel.pid!)).toBe(false);
    expect(await isRecordEmpty()).toBe(true);
  });

  it('waits for the grandchildren of a child that has already exited [M12]', async () => {
    const { channel, log, ends } = open(
      "(trap '' TERM; echo ready >&2; while :; do sleep 600; done) & read line; exit 7",
    );
    await log.first(anyLine);
    channel.send([Buffer.from('{}')]);
    // The exit is reported while its descendants are being ended.
    expect(await ends.first(anyLine)).toContain('exited with code 7');
    await channel.close();
    expect(groupRuns(channel.pid!)).toBe(false);
    expect(await isRecordEmpty()).toBe(true);
  });

  it('stops a child that has just been started [M12]', async () => {
    const { channel } = open("trap '' TERM; sleep 600 & wait; wait");
    await channel.close();
    expect(groupRuns(channel.pid!)).toBe(false);
    expect(await isRecordEmpty()).toBe(true);
  });

  it('is not needed for a child that failed to start', async () => {
    await rm(folder, { recursive: true });
    const { channel, ends } = open('true');
    expect(await ends.first(anyLine)).toContain('cannot be started');
    await channel.close();
    expect(channel.pid).toBe(undefined);
  });
});

it('reports the exit of a child while a process outside its group holds its pipes', async () => {
  const { channel, log, ends } = open("setsid sh -c 'echo $$ >&2; exec sleep 600' & read line; exit 7");
  const daemon = Number(await log.first(anyLine));
  try {
    channel.send([Buffer.from('{}')]);
    expect(await ends.first(anyLine)).toContain('exited with code 7');
    expect(groupRuns(daemon)).toBe(true);
  } finally {
    process.kill(daemon, 'SIGKILL');
  }
});

it('marks a child as its own, whatever is configured', async () => {
  const { channel, log } = open('echo "$SWITCHBOARD_INSTANCE $OWN" >&2', {
    SWITCHBOARD_INSTANCE: 'other',
    OWN: 'own',
  });
  expect(await log.first(anyLine)).toBe(`${record.environment.SWITCHBOARD_INSTANCE} own`);
  await channel.close();
  expect(warnings).toEqual([]);
});

it('logs a long line in full or not at all, so that no part of a secret leaks', async () => {
  const { channel, log } = open(
    "head -c 5000 /dev/zero | tr '\\0' x; echo; head -c 40000 /dev/zero | tr '\\0' y >&2; echo >&2; read line",
  );
  expect(await log.first((line) => line.startsWith('stdout'))).toBe(
    `stdout: skipped a line that is not JSON-RPC: ${'x'.repeat(5_000)}`,
  );
  expect(await log.first((line) => line.startsWith('stderr'))).toBe(
    'stderr: a line over 32768 bytes is skipped',
  );
  await channel.close();
});

describe('a process that cannot be started', () => {
  const start = 'The server process cannot be started: ';
  const nowhere = { PATH: '/nowhere' };

  it.each([
    ['uvx', '"uvx" was not found in PATH; install uv, which includes it.'],
    ['npx', '"npx" was not found in PATH; install Node.js, which includes it.'],
    ['docker', '"docker" was not found in PATH.'],
    ['/no/such/program', '"/no/such/program" was not found.'],
  ])('names the missing command: %s', async (command, why) => {
    const { ends } = openTarget({ command, args: [], env: nowhere, cwd: folder });
    expect(await ends.first(anyLine)).toBe(start + why);
  });

  it('names the missing folder, and the interpreter of a script', async () => {
    const { ends } = openTarget({ command: 'sh', args: [], env: {}, cwd: '/no/such/folder' });
    expect(await ends.first(anyLine)).toBe(`${start}the folder /no/such/folder does not exist.`);
    const script = join(folder, 'script');
    await writeFile(script, '#!/no/such/interpreter\n', { mode: 0o755 });
    const scripted = openTarget({ command: script, args: [], env: {}, cwd: folder });
    expect(await scripted.ends.first(anyLine)).toContain(
      `the interpreter in the first line of "${script}" was not found`,
    );
  });
});
