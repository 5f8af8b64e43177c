import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { memoryOf } from '../helpers/processes.ts';
import type { RunningSwitchboard } from '../helpers/switchboard.ts';
import { Connections, SoakClient } from '../soak/client.ts';
import { type Holdings, Monitor } from '../soak/monitor.ts';
import type { Findings } from './findings.ts';

/** Longer than any operation takes on any machine. */
const DEADLINE_MS = 10 * 60_000;
const SETTLE_MS = 90_000;
const PAUSE_MS = 5;
/** Recently used connections may stay open. */
const MORE_FILES = 24;
/** Room for caches. */
const MORE_LIVE_MEGABYTES = 48;
const MORE_RESIDENT_MEGABYTES = 256;
const MOST_RESIDENT_MEGABYTES = 1_024;
/** Measured in CPU time, so a busy machine does not matter. */
const LONGEST_TURN_MS = 1_500;
/** A case that is still open after this many responses to the well-behaved client is stuck. */
const STUCK_AFTER_ANSWERS = 2_000;
/** Longer than Switchboard's timeouts for slow and incomplete requests. */
const STUCK_AFTER_MS = 150_000;
/** The unit of time in /proc. */
const TICK_MS = 10;
/** A longer turn of the event loop counts as an endless loop. */
const ENDLESS_CPU_MS = 60_000;

export interface Figures {
  calls: number;
  before: Holdings & { residentMegabytes: number };
  after: Holdings & { residentMegabytes: number };
  peakMegabytes: number;
  longestTurnMs: number;
}

/** Monitors Switchboard while cases run: as a well-behaved client, from inside and from outside. */
export class Watch implements AsyncDisposable {
  private readonly switchboard: RunningSwitchboard;
  private readonly monitor: Monitor;
  private readonly findings: Findings;
  private readonly connections: Connections;
  private client: SoakClient | undefined;
  private before: Figures['before'] | undefined;
  private calling: Promise<void> | undefined;
  private isOver = false;
  private calls = 0;
  private longestTurnMs = 0;

  constructor(switchboard: RunningSwitchboard, probePath: string, findings: Findings) {
    this.switchboard = switchboard;
    this.findings = findings;
    this.monitor = new Monitor(switchboard.process.pid!, probePath);
    this.connections = new Connections(switchboard.url);
    switchboard.process.stderr!.on('data', (chunk: Buffer) => findings.add(`stderr; ${chunk.toString()}`));
  }

  /** Starts to call, and records the resources in use before the cases. */
  async start(): Promise<void> {
    this.client = await SoakClient.open(0, this.connections, (what) => this.findings.add(what));
    for (let count = 0; count < 50; count++) await this.call();
    this.before = await this.look();
    this.longestTurnMs = 0;
    this.calling = this.callOnAndOn();
  }

  /** Rejects when a case is stuck while the well-behaved client gets responses, or when Switchboard has exited. */
  async stuck(underWay: ReadonlyMap<string, number>): Promise<never> {
    const since = new Map<string, { index: number; calls: number; time: number }>();
    let answered = { calls: this.calls, cpuMs: 0 };
    for (;;) {
      const { exitCode, signalCode } = this.switchboard.process;
      if (exitCode !== null || signalCode !== null) {
        throw new Error(`Switchboard ended with ${exitCode ?? signalCode}; under way: ${listed(underWay)}`);
      }
      const cpuMs = computedBy(this.switchboard.process.pid!);
      if (this.calls !== answered.calls) answered = { calls: this.calls, cpuMs };
      if (cpuMs - answered.cpuMs > ENDLESS_CPU_MS) {
        this.switchboard.process.kill('SIGKILL');
        throw new Error(`Switchboard computes and answers nobody; under way: ${listed(underWay)}`);
      }
      for (const [lane, index] of underWay) {
        const known = since.get(lane);
        if (known?.index !== index) since.set(lane, { index, calls: this.calls, time: Date.now() });
        else if (this.calls - known.calls > STUCK_AFTER_ANSWERS && Date.now() - known.time > STUCK_AFTER_MS) {
          this.findings.add('a case that is never answered', index);
          throw new Error(`case ${index} of ${lane} is never answered`);
        }
      }
      this.drainOutput();
      await delay(500);
      if (this.isOver) return new Promise<never>(() => {});
    }
  }

