import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Driver, Exit, Instance, InstanceSpec } from '../../src/hosting/driver.ts';
import { freePort } from '../helpers/free-port.ts';
import { Inbox } from '../helpers/inbox.ts';

/** A driver in its own installation, so that no other driver sees or touches what it runs. */
export interface DriverUnderTest extends AsyncDisposable {
  driver: Driver;
  /** A second driver of the same installation without any state, as after a restart. */
  again(): Driver;
  /** How to run a program of test/fixtures; `more.args` are appended to its arguments. */
  spec(fixture: string, more?: Partial<InstanceSpec>): InstanceSpec;
  /** What this installation runs now or has left behind. */
  running(): Promise<readonly string[]>;
}

/** Returns the driver, or skips the test with the reason. */
export type MakeDriver = (test: { skip(note: string): never }) => Promise<DriverUnderTest>;

/** Features that only some drivers have. */
export interface Abilities {
  hasSurvivors: boolean;
  hasVolumes: boolean;
}

export function specOf(more: Partial<InstanceSpec>): InstanceSpec {
  return {
    id: randomUUID(),
    name: `probe-${randomUUID().slice(0, 8)}`,
    project: 'test',
    image: undefined,
    command: undefined,
    args: [],
    environment: {},
    limits: { cpus: 1, memoryBytes: 512 * MEGABYTE, diskBytes: 1024 * MEGABYTE, pids: 128 },
    hasStdio: true,
    port: undefined,
    hasNetwork: false,
    volumes: [],
    hasWritableRoot: false,
    ...more,
  };
}

const MEGABYTE = 1024 * 1024;
/** Long enough for a process that honours SIGTERM, even on a busy machine. */
const PATIENCE_MS = 30_000;

/** The contract of every driver, tested with test/fixtures/runs-commands.ts. */
export function driverContract(name: string, make: MakeDriver, abilities: Abilities): void {
  describe(`the driver ${name}`, () => {
    it('is available and has its declared properties', async (test) => {
      await using made = await make(test);
      const { driver } = made;
      expect(await driver.unavailable()).toBe(undefined);
      expect(driver.survivors !== undefined).toBe(abilities.hasSurvivors);
      expect(driver.volumes !== undefined).toBe(abilities.hasVolumes);
    });

    speaking(make);
    ending(make);
    running(make);
    if (abilities.hasVolumes) keeping(make);
    if (abilities.hasSurvivors) surviving(make);
  });
}

function speaking(make: MakeDriver): void {
  it('carries bytes unchanged in both directions', async (test) => {
    await using made = await make(test);
    await using probe = await start(made, made.spec('runs-commands'));
    const everyByte = Buffer.from(
      Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => byte !== 10),
    );
    const samples = [
      Buffer.from('{"jsonrpc":"2.0"}'),
      everyByte,
      Buffer.from('häßlich 🦜\r'),
      Buffer.alloc(0),
    ];
    for (const sample of samples) expect(await probe.echo(sample)).toEqual(sample);
  });

  it('carries several messages of 5 MB at once', async (test) => {
    await using made = await make(test);
    await using probe = await start(made, made.spec('runs-commands'));
    const messages = ['a', 'b', 'c'].map((letter) => Buffer.alloc(5 * MEGABYTE, `${letter}bcdefg 123456`));
    const answers = messages.map((message) => probe.echo(message));
    for (const [index, answer] of answers.entries())
      expect((await answer).equals(messages[index]!)).toBe(true);
  });

  it('blocks the server while its output is not read, and loses none of it', async (test) => {
    await using made = await make(test);
    await using probe = await start(made, made.spec('runs-commands'), { isRead: false });
    const total = 64 * MEGABYTE;
    probe.send(`flood ${total}`);
    await probe.log.first((line) => line.startsWith('flooded'));
    // No event reports a blocked process, so it counts as blocked once it is silent for a while.
    for (let seen = -1; seen < probe.log.items.length; await delay(500)) seen = probe.log.items.length;
    expect(probe.log.items).not.toContain(`flooded ${total}`);
    const flood = await probe.take(total);
    expect(flood.equals(Buffer.alloc(total, '0123456789abcdef'))).toBe(true);
    await probe.log.first((line) => line === `flooded ${total}`);
  });

  it('reports the lines of stderr separately from stdout', async (test) => {
    await using made = await make(test);
    await using probe = await start(made, made.spec('runs-commands'));
    probe.send('stderr one');
    expect((await probe.echo(Buffer.from('between'))).toString()).toBe('between');
    probe.send('stderr zwölf 🦜');
    await probe.log.first((line) => line === 'zwölf 🦜');
    expect(probe.log.items).toContain('one');
    expect(probe.log.items.join('\n')).not.toContain('between');
  });

  it('reports stdout and stderr as lines when the server has no stdio', async (test) => {
    await using made = await make(test);
    const args = ['echo on stdout', 'stderr on stderr', 'stay'];
    await using probe = await start(made, made.spec('runs-commands', { args, hasStdio: false }));
    expect(probe.instance.stdio).toBe(undefined);
    await probe.log.first((line) => line === 'on stdout');
    await probe.log.first((line) => line === 'on stderr');
  });

  it('publishes its port on loopback', async (test) => {
    await using made = await make(test);
    const port = await freePort();
    const spec = made.spec('runs-commands', { args: [`listen ${port}`], hasStdio: false, port });
    await using probe = await start(made, spec);
    await probe.log.first((line) => line === 'listening');
    const answer = await fetch(`${probe.instance.url}/somewhere`);
    expect(await answer.text()).toBe('served /somewhere');
  });

  it('publishes its port at the requested port, and at the earlier one again', async (test) => {
    await using made = await make(test);
    for (const which of ['hostPort', 'formerHostPort'] as const) {
      const port = await freePort();
      // A process listens on its port directly.
      const published = made.driver.provider === 'process' ? port : await freePort();
      const spec = made.spec('runs-commands', {
        args: [`listen ${port}`],
        hasStdio: false,
        port,
        [which]: published,
      });
      await using probe = await start(made, spec);
      await probe.log.first((line) => line === 'listening');
      expect(probe.instance.url).toBe(`http://127.0.0.1:${published}`);
      expect(await (await fetch(probe.instance.url!)).text()).toBe('served /');
    }
  });

  it('has no address without a port', async (test) => {
    await using made = await make(test);
    await using probe = await start(made, made.spec('runs-commands'));
    expect(probe.instance.url).toBe(undefined);
  });
}

