import { MAX_PROBLEMS } from './problems.ts';
import { type ServerEntry, serverSchema, settingsSchema } from './schema.ts';
import { similarTo } from './similar.ts';

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
  ...['sandboxEnabled', 'source', 'tags', 'timeout', 'transportType', 'trust', 'version'],
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
    .slice(0, MAX_PROBLEMS)
    .map((key) => {
      const match = similarTo(key, candidates);
      return match === undefined ? { key } : { key, meant: synonymOf(match) ?? match };
    });
}
