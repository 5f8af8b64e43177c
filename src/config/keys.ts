import { type ServerEntry, serverSchema, settingsSchema } from './schema.ts';

const serverKeys = Object.keys(serverSchema.shape);
const settingKeys = Object.keys(settingsSchema.shape);

/** Keys that other programs keep beside a server and that mean nothing to us. */
const foreignKeys = new Set([
  ...[
    'alwaysAllow',
    'auth',
    'autoApprove',
    'description',
    'dev',
    'disabledTools',
    'displayName',
    'excludeTools',
  ],
  ...[
    'gallery',
    'icon',
    'iconUrl',
    'id',
    'includeTools',
    'metadata',
    'name',
    'note',
    'notes',
    'oauth',
    'sandbox',
  ],
  ...['sandboxEnabled', 'source', 'tags', 'timeout', 'tools', 'transportType', 'trust', 'version'],
]);

/** What other programs, and people, call our keys. */
const synonyms: Record<string, keyof ServerEntry> = {
  cmd: 'command',
  arguments: 'args',
  environment: 'env',
  serverUrl: 'url',
  httpUrl: 'url',
  endpoint: 'url',
  transport: 'type',
  workingDirectory: 'cwd',
  maxConcurrency: 'concurrency',
  timeout_ms: 'timeoutMs',
  instances: 'replicas',
};

interface UnknownKey {
  key: string;
  /** The known key that was probably meant. */
  meant?: string;
}

/** Our key for what another program calls so. */
export function synonymOf(key: string): keyof ServerEntry | undefined {
  return Object.hasOwn(synonyms, key) ? synonyms[key] : undefined;
}

/** The keys of a server that nobody is known to use. */
export function unknownServerKeys(entry: object): UnknownKey[] {
  const keys = Object.keys(entry).filter((key) => !foreignKeys.has(key) && !/^(\$|_|\/\/)/.test(key));
  return unknownAmong(keys, serverKeys);
}

export function isSetting(key: string): boolean {
  return settingKeys.includes(key);
}

export function unknownSettings(settings: object): UnknownKey[] {
  return unknownAmong(Object.keys(settings), settingKeys);
}

function unknownAmong(keys: string[], known: string[]): UnknownKey[] {
  const candidates = [
    ...known,
    ...Object.keys(synonyms).filter((key) => known.includes(synonyms[key] ?? '')),
  ];
  return keys
    .filter((key) => !known.includes(key))
    .map((key) => {
      const match = closest(key, candidates);
      return match === undefined ? { key } : { key, meant: synonymOf(match) ?? match };
    });
}

function closest(key: string, candidates: string[]): string | undefined {
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(key.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, distance }) => distance <= Math.max(1, Math.floor(candidate.length / 3)))
    .toSorted((left, right) => left.distance - right.distance);
  return ranked[0]?.candidate;
}

/** Levenshtein's: how many characters must be added, removed or replaced. */
function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (const [index, character] of [...left].entries()) {
    const next = [index + 1];
    for (let column = 1; column <= right.length; column += 1) {
      const replaced = (row[column - 1] ?? 0) + (right[column - 1] === character ? 0 : 1);
      next.push(Math.min(replaced, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