function ending(make: MakeDriver): void {
  it('reports the exit code of a crash after all output', async (test) => {
    await using made = await make(test);
    await using probe = await start(made, made.spec('runs-commands'));
    const lastAnswer = probe.echo(Buffer.from('last answer'));
    probe.send('stderr last words');
    probe.send('exit 3');
    const exit = await probe.instance.exited;
    expect(exit).toEqual({ code: 3, signal: undefined, reason: undefined, isLost: false });
    expect(probe.log.items).toContain('last words');
    expect((await lastAnswer).toString()).toBe('last answer');
    await probe.outputEnded;
  });

  it('reports a clean exit', async (test) => {
    await using made = await make(test);
    await using probe = await start(made, made.spec('runs-commands', { args: ['exit 0'] }));
    expect(await probe.instance.exited).toMatchObject({ code: 0, signal: undefined, isLost: false });
  });

  it('reports an exit by signal', async (test) => {
    await using made = await make(test);
    await using probe = await start(made, made.spec('runs-commands'));
    probe.send('kill SIGKILL');
    expectKilled(await probe.instance.exited);
  });

  it('ignores writes and actions after the instance has ended', async (test) => {
    await using made = await make(test);
    await using probe = await start(made, made.spec('runs-commands', { args: ['exit 0'] }));
    await probe.instance.exited;
    probe.send('echo nobody reads this');
    await probe.instance.stop(PATIENCE_MS);
    await probe.instance.stop(PATIENCE_MS);
    expect(await made.running()).toEqual([]);
  });

  it('stops a cooperative process with SIGTERM', async (test) => {
    await using made = await make(test);
    await using probe = await start(made, made.spec('runs-commands'));
    await probe.echo(Buffer.from('ready'));
    expect(await made.running()).toHaveLength(1);
    await probe.instance.stop(PATIENCE_MS);
    expect(await made.running()).toEqual([]);
    expect(await probe.instance.exited).toMatchObject({ code: 0, signal: undefined, isLost: false });
    expect(probe.log.items).toContain('ends on SIGTERM');
    await probe.outputEnded;
  });

  it('kills a process that ignores SIGTERM, with its children', async (test) => {
    await using made = await make(test);
    await using probe = await start(made, made.spec('runs-commands', { args: ['ignore-term', 'fork'] }));
    expect(await probe.line()).toBe('ignoring');
    expect(await probe.line()).toBe('forked');
    await probe.instance.stop(500);
    expect(await made.running()).toEqual([]);
    expectKilled(await probe.instance.exited);
  });

  it('leaves nothing behind when a start is cancelled', async (test) => {
    await using made = await make(test);
    const before = AbortSignal.abort();
    await expect(made.driver.start(made.spec('runs-commands'), ignoreLog, before)).rejects.toThrow();
    const during = new AbortController();
    const started = made.driver.start(made.spec('runs-commands'), ignoreLog, during.signal);
    during.abort();
    await expect(started).rejects.toThrow();
    expect(await made.running()).toEqual([]);
  });
}

