import { QUOTE } from './json-bytes.ts';
import type { Span } from './json-scanner.ts';
import { type Member, membersAt } from './members.ts';

/** What servers of the modern era say of a result itself, beside what was asked for. */
export interface ModernResult {
  /** `complete`, `input_required`, `task`, or what an extension calls it. */
  type: string | undefined;
  /** What the client is asked for, and what it has to send along with its answer. */
  inputRequests: Span | undefined;
  requestState: Span | undefined;
  /** The task that has begun. */
  taskId: Span | undefined;
  /** What a client of the legacy era knows nothing of. */
  additions: Member[];
}

export const INPUT_REQUIRED = 'input_required';

/** The members of a result that matter here. */
export const modernMembers = [
  'resultType',
  'ttlMs',
  'cacheScope',
  'inputRequests',
  'requestState',
  'taskId',
] as const;

const names: ReadonlySet<string> = new Set(modernMembers);

/** Reads the result that begins there, without building values. */
export function readModernResult(bytes: Buffer, at: number): ModernResult {
  return modernResultOf(bytes, membersAt(bytes, at, names));
}

/** The same where these members were found before. */
export function modernResultOf(bytes: Buffer, members: ReadonlyMap<string, Member>): ModernResult {
  const type = members.get('resultType');
  const additions = ['resultType', 'ttlMs', 'cacheScope'].flatMap((name) => members.get(name) ?? []);
  return {
    type: type && stringAt(bytes, type.value),
    inputRequests: members.get('inputRequests')?.value,
    requestState: members.get('requestState')?.value,
    taskId: members.get('taskId')?.value,
    additions,
  };
}

/** Where in an answer that was read as one piece its result begins. */
export function resultStart(bytes: Buffer): number {
  return membersAt(bytes, 0, resultName).get('result')?.value.start ?? 0;
}

const resultName: ReadonlySet<string> = new Set(['result']);

/** The string at this place, or undefined where something else stands there. */
export function stringAt(bytes: Buffer, { start, end }: Span): string | undefined {
  return bytes[start] === QUOTE ? (JSON.parse(bytes.toString('utf8', start, end)) as string) : undefined;
}
