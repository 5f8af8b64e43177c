/** The cost of hosting: time until all hosted servers are ready after a start, and memory per server. */
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import setUpEngines from '../test/global/docker.ts';
import { OwnEngine } from '../test/helpers/docker.ts';
import { serverImage } from '../test/helpers/images.ts';
import type { Experiment } from './experiment.ts';
import type { Host } from './lab.ts';
import { median } from './measure.ts';
import { residentBytes } from './processes.ts';
import { Unavailable } from './starting.ts';

type Provider = 'process' | 'gvisor';

const SERVERS: Record<Provider, number> = { process: 50, gvisor: 10 };
/** One start takes many seconds. */
const MOST_REPEATS = 3;
const READY_TIMEOUT_MS = 180_000;
/** Rare enough to cost little over many seconds. */
const LOOK_MS = 50;
const SETTLE_ROUNDS = 12;
const FIXTURE = 'toolbox';
const fixtureFile = fileURLToPath(new URL(`../test/fixtures/${FIXTURE}.ts`, import.meta.url));

export interface HostingResult {
  provider: Provider;
  servers: number;
  /** From the start of the process until all servers run. */
  readyMs: number;
  /** From the start of the process until the tools of all servers are known. */
  connectedMs: number;
  /** Memory that each adds to the Switchboard process. */
  bytesPerServer: number;
}

export async function measureHosting(experiment: Experiment): Promise<HostingResult[]> {
  const results: HostingResult[] = [];
  for (const provider of Object.keys(SERVERS) as Provider[]) {
    const name = `hosting/${provider}`;
    if (!experiment.isWanted(name)) continue;
    experiment.progress(name);
    try {
      results.push(await measureProvider(experiment, provider));
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      experiment.onMissing(name, error);
    }
    await experiment.lab.stopAll();
  }
  return results;
}

async function measureProvider(experiment: Experiment, provider: Provider): Promise<HostingResult> {
  if (provider === 'process') {
    const server = { provider, command: process.execPath, args: [fixtureFile] };
    return measureBoots(experiment, server, undefined);
  }
  await using stack = new AsyncDisposableStack();
  const engine = await startEngine(stack);
  const server = { provider, image: await serverImage(engine, FIXTURE) };
  return await measureBoots(experiment, server, engine.socketPath);
}

/** Starts a separate Docker engine. A guard process ends it if we are killed. */
async function startEngine(stack: AsyncDisposableStack): Promise<OwnEngine> {
  let under = '';
  const provide = (_name: string, folder: unknown) => {
    under = String(folder);
  };
  stack.defer(await setUpEngines({ provide }));
  const skip = (why: string): never => {
    throw new Unavailable(why);
  };
  return stack.use(await OwnEngine.start({ skip }, { under }));
}

async function measureBoots(
  { lab, startRepeats, progress }: Experiment,
  server: { provider: Provider } & object,
  engine: string | undefined,
): Promise<HostingResult> {
  const { provider } = server;
  const servers = SERVERS[provider];
  const start = () => lab.startHost(`hosting-${provider}`, engine);

  const empty = await start();
  await until(empty, 0, isReady);
  const emptyBytes = await settledBytes(empty);
  for (let number = 1; number <= servers; number++) {
    await ask(empty, 'POST', { ...server, name: `${provider}-${number}` });
  }
  await until(empty, servers, isConnected);
  await empty.stop();

  const ready: number[] = [];
  const connected: number[] = [];
  for (let repeat = 1; repeat <= Math.min(startRepeats, MOST_REPEATS); repeat++) {
    progress(`hosting/${provider}, start ${repeat}`);
    const startedAt = performance.now();
    const host = await start();
    await until(host, servers, isReady);
    ready.push(performance.now() - startedAt);
    await until(host, servers, isConnected);
    connected.push(performance.now() - startedAt);
    await host.stop();
  }
  const connectedMs = median(connected) ?? 0;

  progress(`hosting/${provider}, memory`);
  const undisturbed = await start();
  // Polling creates garbage, so this waits before it polls.
  await delay(2 * connectedMs);
  await until(undisturbed, servers, isConnected);
  const bytesPerServer = ((await settledBytes(undisturbed)) - emptyBytes) / servers;
  await undisturbed.stop();
  return { provider, servers, readyMs: median(ready) ?? 0, connectedMs, bytesPerServer };
}

/** The fields of a server that are used here. */
interface View {
  name: string;
  status: string;
  error: string | null;
  tool_count: number | null;
}

function isReady({ status }: View): boolean {
  return status === 'ready';
}

function isConnected(view: View): boolean {
  return isReady(view) && view.tool_count !== null;
}

async function until(host: Host, servers: number, fits: (view: View) => boolean): Promise<void> {
  for (const deadline = performance.now() + READY_TIMEOUT_MS; ; await delay(LOOK_MS)) {
    const { servers: views } = (await ask(host, 'GET')) as { servers: View[] };
    if (views.length === servers && views.every(fits)) return;
    if (performance.now() < deadline) continue;
    const late = views.find((view) => !fits(view));
    throw new Error(`${late?.name} was not ready in time: ${late?.status}, ${late?.error}`);
  }
}

async function ask({ baseUrl }: Host, method: string, body?: object): Promise<unknown> {
  const sent = body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const answer = await fetch(`${baseUrl}/api/v1/mcp/servers`, { method, ...sent });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} /mcp/servers: HTTP ${answer.status} ${text}`);
  return JSON.parse(text);
}

/** Memory of the process alone, after garbage collection has returned memory to the system, which takes some seconds. */
async function settledBytes({ pid }: Host): Promise<number> {
  for (let round = 0; round < SETTLE_ROUNDS; round++) {
    process.kill(pid, 'SIGUSR2');
    await delay(1_000);
  }
  return residentBytes(pid);
}
