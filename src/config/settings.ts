import { unknownSettings } from './keys.ts';
import { isLimit, limitProblems, type Problem, problemsOf } from './problems.ts';
import { isObject, settingsSchema } from './schema.ts';
import type { ServerDefaults, Settings } from './types.ts';

interface ReadSettings {
  /** Both only there when there are no problems. */
  settings?: Settings;
  defaults?: ServerDefaults;
  /** How long calls may take of servers that do not say, where the file does, and is right. */
  usualTimeoutMs: number | undefined;
  problems: Problem[];
}

const path = ['switchboard'];
const defaultTimeoutMs = 300_000;
const usualMaxTimeoutMs = 3_600_000;
const usualBackoffMaxMs = 30_000;

/** Reads the `switchboard` object: what holds for all, and what holds for servers that do not say. */
export function readSettings(value: unknown): ReadSettings {
  const unknown = unknownProblems(value);
  const parsed = settingsSchema.safeParse(value ?? {});
  const usual = settingsSchema.parse({});
  const problems = [
    ...unknown,
    ...(parsed.success ? [] : problemsOf(parsed.error, path)),
    ...limitProblems(path, value, ['timeoutMs', undefined], 'maxTimeoutMs'),
    ...limitProblems(path, value, ['backoffFirstMs', usual.backoffFirstMs], 'backoffMaxMs'),
  ];
  if (!parsed.success || problems.length > 0) {
    const written = isObject(value) ? value.timeoutMs : undefined;
    return { usualTimeoutMs: isLimit(written) ? written : undefined, problems };
  }
  const { startup, concurrency, maxTimeoutMs, idleStopMs, backoffMaxMs, ...others } = parsed.data;
  const { timeoutMs: writtenTimeoutMs, ...rest } = others;
  // Where only one of two limits is written down, the other one gives way to it.
  const timeoutMs = writtenTimeoutMs ?? Math.min(defaultTimeoutMs, maxTimeoutMs ?? defaultTimeoutMs);
  return {
    settings: { ...rest, backoffMaxMs: backoffMaxMs ?? Math.max(rest.backoffFirstMs, usualBackoffMaxMs) },
    defaults: {
      startup,
      concurrency,
      timeoutMs,
      maxTimeoutMs: maxTimeoutMs ?? Math.max(timeoutMs, usualMaxTimeoutMs),
      idleStopMs,
    },
    usualTimeoutMs: writtenTimeoutMs,
    problems,
  };
}

/** A setting that does nothing may change what clients see, so here unknown keys are refused. */
function unknownProblems(settings: unknown): Problem[] {
  if (!isObject(settings)) return [];
  return unknownSettings(settings).map(({ key, meant }) => ({
    path: [...path, key],
    message: `there is no such setting: ${meant === undefined ? 'remove it' : `did you mean "${meant}"?`}`,
  }));
}