function running(make: MakeDriver): void {
  it('passes on the given environment and nothing of Switchboard’s', async (test) => {
    await using made = await make(test);
    const environment = { PLAIN: 'text', EMPTY: '', ODD: 'a=b "c" $PLAIN\n  d\\', UMLAUT: 'süß 🦜' };
    await using probe = await start(made, made.spec('runs-commands', { environment }));
    for (const [variable, value] of Object.entries(environment))
      expect(JSON.parse(await probe.ask(`env ${variable}`))).toBe(value);
    expect(process.env.VITEST).toBe('true');
    expect(JSON.parse(await probe.ask('env VITEST'))).toBe(null);
  });

  it('reports resource usage and the start time', async (test) => {
    await using made = await make(test);
    await using probe = await start(made, made.spec('runs-commands'));
    expect(Math.abs(Date.now() - probe.instance.startedAt.getTime())).toBeLessThan(3_600_000);
    const first = await probe.instance.usage();
    expect(first.cpuPercent).toBe(undefined);
    await probe.ask('burn 300');
    const second = await probe.instance.usage();
    expect(second.cpuPercent).toBeGreaterThan(0);
    // Node always needs more than this.
    expect(second.memoryBytes).toBeGreaterThan(4 * MEGABYTE);
    expect(second.memoryBytes).toBeLessThan(1024 * MEGABYTE);
  });

  it('runs several instances at once, each with a unique id', async (test) => {
    await using made = await make(test);
    await using one = await start(made, made.spec('runs-commands'));
    await using other = await start(made, made.spec('runs-commands'));
    expect(one.instance.id).not.toBe(other.instance.id);
    expect((await one.echo(Buffer.from('one'))).toString()).toBe('one');
    await one.instance.stop(PATIENCE_MS);
    expect((await other.echo(Buffer.from('other'))).toString()).toBe('other');
  });
}

function keeping(make: MakeDriver): void {
  const volumes = ['/data', '/more/data'];

  it('keeps volumes after a crash and after a new registration of the same name', async (test) => {
    await using made = await make(test);
    const spec = made.spec('runs-commands', { volumes });
    await using first = await start(made, spec);
    expect(await first.ask('write /data/note one')).toBe('written');
    expect(await first.ask('write /more/data/note other')).toBe('written');
    first.send('kill SIGKILL');
    await first.instance.exited;
    await first.instance.stop(0);
    const registeredAnew = { ...spec, id: randomUUID() };
    await using second = await start({ ...made, driver: made.again() }, registeredAnew);
    expect(await second.ask('read /data/note')).toBe('"one"');
    expect(await second.ask('read /more/data/note')).toBe('"other"');
  });

  it('hides the volumes of a server from other servers', async (test) => {
    await using made = await make(test);
    const spec = made.spec('runs-commands', { volumes });
    await using probe = await start(made, spec);
    await probe.ask('write /data/note own');
    const sameNameElsewhere = { ...spec, id: randomUUID(), project: `${spec.project}-other` };
    for (const other of [made.spec('runs-commands', { volumes }), sameNameElsewhere]) {
      await using stranger = await start(made, other);
      expect(await stranger.ask('read /data/note')).toBe('null');
    }
  });

  it('removes the volumes of one server on request, and no others', async (test) => {
    await using made = await make(test);
    const [spec, other] = [made.spec('runs-commands', { volumes }), made.spec('runs-commands', { volumes })];
    for (const each of [spec, other]) {
      await using probe = await start(made, each);
      await probe.ask('write /data/note kept');
    }
    expect(await made.again().volumes!.remove(spec)).toHaveLength(2);
    expect(await made.driver.volumes!.remove(spec)).toEqual([]);
    await using emptied = await start(made, spec);
    expect(await emptied.ask('read /data/note')).toBe('null');
    await using untouched = await start(made, other);
    expect(await untouched.ask('read /data/note')).toBe('"kept"');
  });
}

