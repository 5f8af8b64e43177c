import type { IncomingMessage } from 'node:http';
import { SwitchboardError } from '../../../errors.ts';
import { join } from '../../../protocol/jsonrpc.ts';
import { LineSplitter } from '../../../protocol/lines.ts';
import { formatBytes } from '../../driver.ts';
import { isGone } from './containers.ts';
import { type Engine, EngineRefusal } from './engine.ts';

/** A pull without progress for this time has failed. */
const STALLED_MS = 120_000;
const LONGEST_STEP = 1024 * 1024;

export async function provideImage(
  engine: Engine,
  image: string,
  log: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  try {
    await engine.get(`/images/${pathOf(image)}/json`, { signal });
  } catch (error) {
    if (!isGone(error)) throw error;
    await pullImage(engine, image, log, signal);
  }
}

async function pullImage(
  engine: Engine,
  image: string,
  log: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  log(`pulling the image ${image}`);
  const progress = new PullProgress((line) => log(`pulling the image ${image}: ${line}`));
  try {
    const query = { fromImage: image, ...(hasTag(image) ? {} : { tag: 'latest' }) };
    const answer = await engine.stream('POST', '/images/create', { query, timeoutMs: STALLED_MS, signal });
    const failure = await readSteps(answer, (step) => progress.add(step));
    signal.throwIfAborted();
    if (failure !== undefined) throw new EngineRefusal(500, failure);
  } catch (error) {
    throw error instanceof EngineRefusal ? cannotPull(image, error) : error;
  }
  log(`pulled the image ${image}`);
}

/** Returns the error, because a pull may fail after a successful HTTP status. */
function readSteps(answer: IncomingMessage, took: (step: PullStep) => void): Promise<string | undefined> {
  return new Promise((resolve) => {
    let failure: string | undefined;
    const lines = new LineSplitter(LONGEST_STEP, {
      line: (chunks) => {
        const step = readStep(join(chunks).toString());
        failure ??= step.error;
        took(step);
      },
      tooLong: () => {},
    });
    answer.setTimeout(STALLED_MS, () => {
      failure ??= `there was no progress for ${STALLED_MS / 1_000} s`;
      answer.destroy();
    });
    answer.on('data', (chunk: Buffer) => lines.push(chunk));
    answer.on('close', () => {
      if (!answer.complete) failure ??= 'the connection to the engine broke';
      resolve(failure);
    });
  });
}

function readStep(line: string): PullStep {
  try {
    return JSON.parse(line) as PullStep;
  } catch {
    return { error: `the engine sent: ${line.slice(0, 200)}` };
  }
}

/** Retryable unless the registry refused the image. */
function cannotPull(image: string, cause: EngineRefusal): SwitchboardError {
  const isUnknown = /not found|unknown|does not exist|denied|unauthorized|no matching manifest/i.test(
    cause.message,
  );
  const message = `The image "${image}" is not on this machine and could not be pulled: ${cause.message.replace(/\.?$/, '.')} ${
    isUnknown
      ? 'Check its name, or build or pull it with docker first. An image that requires a login must be pulled with docker.'
      : 'Check the connection to the registry, or build or load the image with docker.'
  }`;
  return new SwitchboardError(isUnknown ? 'invalid_config' : 'server_start_failed', message, { cause });
}

/** Without a tag the engine would pull all of them. */
function hasTag(image: string): boolean {
  return /[:@]/.test(image.slice(image.lastIndexOf('/') + 1));
}

function pathOf(image: string): string {
  if (!/^[a-z0-9][a-z0-9._/:@-]*$/i.test(image) || image.includes('..')) {
    throw new SwitchboardError(
      'invalid_config',
      `"${image}" is not a valid image name, such as "mcp/fetch:latest" or "ghcr.io/owner/name:1.0".`,
    );
  }
  return image.split('/').map(encodeURIComponent).join('/');
}

export interface PullStep {
  /** The layer. */
  id?: string;
  status?: string;
  progressDetail?: { current?: number; total?: number };
  error?: string;
}

/** The engine reports every few kilobytes, which would flood the log. */
const EVERY_MS = 2_000;

export class PullProgress {
  private readonly log: (line: string) => void;
  private readonly layers = new Map<string, { current: number; total: number; isDone: boolean }>();
  private readonly clock: () => number;
  private nextAt = 0;

  constructor(log: (line: string) => void, clock: () => number = Date.now) {
    this.log = log;
    this.clock = clock;
  }

  add({ id, status = '', progressDetail }: PullStep): void {
    if (id === undefined || !/^(Pulling fs layer|Waiting|Downloading|Download|Pull|Already)/.test(status))
      return;
    // Here the id is the tag of the image.
    if (status.startsWith('Pulling from')) return;
    const layer = this.layers.get(id) ?? { current: 0, total: 0, isDone: false };
    this.layers.set(id, layer);
    layer.isDone ||= /^(Download|Pull) complete|^Already/.test(status);
    layer.current = layer.isDone ? layer.total : (progressDetail?.current ?? layer.current);
    layer.total = Math.max(layer.total, progressDetail?.total ?? 0);
    const now = this.clock();
    if (now < this.nextAt) return;
    this.nextAt = now + EVERY_MS;
    this.log(this.text);
  }

  private get text(): string {
    const layers = [...this.layers.values()];
    const done = layers.filter((layer) => layer.isDone).length;
    const current = layers.reduce((sum, layer) => sum + layer.current, 0);
    return `${done} of ${layers.length} layers, ${formatBytes(current)} so far`;
  }
}
