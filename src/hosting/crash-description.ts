import type { Exit, Limits } from './driver.ts';
import { sizeText } from './size-text.ts';

/** A crash in the words that people read. */
export interface CrashDescription {
  /** Such as "exited with code 137: it used more memory than it may". */
  how: string;
  /** The same with what the server wrote last, where that may say why. */
  reason: string;
}

/** Why a server that runs is unresponsive: once it has spoken, and before. */
export const SILENT =
  'It runs, but does not answer the heartbeat. It may be at long work: it is not restarted.';
export const MUTE = 'It runs, but does not answer the MCP handshake.';

const processLimit = ({ pids }: Limits) => `its limit of ${pids} processes and threads`;

/** What programs write in one line when a limit keeps them from going on, and the limit that they mean. */
const signs: readonly [RegExp[], (limits: Limits) => string][] = [
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

/** Such as "exited with code 137: it used more memory than it may". */
export function describeExit({ code, signal, reason }: Exit): string {
  const how =
    signal !== undefined
      ? `was ended by ${signal}`
      : code === undefined
        ? 'ended'
        : `exited with code ${code}`;
  return reason === undefined ? how : `${how}: ${reason}`;
}

/** `lastLines` come from its log, where secrets are masked already. */
export function describeCrash(exit: Exit, lastLines: string, limits: Limits): CrashDescription {
  const limit = exit.reason === undefined ? limitIn(lastLines, limits) : undefined;
  const how = describeExit(limit === undefined ? exit : { ...exit, reason: `perhaps it reached ${limit}` });
  // A limit that certainly ended it says all there is to say.
  const reason = exit.reason ?? withLastWords(how, lastLines);
  return { how, reason };
}

export function withLastWords(text: string, lastLines: string): string {
  return lastLines === '' ? text : `${withoutPeriod(text)}; its last words: ${lastLines}`;
}

/** For those who have them before their eyes. */
export function withoutLastWords(text: string): string {
  const at = text.search(/[;.] its last words: /i);
  return at === -1 ? text : `${text.slice(0, at)}.`;
}

function limitIn(lastLines: string, limits: Limits): string | undefined {
  const lines = lastLines.split('\n');
  const found = signs.find(([parts]) => lines.some((line) => parts.every((part) => part.test(line))));
  return found?.[1](limits);
}

export function withoutPeriod(text: string): string {
  return text.replace(/\.$/, '');
}
