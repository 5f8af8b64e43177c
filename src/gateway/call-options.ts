import { SwitchboardError } from '../errors.ts';
import { asObject, isObject } from '../json.ts';
import { parseBounded } from '../protocol/bounded-parse.ts';
import type { Message } from '../protocol/message.ts';
import type { RunOfCall } from './records.ts';

/** The options that a request sets for Switchboard itself. */
export interface CallOptions {
  /** Replicas with these labels are preferred. */
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs: number | undefined;
  /** The agent run to record the call under. */
  readonly run: RunOfCall | undefined;
}

export const noOptions: CallOptions = Object.freeze({
  labels: undefined,
  timeoutMs: undefined,
  run: undefined,
});

const preferKey = 'dev.switchboard/prefer';
const timeoutKey = 'dev.switchboard/timeoutMs';
const runKey = 'dev.switchboard/run';
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const MAX_STEP = 1_000_000;

/** `_meta` takes precedence over the header X-Switchboard-Prefer. */
export function readCallOptions(message: Message, preferHeader: string | undefined): CallOptions {
  if (message.callOptions === undefined && preferHeader === undefined) return noOptions;
  const meta = metaOf(message);
  const prefer = meta[preferKey];
  const timeout = meta[timeoutKey];
  const labels = prefer === undefined ? labelsOfHeader(preferHeader ?? '') : labelsOfMeta(prefer);
  const timeoutMs = timeout === undefined ? undefined : wholeMilliseconds(timeout);
  const run = meta[runKey] === undefined ? undefined : runOfMeta(meta[runKey]);
  if (labels === undefined && timeoutMs === undefined && run === undefined) return noOptions;
  return { labels, timeoutMs, run };
}

function metaOf({ bytes, callOptions }: Message): Record<string, unknown> {
  return callOptions === undefined
    ? {}
    : asObject(parseBounded(bytes.toString('utf8', callOptions.start, callOptions.end)));
}

function labelsOfMeta(prefer: unknown): CallOptions['labels'] {
  const labels = isObject(prefer) ? prefer.labels : undefined;
  if (!isObject(labels))
    throw wrong(`_meta["${preferKey}"]`, 'an object such as {"labels": {"region": "eu"}}');
  return labelsOf(
    Object.entries(labels).map(([name, value]) => {
      if (!['string', 'number', 'boolean'].includes(typeof value)) {
        throw wrong(`label "${name}" in _meta["${preferKey}"]`, 'a string');
      }
      return [name, String(value)];
    }),
  );
}

function labelsOfHeader(header: string): CallOptions['labels'] {
  const pairs = header.split(',').filter((pair) => pair.trim() !== '');
  return labelsOf(
    pairs.map((pair) => {
      const [, name = '', value = ''] = /^([^=]*)=(.*)$/s.exec(pair) ?? [];
      if (name.trim() === '' || value.trim() === '') {
        throw wrong('header X-Switchboard-Prefer', 'a list of labels such as "region=eu, tier=gold"');
      }
      return [name.trim(), value.trim()];
    }),
  );
}

function labelsOf(pairs: [name: string, value: string][]): CallOptions['labels'] {
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs);
}

function wholeMilliseconds(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value;
  throw wrong(`_meta["${timeoutKey}"]`, 'a whole number of milliseconds, 1 or more');
}

function runOfMeta(run: unknown): RunOfCall {
  const { id, step } = asObject(run);
  const isStep = typeof step === 'number' && Number.isInteger(step) && step >= 1 && step <= MAX_STEP;
  if (typeof id === 'string' && uuid.test(id) && isStep) return { id, step };
  throw wrong(`_meta["${runKey}"]`, 'an object such as {"id": "<uuid>", "step": 1}');
}

function wrong(what: string, expected: string): SwitchboardError {
  return new SwitchboardError('invalid_params', `The ${what} must be ${expected}.`);
}
