import { setTimeout as delay } from 'node:timers/promises';
import { HttpBackend } from '../helpers/http-backend.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { MARKER, markedProcesses } from './processes.ts';
import type { Random } from './random.ts';

/** A server or a group of servers to call. */
export interface Target {
  /** The prefix of its tool names. */
  prefix: string;
  members: string[];
  /** Whether read-only calls must succeed, because at least one of its servers has no faults. */
  isSteady: boolean;
  /** Whether all calls must succeed, because none of its servers has faults. */
  isHealthy: boolean;
  /** Whether it offers `later`, for calls that are cancelled. */
  hasLater: boolean;
}

const stdioServers = [
  'calm-stdio',
  'wild-stdio-1',
  'wild-stdio-2',
  'wild-forking',
  'trio',
  'pair-a',
  'pair-b',
];
const httpServers = {
  'calm-http': {},
  'wild-http': {},
  'wild-events': { answers: 'events' },
  'calm-sse': { transport: 'sse' },
  'wild-sse': { transport: 'sse' },
} as const;
const untouched = new Set(['calm-stdio', 'calm-http', 'calm-sse', 'pair-b']);

const extraKeys: Record<string, object> = {
  trio: { replicas: 3 },
  'pair-a': { group: 'pair' },
  'pair-b': { group: 'pair' },
};

const MAX_AWAY_MS = 1_500;

/** One server of each kind. */
const few = new Set(['calm-stdio', 'wild-stdio-1', 'calm-http', 'wild-events']);

export interface FleetTerms {
  servers: 'all' | 'few';
  /** Additional settings of Switchboard. */
  settings: object;
}

/** The servers, and the faults of some of them. */
export class Fleet implements AsyncDisposable {
  readonly faults = new Map<string, number>();
  private readonly marker: string;
  private readonly ledger: string;
  private readonly stdio: string[];
  private readonly backends: HttpBackend[];
  private readonly settings: object;
  /** The HTTP servers that are down, until they are back. */
  private readonly away = new Map<HttpBackend, Promise<void>>();

  private constructor(
    marker: string,
    ledger: string,
    backends: HttpBackend[],
    { servers, settings }: FleetTerms,
  ) {
    this.marker = marker;
    this.ledger = ledger;
    this.backends = backends;
    this.stdio = stdioServers.filter((name) => servers === 'all' || few.has(name));
    this.settings = settings;
  }

  /** `count` writes its executions to the ledger. */
  static async start(marker: string, ledger: string, terms: FleetTerms): Promise<Fleet> {
    const backends = Object.entries(httpServers)
      .filter(([name]) => terms.servers === 'all' || few.has(name))
      .map(([name, options]) => HttpBackend.start(name, { ...options, ledger }));
    return new Fleet(marker, ledger, await Promise.all(backends), terms);
  }

  get size(): number {
    return this.names.length;
  }

  /** The servers, and the settings of the Switchboard in front of them. */
  configuration(): [servers: object, settings: object] {
    const stdio = this.stdio.map((name) => {
      const env = { [MARKER]: this.marker, FIXTURE_NAME: name, FIXTURE_LEDGER: this.ledger };
      const fixture = name === 'wild-forking' ? 'leaves-grandchild' : 'answers-after-cancel';
      return [name, { ...fixtureServer(fixture, env), ...extraKeys[name] }];
    });
    const http = this.backends.map(({ name, url }) => [
      name,
      { url, type: name.endsWith('sse') ? 'sse' : 'http' },
    ]);
    const settings = {
      naming: 'always',
      startup: 'parallel',
      discoveryWaitMs: 60_000,
      // Short, so that servers reconnect and breakers open and close many times in a minute.
      backoffFirstMs: 100,
      backoffMaxMs: 1_000,
      breakerOpenMs: 2_000,
      ...this.settings,
    };
    return [Object.fromEntries([...stdio, ...http]), settings];
  }

  targets(): Target[] {
    const single = this.names.filter((name) => !name.startsWith('pair-'));
    const targets = single.map((name) => ({
      prefix: `${name}__`,
      members: [name],
      isSteady: untouched.has(name),
      isHealthy: untouched.has(name),
      hasLater: stdioServers.includes(name) && name !== 'wild-forking',
    }));
    const pair = { prefix: 'pair__', members: ['pair-a', 'pair-b'], isSteady: true, isHealthy: false };
    return this.names.includes('pair-a') ? [...targets, { ...pair, hasLater: true }] : targets;
  }

  strike(random: Random, switchboardPid: number): void {
    const victims = this.names.filter((name) => !untouched.has(name));
    const victim = random.pick(victims);
    const backend = this.backends.find(({ name }) => name === victim);
    if (backend === undefined) this.kill(victim, random, switchboardPid);
    else this.disturb(backend, random);
  }

  private get names(): string[] {
    return [...this.stdio, ...this.backends.map(({ name }) => name)];
  }

  async recovered(): Promise<void> {
    await Promise.all(this.away.values());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.recovered();
    await Promise.all(this.backends.map((backend) => backend[Symbol.asyncDispose]()));
  }

  /** Kills only the process that Switchboard started; Switchboard has to end its children. */
  private kill(name: string, random: Random, switchboardPid: number): void {
    const running = markedProcesses(this.marker).filter(
      (found) => found.name === name && found.parent === switchboardPid,
    );
    if (running.length === 0) return;
    try {
      process.kill(random.pick(running).pid, 'SIGKILL');
      this.note('kill');
    } catch {
      // It has already exited.
    }
  }

  private disturb(backend: HttpBackend, random: Random): void {
    if (this.away.has(backend)) return;
    const isSse = backend.name.endsWith('sse');
    const fault = random.pick(isSse ? ['drop', 'restart'] : ['forget', 'drop', 'restart', 'refuse']);
    const awayMs = 200 + random.below(MAX_AWAY_MS - 200);
    this.note(fault);
    if (fault === 'forget') backend.forgetSessions();
    else if (fault === 'drop') backend.dropStreams();
    else if (fault === 'restart') this.whileAway(backend, restart(backend, awayMs));
    else this.whileAway(backend, refuse(backend, awayMs));
  }

  private whileAway(backend: HttpBackend, fault: Promise<void>): void {
    this.away.set(
      backend,
      fault.finally(() => this.away.delete(backend)),
    );
  }

  private note(fault: string): void {
    this.faults.set(fault, (this.faults.get(fault) ?? 0) + 1);
  }
}

async function restart(backend: HttpBackend, awayMs: number): Promise<void> {
  await backend.goAway();
  await delay(awayMs);
  await backend.comeBack();
}

async function refuse(backend: HttpBackend, awayMs: number): Promise<void> {
  backend.failWith(503);
  await delay(awayMs);
  backend.behave();
}
