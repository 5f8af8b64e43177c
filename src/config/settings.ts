import { unknownSettings } from './keys.ts';
import { limitProblems, type Problem, problemsOf } from './problems.ts';
import { isObject, settingsSchema } from './schema.ts';
import type { ServerDefaults, Settings } from './types.ts';

interface ReadSettings {
  /** Both only there when there are no problems. */
  settings?: Settings;
  defaults?: ServerDefaults;
  problems: Problem[];
}

const path = ['switchboard'];
const usualMaxTimeoutMs = 3_600_000;
const usualBackoffMaxMs = 30_000;

/** Reads the `switchboard` object: what holds for all, and what holds for servers that do not say. */
export function readSettings(value: unknown): ReadSettings {
  const unknown = unknownProblems(value);
  const parsed = settingsSchema.safeParse(value ?? {});
  if (!parsed.success) return { problems: [...unknown, ...problemsOf(parsed.error, path)] };
  const { startup, concurrency, timeoutMs, maxTimeoutMs, idleStopMs, backoffMaxMs, ...rest } = parsed.data;
  const problems = [
    ...unknown,
    ...limitProblems(path, ['timeoutMs', timeoutMs], ['maxTimeoutMs', maxTimeoutMs]),
    ...limitProblems(path, ['backoffFirstMs', rest.backoffFirstMs], ['backoffMaxMs', backoffMaxMs]),
  ];
  if (problems.length > 0) return { problems };
  // Where only the lower one of two limits is written down, the upper one rises with it.
  return {
    settings: { ...rest, backoffMaxMs: backoffMaxMs ?? Math.max(rest.backoffFirstMs, usualBackoffMaxMs) },
    defaults: {
      startup,
      concurrency,
      timeoutMs,
      maxTimeoutMs: maxTimeoutMs ?? Math.max(timeoutMs, usualMaxTimeoutMs),
      idleStopMs,
    },
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
