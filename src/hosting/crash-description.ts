import type { Exit, Limits } from './driver.ts';
import { sizeText } from './size-text.ts';

export interface CrashDescription {
  /** Such as "exited with code 137: used more than its 512 MB of memory". */
  how: string;
  /** The same with the last lines of the log, if they may explain it. */
  reason: string;
}

const processLimit = ({ pids }: Limits) => `its limit of ${pids} processes and threads`;

/** Messages of programs that reached a limit. All patterns must match the same line. */
const limitMessages: readonly [RegExp[], (limits: Limits) => string][] = [
  [[/(spawn|fork|clone|pthread_create)\b/i, /EAGAIN|temporarily unavailable|retry/i], processLimit],
  [[/(start|create) (a )?(new )?(native |OS )?thread/i], processLimit],
  [
    [/\bENOSPC\b|No space left on device/i],
    ({ diskBytes }) => `its limit of ${sizeText(diskBytes)} of disk, or the end of its /tmp`,
  ],
  [
    [/\bENOMEM\b|Cannot allocate memory/i],
    ({ memoryBytes }) => `its limit of ${sizeText(memoryBytes)} of memory`,
  ],
];

/** Expects last lines with secrets already redacted. */
export function describeCrash(exit: Exit, lastLines: string, limits: Limits): CrashDescription {
  const limit = exit.reason === undefined ? reachedLimit(lastLines, limits) : undefined;
  const how = describeExit(limit === undefined ? exit : { ...exit, reason: `perhaps it reached ${limit}` });
  // A known reason needs no log lines.
  const reason = exit.reason ?? withLastWords(how, lastLines);
  return { how, reason };
}

export function describeExit({ code, signal, reason }: Exit): string {
  const how =
    signal !== undefined
      ? `was ended by ${signal}`
      : code === undefined
        ? 'ended'
        : `exited with code ${code}`;
  return reason === undefined ? how : `${how}: ${reason}`;
}

export function withLastWords(text: string, lastLines: string): string {
  return lastLines === '' ? text : `${withoutPeriod(text)}; its last words: ${lastLines}`;
}

/** For a log that already has these lines. */
export function withoutLastWords(text: string): string {
  const at = text.search(/[;.] its last words: /i);
  return at === -1 ? text : `${text.slice(0, at)}.`;
}

export function withoutPeriod(text: string): string {
  return text.replace(/\.$/, '');
}

function reachedLimit(lastLines: string, limits: Limits): string | undefined {
  const lines = lastLines.split('\n');
  const found = limitMessages.find(([patterns]) =>
    lines.some((line) => patterns.every((pattern) => pattern.test(line))),
  );
  return found?.[1](limits);
}
