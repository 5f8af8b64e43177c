import { QUOTE } from './json-bytes.ts';
import type { Span } from './json-scanner.ts';
import { type Member, membersAt } from './members.ts';

/** The members that the modern era adds to results. */
export interface ModernResult {
  /** `complete`, `input_required`, `task`, or a type of an extension. */
  type: string | undefined;
  /** What the client is asked for, and the state that it must return with its input. */
  inputRequests: Span | undefined;
  requestState: Span | undefined;
  taskId: Span | undefined;
  /** Members that legacy clients do not know. */
  additions: Member[];
}

export const INPUT_REQUIRED = 'input_required';

export const modernMembers = [
  'resultType',
  'ttlMs',
  'cacheScope',
  'inputRequests',
  'requestState',
  'taskId',
] as const;

const names: ReadonlySet<string> = new Set(modernMembers);

/** Reads the result at `at` without building values. */
export function readModernResult(bytes: Buffer, at: number): ModernResult {
  return modernResultOf(bytes, membersAt(bytes, at, names));
}

/** The same from members found before. */
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

/** The start of the result in a joined response. */
export function resultStart(bytes: Buffer): number {
  return membersAt(bytes, 0, resultName).get('result')?.value.start ?? 0;
}

const resultName: ReadonlySet<string> = new Set(['result']);

/** Returns undefined if the value is not a string. */
export function stringAt(bytes: Buffer, { start, end }: Span): string | undefined {
  return bytes[start] === QUOTE ? (JSON.parse(bytes.toString('utf8', start, end)) as string) : undefined;
}
