import { setTimeout as delay } from 'node:timers/promises';
import type { HostedView } from '../../src/api/hosted-views.ts';
import { dockerRequest, type Engine } from '../helpers/docker.ts';
import { patienceMs } from '../helpers/patience.ts';
import { RawSession } from '../helpers/raw-http.ts';
import { serverOnce } from '../helpers/server-states.ts';
import { HostingSite } from './hosting-site.ts';

/** What a server is doing at the kill. */
type Moment = 'idle' | 'called over REST' | 'called over MCP';

export interface Cell {
  provider: 'docker' | 'gvisor';
  moment: Moment;
}

export type Table<Value> = Record<string, Value>;

/** The state of a server after recovery. */
export interface State {
  status: string;
  restarts: number;
  lastCrash: string | null;
  /** Containers of the engine, running or not; `its own` is the one that Switchboard shows. */
  containers: string[];
  /** Whether it is still the container from the beginning. */
  isSameContainer: boolean;
  volumes: number;
  overRest: string;
  overMcp: string;
}

const image = 'persists-lines';

/** A Switchboard that hosts a server for each cell. */
export class Scene implements AsyncDisposable {
  readonly hosting: HostingSite;
  readonly engine: Engine;
  private readonly cells: Map<string, Cell>;
  private readonly ids = new Map<string, string>();
  private readonly kept = new Map<string, string[]>();
  private first: Table<string> = {};
  private session: Promise<RawSession> | undefined;

  private constructor(hosting: HostingSite, engine: Engine, cells: readonly Cell[]) {
    this.hosting = hosting;
    this.engine = engine;
    this.cells = new Map(cells.map((cell) => [nameOf(cell), cell]));
  }

  /** Settles when all servers run and each has stored the line `before`. */
  static async open(engine: Engine, cells: readonly Cell[]): Promise<Scene> {
    const scene = new Scene(await HostingSite.start({ engine }), engine, cells);
    try {
      await scene.table(scene.names, (name) => scene.register(name));
      scene.first = await scene.table(scene.names, (name) => scene.containerOf(name));
    } catch (error) {
      await scene[Symbol.asyncDispose]();
      throw error;
    }
    return scene;
  }

  get names(): string[] {
    return [...this.cells.keys()];
  }

  get idle(): string[] {
    return this.names.filter((name) => this.cells.get(name)!.moment === 'idle');
  }

  get busy(): string[] {
    return this.names.filter((name) => this.cells.get(name)!.moment !== 'idle');
  }

  /** Computes a value for each server, for all at once. */
  async table<Value>(names: string[], find: (name: string) => Promise<Value>): Promise<Table<Value>> {
    const found = names.map(async (name) => [name, await find(name)] as const);
    return Object.fromEntries(await Promise.all(found));
  }

  /** The current container of a server, as Switchboard shows it. */
  async containerOf(name: string): Promise<string> {
    return (await this.hosting.view(this.idOf(name))).provider_workspace_id!;
  }

  async allReach(fits: (view: HostedView) => boolean): Promise<void> {
    await this.table(this.names, (name) => this.hosting.reaches(this.idOf(name), fits));
  }

  /** The result of an API call: a text, or the status and code of the error. */
  callOverRest(name: string, tool: string, given: object = {}): Promise<string> {
    return answerOf(`${name} over REST`, async () => {
      const params = { name: tool, arguments: given };
      const { status, body } = await this.hosting.call(this.idOf(name), 'tools/call', params);
      return status === 200 ? textIn(body.result) : `${status} ${body.error?.code}`;
    });
  }

  /** The result of a gateway call: a text, or both codes of the error. */
  callOverMcp(name: string, tool: string, given: object = {}): Promise<string> {
    return answerOf(`${name} over MCP`, async () => {
      this.session ??= RawSession.open(this.hosting.site.switchboard.url);
      const { result = {}, error } = await (await this.session).call(`${name}__${tool}`, given);
      return error === undefined ? textIn(result) : `${error.code} ${error.data?.code}`;
    });
  }

  /** Calls the way that the cell of the server does. */
  private call(name: string, tool: string, given: object = {}): Promise<string> {
    return this.cells.get(name)!.moment === 'called over MCP'
      ? this.callOverMcp(name, tool, given)
      : this.callOverRest(name, tool, given);
  }

  /** A call that stores a line before it fails. */
  callToKeep(name: string, tool: string, more: object = {}): Promise<string> {
    this.kept.get(name)!.push('during');
    return this.call(name, tool, { line: 'during', ...more });
  }