  /** Call this after the last case. */
  async finish(): Promise<Figures> {
    this.isOver = true;
    await this.calling;
    const before = this.before!;
    const deadline = Date.now() + SETTLE_MS;
    let after = await this.look();
    while (this.excess(before, after).length > 0 && Date.now() < deadline) {
      await delay(1_000);
      after = await this.look();
    }
    for (const excess of this.excess(before, after)) this.findings.add(excess);
    for (const warning of after.warnings) this.findings.add(`Node warned; ${warning}`);
    this.drainOutput();
    if (this.longestTurnMs > LONGEST_TURN_MS) {
      this.findings.add(`the event loop was held for ${this.longestTurnMs.toFixed()} ms of computing`);
    }
    const peakMegabytes = memoryOf(this.switchboard.process.pid!, 'VmHWM');
    if (peakMegabytes > MOST_RESIDENT_MEGABYTES)
      this.findings.add(`memory; ${peakMegabytes.toFixed()} MB at its peak`);
    await this.client!.end();
    const { calls, longestTurnMs } = this;
    return { calls, before, after, peakMegabytes, longestTurnMs };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.isOver = true;
    await this.connections[Symbol.asyncDispose]();
  }

  /** Drains the output of Switchboard without keeping it, because hostile servers cause a lot. */
  private drainOutput(): void {
    for (const { event, message } of this.switchboard.events.splice(0)) {
      if (event === 'warning' && String(message).includes('internal error'))
        this.findings.add(String(message));
    }
  }

  private async look(): Promise<Figures['before']> {
    const holdings = await this.monitor.holdings();
    this.longestTurnMs = Math.max(this.longestTurnMs, holdings.longestTurnMs);
    return { ...holdings, residentMegabytes: memoryOf(this.switchboard.process.pid!, 'VmRSS') };
  }

  private excess(before: Figures['before'], after: Figures['before']): string[] {
    const found: string[] = [];
    const compare = (what: string, was: number, is: number, more: number) => {
      if (is > was + more) found.push(`${what} left behind; ${was.toFixed()} before, ${is.toFixed()} after`);
    };
    compare('open files', before.openFiles, after.openFiles, MORE_FILES);
    compare('children', before.children, after.children, 0);
    compare('zombies', 0, after.zombies, 0);
    compare('timers', before.resources.Timeout ?? 0, after.resources.Timeout ?? 0, 64);
    compare('memory in use', before.liveMegabytes, after.liveMegabytes, MORE_LIVE_MEGABYTES);
    compare('resident memory', before.residentMegabytes, after.residentMegabytes, MORE_RESIDENT_MEGABYTES);
    return found;
  }

  private async callOnAndOn(): Promise<void> {
    while (!this.isOver) {
      await this.call();
      if (this.calls % 100 === 0) await this.list();
      await delay(PAUSE_MS);
    }
  }

  private async call(): Promise<void> {
    const client = this.client!;
    const text = client.uniqueText();
    const answers = await this.request('tools/call', { name: 'control__echo', arguments: { text } });
    const said = JSON.stringify(answers);
    if (answers.length !== 1 || !said.includes(`\\"text\\":\\"${text}\\"`)) {
      this.findings.add(`the client that behaves got another answer; ${said}`);
    }
    this.calls++;
  }

  private async list(): Promise<void> {
    const said = JSON.stringify(await this.request('tools/list', {}));
    if (!said.includes('"control__echo"')) this.findings.add(`a list lacks tools; ${said.slice(0, 500)}`);
  }

  private async request(method: string, params: object): Promise<unknown[]> {
    try {
      return await this.client!.request(method, params, { deadlineMs: DEADLINE_MS });
    } catch (error) {
      this.findings.add(`the client that behaves was not answered; ${(error as Error).message}`);
      return [];
    }
  }
}

function computedBy(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13);
  return (Number(user) + Number(system)) * TICK_MS;
}

function listed(underWay: ReadonlyMap<string, number>): string {
  return [...underWay].map(([lane, index]) => `${lane}: case ${index}`).join(', ');
}
