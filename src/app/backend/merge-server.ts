import { invalidInput } from '../../api/http/problems.ts';
import type { NewServer, ServerChanges, ServerSettings } from '../../api/server-input.ts';
import { serverProblems } from '../../config/server-rules.ts';

/** A server after changes. Throws where its parts do not fit each other then. */
export function mergeServer(server: NewServer, { settings, ...changes }: ServerChanges): NewServer {
  const kept = Object.entries({ ...server.settings, ...settings }).filter(
    ([, setting]) => setting !== null && setting !== undefined,
  );
  const merged = { ...server, ...changes, settings: Object.fromEntries(kept) as ServerSettings };
  const wrong = serverProblems({ transport: merged.transport, ...merged.settings }, merged.config, [
    'config',
  ]);
  if (wrong.length > 0) throw invalidInput(wrong);
  return merged;
}