  private callOtherwise(name: string, tool: string): Promise<string> {
    return this.cells.get(name)!.moment === 'called over MCP'
      ? this.callOverRest(name, tool)
      : this.callOverMcp(name, tool);
  }

  /** Calls each busy server, and queues a call over the other interface. Settles when both are pending. */
  async setToWork(): Promise<{ outcomes(): Promise<Table<string>>; inLine(): Promise<Table<string>> }> {
    const calls = new Map(this.busy.map((name) => [name, this.callToKeep(name, 'toil')]));
    await this.table(this.busy, async (name) => {
      const log = await this.hosting.followLog(this.idOf(name));
      await log.events.first(({ data = '' }) => data.includes('toils at during'));
      await log.cut();
    });
    const waiting = new Map(this.busy.map((name) => [name, this.callOtherwise(name, 'kept')]));
    const { switchboard } = this.hosting.site;
    await this.table(this.busy, (name) => serverOnce(switchboard, name, ({ queued }) => queued === 1));
    return {
      outcomes: () => this.table(this.busy, (name) => calls.get(name)!),
      inLine: () => this.table(this.busy, (name) => waiting.get(name)!),
    };
  }

  /** The lines that a server must have stored by now. */
  keptBy(name: string): string[] {
    return this.kept.get(name)!;
  }

  /** Kills Switchboard, and restarts it with its data. */
  async killSwitchboard(meanwhile?: () => Promise<unknown>): Promise<void> {
    this.session = undefined;
    this.hosting.site.switchboard.process.kill('SIGKILL');
    await this.hosting.site.restart(meanwhile);
  }

  killContainer(id: string): Promise<unknown> {
    return dockerRequest(this.engine.socketPath, 'POST', `/containers/${id}/kill`);
  }

  states(): Promise<Table<State>> {
    return this.table(this.names, async (name) => {
      const overRest = await this.callOverRest(name, 'kept');
      const overMcp = await this.callOverMcp(name, 'kept');
      const view = await this.hosting.view(this.idOf(name));
      const own = view.provider_workspace_id;
      const containers = await this.hosting.containers(view.id);
      return {
        status: view.status,
        restarts: view.restart_count,
        lastCrash: view.last_crash && (view.last_crash.signal ?? `code ${view.last_crash.exit_code}`),
        containers: containers.map((id) => (id === own ? 'its own' : id)),
        isSameContainer: own === this.first[name],
        volumes: await this.countVolumes(name),
        overRest,
        overMcp,
      };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.hosting[Symbol.asyncDispose]();
  }

  private async register(name: string): Promise<void> {
    const { provider } = this.cells.get(name)!;
    const registration = { name, provider, image: await this.hosting.image(image), volumes: ['/data'] };
    const { id } = await this.hosting.host(registration);
    this.ids.set(name, id);
    const answer = await this.callOverRest(name, 'keep', { line: 'before' });
    if (answer !== 'kept') throw new Error(`${name} cannot be called: ${answer}`);
    this.kept.set(name, ['before']);
  }

  private idOf(name: string): string {
    return this.ids.get(name)!;
  }

  private async countVolumes(name: string): Promise<number> {
    const { owner } = this.hosting;
    const label = [`dev.switchboard.owner=${owner}`, `dev.switchboard.name=${name}`];
    const { Volumes } = await this.hosting.docker<{ Volumes: object[] | null }>('GET', '/volumes', {
      filters: JSON.stringify({ label }),
    });
    return Volumes?.length ?? 0;
  }
}

/** `docker-idle`, `docker-rest`, `docker-mcp` */
function nameOf({ provider, moment }: Cell): string {
  return `${provider}-${moment.split(' ').at(-1)!.toLowerCase()}`;
}

function textIn(result: Record<string, unknown>): string {
  return (result.content as { text: string }[])[0]!.text;
}

/** `broken off` if the connection broke. Fails if no response arrives. */
async function answerOf(what: string, call: () => Promise<string>): Promise<string> {
  const patience = new AbortController();
  const late = delay(patienceMs, 'late', { signal: patience.signal }).catch(() => 'late');
  const answer = await Promise.race([call().catch(() => 'broken off'), late]);
  patience.abort();
  if (answer === 'late') throw new Error(`${what}: nothing came within ${patienceMs / 1_000} s`);
  return answer;
}