function surviving(make: MakeDriver): void {
  it('adopts a running instance with full control of it', async (test) => {
    await using made = await make(test);
    const spec = made.spec('runs-commands', { environment: { MARK: 'the same' } });
    const first = await start(made, spec);
    await first.ask('write /tmp/mark here');
    first.instance.release!();
    const log = new Inbox<string>();
    const adopted = await made.again().survivors!.adopt(spec, { log: (line) => log.add(line) });
    expect(adopted?.id).toBe(first.instance.id);
    await using second = new Conversation(adopted!, log);
    expect(await second.ask('read /tmp/mark')).toBe('"here"');
    const large = Buffer.alloc(MEGABYTE, 'abc');
    expect((await second.echo(large)).equals(large)).toBe(true);
    second.send('stderr still heard');
    await log.first((line) => line === 'still heard');
    await second.instance.usage();
    second.send('exit 4');
    expect(await second.instance.exited).toMatchObject({ code: 4, isLost: false });
  });

  it('adopts no instance with another spec and none that has ended, and removes their remains', async (test) => {
    await using made = await make(test);
    const spec = made.spec('runs-commands');
    expect(await made.driver.survivors!.adopt(spec, ignoreLog)).toBe(undefined);
    const changed = await start(made, spec);
    changed.instance.release!();
    const other = { ...spec, environment: { MARK: 'another' } };
    expect(await made.again().survivors!.adopt(other, ignoreLog)).toBe(undefined);
    expect(await made.running()).toEqual([]);
  });

  it('reaps instances of this installation that are no longer wanted, and nothing else', async (test) => {
    await using made = await make(test);
    await using foreign = await make(test);
    await using stranger = await start(foreign, foreign.spec('runs-commands'));
    const [wanted, unwanted] = [made.spec('runs-commands'), made.spec('runs-commands')];
    const instances = [await start(made, wanted), await start(made, unwanted)];
    for (const { instance } of instances) instance.release!();
    expect(await made.again().survivors!.reap([wanted.id])).toHaveLength(1);
    expect(await made.running()).toHaveLength(1);
    expect(await made.again().survivors!.reap([wanted.id])).toEqual([]);
    const kept = await made.again().survivors!.adopt(wanted, ignoreLog);
    expect(kept).not.toBe(undefined);
    kept!.release!();
    expect(await made.again().survivors!.reap([])).toHaveLength(1);
    expect(await made.running()).toEqual([]);
    expect((await stranger.echo(Buffer.from('here'))).toString()).toBe('here');
  });
}

const ignoreLog = { log() {} };

async function start(
  { driver }: Pick<DriverUnderTest, 'driver'>,
  spec: InstanceSpec,
  options: { isRead: boolean } = { isRead: true },
): Promise<Conversation> {
  const log = new Inbox<string>();
  const events = { log: (line: string) => log.add(line) };
  const instance = await driver.start(spec, events, new AbortController().signal);
  return new Conversation(instance, log, options);
}

/** Some providers report only a shell's exit code: 128 plus the signal number. */
function expectKilled({ code, signal, isLost }: Exit): void {
  expect(signal ?? code).toBe(signal === undefined ? 137 : 'SIGKILL');
  expect(isLost).toBe(false);
}

/** A running instance and a client that speaks with it. */
class Conversation {
  readonly instance: Instance;
  readonly log: Inbox<string>;
  /** Settles when its output has ended. */
  readonly outputEnded: Promise<unknown>;
  private unread: Buffer[] = [];
  private unreadBytes = 0;
  private wake = () => {};
  private turn: Promise<unknown> = Promise.resolve();

  constructor(instance: Instance, log: Inbox<string>, options: { isRead: boolean } = { isRead: true }) {
    this.instance = instance;
    this.log = log;
    const output = instance.stdio?.output;
    this.outputEnded = output === undefined ? Promise.resolve() : once(output, 'end');
    this.outputEnded.catch(() => {});
    if (options.isRead) this.read();
  }

  send(line: string): void {
    this.instance.stdio!.input.write(`${line}\n`);
  }

  async ask(line: string): Promise<string> {
    this.send(line);
    return this.line();
  }

  echo(bytes: Buffer): Promise<Buffer> {
    this.instance.stdio!.input.write(Buffer.concat([Buffer.from('echo '), bytes, Buffer.from('\n')]));
    return this.inTurn(() => this.nextLine());
  }

  async line(): Promise<string> {
    return (await this.inTurn(() => this.nextLine())).toString();
  }

  /** Reads this many bytes of its output. */
  take(length: number): Promise<Buffer> {
    this.read();
    return this.inTurn(async () => {
      while (this.unreadBytes < length) await this.more();
      return this.cut(length);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.read();
    await this.instance.stop(0);
  }

  private read(): void {
    const output = this.instance.stdio?.output;
    if (output === undefined || output.listenerCount('data') > 0) return;
    output.on('data', (chunk: Buffer) => {
      this.unread.push(chunk);
      this.unreadBytes += chunk.length;
      this.wake();
    });
  }

  private async nextLine(): Promise<Buffer> {
    for (let searched = 0, before = 0; ; await this.more()) {
      for (; searched < this.unread.length; searched++) {
        const at = this.unread[searched]!.indexOf('\n');
        if (at !== -1) return this.cut(before + at + 1).subarray(0, -1);
        before += this.unread[searched]!.length;
      }
    }
  }

  private cut(length: number): Buffer {
    const all = Buffer.concat(this.unread);
    this.unread = length < all.length ? [all.subarray(length)] : [];
    this.unreadBytes = all.length - length;
    return all.subarray(0, length);
  }

  private more(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }

  /** Responses arrive in the order of the requests. */
  private inTurn<Value>(action: () => Promise<Value>): Promise<Value> {
    const result = this.turn.then(action);
    this.turn = result.catch(() => {});
    return result;
  }
}
